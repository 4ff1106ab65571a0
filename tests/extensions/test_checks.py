"""What the checks find in a crawl's stats at its end, and what they let pass."""

import re
import tomllib
from pathlib import Path
from typing import Any

import msgspec
import pytest

from moviecrawler.extensions import checks
from moviecrawler.extensions.checks import find_problems
from moviecrawler.frontier.contract import Account
from tests.shared import PROJECT

RUN = Account(requested=100, titles=100, stored=98, absent=2)
WELL = {
    "titles/requested": 100,
    "titles/stored": 98,
    "titles/absent": 2,
    "downloader/response_count": 100,
    "pages/read": 98,
    "finish_reason": "finished",
    "store/sqlite/durable": 100,
    "catalogue/fetched": 100,
    "catalogue/overdue": 10,
}


def problems(stats: dict[str, Any], **run: int) -> list[str]:
    """Return what is wrong with a crawl that went well but for these stats, and figures of its run.

    For each figure the run has one request more.
    """
    account = msgspec.structs.replace(RUN, **{"requested": 100 + sum(run.values()), **run})
    figures = msgspec.structs.asdict(account)
    of_run = {f"frontier/run/{name}": figure for name, figure in figures.items()}
    return find_problems({**WELL, **of_run, **stats})


CASES = tomllib.loads(Path(__file__).with_name("checks.toml").read_text("utf-8"))


@pytest.mark.promise(
    "What is wrong with a crawl is posted to ALERT_WEBHOOK; a crawl that went well tells nobody."
)
@pytest.mark.parametrize("problem", CASES["wrong"])
def test_what_is_wrong_is_said_in_a_sentence(problem: str) -> None:
    assert problems(CASES["wrong"][problem]) == [problem]


@pytest.mark.promise(
    "What is wrong with a crawl is posted to ALERT_WEBHOOK; a crawl that went well tells nobody."
)
@pytest.mark.parametrize("case", CASES["well"])
def test_nothing_is_wrong_with_a_crawl_that_went_well(case: str) -> None:
    assert problems(CASES["well"][case]) == []


def test_who_sees_the_end_of_a_run_tells_what_all_workers_left_undone() -> None:
    assert problems({}, dead=2) == ["requests that became dead letters: 2"]
    assert problems({}, unread=1) == ["list pages that could not be read: 1"]
    # One that was requested, and neither ended nor is open, was deleted.
    lost = problems({}, requested=101)
    assert lost == ["requests that were deleted from the queue: 1"]
    # While the run goes on, each worker tells of its own.
    assert problems({}, dead=2, open=1) == []
    assert problems({"frontier/dead_letters": 1}, dead=2, open=1) == [
        "requests that became dead letters: 1"
    ]


def test_a_crawl_that_joined_no_run_is_checked_too() -> None:
    stats = {"finish_reason": "frontier_unreachable", "blocks/imdb/stopped": "imdb is blocking us"}
    assert find_problems(stats) == [
        "imdb is blocking us",
        "the crawl ended early (frontier_unreachable)",
    ]


def test_each_check_is_documented_and_has_an_entry_in_the_runbook() -> None:
    readme = (PROJECT / "moviecrawler" / "extensions" / "README.md").read_text("utf-8")
    rows = dict(re.findall(r"^\| `(check_\w+)` \|.*\| ([\w-]+) \|$", readme, re.MULTILINE))
    assert rows.keys() == {name for name in vars(checks) if name.startswith("check_")}
    runbook = (PROJECT / "scrapyd" / "README.md").read_text("utf-8")
    assert [entry for entry in rows.values() if f"\n| {entry} |" not in runbook] == []
