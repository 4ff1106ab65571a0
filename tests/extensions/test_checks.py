"""What the checks find in a crawl's stats at its end, and what they let pass."""

import re
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


NONE_STORED = {"titles/stored": 0, "titles/absent": 0}


@pytest.mark.promise(
    "What is wrong with a crawl is posted to ALERT_WEBHOOK; a crawl that went well tells nobody."
)
@pytest.mark.parametrize(
    ("stats", "problem"),
    [
        ({"blocks/imdb/stopped": "imdb is blocking us (403)"}, "imdb is blocking us (403)"),
        (
            {"blocks/imdb/challenge": 4, "blocks/imdb/refusal": 2},
            "6 of 100 responses were refusals",
        ),
        (
            {"blocks/imdb/challenge": 2, "downloader/response_count": 20},
            "2 of 20 responses were refusals",
        ),
        ({"extraction/errors/title": 6}, "6 of 104 pages could not be read"),
        ({"pages/missing/imdb_rating": "unknown on 15 pages"}, "imdb_rating unknown on 15 pages"),
        (
            {"store/csv/spooled": 3, "store/mongo/spooled": 2, "store/csv/lost": 1},
            "items that are not stored: 5 spooled, 1 lost",
        ),
        (
            {"store/csv/rejected": 1, "items/rejected": 2},
            "items that are not stored: 1 rejected, 2 invalid",
        ),
        (
            {"store/csv/damaged": 1},
            "items that are not stored: 1 spool files that can't be read",
        ),
        ({"frontier/dead_letters": 1}, "requests that became dead letters: 1"),
        ({"lists/missed": 1}, "list pages that could not be read: 1"),
        ({"titles/failed": 100, **NONE_STORED}, "none of 100 requested titles was stored"),
        ({"finish_reason": "store_unavailable"}, "the crawl ended early (store_unavailable)"),
        ({"finish_reason": "pages_changed"}, "the crawl ended early (pages_changed)"),
        ({"catalogue/overdue": 11}, "11 of 100 titles are overdue"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_is_wrong_is_said_in_a_sentence(stats: dict[str, Any], problem: str) -> None:
    assert problems(stats) == [problem]


@pytest.mark.promise(
    "What is wrong with a crawl is posted to ALERT_WEBHOOK; a crawl that went well tells nobody."
)
@pytest.mark.parametrize(
    "stats",
    [
        {},
        {"blocks/imdb/challenge": 5, "extraction/errors/title": 5},
        {"blocks/imdb/challenge": 9, "downloader/response_count": 19},
        {"titles/requested": 0, **NONE_STORED},
        {"titles/requested": 0, "finish_reason": "budget_spent", **NONE_STORED},
        {"titles/requested": 0, "finish_reason": "shutdown", **NONE_STORED},
        {"finish_reason": "closespider_itemcount"},
        # A pass over datasets fetches few files, and stores titles all the while.
        {"downloader/response_count": 7, "pages/read": 0},
        {"titles/stored": 0, "titles/absent": 100},
    ],
    ids=[
        "well",
        "few refusals",
        "few responses",
        "nothing due",
        "budget spent",
        "interrupted",
        "told to end",
        "datasets",
        "nothing new",
    ],
)
def test_nothing_is_wrong_with_a_crawl_that_went_well(stats: dict[str, Any]) -> None:
    assert problems(stats) == []


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
