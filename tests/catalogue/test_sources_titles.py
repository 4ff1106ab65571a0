"""Which titles come from IMDb's datasets, TMDB's export and an operator's CSV."""

from __future__ import annotations

import gzip
import json
import tracemalloc
from collections.abc import Iterator
from datetime import date
from pathlib import Path

import pytest

from moviecrawler.catalogue.csv_import import CsvTitles
from moviecrawler.catalogue.imdb_import import BASICS, RATINGS, ImdbDatasets
from moviecrawler.catalogue.lanes import popularity_of_tmdb, popularity_of_votes
from moviecrawler.catalogue.rows import ImportRow
from moviecrawler.catalogue.selection import Selection
from moviecrawler.catalogue.tmdb_import import TmdbExport, file_name
from moviecrawler.datasets.downloads import DownloadError
from moviecrawler.errors import ConfigurationError, ExtractionError
from tests.catalogue.files import FileServer, fetched

BASICS_HEADER = "tconst\ttitleType\tprimaryTitle\toriginalTitle\tisAdult\tstartYear\tendYear\truntimeMinutes\tgenres\n"
ROWS = (
    "tt0000001\tmovie\tSalt Harbour\tHavn av salt\t0\t2001\t\\N\t104\tDrama\n"
    "tt0000002\ttvSeries\tBrewick\tBrewick\t0\t2010\t2012\t45\tDrama\n"
    "tt0000003\tmovie\tUnrated\tUnrated\t0\t2003\t\\N\t\\N\t\\N\n"
    "tt0000004\tmovie\tUndated\tUndated\t0\t\\N\t\\N\t80\tDrama\n"
    "tt0000005\tmovie\tNot for all\tNot for all\t1\t2001\t\\N\t80\tAdult\n"
    "tt0000006\tmovie\tOld One\tOld One\t0\t1950\t\\N\t80\tDrama\n"
)
RATED = (
    "tconst\taverageRating\tnumVotes\ntt0000001\t7.1\t2000\ntt0000002\t8.0\t500\ntt0000004\t5.0\t7\n"
    "tt0000005\t5.0\t900\ntt0000006\t6.0\t30\n"
)


@pytest.fixture
def server() -> Iterator[FileServer]:
    with FileServer() as serving:
        yield serving


def datasets(folder: Path, rows: str = ROWS, rated: str = RATED) -> str:
    folder.mkdir(exist_ok=True)
    (folder / BASICS).write_bytes(gzip.compress((BASICS_HEADER + rows).encode()))
    (folder / RATINGS).write_bytes(gzip.compress(rated.encode()))
    return str(folder)


# --- IMDb -------------------------------------------------------------------------------------------------------------


def test_a_title_comes_with_its_facts_and_its_popularity(tmp_path: Path) -> None:
    first, *_ = ImdbDatasets(datasets(tmp_path), tmp_path).rows()
    assert first == ImportRow(
        imdb_id="tt0000001",
        title="Salt Harbour",
        original_title="Havn av salt",
        kind="movie",
        year=2001,
        runtime_minutes=104,
        popularity=popularity_of_votes(2_000),
        popularity_source="votes",
    )


@pytest.mark.parametrize(
    ("selection", "numbers"),
    [
        (Selection(), [1, 3, 4, 6]),
        (Selection(kinds=frozenset({"movie", "series"})), [1, 2, 3, 4, 6]),
        (Selection(min_votes=30), [1, 6]),
        (Selection(min_votes=31), [1]),
        (Selection(first_year=2001), [1, 3]),
        (Selection(last_year=2001), [1, 6]),
        (Selection(first_year=1951, last_year=2002), [1]),
    ],
)
def test_only_selected_titles_come(tmp_path: Path, selection: Selection, numbers: list[int]) -> None:
    rows = ImdbDatasets(datasets(tmp_path), tmp_path, selection=selection).rows()
    assert [row.imdb_id for row in rows] == [f"tt{number:07}" for number in numbers]


def test_the_version_changes_with_the_files_and_the_selection(tmp_path: Path) -> None:
    origin = datasets(tmp_path)
    first = ImdbDatasets(origin, tmp_path).version()
    assert ImdbDatasets(origin, tmp_path).version() == first
    assert ImdbDatasets(origin, tmp_path, selection=Selection(min_votes=5)).version() != first
    datasets(tmp_path, rated=RATED.replace("2000", "2001"))
    assert ImdbDatasets(origin, tmp_path).version() != first


def test_the_datasets_are_fetched_and_then_only_when_they_changed(server: FileServer, tmp_path: Path) -> None:
    origin = Path(datasets(tmp_path / "origin"))
    server.files = {f"/d/{name}": (origin / name).read_bytes() for name in (BASICS, RATINGS)}
    source = fetched(ImdbDatasets(f"{server.url}/d/", tmp_path / "data"))
    first = source.version()
    assert len(list(source.rows())) == 4
    server.asked.clear()
    again = fetched(ImdbDatasets(f"{server.url}/d", tmp_path / "data"))
    assert again.version() == first
    assert [asked.headers.get("if-none-match") is not None for asked in server.asked if "robots" not in asked.path] == [
        True,
        True,
    ]


def test_progress_goes_from_nothing_to_all(tmp_path: Path) -> None:
    source = ImdbDatasets(datasets(tmp_path), tmp_path)
    source.version()
    assert source.position == 0
    assert source.total == sum((tmp_path / name).stat().st_size for name in (BASICS, RATINGS))
    seen = [source.position for _ in source.rows()]
    assert seen == sorted(seen)
    assert source.position == source.total


def test_a_damaged_row_is_counted_and_left_out_and_a_cut_file_refused(tmp_path: Path) -> None:
    source = ImdbDatasets(datasets(tmp_path, rows=ROWS + "tt0000007\tmovie\tTwo\n"), tmp_path)
    assert len(list(source.rows())) == 4
    assert source.damaged == 1
    whole = (tmp_path / BASICS).read_bytes()
    (tmp_path / BASICS).write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ExtractionError):
        list(ImdbDatasets(str(tmp_path), tmp_path).rows())


def test_a_file_full_of_damage_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ExtractionError, match=r"title\.basics"):
        list(ImdbDatasets(datasets(tmp_path, rows="tt0000007\tmovie\n" * 1_001), tmp_path).rows())


def test_a_folder_without_the_files_is_told(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=BASICS):
        ImdbDatasets(str(tmp_path / "nowhere"), tmp_path).version()


def test_titles_are_read_without_standing_in_memory(tmp_path: Path) -> None:
    """Only the ratings do, and one block of a file."""
    titles = [f"tt{number:07}" for number in range(10_000)]
    basics = [rf"{each}|movie|Kettle {each}|Kessel {each}|0|1999|\N|118|Drama" for each in titles]
    for name, columns, rows in (
        (BASICS, "tconst|titleType|primaryTitle|originalTitle|isAdult|startYear|endYear|runtimeMinutes|genres", basics),
        (RATINGS, "tconst|averageRating|numVotes", [f"{each}|8.7|30000" for each in titles]),
    ):
        text = "\n".join([columns, *rows, ""]).replace("|", "\t")
        (tmp_path / name).write_bytes(gzip.compress(text.encode(), 1))
    source = ImdbDatasets(str(tmp_path), tmp_path)
    tracemalloc.start()
    try:
        assert sum(1 for _ in source.rows()) == 10_000
        streamed = tracemalloc.get_traced_memory()[1]
        tracemalloc.reset_peak()
        assert len(list(source.rows())) == 10_000
        assert streamed < 0.7 * tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    "wrong",
    [{"kinds": frozenset()}, {"min_votes": -1}, {"first_year": 2010, "last_year": 2009}],
)
def test_a_selection_that_takes_nothing_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ConfigurationError):
        Selection(**wrong)  # type: ignore[arg-type]


# --- TMDB -------------------------------------------------------------------------------------------------------------

DAY = date(2026, 11, 5)
FILMS = [
    {"adult": False, "id": 3924, "original_title": "Blondie", "popularity": 2.4, "video": False},
    {"adult": True, "id": 2, "original_title": "No", "popularity": 2.4, "video": False},
    {"adult": False, "id": 3, "original_title": "A concert", "popularity": 2.4, "video": True},
    {"adult": False, "id": 11, "original_title": "Star Wars", "popularity": 90.1, "video": False},
]
EXPORT = "".join(json.dumps(film) + "\n" for film in FILMS).encode()
SERIES_EXPORT = b'{"id":11,"original_name":"Salt Harbour","popularity":4.1}\n{"adult":true,"id":12,"original_name":"No","popularity":1}\n'


def test_films_of_the_export_complete_titles_by_their_tmdb_id(tmp_path: Path) -> None:
    for name, body in (("export.json", EXPORT), ("export.json.gz", gzip.compress(EXPORT))):
        (tmp_path / name).write_bytes(body)
        source = TmdbExport(str(tmp_path / name), tmp_path, day=DAY)
        assert list(source.rows()) == [
            ImportRow(
                tmdb_id=3924, original_title="Blondie", popularity=popularity_of_tmdb(2.4), popularity_source="tmdb"
            ),
            ImportRow(
                tmdb_id=11, original_title="Star Wars", popularity=popularity_of_tmdb(90.1), popularity_source="tmdb"
            ),
        ]
        assert source.position == source.total == len(body)


def test_the_newest_export_is_fetched_and_older_ones_forgotten(server: FileServer, tmp_path: Path) -> None:
    server.files["/p/" + file_name(date(2026, 11, 3))] = gzip.compress(EXPORT)
    source = fetched(TmdbExport(f"{server.url}/p", tmp_path, day=DAY))
    old = source.version()
    assert len(list(source.rows())) == 2
    server.files["/p/" + file_name(DAY)] = gzip.compress(EXPORT * 2)
    newer = fetched(TmdbExport(f"{server.url}/p", tmp_path, day=DAY))
    assert newer.version() != old
    assert {path.name for path in (tmp_path / "tmdb").iterdir()} == {
        file_name(DAY) + end for end in ("", ".etag", ".lock")
    }


def test_series_of_the_other_export_complete_titles_by_their_own_tmdb_id(
    server: FileServer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    salt = ImportRow(
        tmdb_series_id=11,
        original_title="Salt Harbour",
        popularity=popularity_of_tmdb(4.1),
        popularity_source="tmdb",
    )
    server.files["/p/" + file_name(DAY)] = gzip.compress(EXPORT)
    source = fetched(TmdbExport(f"{server.url}/p", tmp_path, day=DAY))
    alone = source.version()
    assert [row.tmdb_id for row in source.rows()] == [3924, 11]
    assert "tv_series_ids_11_05_2026.json.gz" in caplog.text  # a mirror may have films only
    server.files["/p/" + file_name(DAY, "tv_series")] = gzip.compress(SERIES_EXPORT)
    source = fetched(TmdbExport(f"{server.url}/p", tmp_path, day=DAY))
    assert source.version() != alone
    assert list(source.rows())[2:] == [salt]
    assert source.position == source.total
    (tmp_path / "tv.json").write_bytes(SERIES_EXPORT + b'{"id":13,"popularity":1}\n')
    source = TmdbExport(str(tmp_path / "tv.json"), tmp_path, day=DAY)
    assert list(source.rows()) == [salt]
    assert source.damaged == 1


def test_no_export_for_a_week_is_told(server: FileServer, tmp_path: Path) -> None:
    server.files["/p/" + file_name(date(2026, 10, 28))] = gzip.compress(EXPORT)
    with pytest.raises(DownloadError, match="movie_ids_11_05_2026"):
        fetched(TmdbExport(f"{server.url}/p", tmp_path, day=DAY))


def test_damaged_lines_are_counted_and_a_cut_export_refused(tmp_path: Path) -> None:
    path = tmp_path / "export.json"
    path.write_bytes(b"<html>\n" + EXPORT + b'{"id": "x"}\n')
    source = TmdbExport(str(path), tmp_path, day=DAY)
    assert len(list(source.rows())) == 2
    assert source.damaged == 2
    path.write_bytes(EXPORT[:-1])
    with pytest.raises(ExtractionError, match="inside a line"):
        list(TmdbExport(str(path), tmp_path, day=DAY).rows())
    path.write_bytes(b"<html>\n" * 1_001)
    with pytest.raises(ExtractionError, match="line 1001"):
        list(TmdbExport(str(path), tmp_path, day=DAY).rows())


def test_a_missing_export_is_told(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"nowhere\.json"):
        TmdbExport(str(tmp_path / "nowhere.json"), tmp_path, day=DAY).version()


# --- The operator's own -----------------------------------------------------------------------------------------------


def csv_of(tmp_path: Path, text: str) -> CsvTitles:
    path = tmp_path / "mine.csv"
    path.write_bytes(text.encode())
    return CsvTitles(path)


def test_a_csv_names_titles_and_where_they_are(tmp_path: Path) -> None:
    text = (
        "\ufeffIMDB_ID,title,kind,year,popularity,metacritic_id,rottentomatoes_id\r\n"
        'tt0000001,"Salt, Harbour",movie,2001,99.94,https://www.metacritic.com/movie/salt-harbour/,m/salt_harbour\r\n'
        ",,,,,,\r\n"
        "https://www.imdb.com/title/tt0000002/,,,,,,\r\n"
    )
    assert list(csv_of(tmp_path, text).rows()) == [
        ImportRow(
            imdb_id="tt0000001",
            title="Salt, Harbour",
            kind="movie",
            year=2001,
            popularity=99.9,
            popularity_source="given",
            metacritic_id="movie/salt-harbour",
            rottentomatoes_id="m/salt_harbour",
            id_source="given",
            id_confidence=4.0,
        ),
        ImportRow(imdb_id="tt0000002", popularity_source="given", id_source="given", id_confidence=4.0),
    ]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "no column"),
        ("title,year\nSalt,2001\n", "no column imdb_id, tmdb_id or tmdb_series_id"),
        (
            "imdb_id,rottentomatoes_id\ntt0000001,tv/salt/s02\n",
            "line 2: rottentomatoes_id is 'tv/salt/s02': give the series, tv/salt",
        ),
        ("imdb_id,colour\ntt0000001,red\n", "'colour'; the columns known are imdb_id"),
        ("imdb_id,tconst\ntt0000001,tt0000001\n", "twice"),
        ("imdb_id,year\ntt0000001,2001\ntt0000002,01/02/2001\n", "line 3: year is '01/02/2001'"),
        ("imdb_id,year\ntt0000001,1066\n", "line 2: year is '1066'"),
        ("imdb_id,kind\ntt0000001,film\n", "line 2: kind is 'film': give one of movie"),
        ("imdb_id,popularity\ntt0000001,nan\n", "line 2: popularity is 'nan'"),
        ("imdb_id,popularity\ntt0000001,101\n", "0 to 100"),
        ("imdb_id,year\ntt0000001\n", "line 2 has 1 cells, not 2"),
        ("imdb_id,year\n,2001\n", "line 2 has no imdb_id"),
        ("imdb_id\nnm0000001\n", "line 2: imdb_id is 'nm0000001'"),
        ("imdb_id,metacritic_id\ntt0000001,m/salt\n", "metacritic"),
        ('imdb_id\n"tt0000001\n', "line"),
    ],
)
def test_a_wrong_row_is_told_with_its_line_before_anything_is_taken(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(ConfigurationError, match=told):
        csv_of(tmp_path, text).version()


def test_a_csv_in_another_encoding_is_told(tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    path.write_bytes("imdb_id,title\ntt0000001,Élodie\n".encode("latin-1"))
    with pytest.raises(ConfigurationError, match="UTF-8"):
        CsvTitles(path).version()


def test_a_missing_csv_is_told(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="is not there"):
        CsvTitles(tmp_path / "nowhere.csv").version()


def test_the_version_of_a_csv_is_its_content(tmp_path: Path) -> None:
    first = csv_of(tmp_path, "imdb_id\ntt0000001\n").version()
    assert csv_of(tmp_path, "imdb_id\ntt0000001\n").version() == first
    source = csv_of(tmp_path, "imdb_id\ntt0000002\n")
    assert source.version() != first
    assert source.position == 0
    list(source.rows())
    assert source.position == source.total
