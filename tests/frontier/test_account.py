"""The exit code that follows from a crawl's account, and what the account says of a run."""

from typing import Any

import msgspec
import pytest

from moviecrawler.frontier.account import account_of, exit_code
from moviecrawler.frontier.contract import Account, RunReport, SiteState
from moviecrawler.politeness.budgets import Budget

WELL = Account(requested=12, titles=10, stored=8, absent=2, read=2)


def stats_of(account: Account | None, reason: str, **further: Any) -> dict[str, Any]:
    """Return the stats of a crawl at its end: those of its run, and further ones."""
    figures = {} if account is None else msgspec.structs.asdict(account)
    run = {f"frontier/run/{name}": value for name, value in figures.items()}
    return {"finish_reason": reason, **run, **further}


def changed(**figures: int) -> Account:
    """Return an account with one request more for each figure, and for `lost`."""
    lost = figures.pop("lost", 0)
    figures["requested"] = WELL.requested + lost + sum(figures.values())
    return msgspec.structs.replace(WELL, **figures)


@pytest.mark.promise(
    "The exit code is 0 only when every requested title was stored or stated absent."
)
@pytest.mark.parametrize(
    ("account", "reason", "further", "code"),
    [
        (WELL, "finished", {}, 0),
        (WELL, "finished", {"titles/stored": 8, "titles/absent": 2}, 0),
        (Account(requested=1, read=1), "finished", {}, 0),  # a list that names nothing
        # Whoever sees the run's end answers for all of it.
        (changed(failed=1), "finished", {}, 1),
        (changed(disallowed=1), "finished", {}, 1),
        (changed(dead=1), "finished", {}, 1),
        (changed(unread=1), "finished", {}, 1),
        (changed(lost=1), "finished", {}, 1),
        (changed(failed=1), "shutdown", {}, 1),
        # One that ends before answers for what it did itself.
        (changed(open=1), "shutdown", {}, 3),
        (changed(open=1), "budget_spent", {}, 3),
        (changed(open=1), "recycled", {}, 3),
        (changed(open=1), "memusage_exceeded", {}, 3),
        (changed(open=1), "closespider_itemcount", {}, 3),
        (changed(open=1, failed=1), "shutdown", {}, 3),
        (changed(open=1, dead=1), "recycled", {}, 3),
        (changed(open=1), "recycled", {"titles/failed": 1}, 1),
        (changed(open=1), "budget_spent", {"titles/disallowed": 1}, 1),
        (changed(open=1), "recycled", {"titles/dead": 1}, 1),
        (changed(open=1), "recycled", {"frontier/dead_letters": 1}, 1),
        (changed(open=1), "shutdown", {"lists/missed": 1}, 1),
        (changed(failed=1), "budget_spent", {"titles/failed": 1}, 1),
        # It was told to end when all was done.
        (WELL, "shutdown", {}, 0),
        (WELL, "recycled", {}, 0),
        # What stands in its way is never in order.
        (changed(open=1), "site_stopped", {}, 1),
        (changed(open=1), "store_unavailable", {}, 1),
        (changed(open=1), "frontier_unreachable", {}, 1),
        (changed(open=1), "pages_changed", {}, 1),
        (changed(open=1), "finished", {}, 1),
        (WELL, "pages_changed", {}, 1),
        (None, "finished", {}, 1),
        (None, "shutdown", {}, 1),
        (None, "frontier_refused", {}, 1),
        (None, "", {}, 1),
        # A store or the catalogue lacks something.
        (WELL, "finished", {"items/unrecorded": 1}, 1),
        (WELL, "finished", {"store/postgres/spooled": 1}, 1),
        (WELL, "finished", {"store/postgres/lost": 1}, 1),
        (WELL, "finished", {"store/postgres/damaged": 1}, 1),
        (WELL, "finished", {"store/sqlite/unfinished": 1}, 1),
        (changed(open=1), "shutdown", {"store/postgres/spooled": 1}, 1),
        # The titles that such an item was of have failed; a row of a list is of none.
        (WELL, "finished", {"store/postgres/rejected": 1, "items/rejected": 1}, 0),
        (WELL, "finished", {"store/postgres/rejected_from_spool": 1}, 1),
        (WELL, "finished", {"store/postgres/retries": 3, "store/postgres/durable": 10}, 0),
    ],
)
def test_exit_code_says_whether_the_crawl_did_all_of_its_work(
    account: Account | None, reason: str, further: dict[str, Any], code: int
) -> None:
    assert exit_code(stats_of(account, reason, **further)) == code


def test_the_account_of_a_crawl_is_that_of_its_run() -> None:
    account = changed(open=2, dead=1, lost=3)
    assert account_of(stats_of(account, "shutdown")) == account
    assert account.lost == 3
    assert account_of({"finish_reason": "store_unavailable"}) is None


OPEN = changed(open=1)
NOW = 10_000.0
HOUR = 3600.0


@pytest.mark.parametrize(
    ("run", "site", "state", "is_current"),
    [
        ({}, {}, "no worker", True),
        ({"workers": 1}, {}, "running", True),
        ({"workers": 1}, {"refusal": "403", "stopped_until": NOW + 1}, "stopped", True),
        ({"workers": 1}, {"refusal": "403", "stopped_until": NOW}, "probing", True),
        ({"workers": 1}, {"refusal": "403"}, "probing", True),
        ({"workers": 1}, {"used_today": 4}, "running", True),
        ({"workers": 1}, {"used_today": 5}, "budget spent", True),
        ({"workers": 1}, {"used_today": 5, "budget": Budget()}, "running", True),
        # It is fed, or its worker is at the end.
        ({"account": WELL, "workers": 1}, {"refusal": "403"}, "running", True),
        ({"account": WELL, "workers": 1}, {"used_today": 5}, "running", True),
        ({"account": WELL}, {}, "no worker", True),
        ({"account": WELL, "ended_at": NOW - HOUR}, {}, "finished", True),
        ({"account": WELL, "ended_at": NOW - HOUR - 1}, {}, "finished", False),
        ({"account": WELL, "ended_at": 1.0, "workers": 1}, {}, "finished", True),
        ({"account": WELL, "ended_at": 1.0, "requeued": 1}, {}, "finished", True),
        ({"ended_at": 1.0}, {}, "finished", True),
    ],
)
def test_the_state_of_a_run(
    run: dict[str, Any], site: dict[str, Any], state: str, is_current: bool
) -> None:
    report = report_of(SiteState(**{"budget": Budget(per_day=5), **site}), **run)
    assert (report.state, report.is_current) == (state, is_current)


def test_how_long_a_run_takes_yet_follows_from_its_rate() -> None:
    assert (WELL.ended, report_of().per_second, report_of().seconds_left) == (12, 0.12, 1 / 0.12)
    assert report_of(ended_at=NOW - 40).per_second == 0.2
    assert report_of(started_at=NOW).per_second == 12_000
    assert report_of(account=Account(requested=1, open=1)).seconds_left is None


def report_of(site: SiteState | None = None, **given: Any) -> RunReport:
    """Return a run that began 100 s ago; nobody is at it."""
    usual = {"account": OPEN, "dead_letters": 0, "requeued": 0, "workers": 0}
    times = {"started_at": NOW - 100, "ended_at": None, "now": NOW}
    made = RunReport(site="imdb", run="weekly", arguments="", **{**usual, **times, **given})
    made.site_state = site or SiteState()
    return made
