"""What counts as a drop of coverage, and what doesn't."""

from __future__ import annotations

import copy
import random
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import count
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moviecrawler.catalogue.fields import NAMES, names_of, present, with_fields_of
from moviecrawler.items import Credit, Movie, Score
from moviecrawler.monitors.coverage import (
    KNOWN_FROM,
    MOST_PAGES,
    WINDOW,
    Coverage,
    Levels,
    chance_of,
    gone,
    least_share,
    merge,
)
from moviecrawler.monitors.likeness import group_of, groups_of_today
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


def titled(number: int, votes: int | None, *, is_famous: bool = True, **fields: Any) -> Movie:
    """Return a title with so many votes; an obscure one has no Metascore, budget and poster, as nobody cared."""
    scores = [Score(kind="metascore", value=70, count=20)] if is_famous else []
    if votes is not None:
        scores.append(Score(kind="metacritic_user", value=7.1, count=votes))
    few: dict[str, Any] = {} if is_famous else {"amounts": [], "poster_url": None, "certificate": None}
    return movie(number, **{"scores": scores, **few, **fields})


def crawled(levels: Levels, movies: Iterable[Movie]) -> tuple[Coverage, dict[str, int]]:
    """Return the coverage after a crawl, and the first page at which each field was low; what it has learnt is in `levels`."""
    coverage = Coverage(copy.deepcopy(levels))
    found: dict[str, int] = {}
    for number, one in enumerate(movies, start=1):
        coverage.take(one)
        for name in coverage.findings():
            found.setdefault(name, number)
    for group, learnt in coverage.learnt(at_end=True).items():
        known = levels.setdefault(group, {})
        for name, more in learnt.items():
            known[name] = merge(known.get(name, (0.0, 0.0)), *more)
    return coverage, found


def mixed(pages: int, seed: int, **fields: Any) -> Iterator[Movie]:
    """Yield titles of every kind and fame, of which every third is obscure."""
    luck = random.Random(seed)  # noqa: S311 - no secret
    for number in range(pages):
        is_famous = luck.random() < 2 / 3
        votes = int(10 ** (luck.uniform(4, 6.5) if is_famous else luck.uniform(0.5, 3.5)))
        kind = luck.choice(["movie", "movie", "series"])
        year = luck.choice([1999, 1999, 2026])
        yield titled(number, votes, is_famous=is_famous, kind=kind, year=year, **fields)


@pytest.mark.parametrize("obscure", [50, 900, None])
def test_obscure_titles_after_famous_ones_are_no_alarm(obscure: int | None) -> None:
    levels: Levels = {}
    _, found = crawled(levels, (titled(number, 200_000) for number in range(300)))
    assert not found
    lack: dict[str, Any] = (
        {"runtime_minutes": None, "plot": None} if obscure is None else {}
    )  # whoever has no votes has little else
    for _ in range(3):
        _, found = crawled(levels, (titled(number, obscure, is_famous=False, **lack) for number in range(150)))
        assert not found
    _, found = crawled(levels, (titled(number, 200_000) for number in range(300)))
    assert not found
    # Either kind has its own level now.
    _, found = crawled(levels, (titled(number, obscure, is_famous=False, **lack, genres=[]) for number in range(20)))
    assert list(found) == ["genres"]
    _, found = crawled(levels, (titled(number, 200_000, amounts=[]) for number in range(20)))
    assert list(found) == ["amounts.budget"]


def test_list_that_goes_from_famous_to_obscure_is_no_alarm() -> None:
    levels: Levels = {}
    for seed in range(5):
        assert not crawled(levels, mixed(400, seed))[1]
    by_fame = sorted(mixed(600, 9), key=lambda one: -max(score.count or 0 for score in one.scores))
    assert not crawled(levels, by_fame)[1]
    assert not crawled(levels, reversed(by_fame))[1]


@pytest.mark.parametrize("earlier", [2, 8], ids=["a few levels known", "many levels known"])
@pytest.mark.parametrize(
    ("name", "without"),
    [
        ("runtime_minutes", {"runtime_minutes": None}),
        ("amounts.budget", {"amounts": []}),
        ("credits.director", {"credits": []}),
    ],
)
def test_field_that_is_renamed_in_a_mixed_crawl_is_found_within_200_pages(
    name: str, without: dict[str, Any], earlier: int
) -> None:
    levels: Levels = {}
    for seed in range(earlier):
        assert not crawled(levels, mixed(300, seed))[1]
    coverage, found = crawled(levels, [*mixed(150, 98), *mixed(200, 99, **without)])
    assert 150 < found[name] <= 350
    assert coverage.findings()[name].standing == "collapsed"
    assert set(found) == set(names_of(present(movie()) & ~present(movie(**without))))
    assert coverage.take(titled(1, 200_000, **without))[name] == "collapsed"


def test_field_that_each_of_many_small_groups_lacks_a_few_times_is_found() -> None:
    kinds = ["movie", "series", "short", "video", "game"]
    bands = [3 * 10**power for power in range(1, 7)]
    mix = [(kind, year, votes) for kind in kinds for year in (1999, 2026) for votes in bands]
    levels = {
        group_of(titled(1, votes, kind=kind, year=year)): {"plot": (60.0, 20.0), "genres": (60.0, 60.0)}
        for kind, year, votes in mix
    }
    pages = [
        titled(number, votes, kind=kind, year=year, plot=None) for number, (kind, year, votes) in enumerate(mix * 4)
    ]
    random.Random(1).shuffle(pages)  # noqa: S311 - no secret
    found = crawled(levels, pages)[1]
    assert list(found) == ["plot"]
    assert found["plot"] <= 200


def test_votes_that_are_renamed_are_an_alarm_and_hide_nothing() -> None:
    levels: Levels = {}
    for seed in range(6):
        assert not crawled(levels, mixed(300, seed))[1]

    def without_counts(one: Movie) -> Movie:
        return replace(one, scores=[replace(score, count=None) for score in one.scores])

    before = list(mixed(100, 98))
    coverage, found = crawled(levels, [*before, *map(without_counts, mixed(200, 99))])
    assert {"scores.metascore.count", "scores.metacritic_user.count"} <= set(found)
    assert all(100 < page <= 132 for name, page in found.items() if name.endswith(".count"))
    assert coverage.findings()["scores.metacritic_user.count"].standing == "collapsed"
    doubts = coverage.take(without_counts(titled(1, 200_000)))
    assert doubts == {"scores.metascore.count": "collapsed", "scores.metacritic_user.count": "collapsed"}
    # Nothing was taught to titles without votes by those whose votes can't be read.
    assert not crawled(levels, mixed(300, 97))[1]

    coverage, found = crawled(levels, [*before, *mixed(200, 99, scores=[])])
    assert list(found) == ["votes"]
    assert found["votes"] <= 200
    doubts = coverage.take(titled(1, None, scores=[]))
    assert doubts == {"scores.metascore": "collapsed", "scores.metacritic_user": "collapsed"}


def test_score_that_is_gone_is_found_by_the_votes_of_the_other() -> None:
    levels: Levels = {}
    crawled(levels, mixed(600, 1))
    pages = (replace(one, scores=[score for score in one.scores if score.kind != "metascore"]) for one in mixed(200, 2))
    assert list(crawled(levels, pages)[1]) == ["scores.metascore"]


@pytest.mark.parametrize("share", [0.2, 0.4])
def test_some_titles_without_any_votes_are_no_alarm(share: float) -> None:
    levels: Levels = {}
    crawled(levels, (titled(number, 200_000) for number in range(300)))
    luck = random.Random(1)  # noqa: S311 - no secret
    pages = (titled(number, 200 if luck.random() < share else None, is_famous=False) for number in range(400))
    assert not crawled(levels, pages)[1]


@pytest.mark.parametrize("seed", range(3))
def test_first_crawl_ever_is_no_alarm(seed: int) -> None:
    pages = sorted(mixed(500, seed), key=lambda one: -max(score.count or 0 for score in one.scores))
    for order in (pages, list(reversed(pages)), list(mixed(500, seed))):
        assert not crawled({}, order)[1]


def test_levels_of_the_former_version_are_left_out() -> None:
    former = {"-|movie|old": {"plot": (900.0, 900.0)}}
    today = taught()
    assert groups_of_today({**former, **today}) == today
    assert until_low(Coverage(groups_of_today(former)), "plot", plot=None) is None


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


def test_sections_are_bounded() -> None:
    coverage = Coverage({})
    for number in range(200):
        coverage.take(movie(number, list_name=f"list {number}"))
    assert len(coverage._sections) <= 64
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
