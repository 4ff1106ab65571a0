"""What counts as a drop of coverage, and what doesn't."""

from __future__ import annotations

import random
from itertools import count
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moviecrawler.catalogue.fields import NAMES, names_of, present, with_fields_of
from moviecrawler.items import Credit, Score
from moviecrawler.monitors.coverage import (
    KNOWN_FROM,
    MOST_PAGES,
    WINDOW,
    Coverage,
    Levels,
    chance_of,
    gone,
    group_of,
    least_share,
    merge,
)
from tests.monitors.movies import movie


def taught(pages: int = 300, share: float = 1.0, field: str = "plot") -> Levels:
    """Return the levels after so many pages that have everything, and one field at a share."""
    coverage = Coverage({})
    for number in range(pages):
        has = number % 100 < share * 100
        coverage.take(movie(number) if has else movie(number, lacking=field))
    return coverage.learnt(at_end=True)


def until_low(coverage: Coverage, field: str, most: int = 400, **lacking: Any) -> int | None:
    """Return how many pages that lack something are taken until its field is low; None for not within `most`."""
    for number in range(1, most + 1):
        coverage.take(movie(number, **lacking))
        if field in coverage.findings():
            return number
    return None


def test_fields_are_found_by_their_names() -> None:
    assert {"year", "plot", "scores.metascore", "credits.director", "amounts.budget"} <= set(names_of(present(movie())))
    assert "scores.imdb" not in names_of(present(movie()))
    assert not set(names_of(present(movie(plot=None, genres=[], scores=[])))) & {"plot", "genres", "scores.metascore"}


def test_fields_of_an_earlier_reading_are_put_back_one_by_one() -> None:
    bare = movie(plot=None, scores=[Score(kind="metacritic_user", value=5)], credits=[])
    whole = with_fields_of(bare, movie(), {"plot", "scores.metascore", "credits.director"})
    assert whole.plot == movie().plot
    assert {score.kind: score.value for score in whole.scores} == {"metacritic_user": 5, "metascore": 70}
    assert whole.credits == [Credit(name="Ann Lee", role="director", position=1)]


@pytest.mark.parametrize(("share", "most"), [(1.0, 8), (0.9, 16), (0.5, 64), (0.3, WINDOW)])
def test_field_that_is_gone_is_found_within_as_many_pages_as_its_level_needs(share: float, most: int) -> None:
    pages = until_low(Coverage(taught(1000, share)), "plot", plot=None)
    assert pages is not None
    assert pages <= most


def test_collapse_is_told_from_a_drop() -> None:
    coverage = Coverage(taught())
    for number in range(30):
        coverage.take(movie(number, lacking="" if number % 2 else "plot"))
    assert coverage.findings()["plot"].standing == "low"
    gone = Coverage(taught())
    for number in range(10):
        gone.take(movie(number, plot=None))
    assert gone.findings()["plot"].standing == "collapsed"


@pytest.mark.parametrize("pages", range(1, 6))
def test_few_pages_are_no_alarm(pages: int) -> None:
    coverage = Coverage(taught())
    for number in range(pages):
        coverage.take(movie(number, plot=None))
    assert not coverage.findings()


def test_without_a_known_level_nothing_is_low_and_nothing_unusual() -> None:
    coverage = Coverage(taught(KNOWN_FROM - 1))
    assert until_low(coverage, "plot", KNOWN_FROM, plot=None) is None
    assert coverage.take(movie(0, plot=None)) == {}


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10_000), share=st.floats(0.05, 1.0))
def test_chance_is_no_alarm(seed: int, share: float) -> None:
    luck = random.Random(seed)  # noqa: S311 - no secret
    coverage = Coverage({group_of(movie()): {"plot": (1000.0, 1000.0 * share)}})
    for number in range(500):
        coverage.take(movie(number) if luck.random() < share else movie(number, plot=None))
        assert not coverage.findings()


def test_pages_are_compared_with_pages_like_them() -> None:
    coverage = Coverage(taught())
    for number in range(60):
        coverage.take(movie(number, kind="series", plot=None))
        coverage.take(movie(number, list_name="obscure", plot=None))
        coverage.take(movie(number, year=2026, plot=None))
    assert not coverage.findings()
    # A year that can't be read any more doesn't make a title a new one, among which nothing is known of years.
    assert until_low(coverage, "year", 20, year=None) is not None


def test_field_in_the_first_crawl_is_compared_with_its_earlier_pages() -> None:
    coverage = Coverage({})
    for number in range(WINDOW + KNOWN_FROM):
        coverage.take(movie(number))
    assert until_low(coverage, "plot", plot=None) is not None


def test_what_is_missing_does_not_become_usual_by_lasting() -> None:
    levels = taught()
    coverage = Coverage(levels)
    for number in range(2000):
        coverage.take(movie(number, plot=None))
    assert coverage.findings()["plot"].standing == "collapsed"
    learnt = coverage.learnt(at_end=True)[group_of(movie())]
    assert "plot" not in learnt
    assert learnt["genres"][0] == pytest.approx(2000)


def test_short_crawls_with_a_hole_do_not_teach_it() -> None:
    coverage = Coverage(taught())
    for number in range(5):
        coverage.take(movie(number, plot=None))
    learnt = coverage.learnt(at_end=True)[group_of(movie())]
    assert "plot" not in learnt
    assert learnt["genres"] == (5, 5)


def test_field_that_is_back_is_well_again() -> None:
    coverage = Coverage(taught())
    assert until_low(coverage, "plot", plot=None)
    for number in count():
        coverage.take(movie(number))
        if "plot" not in coverage.findings():
            break
        assert number < 100
    assert number >= 16
    for more in range(20):
        coverage.take(movie(more))
    assert "plot" in coverage.well()


def test_doubts_say_what_is_known() -> None:
    coverage = Coverage(taught())
    assert coverage.take(movie(1, plot=None)) == {"plot": "unusual"}
    assert coverage.take(movie(2)) == {}
    assert until_low(coverage, "plot", plot=None)
    assert coverage.take(movie(3, plot=None)) == {"plot": "collapsed"}


def test_field_that_had_collapsed_is_suspected_from_the_first_page_on() -> None:
    coverage = Coverage(taught(), ["plot"])
    assert coverage.take(movie(1, plot=None)) == {"plot": "collapsed"}
    for number in range(40):
        coverage.take(movie(number))
    assert "plot" in coverage.well()
    assert coverage.take(movie(1, plot=None)) == {"plot": "unusual"}


@pytest.mark.parametrize(
    ("pages", "seen", "found"),
    [(7, 0, False), (8, 0, True), (40, 3, True), (40, 5, False), (5000, 400, True), (5000, 900, False)],
)
def test_field_that_many_short_crawls_did_not_see_is_suspected(pages: int, seen: int, found: bool) -> None:
    assert gone(taught(), {"plot": (pages, seen), "genres": (pages, pages), "certificate": (pages, 0)}) == (
        {"plot"} if found else set()
    )


def test_forgotten_field_begins_anew() -> None:
    coverage = Coverage(taught())
    assert until_low(coverage, "plot", plot=None)
    coverage.forget("plot")
    assert not coverage.findings()
    assert coverage.take(movie(1, plot=None)) == {}


def test_groups_are_bounded() -> None:
    coverage = Coverage({})
    for number in range(200):
        coverage.take(movie(number, list_name=f"list {number}"))
    assert len(coverage._groups) <= 64
    assert coverage.pages == 200


@given(pages=st.integers(1, 60), share=st.floats(0.01, 0.99))
def test_chances_add_up(pages: int, share: float) -> None:
    chances = [chance_of(seen, pages, share) for seen in range(pages + 1)]
    assert chances == sorted(chances)
    assert chances[-1] == pytest.approx(1)
    assert 0 <= least_share(pages * share, pages) <= share


@given(st.lists(st.tuples(st.integers(1, 500), st.floats(0, 1)), max_size=20))
def test_levels_stay_shares_of_a_bounded_weight(added: list[tuple[int, float]]) -> None:
    level = (0.0, 0.0)
    for pages, share in added:
        level = merge(level, pages, pages * share)
    assert 0 <= level[1] <= level[0] * (1 + 1e-9)
    assert level[0] <= MOST_PAGES * (1 + 1e-9)


def test_names_are_few() -> None:
    assert len(NAMES) == len(set(NAMES)) < 32
