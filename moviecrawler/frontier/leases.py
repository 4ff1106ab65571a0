"""The leases of this worker. A request is done once all of its items are durable."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from scrapy import signals

from moviecrawler.basics.clock import utc_now
from moviecrawler.frontier.contract import End
from moviecrawler.frontier.serialisation import outcome_of_title
from moviecrawler.items import Miss, Movie, RawPage, Unchanged
from moviecrawler.politeness.meta import CLOSED_META
from moviecrawler.signals import (
    items_completed,
    items_passed,
    list_failed,
    title_failed,
    titles_fresh,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from scrapy import Request
    from scrapy.http import Response
    from scrapy.signalmanager import SignalManager
    from twisted.python.failure import Failure

    from moviecrawler.frontier.contract import EndKind
    from moviecrawler.signals import Outcome

META = "lease"
"""Key in the `meta` of a request, and of its retries and redirects, for its Lease."""
_WORST_FIRST = ("failed", "disallowed", "absent", "stored", "fresh")
"""The outcomes of a title. One that has several, as an item of it was rejected, has the worst."""


@dataclass(slots=True, eq=False)
class Lease:
    """A request that is leased to this worker."""

    id: str
    number: int
    """The number of this delivery, from 1."""
    request: Request | None
    """The request, or the latest retry or redirect of it; None for the run's arguments."""
    is_title: bool = False
    """Whether the request is for a title."""
    awaits_item: bool = False
    """Whether it is for a title of which no item has come yet."""
    open_items: int = 0
    """Items of the request that are not durable yet."""
    has_ended: bool = False
    """Whether the callback has ended, and the queue and the pipelines have all that it yielded."""
    outcomes: Counter[str] = field(default_factory=Counter)
    """How titles of the request ended: one, or those of a pass over the datasets; or that it is for
    a list page that could not be read."""
    kind: EndKind = "done"
    reason: str = ""

    def end(self) -> End:
        """Return the end of the lease, with what became of the request."""
        outcomes = dict(self.outcomes)
        if self.is_title:
            worst = next((outcome for outcome in _WORST_FIRST if outcomes.get(outcome)), "failed")
            outcomes = {worst: 1}
        elif "unread" not in outcomes:
            outcomes["read"] = 1
        return End(
            id=self.id,
            kind=self.kind,
            number=self.number,
            reason=self.reason,
            outcomes=outcomes if self.kind == "done" else {},
        )


class LeaseTracker:
    """Follows each lease until its items are durable, by signals of Scrapy and of the stores."""

    def __init__(self, finish: Callable[[Lease], None]) -> None:
        self.leases: dict[str, Lease] = {}
        self._finish = finish

    def connect(self, manager: SignalManager) -> None:
        """Connect to the signals that tell what happens to items."""
        self._manager = manager
        manager.connect(self._items_passed, items_passed)
        manager.connect(self._item_dropped, signals.item_dropped)
        manager.connect(self._items_completed, items_completed)
        manager.connect(self._on_error, signals.item_error)
        manager.connect(self._on_error, signals.spider_error)
        manager.connect(self._list_failed, list_failed)
        manager.connect(self._titles_fresh, titles_fresh)

    def take(self, lease_id: str, number: int, request: Request | None) -> Lease:
        """Add the lease of a request, or of the run's arguments."""
        lease = Lease(lease_id, number, request)
        self.leases[lease_id] = lease
        if request is not None:
            request.meta[META] = lease
            lease.is_title = "site_id" in request.cb_kwargs
            lease.awaits_item = lease.is_title
        return lease

    def transfer(self, request: Request) -> bool:
        """Give the lease of a request to its retry or redirect.

        Returns:
            False when the lease is gone.
        """
        lease = self._lease_of(request)
        lease.request = request
        return self.leases.get(lease.id) is lease and not lease.has_ended

    def ended(self, request: Request) -> None:
        """Note that a request has left the engine; end its lease if no item of it is open."""
        lease = self._lease_of(request)
        if lease.request is not request:
            return
        lease.has_ended = True
        closed = request.meta.get(CLOSED_META)
        if lease.kind == "done" and closed is not None:
            lease.kind = "last" if closed.is_put_last else "back"
        elif lease.kind == "done" and lease.awaits_item:
            lease.kind = "dead"
            lease.reason = "it ended without an item"
        if lease.kind == "dead" and lease.is_title:
            known = request.cb_kwargs
            note = outcome_of_title(
                request.meta["site"], known["site_id"], known.get("due"), utc_now()
            )
            self._manager.send_catch_log(title_failed, note=note, request=request)
        self._check(lease)

    def end(self, lease: Lease) -> None:
        """End a lease in any case."""
        if self.leases.pop(lease.id, None) is lease:
            self._finish(lease)

    def _lease_of(self, source: Request | Response | Failure | None) -> Lease:
        """Return the lease of a request, a response or a failure.

        What has none gets a new one, without any effect.
        """
        request = getattr(source, "request", source)
        return getattr(request, "meta", {}).get(META) or Lease("", 0, None)

    def _items_passed(self, items: Sequence[object], request: Request | None) -> None:
        lease = self._lease_of(request)
        lease.open_items += len(items)
        # An archived page is not yet the title's item.
        if not all(isinstance(item, RawPage) for item in items):
            lease.awaits_item = False

    def _item_dropped(self, response: Response | Failure | None, item: object) -> None:
        """Note an item that did not pass the checks; ValidatePipeline has kept it."""
        lease = self._lease_of(response)
        lease.awaits_item = False
        if _is_of_its_own_page(item):
            lease.outcomes["failed"] += 1

    def _on_error(self, response: Response | Failure | None, failure: Failure) -> None:
        lease = self._lease_of(response)
        lease.kind = "dead"
        lease.reason = f"its callback or a pipeline failed: {failure.value!r}"

    def _titles_fresh(self, request: Request, count: int) -> None:
        lease = self._lease_of(request)
        lease.awaits_item = False
        lease.outcomes["fresh"] += count

    def _list_failed(self, url: str, refused: bool) -> None:
        for lease in self.leases.values():
            if getattr(lease.request, "url", "") == url:
                lease.outcomes["unread"] = 1
                if refused:
                    lease.kind = "back"

    def _items_completed(
        self, items: Sequence[object], request: Request | None, outcomes: frozenset[Outcome]
    ) -> None:
        lease = self._lease_of(request)
        if not outcomes.isdisjoint({"spooled", "lost"}):
            # Only this node's disk has the item, or nothing has: another worker may get it stored.
            lease.kind = "back"
        for item in items:
            if isinstance(item, Unchanged):
                lease.outcomes["stored"] += len(item.site_ids)
            if "rejected" in outcomes and (lease.is_title or _is_of_its_own_page(item)):
                lease.outcomes["failed"] += 1
            elif _is_of_its_own_page(item):
                lease.outcomes[item.outcome if isinstance(item, Miss) else "stored"] += 1
        lease.open_items -= len(items)
        self._check(lease)

    def _check(self, lease: Lease) -> None:
        if lease.has_ended and not lease.open_items:
            self.end(lease)


def _is_of_its_own_page(item: object) -> bool:
    """Return whether an item says how a title ended, and not only what a list says of it."""
    return isinstance(item, Miss) or (isinstance(item, Movie) and item.source != "list")
