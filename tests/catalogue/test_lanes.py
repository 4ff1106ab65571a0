"""When a title is due, which of the due ones is next, and how long all of them take."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moviecrawler.catalogue import lanes
from moviecrawler.catalogue.lanes import Counts, DeficitRoundRobin, Shares, choose, outlook

NOW = datetime(2026, 11, 5, 12, tzinfo=UTC)
DAY = timedelta(days=1)
SECOND = timedelta(seconds=1)
OLD = date(1999, 3, 31)


# --- When a title is due ----------------------------------------------------------------------------------------------


YOUNG = NOW.date()


@pytest.mark.parametrize(
    ("outcome", "released", "failures", "airs", "days"),
    [
        # Young titles are due after 14 days, others after 90, and what airs after 7.
        ("ok", YOUNG - 179 * DAY, 0, False, 14),
        ("ok", YOUNG - 180 * DAY, 0, False, 90),
        ("ok", YOUNG - 181 * DAY, 0, False, 90),
        ("ok", YOUNG, 0, False, 14),
        ("ok", YOUNG + 400 * DAY, 0, False, 14),
        ("ok", None, 0, False, 90),
        ("ok", OLD, 0, True, 7),
        # Failures wait twice as long each time, up to the regular interval.
        *(
            ("error", OLD, failures, False, days)
            for failures, days in ((0, 1), (1, 1), (2, 2), (3, 4), (4, 8), (7, 64))
        ),
        *(("error", OLD, failures, False, 90) for failures in (8, 5_000)),
        ("error", YOUNG, 6, False, 14),
        ("error", OLD, 9, True, 7),
        ("absent", YOUNG, 0, False, 90),
    ],
)
def test_a_title_is_due_again(outcome: Any, released: date | None, failures: int, airs: bool, days: int) -> None:
    assert lanes.next_due(outcome, now=NOW, released=released, failures=failures, airs=airs) == NOW + days * DAY


@pytest.mark.parametrize(("released", "airs", "days"), [(OLD, True, 14), (YOUNG, False, 28), (OLD, False, 104)])
def test_a_season_waits_for_the_page_of_its_series(released: date, airs: bool, days: int) -> None:
    """Later than that page, and never so late that it would pass for put off by a wrong clock."""
    assert lanes.season_due(NOW, released, airs=airs) == NOW + days * DAY < NOW + 120 * DAY


def test_a_block_says_nothing_of_a_title() -> None:
    with pytest.raises(ValueError, match="blocked"):
        lanes.next_due("blocked", now=NOW, released=OLD, failures=1)


@pytest.mark.parametrize(
    ("release_date", "year", "expected"),
    [
        ("2026-02-03", 2025, date(2026, 2, 3)),
        ("2024-02", None, date(2024, 2, 29)),
        ("2026-12", None, date(2026, 12, 31)),
        (None, 2026, date(2026, 12, 31)),
        (None, None, None),
    ],
)
def test_a_release_known_to_the_month_or_year_is_its_last_day(
    release_date: str | None, year: int | None, expected: date | None
) -> None:
    assert lanes.release_of(release_date, year) == expected


def test_popularity_grows_with_votes_and_stays_within_its_scale() -> None:
    votes = [0, 1, 5, 100, 1_000, 25_000, 3_000_000, 90_000_000]
    given_ = [lanes.popularity_of_votes(number) for number in votes]
    assert given_ == sorted(given_)
    assert (given_[0], given_[-1]) == (0, 100)
    assert lanes.popularity_of_votes(1_000) != lanes.popularity_of_votes(1_100)
    assert lanes.popularity_of_tmdb(-1) == 0
    assert lanes.popularity_of_tmdb(1e9) == 100


# --- Boosts -----------------------------------------------------------------------------------------------------------


LATER = NOW + DAY


@pytest.mark.parametrize(
    ("outcome", "boost_due", "failures", "left"),
    [
        ("ok", NOW, 0, None),
        ("absent", NOW, 0, None),
        ("error", NOW, 2, LATER),
        ("error", NOW, 3, None),
        ("error", None, 1, None),
        ("error", LATER + DAY, 1, LATER + DAY),
        ("blocked", NOW - DAY, 9, NOW - DAY),
    ],
)
def test_a_boost_is_served_by_a_page_or_its_absence_and_tried_again_after_a_failure(
    outcome: Any, boost_due: datetime | None, failures: int, left: datetime | None
) -> None:
    assert lanes.boost_left(outcome, boost_due=boost_due, next_due=LATER, failures=failures) == left


# --- Taking turns -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Due:
    title_id: int
    popularity: float = 50.0
    next_due: datetime = NOW


def due(first: int, count: int, popularity: float = 50.0, overdue: timedelta = timedelta()) -> list[Due]:
    return [Due(title_id, popularity, NOW - overdue) for title_id in range(first, first + count)]


def drawn(
    size: int, boosted: list[Due], unread: list[Due], stale: list[Due], round_robin: DeficitRoundRobin | None = None
) -> list[int]:
    chosen = choose(
        size, boosted=boosted, unread=unread, stale=stale, round_robin=round_robin or DeficitRoundRobin(), now=NOW
    )
    return [title.title_id for title in chosen]


@pytest.mark.parametrize(
    ("boosted", "unread", "stale", "expected"),
    [
        # Boosted titles come first, then unread ones, then stale ones.
        (due(100, 10), due(200, 10), due(300, 10), [*range(100, 105), *range(200, 203), *range(300, 302)]),
        # What a queue leaves goes to the others.
        (due(100, 10), [], [], [*range(100, 110)]),
        ([], due(200, 10), [], [*range(200, 210)]),
        ([], [], due(300, 10), [*range(300, 310)]),
        (due(100, 10), due(200, 2), due(300, 1), [*range(100, 105), 200, 201, 300, 105, 106]),
        ([], [], [], []),
        # A stale title goes before an unread one that is no more popular, or when it has waited for 30 days.
        ([], due(200, 10, 60.0), due(300, 10, 59.9), [*range(200, 210)]),
        ([], due(200, 10, 60.0), due(300, 10, 60.0), [*range(200, 208), 300, 301]),
        (
            [],
            due(200, 10, 60.0),
            [*due(300, 1, 1.0, 30 * DAY - SECOND), *due(301, 1, 1.0, 30 * DAY)],
            [*range(200, 209), 301],
        ),
        # It takes the place of unread ones only where these wait.
        ([], due(200, 5, 60.0), due(300, 10, 1.0), [*range(200, 205), *range(300, 305)]),
    ],
)
def test_queues_take_turns(boosted: list[Due], unread: list[Due], stale: list[Due], expected: list[int]) -> None:
    assert drawn(10, boosted, unread, stale) == expected


def test_a_title_in_two_queues_is_drawn_once() -> None:
    both = due(100, 3)
    assert sorted(drawn(10, both, both, [])) == [100, 101, 102]
    assert sorted(drawn(10, both, [], both)) == [100, 101, 102]


@pytest.mark.parametrize("size", [1, 2, 3, 25, 100])
def test_shares_are_kept_over_batches_of_any_size(size: int) -> None:
    round_robin, counted = DeficitRoundRobin(Shares(boosted=0.5, stale=0.2)), {1: 0, 2: 0, 3: 0}
    for _ in range(1_000 // size):
        for title_id in drawn(size, due(100, size), due(200, size), due(300, size), round_robin):
            counted[title_id // 100] += 1
    total = sum(counted.values())
    assert counted[1] == pytest.approx(0.5 * total, abs=1)
    assert counted[3] == pytest.approx(0.2 * total, abs=1)


def test_what_a_queue_could_not_use_is_not_owed_to_it() -> None:
    round_robin = DeficitRoundRobin(Shares(boosted=0.5, stale=0.2))
    for _ in range(100):
        drawn(10, [], due(200, 10), [], round_robin)
    assert len([title_id for title_id in drawn(10, due(100, 10), due(200, 10), [], round_robin) if title_id < 200]) <= 6


DUE = st.lists(
    st.builds(Due, st.integers(1, 30), st.sampled_from([1.0, 50.0, 99.0]), st.just(NOW)),
    max_size=8,
    unique_by=lambda title: title.title_id,
)


@given(st.integers(1, 8), DUE, DUE, DUE)
def test_as_many_are_drawn_as_there_are_and_nothing_twice(
    size: int, boosted: list[Due], unread: list[Due], stale: list[Due]
) -> None:
    chosen = drawn(size, boosted[:size], unread[:size], stale[:size])
    there = {title.title_id for titles in (boosted, unread, stale) for title in titles[:size]}
    assert len(chosen) == len(set(chosen)) == min(size, len(there))
    assert set(chosen) <= there


# --- How long it takes ------------------------------------------------------------------------------------------------

TODAY = date(2026, 11, 5)


@pytest.mark.parametrize(
    ("counts", "budget", "pages_a_day", "enough"),
    [
        (Counts(fresh=1_400, old=9_000, absent=900), 210, 100 + 100 + 10, True),
        (Counts(fresh=1_400, old=9_000, absent=900), 209, 210, False),
        (Counts(old=700, boosted=600, airing=100), 1, 100, False),  # a page a week
    ],
)
def test_pages_a_day_are_those_of_the_intervals(counts: Counts, budget: int, pages_a_day: float, enough: bool) -> None:
    seen = outlook(counts, budget=budget, today=TODAY)
    assert seen.pages_a_day == pytest.approx(pages_a_day)
    assert seen.enough is enough


def test_overdue_titles_are_counted_beside_unread_ones() -> None:
    done = outlook(Counts(old=900), budget=10, today=TODAY)
    assert (done.read_by, done.caught_up_by) == (TODAY, TODAY)
    first = outlook(Counts(unread=100_000), budget=30_000, today=TODAY)
    assert first.read_by == TODAY + 4 * DAY <= (first.caught_up_by or TODAY) <= TODAY + 6 * DAY
    alone = outlook(Counts(old=9_000, overdue=3_000), budget=400, today=TODAY)
    # 300 of 400 a day go to the backlog, 100 to what falls due.
    assert (alone.read_by, alone.caught_up_by) == (TODAY, TODAY + 10 * DAY)
    both = outlook(Counts(unread=3_000, old=9_000, overdue=3_000), budget=400, today=TODAY)
    assert both.read_by is not None
    assert both.caught_up_by is not None
    assert TODAY + 20 * DAY < both.read_by <= both.caught_up_by


def test_a_budget_that_is_too_small_is_never_caught_up() -> None:
    seen = outlook(Counts(unread=100_000, fresh=10_000), budget=600, today=TODAY)
    assert not seen.enough
    assert seen.caught_up_by is None
    assert seen.read_by is not None  # unread titles have the larger share
    nothing = outlook(Counts(unread=5), budget=0, today=TODAY)
    assert (nothing.read_by, nothing.caught_up_by) == (None, None)
