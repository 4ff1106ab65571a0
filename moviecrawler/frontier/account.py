"""What a crawl's stats say of its account, and the exit code that follows from it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import msgspec

from moviecrawler.frontier.contract import Account

if TYPE_CHECKING:
    from collections.abc import Mapping

ExitCode = Literal[0, 1, 3]
DONE: ExitCode = 0
"""All that was requested is stored, or its site says that there is none."""
INCOMPLETE: ExitCode = 1
"""Something is not, or the site blocked us or could not be reached."""
UNFINISHED: ExitCode = 3
"""The rest is queued and in order: the same command goes on."""
_ORDERLY_ENDS = ("budget_spent", "memusage_exceeded", "recycled", "shutdown")
"""Why a crawl may end before its run is over, without anything wrong. Scrapy's CloseSpider, which a
user sets, is another reason."""
_LOST_BY_THIS_PROCESS = (
    "titles/failed",
    "titles/disallowed",
    "titles/dead",
    "frontier/dead_letters",
    "lists/missed",
    "items/unrecorded",
)
"""Stats of what this process did not get stored."""
_LOST_BY_A_STORE = ("rejected_from_spool", "spooled", "lost", "damaged", "unfinished")
"""The ends of such stats of a store, `store/<name>/…`."""


def account_of(stats: Mapping[str, object]) -> Account | None:
    """Return the account of the run at the end of a crawl; None when it joined no run."""
    names = Account.__struct_fields__
    figures = {name: stats.get(f"frontier/run/{name}") for name in names}
    if figures["requested"] is None:
        return None
    return msgspec.convert(figures, Account)


def is_orderly(reason: str) -> bool:
    """Return whether a crawl that ended for this reason only left work for the next start."""
    return reason in _ORDERLY_ENDS or reason.startswith("closespider_")


def exit_code(stats: Mapping[str, object]) -> ExitCode:
    """Return the exit code of a crawl.

    It is that of what this process ended, and at the run's end of the whole run.
    """
    has_lost = any(stats.get(name) for name in _LOST_BY_THIS_PROCESS) or any(
        value and name.startswith("store/") and name.rpartition("/")[2] in _LOST_BY_A_STORE
        for name, value in stats.items()
    )
    account = account_of(stats)
    reason = str(stats.get("finish_reason", ""))
    if has_lost or account is None:
        return INCOMPLETE
    if account.open:
        return UNFINISHED if is_orderly(reason) else INCOMPLETE
    if not is_orderly(reason) and reason != "finished":
        return INCOMPLETE
    bad = account.failed + account.disallowed + account.dead + account.unread + account.lost
    return INCOMPLETE if bad else DONE
