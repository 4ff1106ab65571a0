"""What is shown of the catalogue: the figures of each site, and how long all takes."""

from datetime import date, timedelta
from typing import Any

import pytest

from moviecrawler.catalogue.figures import SiteFigures, figures
from tests.catalogued import DAY, NOW, Catalogued, outcome, row

TODAY = date(2026, 11, 21)


@pytest.mark.parametrize(
    ("counts", "budget", "days"),
    [
        ({}, 10, 0),
        ({"pages_a_day": 10}, 10, 0),
        # What is left of the budget catches up with nothing.
        ({"pages_a_day": 10, "overdue": 100}, 10, None),
        ({"pages_a_day": 10, "overdue": 100}, 20, 10),
        ({"pages_a_day": 9, "overdue": 3}, 10, 3),
        ({"pages_a_day": 1_000, "unread": 90_000}, 2_000, 90),
        ({"pages_a_day": 5 / 90, "unread": 5}, 0, None),
    ],
)
def test_a_site_has_caught_up_when_its_budget_has_done_what_is_left(
    counts: dict[str, Any], budget: int, days: int | None
) -> None:
    caught_up_by = SiteFigures(site="imdb", **counts).caught_up_by(budget, TODAY)
    assert caught_up_by == (None if days is None else TODAY + timedelta(days))


def test_the_figures_count_each_title_once(store: Catalogued) -> None:
    store.bring_in(*(row(number, year=2026 if number == 1 else 1990) for number in range(1, 7)))
    store.record(
        outcome("tt1000001", at=NOW - 20 * DAY),
        outcome("tt1000002", at=NOW - 3 * DAY),
        outcome("tt1000003", "absent"),
        outcome("tt1000004", "error"),
        outcome("tt1000005", "put off", at=NOW - DAY),
    )
    imdb, metacritic, _ = figures(store, NOW)
    assert (imdb.known, imdb.unread, imdb.ok, imdb.absent, imdb.error) == (6, 3, 2, 1, 1)
    assert (imdb.due, imdb.overdue, imdb.in_date_share) == (3, 1, 0.5)
    assert imdb.pages_a_day == pytest.approx(1 / 14 + 5 / 90)
    assert imdb.oldest == NOW - 20 * DAY
    assert (metacritic.known, metacritic.unfound) == (0, 6)
