"""What is told of a run, by figures alone."""

from __future__ import annotations

import doctest

import pytest

from moviecrawler.frontier import report
from moviecrawler.frontier.options import Budget
from moviecrawler.frontier.report import Rate, RunReport, printable

NOW = 1_000_000.0


def a_run(**figures: object) -> RunReport:
    given = {
        "total": 10,
        "done": 4,
        "failed": 1,
        "dropped": 0,
        "queued": 3,
        "dead_letters": 0,
        "workers": 2,
        "started_at": NOW - 100,
        "ended_at": NOW - 10,
        "now": NOW,
        **figures,
    }
    return RunReport(site="imdb", run="default", **given)  # type: ignore[arg-type]


def test_examples_hold() -> None:
    assert doctest.testmod(report).failed == 0


@pytest.mark.parametrize(
    ("figures", "state"),
    [
        ({}, "running"),
        ({"workers": 0}, "no worker"),
        ({"done": 9}, "running"),  # its workers have yet to notice
        ({"done": 9, "workers": 0}, "finished"),
        ({"done": 9, "workers": 0, "refusal": "no", "stopped_until": NOW + 1}, "finished"),
        ({"refusal": "no", "stopped_until": NOW + 1}, "stopped"),
        ({"refusal": "no", "stopped_until": NOW}, "trying"),
        ({"budget": Budget(per_day=7), "used_today": 6}, "running"),
        ({"budget": Budget(per_day=7), "used_today": 7}, "budget spent"),
    ],
)
def test_state_is_what_holds_a_run_up(figures: dict[str, object], state: str) -> None:
    assert a_run(**figures).state == state


def test_rate_is_the_mean_at_first_and_then_follows_what_is_done() -> None:
    rate = Rate(since=NOW - 100)
    assert rate.seconds_left(5) is None
    rate.update(50, NOW)
    assert (rate.per_second, rate.seconds_left(5)) == (0.5, 10.0)
    for second in range(1, 301):
        rate.update(50 + 4 * second, NOW + second)
        assert rate.per_second is not None
        assert 0.5 < rate.per_second < 4
    assert rate.per_second == pytest.approx(4, rel=0.01)
    for second in range(301, 601):
        rate.update(50 + 1200, NOW + second)
    assert rate.per_second == pytest.approx(0, abs=0.01)


def test_rate_is_the_same_however_often_it_is_looked_at() -> None:
    seldom, often = Rate(since=NOW), Rate(since=NOW)
    for rate, step in ((seldom, 20), (often, 1)):
        rate.update(100, NOW + 100)
        for second in range(100 + step, 161, step):
            rate.update(100 + 3 * (second - 100), NOW + second)
    assert seldom.per_second == pytest.approx(often.per_second)


def test_rate_survives_a_count_that_falls_and_a_clock_that_stands() -> None:
    rate = Rate(since=NOW)
    rate.update(10, NOW)
    assert rate.per_second is None
    rate.update(10, NOW + 10)
    rate.update(8, NOW + 20)  # dead letters were queued again
    assert rate.per_second is not None
    assert 0 < rate.per_second < 1


def test_foreign_text_can_not_move_a_cursor_or_hide_itself() -> None:
    hostile = "a\x1b]0;title\x07\r\n\x9b31m\u202eb\udcff"
    shown = printable(hostile)
    assert shown.isprintable()
    assert shown.startswith("a\\x1b]0;title\\x07")
    assert "\u202e" not in shown
