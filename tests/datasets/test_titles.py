"""What is read of the rows of IMDb's datasets: every fact, and nothing that no row tells."""

import gzip
import json
import os
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import duckdb
import msgspec
import pytest

from moviecrawler.basics.errors import ExtractionError, InterruptedReadError, MovieCrawlerError
from moviecrawler.datasets.known import KnownTitles
from moviecrawler.datasets.tables import COLUMNS, NO_ID, Tables
from moviecrawler.datasets.titles import MissingTitle, read_titles
from moviecrawler.items import Movie
from tests.dataset_files import READ_AT, movies_of, put
from tests.runs import largest_file

GIVEN: dict[str, list[str | bytes]] = {
    "title.basics": [r"tt0900001|movie|The Kettle|Der Kessel|1999|\N|118|Comedy,Drama"],
    "title.ratings": ["tt0900001|8.7|30000", "tt0900001|8.7|30000"],  # a row may come twice
    "title.crew": [r"tt0900001|nm0900001,nm0900004|nm0900003"],
    "title.principals": [
        # Sorted by the text of the second column, and one row for each character.
        r'tt0900001|1|nm0900001|actor|["Ole"]',
        r'tt0900001|10|nm0900002|actress|["The Twin"]',
        r'tt0900001|2|nm0900002|actress|["Vera \"V\" Lindqvist","Vera"]',
        r"tt0900001|3|nm0900005|self|\N",
        r"tt0900001|4|nm0900003|writer|\N",
        r"tt0900001|5|nm0900009|archive_footage|\N",
    ],
    "title.akas": [
        r"tt0900001|10|Le bouilloire|FR|fr|\N",
        r"tt0900001|2|The Kettle|US|\N|" + "dvd\x02imdbDisplay",
        r"tt0900001|1|Der Kessel|\N|\N|original",
    ],
    "title.episode": [],
    "name.basics": ["nm0900001|Aino Välimäki", "nm0900002|Berit Storm", "nm0900003|Cato Lund"],
}
KETTLE = msgspec.json.decode(Path(__file__).with_name("kettle.json").read_bytes(), type=Movie)
"""What they tell."""
IDS = [f"tt090000{number}" for number in range(1, 8)]


def files_of(folder: Path, **rows: list[str | bytes]) -> dict[str, Path]:
    """Write GIVEN, but for the rows of some datasets."""
    return {
        name: put(folder, name, *rows.get(name.removeprefix("title."), GIVEN[name]))
        for name in COLUMNS
    }


def read_files(
    files: dict[str, Path], folder: Path
) -> tuple[list[Movie], dict[tuple[str, str], tuple[int, str]]]:
    """Return what is read of those of IDS that the files have, and what is damaged."""
    with closing(Tables(files, folder)) as tables:
        tables.want(IDS)
        return movies_of(tables), tables.damaged


def rows_of(told: list[str]) -> list[str | bytes]:
    """Return rows of the first of IDS; of each, what follows the id.

    A lone surrogate stands for a byte that is no text.
    """
    return [
        f"{site_id}|{text}".encode(errors="surrogateescape")
        for site_id, text in zip(IDS, told, strict=False)
    ]


@contextmanager
def wanted(folder: Path, *ids: str, **rows: list[str | bytes]) -> Iterator[Tables]:
    """Open files in which titles are wanted."""
    with closing(Tables(files_of(folder, **rows), folder)) as tables:
        tables.want(list(ids))
        yield tables


def read(
    folder: Path, **rows: list[str | bytes]
) -> tuple[list[Movie], dict[tuple[str, str], tuple[int, str]]]:
    return read_files(files_of(folder, **rows), folder)


@pytest.mark.promise(
    "IMDb's datasets are read with all that they tell, and a damaged row or file erases nothing."
)
def test_a_title_has_all_that_the_datasets_tell_of_it(tmp_path: Path) -> None:
    (movie,), damaged = read(tmp_path)
    assert not damaged
    assert movie == KETTLE


@pytest.mark.promise("A missing value is never a zero.")
@pytest.mark.parametrize(
    ("row", "values"),
    [
        (r"movie|Kettle|\N|2000|1999|0|\N", ["Kettle", None, 2000, None, None, [], "movie"]),
        (r"tvSpecial|Gala|Gala|\N|\N||", ["Gala", None, None, None, None, [], "other"]),
        (
            r'tvSeries|"A" 4"|Der Hafen|2001|2005|45|Drama',
            ['"A" 4"', "Der Hafen", 2001, 2005, 45, ["Drama"], "series"],
        ),
    ],
    ids=["unknown", "older-files-leave-fields-empty", "quotes-are-text"],
)
def test_what_is_not_known_has_no_value(tmp_path: Path, row: str, values: list[object]) -> None:
    (movie,), _ = read(tmp_path, basics=[f"tt0900001|{row}"])
    names = ("title", "original_title", "year", "end_year", "runtime_minutes", "genres", "kind")
    assert [getattr(movie, name) for name in names] == values


def test_an_episode_has_its_number_and_the_title_of_its_series(tmp_path: Path) -> None:
    basics: list[str | bytes] = [
        r"tt0900001|tvEpisode|Salt|\N|1999|||",
        r"tt0900008|tvSeries|Salt|\N|1999|||",
    ]
    (movie,), _ = read(tmp_path, basics=basics, episode=["tt0900001|tt0900008|1|0"])
    assert (movie.series_id, movie.series_title, movie.season, movie.episode) == (
        "tt0900008",
        "Salt",
        1,
        0,
    )
    (movie,), _ = read(tmp_path, basics=basics, episode=[r"tt0900001|tt0900007|\N|\N"])
    assert (movie.season, movie.episode) == (None, None)
    assert "series_title" in movie.unknown_fields
    assert "season" not in movie.unknown_fields


@pytest.mark.parametrize(
    ("dataset", "field", "rows"),
    [
        (
            "ratings",
            "imdb_rating",
            ["8.7", "8.7|5|6", "0.0|5", "10.1|5", "nan|5", "8.7|0", r"8.7|\N"],
        ),
        ("crew", "directors", ["nm0900001"]),
        ("crew", "writers", [r"Aino|\N"]),
        (
            "principals",
            "credits.cast",
            [r"one|nm0900001|self|\N", '1|nm0900001|self|[["A"]]', '1|nm0900001|self|["\udce9"]'],
        ),
        ("akas", "other_titles", [r"1|\N|FR|fr|\N"]),
        ("episode", "series_id", ["Salt|1|2"]),
    ],
)
def test_a_damaged_row_is_counted_and_tells_nothing(
    tmp_path: Path, dataset: str, field: str, rows: list[str]
) -> None:
    basics = rows_of([r"tvEpisode|Pilot|\N|1999|\N|\N|\N"] * len(IDS))
    movies, damaged = read(tmp_path, basics=basics, **{dataset: rows_of(rows)})
    assert [field in movie.unknown_fields for movie in movies] == [True] * len(IDS)
    assert damaged.keys() == {(f"title.{dataset}", site_id) for site_id in IDS[: len(rows)]}
    movies, damaged = read(tmp_path, basics=basics, **{dataset: []})
    assert not damaged
    # Only titles with five votes stand among the ratings.
    assert [field in movie.unknown_fields for movie in movies] == [dataset != "ratings"] * len(IDS)


@pytest.mark.parametrize(
    ("dataset", "rows", "field", "values"),
    [
        (
            "principals",
            [r"1|nm0900001|actor|\N", r'2|nm0900002|actor|["Ole', r"3|nm0900003|self|\N"],
            "credits",
            ["nm0900001", "nm0900003"],
        ),
        ("principals", [r"1|nm0900001|actor|\N", "2|nm0900002"], "credits", ["nm0900001"]),
        ("akas", [r"1|Kessel|DE|de|\N", r"x|Lid|US|en|\N"], "other_titles", ["Kessel"]),
    ],
    ids=["characters", "cells", "akas"],
)
def test_a_damaged_row_of_several_costs_itself_only(
    tmp_path: Path, dataset: str, rows: list[str], field: str, values: list[str]
) -> None:
    given: dict[str, list[str | bytes]] = {
        "crew": [],
        dataset: [f"tt0900001|{row}" for row in rows],
    }
    (movie,), damaged = read(tmp_path, **given)
    kept = getattr(movie, field)
    assert [one.person_id if field == "credits" else one.title for one in kept] == values
    assert damaged[f"title.{dataset}", "tt0900001"][0] == 1


def test_a_damaged_row_of_a_cast_is_not_read_as_an_absence_of_it(tmp_path: Path) -> None:
    rows: list[str | bytes] = [r"tt0900001|1|nm0900001|director|\N", "tt0900001|2|nm0900002|actor"]
    (movie,), _ = read(tmp_path, principals=rows)
    assert "credits.cast" in movie.unknown_fields


def test_a_rating_is_not_absent_where_an_id_of_the_ratings_can_not_be_read(tmp_path: Path) -> None:
    for row in ("#tt0900001|8.7|30000", r"\N|8.7|30000", "\udce9|8.7|3"):
        (movie,), damaged = read(tmp_path, ratings=[row.encode(errors="surrogateescape")])
        assert "imdb_rating" in movie.unknown_fields
        assert damaged.keys() == {("title.ratings", NO_ID)}


UNTITLED = r"movie|\N|\N|1999|\N|118|Drama"
BAD_ROWS = [
    "movie",
    r"movie|Kettle|\N|1999|\N|long|Drama",
    r"movie|Kettle|\N|19x9|\N|118|Drama",
    r"movie|Kettle|\N|1999|\N|118|Drama|more",
    r"\N|Kettle|\N|1999|\N|118|Drama",
    "movie|Kettl\udce9|\\N|1999|\\N|118|Drama",
]


def missing_of(tables: Tables) -> dict[str, MissingTitle]:
    """Return what there is no record of; each title comes once."""
    titles = list(read_titles(tables, READ_AT))
    assert len({title.site_id for title in titles}) == len(titles)
    return {title.site_id: title for title in titles if isinstance(title, MissingTitle)}


@pytest.mark.parametrize(
    ("row", "unknown"),
    [
        (r"movie|Kettle|\N|2115|\N|118|Drama", "year"),
        (r"tvSeries|Kettle|\N|1999|2115|118|Drama", "end_year"),
        (r"movie|Kettle|\N|1999|\N|99999999|Drama", "runtime_minutes"),
        (r"movie|Kettle|\N|-5|\N|118|Drama", "year"),
        (r"movie|Kettle|\N|1999|\N|99999999999|Drama", "runtime_minutes"),
    ],
)
def test_a_number_out_of_its_bounds_is_unknown(tmp_path: Path, row: str, unknown: str) -> None:
    with wanted(tmp_path, IDS[0], basics=rows_of([row])) as tables:
        (movie,) = movies_of(tables)
    assert getattr(movie, unknown) is None
    assert unknown in movie.unknown_fields
    assert movie.genres == ["Drama"]


def test_each_wanted_title_without_a_record_says_why(tmp_path: Path) -> None:
    rows = rows_of([UNTITLED, *BAD_ROWS])
    with wanted(tmp_path, *IDS, "tt0900009", basics=rows) as tables:
        missing = missing_of(tables)
    assert {site_id: title.outcome for site_id, title in missing.items()} == {
        "tt0900001": "absent",
        **dict.fromkeys(IDS[1:], "failed"),
        "tt0900009": "absent",
    }
    assert missing["tt0900001"].reason == "IMDb's title.basics has no title of it"
    assert missing["tt0900004"].reason.startswith(
        "its row in IMDb's title.basics is damaged: Expected `int | null`, got `str` - at `$[4]` "
        'of ["tt0900004","movie","Kettle",null,"19x9"'
    )


@pytest.mark.parametrize("row", ["#tt0900001|movie", r"\N|movie|Kettle|\N|1999|\N|118|Drama"])
def test_a_title_is_not_absent_where_an_id_can_not_be_read(tmp_path: Path, row: str) -> None:
    with wanted(tmp_path, "tt0900001", basics=[row]) as tables:
        (missing,) = missing_of(tables).values()
    assert missing.outcome == "failed"
    assert missing.reason == (
        "IMDb's title.basics has no row of it, but 1 rows whose id can't be read"
    )


def test_two_rows_in_one_line_are_both_damaged(tmp_path: Path) -> None:
    one = r"movie|Kettle|\N|1999|\N|118|Drama"
    basics: list[str | bytes] = [f"tt0900001|{one} tt0900002|{one}"]
    with wanted(tmp_path, "tt0900001", "tt0900002", basics=basics) as tables:
        assert [title.outcome for title in missing_of(tables).values()] == ["failed"] * 2


def test_a_list_of_all_has_each_damaged_row_up_to_its_limit(tmp_path: Path) -> None:
    good = r"tvSeries|Salt|\N|1999|\N|118|Drama"
    rows = rows_of([UNTITLED, *BAD_ROWS])
    others = [*rows_of([good])[:1], f"tt0900010|{good}", r"tt0900011|short|Lid|\N|1999|\N|9|Drama"]
    files = files_of(tmp_path, basics=[*rows[1:], *others, *others])
    for limit, listed in ((None, [*IDS, "tt0900010"]), (3, IDS[:3])):
        with closing(Tables(files, tmp_path)) as tables:
            tables.want_all(limit)
            assert [title.site_id for title in read_titles(tables, READ_AT)] == listed
            assert tables.list_size == len(listed)


def test_a_long_list_of_characters_is_cut_between_two(tmp_path: Path) -> None:
    names = [f"Passer-by {number}" for number in range(2_000)]
    (movie,), _ = read(tmp_path, principals=[f"tt0900001|1|nm0900001|actor|{json.dumps(names)}"])
    character = movie.people("cast")[0].character or ""
    assert len(character) <= 9_000
    assert character.split(" / ") == names[: character.count(" / ") + 1]


@pytest.mark.parametrize("dataset", COLUMNS)
def test_columns_are_found_by_name_and_a_missing_one_is_named(tmp_path: Path, dataset: str) -> None:
    files = files_of(tmp_path)
    lines = [
        line.split("\t")
        for line in gzip.decompress(files[dataset].read_bytes()).decode().splitlines()
    ]
    text = "".join("\t".join(["new", *reversed(line)]) + "\n" for line in lines)
    files[dataset].write_bytes(gzip.compress(text.encode()))
    moved, _ = read_files(files, tmp_path)
    assert moved == [KETTLE]
    files[dataset].write_bytes(gzip.compress(text.replace(lines[0][0], "other", 1).encode()))
    with pytest.raises(ExtractionError, match="no such column") as error:
        read_files(files, tmp_path)
    assert error.value.field == lines[0][0]


@pytest.mark.parametrize(
    "damage",
    [lambda data: data[:-20], lambda _: b"<html>Sorry</html>", lambda _: b""],
    ids=["cut", "html", "empty"],
)
def test_a_file_that_is_damaged_is_an_error_before_the_first_title(
    tmp_path: Path, damage: object
) -> None:
    files = files_of(tmp_path)
    path = files["title.ratings"]
    path.write_bytes(damage(path.read_bytes()))  # type: ignore[operator]
    with closing(Tables(files, tmp_path)) as tables:
        tables.want(["tt0900001"])
        with pytest.raises(
            ExtractionError, match=r"damaged or cut short|no such column; it has "
        ) as error:
            next(read_titles(tables, READ_AT))
    assert error.value.url == str(path)
    with closing(Tables(files, tmp_path)) as tables, pytest.raises(ExtractionError) as error:
        tables.want_chart("top", None)  # which reads two files at once
    assert error.value.url == str(path)


@pytest.mark.long
@pytest.mark.parametrize("dataset", ["title.ratings", "title.principals", "title.akas"])
def test_a_file_with_an_id_a_million_times_is_an_error_within_seconds(
    tmp_path: Path, dataset: str
) -> None:
    files = files_of(tmp_path)
    put(tmp_path, dataset, *["tt0900001" + "|1" * COLUMNS[dataset].count(",")] * 1_000_000)
    began = time.monotonic()
    told = "damaged: it has 1000000 rows of tt0900001"
    with pytest.raises(ExtractionError, match=told):
        read_files(files, tmp_path)
    assert time.monotonic() - began < 60


def test_a_full_disk_is_told_and_no_dataset_is_taken_for_damaged(tmp_path: Path) -> None:
    told = pytest.raises(MovieCrawlerError, match=r"pass-.*: File too large; free some space there")
    with (
        closing(Tables(files_of(tmp_path), tmp_path)) as tables,
        largest_file(1_000_000),
        told as raised,
    ):
        tables.run("INSERT INTO wanted SELECT 'tt' || range FROM range(10000000, 20000000)")
    assert not isinstance(raised.value, ExtractionError)  # for which the file would be fetched anew


def test_reading_ends_soon_when_the_crawl_does(tmp_path: Path) -> None:
    ids = [f"tt{number:07}" for number in range(400_000)]
    akas: list[str | bytes] = [rf"{site_id}|1|Kessel|DE|de|\N" for site_id in ids]
    is_over = threading.Event()

    def interrupt() -> None:
        while not is_over.wait(0.05):
            tables.interrupt()

    with wanted(tmp_path, *ids, akas=akas) as tables:
        thread = threading.Thread(target=interrupt, daemon=True)
        thread.start()
        with pytest.raises(InterruptedReadError, match="the crawl was ended"):
            list(read_titles(tables, READ_AT))
        is_over.set()
        thread.join()


def chart(folder: Path, films: list[str], name: str, limit: int | None = None) -> dict[str, int]:
    """Return the ranks of films, each given by id, type, genres, rating and votes."""
    given = [film.split() for film in films]
    basics: list[str | bytes] = [
        rf"{one}|{kind}|Film|Film|2000|\N|100|{genres}" for one, kind, genres, _, _ in given
    ]
    ratings: list[str | bytes] = [f"{one}|{rating}|{votes}" for one, _, _, rating, votes in given]
    with closing(Tables(files_of(folder, basics=basics, ratings=ratings), folder)) as tables:
        return tables.want_chart(name, limit)


@pytest.mark.parametrize(
    ("name", "ranked", "others"),
    [
        # The second has the higher mean, but of few votes; the mean of all draws it below the
        # first.
        ("top", "movie Drama 9.0 900000; movie Drama 9.5 25000; movie Drama 5.0 900000", ""),
        (
            "top",
            "movie Drama 8.0 25000; movie Drama 8.0 25001",
            "movie Drama 9.0 24999; tvMovie Drama 9.0 90000",
        ),
        (
            "top",
            "movie Drama 8 25000",
            "tvSeries Drama 9 90000; short Drama 9 90000; movie Documentary,Music 9 90000",
        ),
        (
            "toptv",
            "tvSeries Documentary 9.0 90000; tvMiniSeries Drama 8.0 90000",
            "tvEpisode Drama 9.9 90000",
        ),
        ("toptv", "tvSeries Drama 8.0 25000", "movie Drama 9.9 90000; tvSeries Drama 9.9 24999"),
        (
            "top",
            "; ".join(f"movie Drama 8.0 {26_000 - n}" for n in range(250)),
            "movie Drama 8.0 25700",
        ),
        (
            "popular",
            "tvMovie Drama 2 1001; movie Documentary 9 1000",
            "movie Drama 9 999; tvSeries Drama 9 2000",
        ),
        (
            "populartv",
            "; ".join(f"tvSeries Drama 8.0 {26_000 - n}" for n in range(100)),
            "tvSeries Drama 9.0 2000",
        ),
    ],
    ids=["weighted", "films", "no-documentaries", "series", "no-films", "250", "popular", "tv"],
)
def test_a_chart_holds_what_it_is_of_in_its_order(
    tmp_path: Path, name: str, ranked: str, others: str
) -> None:
    films = [
        f"tt09{number:05} {film}"
        for number, film in enumerate(f"{ranked}; {others}".strip("; ").split("; "))
    ]
    ids = [film.split()[0] for film in films[: ranked.count(";") + 1]]
    assert chart(tmp_path, films[::-1], name) == {
        site_id: rank for rank, site_id in enumerate(ids, 1)
    }
    assert list(chart(tmp_path, films[::-1], name, limit=2)) == ids[:2]


def test_ties_in_the_top_250_are_broken_by_votes_then_by_id(tmp_path: Path) -> None:
    votes = {"tt10900001": 30_000, "tt0900009": 30_000, "tt0900010": 40_000}
    top = chart(
        tmp_path, [f"{site_id} movie Drama 8.0 {count}" for site_id, count in votes.items()], "top"
    )
    assert top == {"tt0900010": 1, "tt0900009": 2, "tt10900001": 3}


def test_rows_that_come_twice_push_no_title_out_of_a_chart(tmp_path: Path) -> None:
    films = [f"tt09{n:05} movie Drama 8.0 {26_000 - n}" for n in range(250)]
    assert chart(tmp_path, [*films[:9], *films], "top") == {
        f"tt09{n:05}": n + 1 for n in range(250)
    }


def test_a_damaged_rating_changes_no_rank_of_others(tmp_path: Path) -> None:
    films = ["tt0900001 movie Drama 8.0 90000", "tt0900002 movie Drama 7.0 90000"]
    for damaged in ("nan 90000", "99 90000", "8.5 x", "8.5 0"):
        assert chart(tmp_path, [*films, f"tt0900003 movie Drama {damaged}"], "top") == {
            "tt0900001": 1,
            "tt0900002": 2,
        }


def test_passes_that_end_at_once_both_keep_what_they_have_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[Path] = []

    def replace_a_little_later(part: Path, target: Path) -> None:
        written.append(part)
        if len(written) < len(passes):
            passes[len(written)].remember(READ_AT)  # the other one ends meanwhile
        os.replace(part, target)  # noqa: PTH105 - that of Path is this function

    kettle = "tt0900001"
    with wanted(tmp_path, kettle) as one, wanted(tmp_path, kettle) as other:
        passes = [KnownTitles(tables, tmp_path, "all", list) for tables in (one, other)]
        for known, tables in zip(passes, (one, other), strict=True):
            assert len(list(read_titles(tables, READ_AT, known=known))) == 1
        monkeypatch.setattr(Path, "replace", replace_a_little_later)
        passes[0].remember(READ_AT)
    assert len(written) == 2
    assert duckdb.read_parquet(str(tmp_path / "read.parquet")).project("id").fetchall() == [
        (kettle,)
    ]


def test_what_a_killed_pass_has_left_goes_after_a_day(tmp_path: Path) -> None:
    for name, hours in (("pass-old", 25), ("pass-new", 23)):
        left = tmp_path / name
        left.mkdir()
        os.utime(left, (time.time() - hours * 3600,) * 2)
    Tables({}, tmp_path).close()
    assert [left.name for left in tmp_path.iterdir()] == ["pass-new"]
