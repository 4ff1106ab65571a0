"""Checks of a crawl at its end. Each returns a sentence on what is wrong, or None. Pure.

They read the crawl's stats, and the account of its run in them. The exit code follows from the same
stats, by `frontier/account.py`. The runbook (`scrapyd/README.md`) has what to do about each.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from moviecrawler.frontier.account import account_of, is_orderly
from moviecrawler.frontier.contract import Account

if TYPE_CHECKING:
    from collections.abc import Mapping

    Stats = Mapping[str, Any]
    """A crawl's stats, by name."""

MAX_REFUSED = 0.05
"""Largest share of refusals among responses."""
MAX_UNREADABLE = 0.05
"""Largest share of unreadable pages among title pages."""
MAX_OVERDUE = 0.1
"""Largest share of overdue titles among those that were fetched before."""
MIN_COUNT = 20
"""Responses, pages or titles below which no share is checked."""
_STOPPED = re.compile(r"blocks/.+/stopped")
_MISSING_FIELD = "pages/missing/"


def find_problems(stats: Stats) -> list[str]:
    """Return a sentence for each check that has found something, by a crawl's final stats."""
    checks = (
        check_refusals,
        check_unreadable_pages,
        check_missing_fields,
        check_stores,
        check_dead_letters,
        check_results,
        check_overdue_titles,
    )
    sentences = [check(stats) for check in checks]
    return [sentence for sentence in sentences if sentence is not None]


def check_refusals(stats: Stats) -> str | None:
    """Check whether a site has refused us for good, or too often."""
    stopped = [str(why) for name, why in stats.items() if _STOPPED.fullmatch(name)]
    if stopped:
        return "; ".join(stopped)
    refusals = _sum(stats, "blocks/")
    responses = stats.get("downloader/response_count", 0)
    return _check_share(MAX_REFUSED, refusals, responses, "responses were refusals")


def check_unreadable_pages(stats: Stats) -> str | None:
    """Check the share of pages that could not be read."""
    unreadable = _sum(stats, "extraction/errors/")
    pages = unreadable + stats.get("pages/read", 0)
    return _check_share(MAX_UNREADABLE, unreadable, pages, "pages could not be read")


def check_missing_fields(stats: Stats) -> str | None:
    """Look for fields that have disappeared from the site's pages."""
    return "; ".join(describe_missing_fields(stats)) or None


def check_stores(stats: Stats) -> str | None:
    """Look for items that were invalid, rejected, spooled or lost, and for damaged spool files."""
    counts = {end: _sum(stats, "store/", f"/{end}") for end in ("rejected", "spooled", "lost")}
    counts["invalid"] = stats.get("items/rejected", 0)
    counts["spool files that can't be read"] = _sum(stats, "store/", "/damaged")
    shown = [f"{count:,.0f} {what}" for what, count in counts.items() if count]
    return f"items that are not stored: {', '.join(shown)}" if shown else None


def check_dead_letters(stats: Stats) -> str | None:
    """Look for dead-lettered requests."""
    dead = max(stats.get("frontier/dead_letters", 0), _finished_run(stats).dead)
    return f"requests that became dead letters: {dead:,}" if dead else None


def check_results(stats: Stats) -> str | None:
    """Look for an early end, unread lists, deleted requests, and a crawl without any result."""
    problems = []
    run = _finished_run(stats)
    reason = str(stats.get("finish_reason", ""))
    if reason != "finished" and not is_orderly(reason):
        problems.append(f"the crawl ended early ({reason})")
    if unread := max(stats.get("lists/missed", 0), run.unread):
        problems.append(f"list pages that could not be read: {unread:,}")
    if run.lost:
        problems.append(f"requests that were deleted from the queue: {run.lost:,}")
    requested = stats.get("titles/requested", 0)
    if requested and not any(
        stats.get(f"titles/{outcome}") for outcome in ("stored", "absent", "fresh")
    ):
        problems.append(f"none of {requested:,} requested titles was stored")
    return "; ".join(problems) or None


def check_overdue_titles(stats: Stats) -> str | None:
    """Check the share of the catalogue's titles that are overdue."""
    overdue = stats.get("catalogue/overdue", 0)
    fetched = stats.get("catalogue/fetched", 0)
    return _check_share(MAX_OVERDUE, overdue, fetched, "titles are overdue")


def describe_missing_fields(stats: Stats) -> list[str]:
    """Return each missing field with the reason, such as "plot unknown on 30 pages in a row"."""
    return [
        f"{name.removeprefix(_MISSING_FIELD)} {why}"
        for name, why in sorted(stats.items())
        if name.startswith(_MISSING_FIELD)
    ]


def _finished_run(stats: Stats) -> Account:
    """Return the account of the run if it is finished; otherwise an empty one.

    The account includes what killed workers counted, which is in no worker's stats. The worker that
    finishes a run checks its account.
    """
    account = account_of(stats)
    return account if account is not None and not account.open else Account()


def _sum(stats: Stats, prefix: str, suffix: str = "") -> float:
    """Return the sum of the numbers among the stats with this prefix and suffix."""
    return sum(
        value
        for name, value in stats.items()
        if name.startswith(prefix) and name.endswith(suffix) and isinstance(value, int | float)
    )


def _check_share(largest: float, bad: float, count: float, what: str) -> str | None:
    if count >= MIN_COUNT and bad > largest * count:
        return f"{bad:,.0f} of {count:,.0f} {what}"
    return None
