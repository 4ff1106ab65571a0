"""When a title is due, which of the due ones is next, and how long all of them take."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moviecrawler.catalogue import lanes
from moviecrawler.catalogue.lanes import Counts, DeficitRoundRobin, Shares, choose, outlook

NOW = datetime(2026, 11, 5, 12, tzinfo=UTC)
DAY = timedelta(days=1)
SECOND = timedelta(seconds=1)
OLD = date(1999, 3, 31)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


# --- When a title is due ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("released", "days"),
    [
        (NOW.date() - 179 * DAY, 14),
        (NOW.date() - 180 * DAY, 90),
        (NOW.date() - 181 * DAY, 90),
        (NOW.date(), 14),
        (NOW.date() + 400 * DAY, 14),
        (None, 90),
    ],
)
def test_young_titles_are_due_after_14_days_and_others_after_90(released: date | None, days: int) -> None:
    assert lanes.next_due("ok", now=NOW, released=released, failures=0) == NOW + days * DAY


def test_what_airs_is_due_after_7_days_and_its_season_waits_for_the_page_of_its_series() -> None:
    assert lanes.next_due("ok", now=NOW, released=OLD, failures=0, airs=True) == NOW + 7 * DAY
    assert lanes.next_due("error", now=NOW, released=OLD, failures=9, airs=True) == NOW + 7 * DAY
    # Later than that page, and never so late that it would pass for put off by a wrong clock.
    assert lanes.season_due(NOW, OLD, airs=True) == NOW + 14 * DAY
    assert lanes.season_due(NOW, NOW.date(), airs=False) == NOW + 28 * DAY
    assert lanes.season_due(NOW, OLD, airs=False) == NOW + 104 * DAY < NOW + 120 * DAY


@pytest.mark.parametrize(("failures", "days"), [(0, 1), (1, 1), (2, 2), (3, 4), (4, 8), (7, 64), (8, 90), (5_000, 90)])
def test_failures_wait_twice_as_long_each_time_up_to_the_regular_interval(failures: int, days: int) -> None:
    assert lanes.next_due("error", now=NOW, released=OLD, failures=failures) == NOW + days * DAY


def test_a_young_title_that_fails_is_never_left_for_longer_than_14_days() -> None:
    assert lanes.next_due("error", now=NOW, released=NOW.date(), failures=6) == NOW + 14 * DAY


def test_an_absent_title_is_asked_for_after_90_days() -> None:
    assert lanes.next_due("absent", now=NOW, released=NOW.date(), failures=0) == NOW + 90 * DAY


def test_a_block_says_nothing_of_a_title() -> None:
    with pytest.raises(ValueError, match="blocked"):
        lanes.next_due("blocked", now=NOW, released=OLD, failures=1)
    due = NOW - DAY
    assert lanes.boost_left("blocked", boost_due=due, next_due=EPOCH, failures=9) == due


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


def test_a_boost_is_served_by_a_page_or_its_absence_and_tried_again_after_a_failure() -> None:
    later = NOW + DAY
    for outcome in ("ok", "absent"):
        assert lanes.boost_left(outcome, boost_due=NOW, next_due=later, failures=0) is None
    assert lanes.boost_left("error", boost_due=NOW, next_due=later, failures=2) == later
    assert lanes.boost_left("error", boost_due=NOW, next_due=later, failures=3) is None
    assert lanes.boost_left("error", boost_due=None, next_due=later, failures=1) is None
    assert lanes.boost_left("error", boost_due=later + DAY, next_due=later, failures=1) == later + DAY


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


def test_boosted_titles_come_first_then_unread_then_stale_ones() -> None:
    assert drawn(10, due(100, 10), due(200, 10), due(300, 10)) == [*range(100, 105), *range(200, 203), *range(300, 302)]


def test_what_a_queue_leaves_goes_to_the_others() -> None:
    assert len(drawn(10, due(100, 10), [], [])) == 10
    assert len(drawn(10, [], due(200, 10), [])) == 10
    assert len(drawn(10, [], [], due(300, 10))) == 10
    assert sorted(drawn(10, due(100, 10), due(200, 2), due(300, 1))) == [*range(100, 107), 200, 201, 300]
    assert drawn(10, [], [], []) == []


def test_a_stale_title_never_goes_before_a_more_popular_unread_one() -> None:
    assert drawn(10, [], due(200, 10, 60.0), due(300, 10, 59.9)) == [*range(200, 210)]
    assert drawn(10, [], due(200, 10, 60.0), due(300, 10, 60.0)) == [*range(200, 208), 300, 301]


def test_a_stale_title_that_waited_for_too_long_goes_before_it_all_the_same() -> None:
    just_short, patient = due(300, 1, 1.0, 30 * DAY - SECOND), due(301, 1, 1.0, 30 * DAY)
    assert drawn(10, [], due(200, 10, 60.0), [*just_short, *patient]) == [*range(200, 209), 301]


def test_a_stale_title_takes_the_place_of_unread_ones_only_where_these_wait() -> None:
    assert drawn(10, [], due(200, 5, 60.0), due(300, 10, 1.0)) == [*range(200, 205), *range(300, 305)]


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


@pytest.mark.parametrize(
    "values", [{"boosted": 1.0}, {"boosted": -0.1}, {"stale": 0.91}, {"boosted": 0.6, "stale": 0.5}]
)
def test_a_share_that_would_starve_the_others_is_refused(values: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="share"):
        Shares(**values)


# --- How long it takes ------------------------------------------------------------------------------------------------

TODAY = date(2026, 11, 5)


def counts(**values: int) -> Counts:
    return Counts(**{"unread": 0, "fresh": 0, "old": 0, "absent": 0, "overdue": 0, **values})


def test_pages_a_day_are_those_of_the_intervals() -> None:
    seen = outlook(counts(fresh=1_400, old=9_000, absent=900), budget=210, today=TODAY)
    assert seen.pages_a_day == pytest.approx(100 + 100 + 10)
    assert seen.enough
    assert not outlook(counts(fresh=1_400, old=9_000, absent=900), budget=209, today=TODAY).enough


def test_boosted_titles_cost_a_page_a_week() -> None:
    assert outlook(counts(old=700, boosted=700), budget=1, today=TODAY).pages_a_day == pytest.approx(100)


def test_without_a_backlog_it_is_done_today() -> None:
    seen = outlook(counts(old=900), budget=10, today=TODAY)
    assert (seen.read_by, seen.caught_up_by) == (TODAY, TODAY)


def test_the_day_of_a_first_pass_is_that_of_the_budget() -> None:
    seen = outlook(counts(unread=100_000), budget=30_000, today=TODAY)
    assert seen.read_by == TODAY + 4 * DAY
    assert seen.caught_up_by is not None
    assert seen.caught_up_by <= TODAY + 6 * DAY


def test_overdue_titles_are_counted_beside_unread_ones() -> None:
    alone = outlook(counts(old=9_000, overdue=3_000), budget=400, today=TODAY)
    assert alone.read_by == TODAY
    assert alone.caught_up_by == TODAY + 10 * DAY  # 300 of 400 a day go to the backlog, 100 to what falls due
    both = outlook(counts(unread=3_000, old=9_000, overdue=3_000), budget=400, today=TODAY)
    assert both.read_by is not None
    assert both.caught_up_by is not None
    assert TODAY + 20 * DAY < both.read_by <= both.caught_up_by


def test_a_budget_that_is_too_small_is_never_caught_up() -> None:
    seen = outlook(counts(unread=100_000, fresh=10_000), budget=600, today=TODAY)
    assert not seen.enough
    assert seen.caught_up_by is None
    assert seen.read_by is not None  # unread titles have the larger share
    nothing = outlook(counts(unread=5), budget=0, today=TODAY)
    assert (nothing.read_by, nothing.caught_up_by) == (None, None)
