"""The places of the replica's pages, as the sites' readers find them: in any order of titles, and when the pages change."""

from __future__ import annotations

import random
from collections.abc import Iterable
from datetime import UTC, datetime
from functools import cache
from typing import Any
from urllib.parse import urlsplit

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moviecrawler.extract.pages import read_page
from moviecrawler.items import Fetch, Movie, Site
from moviecrawler.monitors.places import ALL_SCORES, GONE_AFTER_PAGES, WINDOW_PAGES, Places
from moviecrawler.replica.movies import Catalogue
from moviecrawler.replica.sources import Answer, Generated
from moviecrawler.sites import SCORES, SITES
from moviecrawler.urls import title_url
from tests.monitors.movies import continued

TITLES = 260
CATALOGUE = Catalogue(1, TITLES)
NOW = datetime(2026, 11, 1, tzinfo=UTC)
ORDERS = (
    "best",
    "worst",
    "newest",
    "oldest",
    "random",
    "only unscored",
    "only unreleased",
    "only obscure",
    "only famous",
)

RENAMES: dict[Site, dict[str, list[str]]] = {
    "imdb": {
        "scores.imdb": ["aggregateRating"],
        "scores.metascore": ['"metacritic"'],
        "scores.imdb.count": ["voteCount"],
    },
    "metacritic": {
        "scores.metascore": ["critic-score-summary", "criticScoreSummary", "aggregateRating"],  # each has it
        "scores.metacritic_user": ["user-score-summary"],
        "scores.metacritic_user.count": ["reviewCount"],
    },
    "rottentomatoes": {
        # The one stands in JSON-LD as well, the other in the overlay.
        "scores.tomatometer": ["criticsScore", "criticsAll", "criticsTop", "aggregateRating"],
        "scores.popcornmeter": ["audienceScore", "audienceAll", "audienceVerified"],
    },
}
"""Keys of each score, and of its votes where pages tell them exactly."""


def site_id(catalogue: Catalogue, site: Site, index: int) -> str | None:
    """Return a title's id on a site; None where the site doesn't have it."""
    if site == "imdb":
        return catalogue.imdb_id(index)
    if site == "metacritic":
        found = catalogue.metacritic(index)
        return None if found is None else f"movie/{found.slug}"
    facts = catalogue.rottentomatoes(index)
    return None if facts is None else f"m/{facts.slug}"


@cache
def pages(site: Site) -> list[tuple[str, bytes]]:
    """Return the addresses and bodies of a site's title pages."""
    generated = Generated(CATALOGUE, light=True)
    found = []
    for name in filter(None, (site_id(CATALOGUE, site, index) for index in range(TITLES))):
        url = title_url(site, name)
        answer = generated.answer(site, urlsplit(url).path, {}, SITES[site].home)
        if isinstance(answer, Answer) and answer.status == 200:
            found.append((url, answer.body.identity()))
    return found


def read(url: str, body: bytes) -> Movie:
    movie = read_page(body, url).movie
    assert movie is not None
    movie.scraped_at = NOW
    movie.fetch = Fetch(url=url, status=200, attempts=1, wire_bytes=1, body_bytes=1)
    return movie


@cache
def movies(site: Site) -> list[Movie]:
    return [read(*page) for page in pages(site)]


def renamed(site: Site, keys: Iterable[str], number: int = WINDOW_PAGES) -> list[Movie]:
    """Return what is read from pages whose keys have other names."""
    found = []
    for url, body in pages(site)[:number]:
        changed = body
        for key in keys:
            changed = changed.replace(key.encode(), key.replace(key.strip('"'), "renamed").encode())
        found.append(read(url, changed))
    return found


def ordered(films: list[Movie], order: str, luck: random.Random) -> list[Movie]:
    def best(movie: Movie) -> float:
        return max((score.value / SCORES[score.kind].scale for score in movie.scores), default=0)

    def fame(movie: Movie) -> int:
        return max((score.count or 0 for score in movie.scores), default=0)

    def date(movie: Movie) -> str:
        return movie.release_date or str(movie.year or 0)

    by: dict[str, Any] = {
        "best": lambda: sorted(films, key=best, reverse=True),
        "worst": lambda: sorted(films, key=best),
        "newest": lambda: sorted(films, key=date, reverse=True),
        "oldest": lambda: sorted(films, key=date),
        "random": lambda: luck.sample(films, len(films)),
        "only unscored": lambda: [film for film in films if not film.scores] * 10,
        "only unreleased": lambda: [film for film in films if date(film) > NOW.date().isoformat()] * 10,
        "only obscure": lambda: sorted(films, key=fame)[: len(films) // 3],
        "only famous": lambda: sorted(films, key=fame)[-len(films) // 3 :],
    }
    found: list[Movie] = by[order]()
    return found


@pytest.mark.parametrize("site", SITES)
@given(st.randoms(use_true_random=False), st.lists(st.sampled_from(ORDERS), min_size=1, max_size=3))
@settings(max_examples=12, deadline=None)
def test_no_order_of_a_sites_titles_is_a_finding(site: Site, luck: random.Random, orders: list[str]) -> None:
    places = Places()
    for order in orders:
        for movie in ordered(movies(site), order, luck):
            places.take(movie)
            assert not places.findings(), order
        places = continued(places)


@pytest.mark.parametrize(("site", "name"), [(site, name) for site in SITES for name in RENAMES[site]])
def test_renamed_key_of_a_score_is_found_within_50_pages(site: Site, name: str) -> None:
    places = Places()
    for movie in movies(site)[WINDOW_PAGES : 3 * WINDOW_PAGES]:
        places.take(movie)
    for movie in renamed(site, RENAMES[site][name]):
        places.take(movie)
    assert name in places.findings()
    assert ALL_SCORES not in places.findings()
    # What stands beside scores, and finer ones, have the same keys.
    kept = {"scores.imdb", "scores.metascore", "scores.metacritic_user", "scores.tomatometer", "scores.popcornmeter"}
    assert {found for found in places.findings() if not found.startswith("scores.") or found in kept} <= {name}


@pytest.mark.parametrize("site", SITES)
def test_all_keys_of_scores_renamed_are_found_within_50_pages(site: Site) -> None:
    places = Places()
    keys = [key for keys in RENAMES[site].values() for key in keys]
    found: list[bool] = []
    for movie in renamed(site, keys):
        places.take(movie)
        found.append(ALL_SCORES in places.findings())
    assert found.index(True) + 1 == GONE_AFTER_PAGES
