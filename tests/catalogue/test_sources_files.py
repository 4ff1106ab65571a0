"""Which titles come from an operator's CSV and from Wikidata, and which files are refused."""

import re
from pathlib import Path

import pytest

from moviecrawler.basics.errors import ConfigurationError, ExtractionError, MovieCrawlerError
from moviecrawler.catalogue.csv_import import CsvTitles
from moviecrawler.catalogue.loading import Done
from moviecrawler.catalogue.rows import ImportRow
from moviecrawler.catalogue.wikidata_import import PROPERTIES, QUERY, WikidataCrosswalk


def saved(folder: Path, content: str | bytes) -> Path:
    path = folder / "mine.csv"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def test_a_csv_names_titles_and_where_they_are(tmp_path: Path) -> None:
    text = (
        "\ufeffIMDB_ID,title,kind,year,popularity,metacritic_id,rottentomatoes_id\r\n"
        'tt0000001,"Salt, Harbour",movie,2001,99.94,'
        "https://www.metacritic.com/movie/salt-harbour/,m/salt_harbour\r\n"
        ",,,,,,\r\n"
        "https://www.imdb.com/title/tt0000002/,,,,,,\r\n"
    )
    given = {"popularity_source": "given", "id_source": "given", "id_confidence": 4.0}
    assert list(CsvTitles(saved(tmp_path, text)).rows()) == [
        ImportRow(
            imdb_id="tt0000001",
            title="Salt, Harbour",
            kind="movie",
            year=2001,
            popularity=99.9,
            site_ids={"metacritic": "movie/salt-harbour", "rottentomatoes": "m/salt_harbour"},
            **given,  # type: ignore[arg-type]
        ),
        ImportRow(imdb_id="tt0000002", **given),  # type: ignore[arg-type]
    ]


TITLES = [("tt0000001", "千と\u3000千尋", 2021), ("tt0000002", 'The "Big" One, Again', 1984)]
TITLES += [("tt0000003", "Amélie\N{NO-BREAK SPACE}!", 2001), ("tt0000004", "\u200fפורשים", 2001)]
TITLES += [("tt0000005", "Two lines", 2001)]


@pytest.mark.parametrize("separator", [",", ";", "\t"])
@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_a_csv_may_come_from_any_spreadsheet(tmp_path: Path, separator: str, line_end: str) -> None:
    """And a title keeps the spaces and marks of its script."""
    quoted = [
        [imdb_id, '"' + title.replace('"', '""') + '"', f"{year}.0"]
        for imdb_id, title, year in TITLES
    ]
    lines = [separator.join(cells) for cells in [["imdb_id", "title", "year"], *quoted, [""]]]
    source = CsvTitles(saved(tmp_path, line_end.join(lines).replace("Two lines", "Two\r\nlines")))
    source.version()
    assert [(row.imdb_id, row.title, row.year) for row in source.rows()] == TITLES


def test_an_id_of_tmdb_is_that_of_a_series_where_the_title_is_one(tmp_path: Path) -> None:
    lines = "kind,imdb_id,tmdb_id\nmovie,tt0000001,7\nseries,tt0000002,7\nseries,tt0000003,\n"
    rows = CsvTitles(saved(tmp_path, lines)).rows()
    assert [(row.tmdb_id, row.tmdb_series_id) for row in rows] == [
        (7, None),
        (None, 7),
        (None, None),
    ]


def test_the_addresses_of_a_list_name_titles_where_they_are_those_of_a_site(tmp_path: Path) -> None:
    addresses = [
        "https://www.imdb.com/title/tt0000001/?ref_=a,",
        "https://www.metacritic.com/movie/salt/,tt0000002",
        "https://lists.example/salt,tt0000003",
        "https://lists.example/lamp,",
    ]
    source = CsvTitles(saved(tmp_path, "\n".join(["url,imdb_id", *addresses])))
    rows = list(source.rows())
    assert [(row.imdb_id, row.site_ids) for row in rows] == [
        ("tt0000001", {}),
        ("tt0000002", {"metacritic": "movie/salt"}),
        ("tt0000003", {}),
    ]
    assert source.damaged == 1


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("imdb_id,rottentomatoes_id\ntt0000001,tv/salt/s02\n", "give the series, tv/salt"),
        ("imdb_id\nnm0000001\n", "line 2: imdb_id is 'nm0000001'"),
        ("imdb_id,year\ntt0000001,01/02/2001\n", "line 2: year is '01/02/2001'"),
        ("imdb_id,year\ntt0000001\n", "line 2 has 1 cells, not 2"),
        ("imdb_id,year\n,2001\n", "line 2 has no imdb_id"),
        ("imdb_id,kind\ntt0000001,play\n", "line 2: kind is 'play': .*; give one of movie"),
        ("imdb_id,popularity\ntt0000001,101\n", "popularity is '101': Expected `float` <= 100"),
        ("imdb_id,popularity\ntt0000001,-1\n", "popularity is '-1': Expected `float` >= 0"),
        ("imdb_id,title\ntt0000001," + "a" * 2_000 + "\n", "title is 'aaa.* length <= 1000"),
        ("imdb_id,title\ntt0000001,Du\0ne\n", r"line 2: title is 'Du\\x00ne'"),
        ("tmdb_id\n2147483648\n", "line 2: tmdb_id is '2147483648'"),
        ("tmdb_id\n0\n", "line 2: tmdb_id is '0': Expected `int` >= 1"),
    ],
)
def test_a_row_that_can_not_be_right_is_left_out_and_told(
    tmp_path: Path, content: str, told: str
) -> None:
    header = content.partition("\n")[0]
    good = ",".join({"imdb_id": "tt0000009", "tmdb_id": "9"}.get(n, "") for n in header.split(","))
    source = CsvTitles(saved(tmp_path, f"{content}{good}\n"))
    assert len(list(source.rows())) == source.damaged == 1
    assert re.search(told, source.first_damage), source.first_damage
    assert len(source.first_damage) < 1_000
    assert source.first_damage.isprintable()


TRACE = (
    "tt00000SPARQL-QUERY: queryStr=SELECT ?imdb WHERE {}\n"
    "java.util.concurrent.TimeoutException\n\tat FutureTask.get\n"
)
"""What Wikidata's service writes into a row when its time is up."""
HEADER = "imdb,rottentomatoes\r\n"


@pytest.mark.parametrize(
    ("source", "content", "told"),
    [
        (CsvTitles, "title,year\nSalt,2001\n", "no column imdb_id, tmdb_id or tmdb_series_id"),
        (CsvTitles, "imdb_id,IMDB_ID\ntt0000001,tt0000001\n", "twice"),
        (
            CsvTitles,
            'imdb_id,title\ntt0000001,"Dune\ntt0000002,Up\n',
            "line 3: unexpected end of data",
        ),
        (CsvTitles, "imdb_id,title\ntt0000001,Am\xe9\n".encode("latin-1"), "is not UTF-8"),
        (WikidataCrosswalk, HEADER + "tt0000001,m/salt\r\n" + TRACE, "time limit"),
        (WikidataCrosswalk, HEADER + "tt0000001,m/salt\r\ntt0000002,m/la", "inside a line"),
        (
            WikidataCrosswalk,
            HEADER + "tt0000001,m/salt\r\ntt0000002\r\n",
            "line 3 has 1 cells, not 2",
        ),
        (WikidataCrosswalk, HEADER + 'tt0000001,"m/sa\r\n', "line"),
        (WikidataCrosswalk, "<html><body>502</body></html>\n", "columns"),
        (WikidataCrosswalk, "imdb,director\r\ntt0000001,Levin\r\n", "needed are imdb and one of"),
        (WikidataCrosswalk, "", "inside a line|columns"),
    ],
)
def test_a_file_that_can_not_be_right_is_refused_before_anything_is_imported(
    tmp_path: Path, source: type[CsvTitles | WikidataCrosswalk], content: str | bytes, told: str
) -> None:
    with pytest.raises(
        ConfigurationError if source is CsvTitles else MovieCrawlerError, match=told
    ) as raised:
        source(saved(tmp_path, content)).version()
    assert len(str(raised.value)) < 1_000
    assert str(raised.value).isprintable()


def test_a_saved_answer_of_wikidata_gives_each_films_ids(tmp_path: Path) -> None:
    columns = QUERY.split(" WHERE")[0].removeprefix("SELECT ").split()
    assert {column.lstrip("?") for column in columns} == {"imdb", *PROPERTIES}
    text = (
        "imdb,rottentomatoes,metacritic,tmdb,tmdb_series\r\n"
        "tt0000001,m/salt_harbour,,1,\r\n"
        "tt0000001,,movie/salt-harbour,,\r\n"
        "tt0000002,tv/brewick,,,2147483647\r\n"
        # What names no title of the site is left out.
        "tt0000003,m/\x1b[31mred,movie/../../etc,99999999999,\r\n"
        "tt0000004,,game/salt,,0\r\n"
        "nm0000001,m/person,movie/salt,,\r\n"
        f"tt0000005,m/{'a' * 298},,,\r\n"
        f"tt0000006,m/{'a' * 299},,,\r\n"
        "tt0000007,tv/lamp/s02,,,\r\n"
        "tt0000008,tv/lamp/s02/e01,,,\r\n"
    )
    rows = list(WikidataCrosswalk(saved(tmp_path, text)).rows())
    assert [(row.imdb_id, row.site_ids, row.tmdb_id, row.tmdb_series_id) for row in rows] == [
        (
            "tt0000001",
            {"rottentomatoes": "m/salt_harbour", "metacritic": "movie/salt-harbour"},
            1,
            None,
        ),
        ("tt0000002", {"rottentomatoes": "tv/brewick"}, None, 2_147_483_647),
        ("tt0000005", {"rottentomatoes": f"m/{'a' * 298}"}, None, None),
        ("tt0000007", {"rottentomatoes": "tv/lamp"}, None, None),
    ]
    assert {(row.id_source, row.id_confidence) for row in rows} == {("wikidata", 2.0)}


def test_an_id_of_tmdb_that_is_given_twice_is_left_out(tmp_path: Path) -> None:
    text = "imdb,rottentomatoes,tmdb\r\n" + "".join(
        f"tt000000{row}\r\n" for row in ("1,,7", "2,,7", "3,m/salt,8", "3,m/salt,9", "4,m/lamp,10")
    )
    rows = WikidataCrosswalk(saved(tmp_path, text)).rows()
    assert [(row.imdb_id, row.tmdb_id) for row in rows] == [("tt0000003", None), ("tt0000004", 10)]


def test_an_id_that_is_given_twice_counts_less(tmp_path: Path) -> None:
    pairs = ["1,m/salt", "1,m/salt_2001", "2,m/lamp", "3,m/lamp", "4,m/river", "4,m/river"]
    rows = WikidataCrosswalk(
        saved(tmp_path, HEADER + "".join(f"tt000000{pair}\r\n" for pair in pairs))
    ).rows()
    assert [
        (str(row.imdb_id)[-1], row.site_ids["rottentomatoes"], row.id_confidence) for row in rows
    ] == [
        ("1", "m/salt", 1.0),
        ("2", "m/lamp", 1.0),
        ("3", "m/lamp", 1.0),
        ("4", "m/river", 2.0),
    ]


def test_a_saved_answer_that_lacks_more_than_a_tenth_of_what_it_had_is_refused(
    tmp_path: Path,
) -> None:
    source = WikidataCrosswalk(saved(tmp_path, HEADER))
    for rows, former in ((0, None), (90, 100), (89, 98)):
        source.rows_read = rows
        source.check(Done(rows=None, former=former))
    with pytest.raises(ExtractionError, match="of 89 titles, and had those of 100 at the last"):
        source.check(Done(rows=None, former=100))
