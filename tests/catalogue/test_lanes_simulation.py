"""What the lanes promise, over thirty days; the full size is tests/benchmarks/lanes_simulation.py."""

from __future__ import annotations

from datetime import timedelta

import pytest

from moviecrawler.catalogue import lanes
from moviecrawler.items import Site
from tests.catalogue.simulated import SITES, Figures, Scenario, simulate

SMALL = Scenario(
    titles=3_000,
    budgets={"imdb": 900, "rottentomatoes": 150, "metacritic": 18},
    boosts=2,
    trending=8,
    arrivals=2,
    running=45,
    premieres=6,
    seed=7,
)
"""The default budgets and everything else, at three hundredths of the size."""


@pytest.fixture(scope="module")
def month() -> dict[Site, Figures]:
    return simulate(SMALL)


@pytest.mark.parametrize("site", SITES)
def test_no_unread_title_waits_behind_a_less_popular_stale_one(month: dict[Site, Figures], site: Site) -> None:
    seen = month[site]
    assert seen.fetched["stale"] > 0
    assert seen.ahead_of_popular == 0


@pytest.mark.parametrize("site", SITES)
def test_boosted_titles_are_fetched_within_a_day_and_not_twice_a_week(month: dict[Site, Figures], site: Site) -> None:
    seen = month[site]
    assert seen.boosts > 100
    assert seen.boost_waited <= timedelta(days=1)
    assert seen.twice_a_week == 0


@pytest.mark.parametrize("site", SITES)
def test_a_season_that_starts_to_air_is_found_within_7_days_behind_any_backlog(
    month: dict[Site, Figures], site: Site
) -> None:
    seen = month[site]
    assert seen.premieres >= 5
    assert timedelta(days=3) < seen.premiere_waited <= lanes.AIRING_EVERY


@pytest.mark.parametrize("site", SITES)
def test_nothing_starves(month: dict[Site, Figures], site: Site) -> None:
    seen, budget = month[site], SMALL.budgets[site]
    assert seen.busiest_day <= budget
    # What neither boosted nor stale titles may take is left for unread ones, every day.
    assert seen.fewest_unread is not None
    assert seen.fewest_unread >= 0.3 * budget - 1
    assert seen.overdue < lanes.PATIENCE + timedelta(days=2)
    assert seen.still_overdue < lanes.PATIENCE + timedelta(days=2)
    assert seen.popular_read_after is not None
    assert seen.popular_read_after < timedelta(days=4)


def test_sites_that_can_are_read_through(month: dict[Site, Figures]) -> None:
    assert month["imdb"].unread == month["rottentomatoes"].unread == 0
    assert 0 < month["metacritic"].unread < 3_060 - 30 * 18 * 0.5
