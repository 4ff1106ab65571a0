"""What pages have places for, when a missing place is a finding, and what is none."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from moviecrawler.fields import told_by
from moviecrawler.items import Fetch, Movie, Score, Site, TitleKind
from moviecrawler.monitors.places import (
    ALL_SCORES,
    ANY,
    BASELINE_PAGES,
    KNOWN_FROM_PAGES,
    NOTHING,
    WINDOW_PAGES,
    Baselines,
    Places,
    Seen,
    group_of,
    merge,
)
from tests.monitors.movies import continued, movie

SCORES: dict[Site, list[str]] = {
    "imdb": ["scores.imdb", "scores.metascore"],
    "metacritic": ["scores.metascore", "scores.metacritic_user"],
    "rottentomatoes": ["scores.popcornmeter", "scores.tomatometer"],
}
ALL_FIELDS = sorted({(site, name) for site in SCORES for name in told_by(site, "movie")})


def title(number: int, fame: float = 0.9, *silent: str, site: Site = "metacritic", **fields: Any) -> Movie:
    """Return a title's page: the less famous (1 to 0), the fewer values it has, but every place."""
    luck = random.Random(number)  # noqa: S311 - no secret
    kind: TitleKind = "series" if luck.random() < 0.2 else "movie"
    page = movie(number, **{"site": site, "kind": kind, "fetch": fetched(number), **fields})
    kinds = [name.partition(".")[2] for name in SCORES[site]]
    page.scores = [Score(kind=kind, value=7) for kind in kinds if luck.random() < fame]  # type: ignore[arg-type]
    for score in page.scores:
        score.count = 100 if luck.random() < 0.9 else None
    for name in ("plot", "poster_url", "runtime_minutes"):
        if luck.random() > fame:
            setattr(page, name, None)
    if luck.random() > fame:
        page.genres, page.credits, page.amounts = [], [], []
    return silenced(page, *silent)


def fetched(number: int, path: str = "movie") -> Fetch:
    url = f"https://www.metacritic.com/{path}/film-{number}/"
    return Fetch(url=url, status=200, attempts=1, wire_bytes=1, body_bytes=1)


def silenced(page: Movie, *names: str) -> Movie:
    """Return a page without the places of some fields."""
    for name in names:
        part, _, kind = name.partition(".")
        if name.endswith(".count"):
            for score in page.scores:
                score.count = None if kind.startswith(score.kind) else score.count
        elif kind:
            kept = [
                each
                for each in getattr(page, part)
                if kind not in (getattr(each, "kind", ""), getattr(each, "role", ""))
            ]
            setattr(page, part, kept)
        else:
            setattr(page, name, [] if isinstance(getattr(page, name), list) else None)
    shown = {f"scores.{score.kind}" for score in page.scores}
    names = tuple(name for name in names if not name.endswith(".count") or name.removesuffix(".count") in shown)
    page.silent = sorted({*page.silent, *names})
    return page


def famous_to_obscure(pages: int, **given: Any) -> Iterator[Movie]:
    return (title(number, 1 - number / pages, **given) for number in range(pages))


def taken(places: Places, pages: Iterable[Movie]) -> dict[str, int]:
    """Return at which page each finding began."""
    found: dict[str, int] = {}
    for number, page in enumerate(pages, 1):
        places.take(page)
        for name in places.findings():
            found.setdefault(name, number)
    return found


def known(pages: int = 100, **given: Any) -> Places:
    """Return what is known after so many pages that have every place."""
    places = Places()
    assert not taken(places, (title(number, **given) for number in range(pages)))
    return places


def without(name: str, pages: int = WINDOW_PAGES, each: int = 1, **given: Any) -> Iterator[Movie]:
    """Return pages, of which each first, second or so many-th is silent of a field."""
    return (title(number, 0.9, *([] if number % each else [name]), **given) for number in range(pages))


# --- What is no finding -----------------------------------------------------------------------------------------------


def test_place_that_only_some_pages_have_is_not_watched() -> None:
    luck = random.Random(3)  # noqa: S311 - no secret
    places = Places()
    for share in (0.1, 0.5, 0.9, 0.2):
        pages = (title(number, 0.9, *(["certificate"] if luck.random() < share else [])) for number in range(120))
        assert not taken(places, pages), share


def test_place_that_goes_slowly_is_no_finding() -> None:
    luck = random.Random(4)  # noqa: S311 - no secret
    names = ["amounts.domestic" if luck.random() < number / 1500 else "" for number in range(1500)]
    pages = (title(number, 0.9, *filter(None, [name]), site="rottentomatoes") for number, name in enumerate(names))
    assert not taken(Places(), pages)


def test_kinds_of_pages_have_places_of_their_own() -> None:
    places = known()
    other = (silenced(replace(title(number), fetch=fetched(number, "composer")), "plot") for number in range(100))
    assert not taken(places, other)
    assert taken(places, without("plot"))


@pytest.mark.parametrize(
    ("fields", "group"),
    [
        ({}, "movie|movie|released"),
        ({"year": 2027}, "movie|movie|unreleased"),
        ({"year": 2026}, "movie|movie|released"),
        ({"release_date": "2026-11-01"}, "movie|movie|released"),
        ({"release_date": "2026-11-02"}, "movie|movie|unreleased"),
        ({"release_date": "2026-11"}, "movie|movie|released"),
        ({"release_date": "2026-12"}, "movie|movie|unreleased"),
        ({"year": None}, "movie|movie|released"),
        ({"kind": "series"}, "movie|series|released"),
        ({"fetch": None}, "-|movie|released"),
        ({"scraped_at": None, "year": 2050}, "movie|movie|released"),
    ],
)
def test_pages_alike_are_of_a_page_kind_and_title_kind_released_or_not(fields: dict[str, Any], group: str) -> None:
    assert group_of(movie(1, **{"fetch": fetched(1), **fields})) == group


# --- What is one ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("site", "name"), ALL_FIELDS)
def test_renamed_field_is_found_within_50_pages_with_an_example(site: Site, name: str) -> None:
    places = Places()
    assert not taken(places, famous_to_obscure(100 if name.startswith("scores.") else 300, site=site))
    found = taken(places, (title(number, 0.5, name, site=site) for number in range(WINDOW_PAGES)))
    assert found.keys() == {name}
    finding = places.findings()[name]
    assert 15 <= finding.silent <= finding.pages <= WINDOW_PAGES
    assert finding.example.url == f"https://www.metacritic.com/{finding.example.site_id}/"


def test_place_that_may_be_a_label_is_found_when_many_pages_in_a_row_lack_it() -> None:
    luck = random.Random(5)  # noqa: S311 - no secret
    labels = [["year"] if luck.random() < 0.1 else [] for _ in range(300)]  # that only titles with a value have
    places = Places()
    assert not taken(places, (title(number, 0.9, *label, kind="movie") for number, label in enumerate(labels)))
    half = (title(number, 0.9, *(["year"] if number % 5 else []), kind="movie") for number in range(40))
    assert not taken(places, half)  # so it may be with other titles
    found = taken(places, without("year", kind="movie"))
    assert found.keys() == {"year"}
    assert 25 < found["year"] <= 30


def test_field_that_is_renamed_on_some_pages_only_is_found() -> None:
    assert taken(known(), without("plot", 2 * WINDOW_PAGES, each=2)).keys() == {"plot"}


def test_what_is_missing_does_not_become_usual_by_lasting() -> None:
    places = known()
    taken(places, without("plot", 400))
    assert "plot" in places.findings()
    assert "plot" in taken(continued(places), [title(1, 0.9, "plot", kind="movie")])


def test_crawls_of_a_few_pages_each_find_it_together() -> None:
    baselines = known().learnt().baselines
    kept: dict[str, str] = {}
    for crawl in range(10):
        small = Places({group: dict(fields) for group, fields in baselines.items()}, kept)
        if taken(small, (title(number, 0.9, "plot") for number in range(5 * crawl, 5 * crawl + 5))):
            break
        for name, signs in small.learnt().marks.items():
            kept[name] = (kept.get(name, "") + signs)[-WINDOW_PAGES:]
    assert crawl < 6


def test_finding_ends_when_the_place_is_back_and_stays_ended() -> None:
    places = known()
    taken(places, without("plot", 60))
    assert "plot" not in places.present()
    taken(places, (title(number, kind="movie") for number in range(16)))
    assert not places.findings()
    assert {"plot", "scores.metascore"} <= places.present()
    assert not taken(places, [title(1, 0.9, "plot"), *(title(number) for number in range(20))])
    assert {"plot", ALL_SCORES} <= places.present()


def test_nothing_is_known_before_enough_pages() -> None:
    places = known(KNOWN_FROM_PAGES - 1, kind="movie")
    assert not taken(places, without("plot", kind="movie"))
    assert "plot" not in places.present()


def test_kind_of_title_that_was_seldom_seen_does_not_learn_what_is_missing() -> None:
    places = known(kind="movie")
    taken(places, without("plot", 20, kind="movie"))
    taken(places, without("plot", 100, kind="series"))
    taken(places, (title(number, kind="movie") for number in range(100)))
    taken(places, (title(number, kind="series") for number in range(KNOWN_FROM_PAGES)))
    assert taken(places, without("plot", kind="series")).keys() == {"plot"}


# --- When the site has changed its pages ------------------------------------------------------------------------------


def test_one_score_that_is_left_is_enough_to_go_on() -> None:
    assert ALL_SCORES not in taken(known(), without("scores.metascore", 200))


def test_operator_may_accept_that_a_site_has_no_scores_until_one_is_seen() -> None:
    accepted: Baselines = {ANY: {ALL_SCORES: (KNOWN_FROM_PAGES, KNOWN_FROM_PAGES, 0)}}
    places = Places(accepted)
    scoreless = [title(number, 0.9, *SCORES["metacritic"]) for number in range(WINDOW_PAGES)]
    assert ALL_SCORES not in taken(places, scoreless)
    taken(places, (title(number) for number in range(KNOWN_FROM_PAGES)))
    assert ALL_SCORES in taken(places, scoreless)


# --- What is kept -----------------------------------------------------------------------------------------------------


def test_partial_pages_are_counted_with_an_example_of_each_field() -> None:
    places = Places()
    taken(places, [title(1), title(2, 0.9, "plot"), title(3, 0.9, "plot", "year"), title(4)])
    assert (places.pages, places.partial) == (4, 2)
    assert places.silent == {"plot": 2, "year": 1}
    assert places.examples["plot"].site_id == "movie/film-3"
    seen = places.learnt()
    assert (seen.pages, seen.silent, seen.having["plot"], seen.having["year"]) == (4, {"plot": 2, "year": 1}, 2, 3)
    assert seen.having["languages"] == 0  # the site tells of it, and no page had any
    assert places.learnt() == Seen()


def test_a_page_that_lacks_what_no_page_alike_has_is_not_partial() -> None:
    places = Places()
    taken(places, [title(number, 0.9, "languages", "countries") for number in range(3)])  # no title page tells them
    assert places.partial == 0
    taken(places, [title(number, 0.9, "plot") for number in range(100)])
    assert 0 < places.partial < 50  # no page has had a plot


def test_what_could_not_be_kept_is_kept_with_what_comes_later() -> None:
    places, other = Places(), Places()
    pages = [title(number, 0.9, *(["plot"] if number % 3 else [])) for number in range(100)]
    taken(other, pages)
    taken(places, pages[:60])
    failed = places.learnt()
    taken(places, pages[60:])
    places.return_unsaved(failed)
    assert places.learnt() == other.learnt()


def test_what_was_counted_before_anything_was_known_is_not_lost() -> None:
    before, after = Places(), Places({"movie|movie|released": {"plot": (500.0, 0.0, 1.0)}})
    taken(before, [title(1, 0.9, "plot"), title(2)])
    after.continue_from(before)
    taken(after, [title(3)])
    assert (after.pages, after.partial, after.having["year"]) == (3, 1, 3)
    assert after.learnt().pages == 3


def test_baselines_stay_bounded() -> None:
    places = Places()
    for number in range(300):
        places.take(replace(title(number), fetch=fetched(number, f"kind{number}")))
    assert len(places.learnt().baselines) <= 65
    baseline = NOTHING
    for _ in range(3000):
        baseline = merge(baseline, (1.0, 0.0, 1.0))
    assert baseline == (BASELINE_PAGES, 0, BASELINE_PAGES)
    assert merge(baseline, (1000.0, 1000.0, 0.0)) == (BASELINE_PAGES, BASELINE_PAGES / 2, BASELINE_PAGES / 2)
