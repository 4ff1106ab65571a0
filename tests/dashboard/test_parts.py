"""The parts of pages that need nothing to run: what is said, and how figures are written."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from moviecrawler.dashboard.overview import Card, Concern, concerns, sentence
from moviecrawler.frontier.report import RunReport, SiteState

NOW = 1_780_000_000.0
QUIET = Card(site="imdb")
NOTHING: dict[str, Any] = {"troubles": [], "dead_letters": 0, "pending": 0, "slots": 4}


def found(*cards: Card, **changed: Any) -> list[Concern]:
    """Return the concerns of a cluster that has nothing but this."""
    return list(concerns(cards, **{**NOTHING, **changed}))


# --- What needs attention ---------------------------------------------------------------------------------------------


def test_open_circuit_says_until_when_and_why() -> None:
    stopped = replace(QUIET, stopped="403 from Cloudflare", stopped_until=NOW)
    [concern] = found(stopped)
    assert concern.more == "IMDb is not asked until 2026-05-28 20:26 UTC: 403 from Cloudflare"
    assert sentence([concern]) == "One thing needs attention: IMDb has refused us."
    assert found(replace(stopped, trying=True)) == []


def test_work_without_a_worker_is_a_concern_unless_a_job_is_pending() -> None:
    run = RunReport(
        site="imdb", run="default", number="1780000000000", arguments="", total=10, done=3, failed=0, dropped=0, to_go=7,
        queued=7, dead_letters=0, workers=0, seeded=True, ended_at=None, now=NOW, state_of_site=SiteState(site="imdb"),
    )  # fmt: skip
    idle = replace(QUIET, runs=[run])
    assert sentence(found(idle)) == "One thing needs attention: nobody works on 7 requests to IMDb."
    assert found(idle, pending=1) == []
    run.workers = 1
    assert found(idle) == []


def test_many_things_are_one_sentence() -> None:
    stopped = [replace(QUIET, site=site, stopped="x", stopped_until=NOW) for site in ("imdb", "metacritic")]
    many = found(*stopped, troubles=["Redis is away"], dead_letters=2, slots=0)
    assert sentence(many) == (
        "5 things need attention: a store can't be asked, no node takes jobs, IMDb has refused us and 2 more."
    )
