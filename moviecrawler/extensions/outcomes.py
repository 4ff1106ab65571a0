"""Counts how each title that was asked for ended, in the stats `titles/<outcome>`."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Any

from scrapy import signals

from moviecrawler.items import Miss, Movie
from moviecrawler.signals import item_completed, item_passed

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Self

    from scrapy.crawler import Crawler

    from moviecrawler.signals import Outcome

OUTCOMES = (
    "stored",
    "unchanged",
    "absent",
    "failed",
    "blocked",
    "disallowed",
    "rejected",
    "spooled",
    "lost",
)
"""How a title that was asked for can end; each is counted in the stat `titles/<outcome>`."""

_MAX_REASONS = 200
"""Reasons that are counted one by one; further ones are counted together."""
_NOISE = re.compile(r"\s*\(?https?://\S+|\b(?:tt\d+|(?:m|tv|movie)/[\w-]+)\b")
"""Addresses and ids, without which most reasons are the same."""


class TitleOutcomes:
    """Count a title as `stored` when its movie is durable in every store.

    Otherwise it is counted as what kept it from that: `lost`, `rejected` or `spooled` when a store
    said so, or the outcome of a `Miss`. A Movie with source `list` is not counted: the Movie or
    Miss of the title's own page is.
    """

    def __init__(self, crawler: Crawler) -> None:
        self.stats = crawler.stats
        self.reasons: defaultdict[str, Counter[str]] = defaultdict(Counter)
        """Outcome of a title that was missed → why, and how often."""

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Connect the handlers to their signals."""
        outcomes = cls(crawler)
        crawler.signals.connect(outcomes.item_passed, item_passed)
        crawler.signals.connect(outcomes.item_dropped, signals.item_dropped)
        crawler.signals.connect(outcomes.item_completed, item_completed)
        return outcomes

    def item_passed(self, item: Any) -> None:
        """Count a title that was missed."""
        if isinstance(item, Miss):
            self._count(item.outcome)
            reasons = self.reasons[item.outcome]
            reason = _NOISE.sub("", item.reason).strip(" ,;:()") or item.outcome
            reasons[reason if reason in reasons or len(reasons) < _MAX_REASONS else "others"] += 1

    def item_dropped(self, item: Any) -> None:
        """Count a title whose Movie or Miss did not pass the checks."""
        if isinstance(item, Miss) or (isinstance(item, Movie) and item.source != "list"):
            self._count("rejected")

    def item_completed(self, item: Any, outcomes: frozenset[Outcome]) -> None:
        """Count a title whose Movie has an outcome in all stores."""
        if isinstance(item, Movie) and item.source != "list":
            self._count(
                next(
                    (worse for worse in ("lost", "rejected", "spooled") if worse in outcomes),
                    "stored",
                )
            )

    def _count(self, outcome: str) -> None:
        self.stats.inc_value(f"titles/{outcome}")


def is_complete(stats: Mapping[str, Any], *, within_budget: bool = False) -> bool:
    """Return whether a crawl did all that it was asked to.

    Each title is stored, or its site says that there is none. The crawl must have finished, or have
    ended to be restarted (`recycled`). A crawl `within_budget`, such as `lane=due`, may also end
    when the budget of the day is spent. A list that could not be read may have named any number of
    titles.
    """
    ends = {"finished", "recycled", "budget_spent"} if within_budget else {"finished", "recycled"}
    done = sum(stats.get(f"titles/{outcome}", 0) for outcome in ("stored", "unchanged", "absent"))
    troubles = ["lists/missed", "items/unrecorded", "store/sqlite/unfinished"]
    # A worker that sees the end of a shared run answers for all of it.
    if stats.get("finish_reason") != "recycled":
        troubles += ["frontier/run/dead", "frontier/run/lost"]
    return (
        stats.get("finish_reason") in ends
        and done >= stats.get("titles/asked", 0)
        and not any(
            stats.get(name) for name in (*troubles, *(f"titles/{name}" for name in OUTCOMES[3:]))
        )
    )
