"""What is written to the embedded database and its CSV files comes back as it was."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from moviecrawler.items import Amount, Credit, Movie, Score
from moviecrawler.pipelines.sqlite import SqliteStore
from moviecrawler.sites import SCOREBOARD_KINDS
from moviecrawler.texts import neutralise
from tests.pipelines.runs import record_of
from tests.pipelines.stored import in_order, opened, sqlite_movies
from tests.tables import read_movies, restore

if TYPE_CHECKING:
    pass

FORMULA_SIGNS = "=+-@\t\r\n＝＋－＠"
NASTY = st.text(
    st.one_of(st.characters(exclude_categories=["Cs", "Cc"]), st.sampled_from("'\"\x7f,;" + FORMULA_SIGNS)), min_size=1
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
        st.sampled_from(SCOREBOARD_KINDS),
        st.tuples(st.floats(1, 10).map(lambda value: round(value, 2)), st.none() | st.integers(1, 10**9)),
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
    unknown_fields=st.sampled_from([[], ["poster_url"], ["credits.cast", "scores.imdb.count"]]),
    scraped_at=st.datetimes(timezones=st.just(UTC)),
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(MOVIES, MOVIES)
def test_movies_come_back_as_they_were_written(
    tmp_path_factory: pytest.TempPathFactory, one: Movie, other: Movie
) -> None:
    folder = tmp_path_factory.mktemp("data")
    other.site_id = "tt0000002"
    with opened(SqliteStore(folder)) as store:
        store.write([record_of(one), record_of(other)])
    for found in (list(read_movies(folder / "movies.csv")), sqlite_movies(folder)):
        assert sorted(map(in_order, found), key=lambda movie: movie.site_id or "") == [in_order(one), in_order(other)]


@pytest.mark.promise("CSV files are replaced whole, and no cell in them runs as a formula.")
@given(NASTY)
def test_a_neutralised_text_starts_no_formula_and_is_restored(text: str) -> None:
    cell = neutralise(text)
    assert not cell.startswith(tuple(FORMULA_SIGNS))
    assert restore(cell) == text
    assert cell == text or cell == "'" + text
