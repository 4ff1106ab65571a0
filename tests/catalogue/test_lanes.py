"""How popular titles are, how old, and how long all of them take."""

from __future__ import annotations

from datetime import date, timedelta
from typing import Any

import pytest

from moviecrawler.catalogue import lanes
from moviecrawler.catalogue.figures import SiteFigures
from moviecrawler.catalogue.lanes import outlook

TODAY = date(2026, 11, 5)


def test_a_release_known_to_the_month_or_year_is_its_last_day() -> None:
    assert lanes.release_of("2026-02-03", 2025) == date(2026, 2, 3)
    assert lanes.release_of("2024-02", None) == date(2024, 2, 29)
    assert lanes.release_of("2026-12", None) == lanes.release_of(None, 2026) == date(2026, 12, 31)
    assert lanes.release_of(None, None) is None


def test_popularity_grows_with_votes_and_stays_within_its_scale() -> None:
    given = [lanes.popularity_of_votes(number) for number in (0, 1, 5, 100, 1_000, 25_000, 3_000_000, 90_000_000)]
    assert given == sorted(given)
    assert (given[0], given[-1]) == (0, 100)
    assert (lanes.popularity_of_tmdb(-1), lanes.popularity_of_tmdb(1e9)) == (0, 100)


@pytest.mark.parametrize(
    ("counts", "budget", "pages_a_day", "days"),
    [
        ({}, 10, 0, 0),
        ({"old": 900}, 10, 10, 0),
        ({"old": 900, "overdue": 100}, 10, 10, None),  # what is left of the budget catches up with nothing
        ({"old": 900, "overdue": 100}, 20, 10, 10),
        ({"fresh": 140, "absent": 90}, 20, 11, 0),
        ({"unread": 90_000}, 2_000, 1_000, 90),
        ({"old": 90, "airing": 70, "boosted": 70}, 30, 1 + 140 * (1 / 7 - 1 / 90), 0),
        ({"unread": 5}, 0, 5 / 90, None),
    ],
)
def test_the_outlook_says_what_a_site_costs_and_when_it_is_done(
    counts: dict[str, Any], budget: int, pages_a_day: float, days: int | None
) -> None:
    seen = outlook(SiteFigures(site="imdb", **counts), budget=budget, today=TODAY)
    assert seen.pages_a_day == pytest.approx(pages_a_day)
    assert seen.enough is (budget >= pages_a_day)
    assert seen.caught_up_by == (None if days is None else TODAY + timedelta(days))
