"""The parts of pages that need nothing to run: what is said, and how figures are written."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from typing import Any

from moviecrawler.dashboard.overview import Card, Concern, concerns, sentence
from moviecrawler.dashboard.quality import Partial, coverage_of, partial_of
from moviecrawler.frontier.budgets import Budget
from moviecrawler.frontier.runs import RunReport
from moviecrawler.monitors.alarm_store import Alarm, Day
from moviecrawler.monitors.places import Example

NOW = 1_780_000_000.0
QUIET = Card(site="imdb")
NOTHING: dict[str, Any] = {"alarms": [], "troubles": [], "dead_letters": 0, "pending": 0, "slots": 4}


def found(*cards: Card, **changed: Any) -> list[Concern]:
    """Return the concerns of a cluster that has nothing but this."""
    return list(concerns(cards, **{**NOTHING, **changed}))


BLOCKS = Alarm(name="blocks/imdb", kind="blocks", site="imdb", text="9 of 10 refused", since=NOW, seen_at=NOW)


# --- What needs attention ---------------------------------------------------------------------------------------------


def test_open_circuit_says_until_when_and_why_and_its_alarm_is_not_repeated() -> None:
    stopped = replace(QUIET, stopped="403 from Cloudflare", stopped_until=NOW)
    [concern] = found(stopped, alarms=[BLOCKS])
    assert concern.more == "IMDb is not asked until 2026-05-28 20:26 UTC: 403 from Cloudflare"
    assert sentence([concern]) == "One thing needs attention: IMDb has refused us."
    assert [one.short for one in found(QUIET, alarms=[BLOCKS])] == ["the alarm blocks/imdb stands"]
    assert found(replace(stopped, trying=True)) == []


def test_work_without_a_worker_is_a_concern_unless_a_job_is_pending() -> None:
    run = RunReport(
        site="imdb", run="default", total=10, done=3, failed=0, dropped=0, queued=7, dead_letters=0, workers=0,
        started_at=NOW, ended_at=NOW, now=NOW, budget=Budget(),
    )  # fmt: skip
    idle = replace(QUIET, runs=[run])
    assert sentence(found(idle)) == "One thing needs attention: nobody works on 7 requests to IMDb."
    assert found(idle, pending=1) == []
    run.workers = 1
    assert found(idle) == []


def test_many_things_are_one_sentence() -> None:
    stopped = [replace(QUIET, site=site, stopped="x", stopped_until=NOW) for site in ("imdb", "metacritic")]
    many = found(*stopped, alarms=[BLOCKS], troubles=["Redis is away"], dead_letters=2, slots=0)
    assert sentence(many) == (
        "5 things need attention: a store can't be asked, no node takes jobs, IMDb has refused us and 2 more."
    )


# --- Quality ----------------------------------------------------------------------------------------------------------


def test_field_that_fell_stands_first() -> None:
    days = [
        Day("2026-05-01", "plot", 100, 50),
        Day("2026-05-01", "year", 100, 98),
        Day("2026-05-03", "plot", 50, 26),
        Day("2026-05-03", "year", 50, 10),
    ]
    year, plot_ = coverage_of(days)
    assert (year.field, year.share, year.before, year.pages) == ("year", 0.2, 0.98, 50)
    assert (plot_.field, plot_.share) == ("plot", 0.52)


def test_fields_of_which_pages_are_silent_are_counted_since_a_day() -> None:
    days = [
        Day("2026-05-01", "plot", 100, 50, 50),
        Day("2026-05-02", "plot", 100, 99, 1),
        Day("2026-05-03", "plot", 50, 47, 3),
        Day("2026-05-03", "year", 50, 50),
        Day("2026-05-03", "scores.imdb", 50, 0, 50),
    ]
    example = Example("tt1", "https://www.imdb.com/title/tt1/")
    assert partial_of("imdb", days, date(2026, 5, 2), {"plot": example, "year": example}) == [
        Partial("imdb", "plot", 4, 150, example),
        Partial("imdb", "scores.imdb", 50, 50, None),
    ]
