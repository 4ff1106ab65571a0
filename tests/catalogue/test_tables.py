"""What is written to a CSV table comes back as it was."""

from __future__ import annotations

import csv
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from moviecrawler.catalogue.tables import MOVIE_COLUMNS, movie_row, neutralise, read_movies, restore, write_row
from moviecrawler.errors import TableError
from moviecrawler.items import Amount, Credit, Movie, Score
from moviecrawler.sites import SCOREBOARD_KINDS

if TYPE_CHECKING:
    from pathlib import Path

FORMULA_SIGNS = "=+-@\t\r\n＝＋－＠"
NASTY = st.text(
    st.one_of(st.characters(exclude_categories=["Cs"]), st.sampled_from("'\"\0,;" + FORMULA_SIGNS)), min_size=1
)
ITEMS = st.lists(NASTY.filter(lambda text: "; " not in f"{text};{text}"), max_size=3)


def credits_of(*roles: tuple[Any, list[str]]) -> list[Credit]:
    return [
        Credit(name=name, role=role, position=position)
        for role, names in roles
        for position, name in enumerate(names, 1)
    ]


MOVIES = st.builds(
    Movie,
    site=st.just("imdb"),
    site_id=st.just("tt0000001"),
    url=NASTY,
    title=NASTY,
    kind=st.sampled_from(["movie", "series"]),
    original_title=st.none() | NASTY,
    plot=st.none() | NASTY,
    year=st.none() | st.integers(1870, 2100),
    release_date=st.none() | st.dates(datetime(1870, 1, 1).date(), datetime(2100, 1, 1).date()).map(str),  # noqa: DTZ001
    runtime_minutes=st.none() | st.integers(1, 10_000),
    genres=ITEMS,
    credits=st.builds(lambda a, b: credits_of(("director", a), ("writer", b)), ITEMS, ITEMS),
    scores=st.dictionaries(
        st.sampled_from(SCOREBOARD_KINDS), st.tuples(st.floats(1, 10), st.none() | st.integers(1, 10**9))
    ).map(lambda found: [Score(kind=k, value=v, count=c) for k, (v, c) in sorted(found.items())]),
    keywords=ITEMS,
    taglines=ITEMS,
    consensus=st.none() | NASTY,
    poster_width=st.none() | st.integers(1, 10_000),
    external_ids=st.dictionaries(st.sampled_from(["ems", "justwatch"]), st.sampled_from(["1", "/us/a=b", "a; b;"])),
    amounts=st.lists(st.integers(1, 10**15), max_size=1).map(
        lambda found: [Amount(kind="worldwide", value=value, currency="EUR") for value in found]
    ),
    list_rank=st.none() | st.integers(1, 250),
    list_computed=st.booleans(),
    silent=st.sampled_from([[], ["poster_url"], ["credits.cast", "scores.imdb.count"]]),
    scraped_at=st.datetimes(timezones=st.just(UTC)),
)


def write(path: Path, *movies: Movie) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(MOVIE_COLUMNS)
        for movie in movies:
            write_row(writer, movie_row(movie))


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(MOVIES, MOVIES)
def test_movies_come_back_as_they_were_written(tmp_path: Path, one: Movie, other: Movie) -> None:
    write(tmp_path / "movies.csv", one, other)
    found = list(read_movies(tmp_path / "movies.csv"))
    for movie in found:
        movie.scores.sort(key=lambda score: score.kind)
    assert found == [one, other]


@given(NASTY)
def test_a_neutralised_text_starts_no_formula_and_is_restored(text: str) -> None:
    cell = neutralise(text)
    assert not cell.startswith(tuple(FORMULA_SIGNS))
    assert restore(cell) == text
    assert cell == text or cell == "'" + text


def test_a_long_plot_is_read_back(tmp_path: Path) -> None:
    movie = Movie(site="imdb", site_id="tt0000001", url="u", title="T", kind="movie", plot="Rain. " * 500_000 + "End.")
    write(tmp_path / "movies.csv", movie)
    assert next(read_movies(tmp_path / "movies.csv")) == movie


def test_a_byte_order_mark_that_an_editor_added_is_no_part_of_a_name(tmp_path: Path) -> None:
    movie = Movie(site="imdb", site_id="tt0000001", url="u", title="T", kind="movie")
    write(tmp_path / "movies.csv", movie)
    text = (tmp_path / "movies.csv").read_bytes()
    (tmp_path / "movies.csv").write_bytes(b"\xef\xbb\xbf" + text)
    assert list(read_movies(tmp_path / "movies.csv")) == [movie]


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ("imdb,tt0000001", f"has not {len(MOVIE_COLUMNS)} cells"),
        (",".join(["imdb"] * 99), f"has not {len(MOVIE_COLUMNS)} cells"),
        (",".join({"year": "MCMXC", "title": "T"}.get(column, "") for column in MOVIE_COLUMNS), "near line 2: "),
        ('"imdb', "unexpected end"),
        ("imdb,\xff", "can't decode"),
    ],
)
def test_what_is_no_table_of_ours_is_told_by_line(tmp_path: Path, row: str, reason: str) -> None:
    path = tmp_path / "movies.csv"
    path.write_bytes((",".join(MOVIE_COLUMNS) + "\r\n" + row + "\r\n").encode("latin-1"))
    with pytest.raises(TableError, match=reason):
        list(read_movies(path))


def test_a_missing_column_is_told_by_name(tmp_path: Path) -> None:
    (tmp_path / "movies.csv").write_text("site,site_id\r\n")
    with pytest.raises(TableError, match="no column"):
        list(read_movies(tmp_path / "movies.csv"))


def test_a_table_of_the_version_before_is_read(tmp_path: Path) -> None:
    movie = Movie(site="imdb", site_id="tt0000001", url="u", title="T", kind="movie", year=2001)
    write(tmp_path / "movies.csv", movie)
    last = MOVIE_COLUMNS.index("scraped_at") + 1
    old = [",".join(line.split(",")[:last]) for line in (tmp_path / "movies.csv").read_text().splitlines()]
    (tmp_path / "movies.csv").write_text("\r\n".join(old) + "\r\n")
    assert list(read_movies(tmp_path / "movies.csv")) == [movie]
