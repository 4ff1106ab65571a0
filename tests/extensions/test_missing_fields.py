"""Fields that pages have stopped to tell are found soon.

No order of a site's titles is taken for that.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

import pytest

from moviecrawler.extensions.missing_fields import (
    FIELD_RUN,
    GONE_AFTER_PAGES,
    MISSING_SCORE_PAGES,
    MissingFields,
)
from moviecrawler.items import Movie, Score, Site
from moviecrawler.replica.collection import Collection
from moviecrawler.sites import SCORES, SITES
from moviecrawler.sites.ids import title_url
from moviecrawler.sites.pages import read_page
from tests.runs import make_movie
from tests.services.replica import page_of

TITLES = 200
COLLECTION = Collection(1, TITLES)


SCORES_OF_METACRITIC = [
    Score(kind="metascore", value=70, count=20),
    Score(kind="metacritic_user", value=7.1, count=100),
]


def movie(number: int, **changes: Any) -> Movie:
    """Return a movie as a page of Metacritic has it."""
    of_page = {"site": "metacritic", "plot": "A storm.", "scores": SCORES_OF_METACRITIC}
    return make_movie(number, **of_page | changes)


@cache
def movies(site: Site) -> list[Movie]:
    """Return what is read from a site's title pages."""
    found = []
    for site_id in COLLECTION.ids[site].values():
        read = read_page(page_of(COLLECTION, site, site_id), title_url(site, site_id)).movie
        assert read is not None
        found.append(read)
    return found


ORDERS: dict[str, Callable[[Movie], Any]] = {
    "best": lambda movie: max(
        (score.value / SCORES[score.kind].scale for score in movie.scores), default=0
    ),
    "fame": lambda movie: max((score.count or 0 for score in movie.scores), default=0),
    "date": lambda movie: movie.release_date or str(movie.year or 0),
    "spelling": lambda movie: (movie.title or "")[::-1],
}


@pytest.mark.parametrize("site", SITES)
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("reverse", [False, True])
def test_no_order_of_a_sites_titles_is_a_finding(site: Site, order: str, reverse: bool) -> None:
    fields = MissingFields()
    for one in sorted(movies(site), key=ORDERS[order], reverse=reverse):
        assert fields.add(one) == []
        assert fields.scoreless < GONE_AFTER_PAGES


def after(pages: int, *unknown: str, **lacking: None) -> list[list[str]]:
    """Return what is found by each page after 40 whole ones.

    These fields are unknown on each of the pages.
    """
    fields = MissingFields()
    for number in range(40):
        assert fields.add(movie(number)) == []
    return [
        fields.add(movie(number, unknown_fields=list(unknown), **lacking))
        for number in range(pages)
    ]


@pytest.mark.parametrize(
    ("field", "pages", "lacking"),
    [
        ("metascore", MISSING_SCORE_PAGES, {}),
        ("metascore_reviews", MISSING_SCORE_PAGES, {}),
        ("plot", FIELD_RUN, {"plot": None}),
    ],
    ids=[
        "a score on 15 of 50 pages",
        "its votes on 15 of 50 pages",
        "another field on 30 pages in a row",
    ],
)
def test_field_is_found_to_be_missing_once_and_soon(
    field: str, pages: int, lacking: dict[str, None]
) -> None:
    assert after(pages + 5, field, **lacking) == [[]] * (pages - 1) + [[field]] + [[]] * 5


@pytest.mark.parametrize(("last", "is_missing"), [(49, True), (50, False)])
def test_a_score_is_missing_by_the_latest_50_pages(last: int, *, is_missing: bool) -> None:
    fields = MissingFields()
    for number in range(last):
        assert not fields.add(movie(number, unknown_fields=["metascore"] * (number < 14)))
    assert bool(fields.add(movie(last, unknown_fields=["metascore"]))) is is_missing


def test_a_field_that_this_crawl_has_never_seen_is_not_missing() -> None:
    fields = MissingFields()
    assert not any(
        fields.add(movie(number, plot=None, unknown_fields=["plot"])) for number in range(100)
    )


def test_pages_that_tell_no_score_or_can_not_be_read_are_counted_in_a_row() -> None:
    fields = MissingFields()
    every = ["metascore", "metacritic_user_score"]
    for number in range(5):
        fields.add_unreadable()
        fields.add_unreadable()
        assert fields.unreadable == 2
        fields.add(movie(number, scores=[], unknown_fields=every))
        assert (fields.unreadable, fields.scoreless) == (0, number + 1)
    fields.add(movie(9))
    assert fields.scoreless == 0
