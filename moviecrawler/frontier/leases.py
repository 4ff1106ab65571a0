"""The leases of this worker. A request is done once all of its items are durable."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from scrapy import signals

from moviecrawler.frontier.engine import NOT_SENT
from moviecrawler.items import Miss, RawPage
from moviecrawler.signals import item_completed, item_passed, list_missed

if TYPE_CHECKING:
    from collections.abc import Callable

    from scrapy import Request
    from scrapy.http import Response
    from scrapy.signalmanager import SignalManager
    from twisted.python.failure import Failure

    from moviecrawler.frontier.queue import How
    from moviecrawler.signals import Outcome

REFUSED = "refused"
"""The reason of a lease that is given back because the site has refused us."""
META = "lease"
"""Key in the `meta` of a request, and of its retries and redirects, for its Lease."""


@dataclass(slots=True, eq=False)
class Lease:
    """A request that is leased to this worker."""

    id: str
    number: int
    """The number of this delivery, from 1."""
    request: Any
    """The request, or the latest retry or redirect of it; for the run's arguments None, or that for
    IMDb's datasets."""
    awaits_item: bool = False
    """Whether the request is for a title of which no item has come yet."""
    open_items: int = 0
    """Items of the request that are not durable yet."""
    ended: bool = False
    """Whether the callback has ended, and the queue and the pipelines have everything that it
    yielded."""
    how: How = "done"
    reason: str = ""


class LeaseTracker:
    """Follows each lease until its items are durable, by the signals of Scrapy and of the stores."""

    def __init__(self, finish: Callable[[Lease, How, str], None]) -> None:
        self.leases: dict[str, Lease] = {}
        self._finish = finish

    def connect(self, manager: SignalManager) -> None:
        """Connect to the signals that tell what happens to items."""
        for handler, signal in (
            (self._item_passed, item_passed),
            (self._item_dropped, signals.item_dropped),
            (self._item_completed, item_completed),
            (self._broke, signals.item_error),
            (self._broke, signals.spider_error),
            (self._list_missed, list_missed),
        ):
            manager.connect(handler, signal)

    def take(self, lease_id: str, number: int, request: Request | None) -> Lease:
        """Add the lease of a request, or of the run's arguments."""
        lease = self.leases[lease_id] = Lease(lease_id, number, request)
        if request is not None:
            request.meta[META] = lease
            lease.awaits_item = "site_id" in request.cb_kwargs
        return lease

    def hand_over(self, request: Request) -> bool:
        """Give the lease of a request to its retry or redirect; return False when the lease is gone."""
        lease = self._lease_of(request)
        lease.request = request
        return self.leases.get(lease.id) is lease and not lease.ended

    def ended(self, request: Request) -> None:
        """Note that a request has left the engine; end its lease if no item of it is open."""
        lease = self._lease_of(request)
        if lease.request is request:
            lease.ended = True
            if lease.how == "done" and request.meta.get(NOT_SENT):
                lease.how = "back"
            elif lease.how == "done" and lease.awaits_item:
                lease.how = "dead"
                lease.reason = "it ended without an item"
            self._check(lease)

    def _lease_of(self, source: Request | Response | Failure | None) -> Lease:
        """Return the lease of a request, a response or a failure; a new one without any effect when it has none."""
        request = getattr(source, "request", source)
        return getattr(request, "meta", {}).get(META) or Lease("", 0, request)

    def _item_passed(self, item: Any, request: Request | None) -> None:
        lease = self._lease_of(request)
        lease.open_items += 1
        if not isinstance(item, RawPage):  # an archived page is not yet the title's item
            lease.awaits_item = False
        if isinstance(item, Miss) and item.outcome == "blocked":
            # a refusal says nothing of the title
            lease.how = "back"
            lease.reason = REFUSED

    def _item_dropped(self, response: Response | Failure | None) -> None:
        self._lease_of(
            response
        ).awaits_item = False  # ValidatePipeline has written it to rejected.jsonl

    def _broke(self, response: Response | Failure | None, failure: Failure) -> None:
        lease = self._lease_of(response)
        lease.how = "dead"
        lease.reason = f"its callback or a pipeline failed: {failure.value!r}"

    def _list_missed(self, url: str, refused: bool) -> None:
        for lease in self.leases.values():
            if refused and getattr(lease.request, "url", "") == url:
                lease.how = "back"
                lease.reason = REFUSED

    def _item_completed(self, request: Request | None, outcomes: frozenset[Outcome]) -> None:
        lease = self._lease_of(request)
        if not outcomes.isdisjoint({"spooled", "lost"}):
            # Only this node's disk has the item, or nothing has: another worker may get it stored.
            lease.how = "back"
        lease.open_items -= 1
        self._check(lease)

    def _check(self, lease: Lease) -> None:
        if lease.ended and not lease.open_items and self.leases.get(lease.id) is lease:
            del self.leases[lease.id]
            self._finish(lease, lease.how, lease.reason)
