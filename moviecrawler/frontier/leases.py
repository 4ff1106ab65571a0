"""Which requests this worker holds, and when one of them is done: once everything that came of it is safe."""

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
"""The reason of a lease that ends with `back` as its site has refused us."""
META = "lease"
"""Where a request, and each retry and redirect made from it, has its lease's id."""


@dataclass(slots=True, eq=False)
class Lease:
    """A request that this worker holds."""

    id: str
    number: int
    """How many times it was handed out, with this one."""
    request: Any
    """The latest, when a retry or a redirect has replaced it."""
    awaits_item: bool = False
    """Whether it is a title's, of which no item has come yet."""
    unsettled: int = 0
    """Items that came of it and are not yet safe."""
    ended: bool = False
    """Whether its callback has ended and all it yielded was taken over by queue and pipelines."""
    how: How = "done"
    reason: str = ""


class LeaseTracker:
    """Follows each lease from request to durable items, by Scrapy's signals and the stores'."""

    def __init__(self, finish: Callable[[Lease, How, str], None]) -> None:
        self.leases: dict[str, Lease] = {}
        self._finish = finish
        self._lease_of_item: dict[int, Lease] = {}  # by the identity of an item that is not completed

    def connect(self, manager: SignalManager) -> None:
        """Connect to the signals that say what becomes of items."""
        for handler, signal in (
            (self._item_passed, item_passed),
            (self._item_dropped, signals.item_dropped),
            (self._item_broke, signals.item_error),
            (self._item_completed, item_completed),
            (self._callback_broke, signals.spider_error),
            (self._list_missed, list_missed),
        ):
            manager.connect(handler, signal)

    def take(self, lease_id: str, number: int, request: Request) -> None:
        """Hold a request that was handed out."""
        request.meta[META] = lease_id
        self.leases[lease_id] = Lease(lease_id, number, request, awaits_item="site_id" in request.cb_kwargs)

    def hand_over(self, request: Request) -> bool:
        """Give the lease to a retry or a redirect of a request that is held; return whether there was one."""
        lease = self._lease_of(request)
        lease.request = request
        return lease.id in self.leases and not lease.ended

    def ended(self, request: Request) -> None:
        """End the lease of a request that has left the engine, unless an item of it is not safe yet."""
        lease = self._lease_of(request)
        if lease.request is request:
            lease.ended = True
            if lease.awaits_item and lease.how == "done":
                is_unsent = request.meta.get(NOT_SENT, False)
                lease.how, lease.reason = ("back", "") if is_unsent else ("dead", "it ended without an item")
            self._check(lease)

    @property
    def unsettled(self) -> bool:
        """Whether some item is not safe yet, of whatever request."""
        return bool(self._lease_of_item)

    def _lease_of(self, source: Request | Response | Failure | None) -> Lease:
        """Return the lease that a request, an answer or a failure belongs to; one of no effect where that is none of ours."""
        request = getattr(source, "request", source)
        return self.leases.get(getattr(request, "meta", {}).get(META, "")) or Lease("", 0, request)

    def _item_passed(self, item: Any, request: Request | None) -> None:
        lease = self._lease_of_item[id(item)] = self._lease_of(request)
        lease.unsettled += 1
        if not isinstance(item, RawPage):  # which is no answer to what was asked
            lease.awaits_item = False
        if isinstance(item, Miss) and item.outcome == "blocked":
            lease.how, lease.reason = "back", REFUSED  # a site that refuses us has said nothing of the title

    def _item_dropped(self, response: Response | Failure | None) -> None:
        self._lease_of(response).awaits_item = False  # ValidatePipeline has written it to the rejected ones

    def _item_broke(self, response: Response | Failure | None, failure: Failure) -> None:
        lease = self._lease_of(response)
        lease.how, lease.reason = "dead", f"a pipeline failed: {failure.value!r}"

    def _callback_broke(self, response: Response | Failure, failure: Failure) -> None:
        lease = self._lease_of(response)
        lease.how, lease.reason = "dead", f"its callback failed: {failure.value!r}"

    def _list_missed(self, url: str, refused: bool) -> None:
        for lease in self.leases.values():
            if refused and lease.request.url == url:
                lease.how, lease.reason = "back", REFUSED

    def _item_completed(self, item: Any, outcomes: frozenset[Outcome]) -> None:
        lease = self._lease_of_item.pop(id(item), None)
        if lease is not None:
            if not outcomes.isdisjoint({"spooled", "lost"}):
                # It is nowhere, or on the disk of this node alone, which may never run again.
                lease.how = "back"
            lease.unsettled -= 1
            self._check(lease)

    def _check(self, lease: Lease) -> None:
        if lease.ended and not lease.unsettled and self.leases.get(lease.id) is lease:
            del self.leases[lease.id]
            self._finish(lease, lease.how, lease.reason)
