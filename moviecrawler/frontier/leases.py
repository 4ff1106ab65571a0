"""Which requests this worker holds, and when one of them is done: once everything that came of it is safe."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from scrapy import Request, signals

from moviecrawler.items import Miss, RawPage
from moviecrawler.signals import item_completed, item_passed, list_missed

if TYPE_CHECKING:
    from collections.abc import Callable

    from scrapy.http import Response
    from scrapy.signalmanager import SignalManager
    from twisted.python.failure import Failure

    from moviecrawler.signals import Outcome

How = Literal["done", "failed", "back", "dead"]
"""How a lease ends. `done`: everything that came of the request is safe. `failed`: that is that it failed. `back`: the
request goes back to the queue. `dead`: it goes to the dead letters."""

REFUSED = "refused"
"""The reason of a lease that ends with `back` as its site has refused us."""

META = "lease"
"""Where a request, and each retry and redirect made from it, has its lease's id."""


@dataclass(slots=True, eq=False)
class Lease:
    """A request that this worker holds."""

    id: str
    request: Request
    """The latest, when a retry or a redirect has replaced it."""
    open: bool
    """Whether something must still come of it: an item of the title, or of a list that another way is tried to."""
    unsettled: int = 0
    """Items that came of it and are not yet safe."""
    ended: bool = False
    """Whether its callback has ended and all it yielded was taken over by queue and pipelines."""
    how: How = "done"
    reason: str = ""


class LeaseTracker:
    """Follows each lease from request to durable items, by Scrapy's signals and the stores'.

    A title's request promises an item. One that ended without is kept until another page of this worker yields an item
    of the same title, as IMDb's datasets do for titles whose own pages can't be had; likewise the request for a list whose
    titles the spider gets in another way. What is kept when the worker has nothing else to do, `give_up` ends.
    """

    def __init__(self, finish: Callable[[Lease, How, str], None]) -> None:
        self.leases: dict[str, Lease] = {}
        self._finish = finish
        self._leases_of: dict[int, list[Lease]] = {}  # by the identity of an item that is not completed
        self._kept: dict[str, Lease] = {}  # by the title's id

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

    # --- Requests -----------------------------------------------------------------------------------------------------

    def take(self, request: Request) -> None:
        """Hold a request that was handed out, with its lease in `meta`."""
        lease_id = request.meta[META]
        self.leases[lease_id] = Lease(lease_id, request, open="site_id" in request.cb_kwargs)

    def hand_over(self, request: Request) -> bool:
        """Give the lease to a retry or a redirect of a request that is held; return whether there was one."""
        lease = self.leases.get(request.meta.get(META, ""))
        if lease is None or lease.ended:
            return False
        lease.request = request
        return True

    def ended(self, request: Request) -> None:
        """End the lease of a request that has left the engine, or keep it for the items still to come."""
        lease = self._lease_of(request)
        if lease is not None and lease.request is request:
            lease.ended = True
            self._check(lease)

    def give_up(self) -> None:
        """End the leases that are kept for something still to come: nothing more will."""
        for lease in [lease for lease in self.leases.values() if lease.ended and not lease.unsettled]:
            if "site_id" in lease.request.cb_kwargs:
                self._end(lease, "dead", "ended without an item")
            else:
                self._end(lease, "done")

    def forget(self) -> None:
        """Drop all leases: other workers have them now, and acknowledge them."""
        self.leases.clear()
        self._kept.clear()

    def _lease_of(self, request: Request | None) -> Lease | None:
        return None if request is None else self.leases.get(request.meta.get(META, ""))

    @property
    def unsettled(self) -> bool:
        """Whether some item is not safe yet, of whatever request."""
        return bool(self._leases_of)

    # --- Items --------------------------------------------------------------------------------------------------------

    def _item_passed(self, item: Any, request: Request | None) -> None:
        lease = self._lease_of(request)
        leases = [] if lease is None else [lease]
        self._leases_of[id(item)] = leases
        if not isinstance(item, RawPage):  # which is no answer to what was asked
            kept = self._kept.pop(getattr(item, "site_id", None) or "", None)
            if kept is not None and kept is not lease:
                leases.append(kept)
            for one in leases:
                one.open = False
                if isinstance(item, Miss):
                    # A site that refuses us has said nothing of the title.
                    one.how, one.reason = {"blocked": ("back", REFUSED), "absent": ("done", "")}.get(  # type: ignore[assignment]
                        item.outcome, ("failed", "")
                    )
        for one in leases:
            one.unsettled += 1

    def _item_dropped(self, item: Any, response: Response | Failure | None) -> None:
        # By ValidatePipeline, which has written it to the rejected ones.
        lease = self._lease_of(getattr(response, "request", None))
        kept = self._kept.pop(getattr(item, "site_id", None) or "", None)
        for one in {lease, kept} - {None}:
            assert one is not None  # noqa: S101 - for mypy
            one.open = False
            one.how = "failed"
            self._check(one)

    def _item_broke(self, response: Response | Failure | None, failure: Failure) -> None:
        self._broke(getattr(response, "request", None), f"a pipeline failed: {failure.value!r}")

    def _callback_broke(self, response: Response | Failure, failure: Failure) -> None:
        self._broke(getattr(response, "request", None), f"its callback failed: {failure.value!r}")

    def _list_missed(self, url: str, reason: str | None, refused: bool) -> None:
        for lease in self.leases.values():
            if lease.request.url != url:
                continue
            if refused:
                lease.how, lease.reason = "back", REFUSED
            elif reason is None:
                lease.open = True
            else:
                lease.how = "failed"

    def _broke(self, request: Request | None, reason: str) -> None:
        lease = self._lease_of(request)
        if lease is not None:
            lease.open = False
            lease.how, lease.reason = "dead", reason

    def _item_completed(self, item: Any, outcomes: frozenset[Outcome]) -> None:
        for lease in self._leases_of.pop(id(item), ()):
            if not outcomes.isdisjoint({"spooled", "lost"}):
                # It is nowhere, or on the disk of this node alone, which may never run again.
                lease.how = "back"
            elif "rejected" in outcomes and lease.how == "done":
                lease.how = "failed"
            lease.unsettled -= 1
            self._check(lease)

    def _check(self, lease: Lease) -> None:
        if not lease.ended or lease.unsettled or lease.id not in self.leases:
            return
        if lease.open:
            self._kept[lease.request.cb_kwargs.get("site_id", "")] = lease
        else:
            self._end(lease, lease.how, lease.reason)

    def _end(self, lease: Lease, how: How, reason: str = "") -> None:
        self.leases.pop(lease.id, None)
        title = lease.request.cb_kwargs.get("site_id", "")
        if self._kept.get(title) is lease:  # nothing came of it, and it would be kept for ever
            del self._kept[title]
        self._finish(lease, how, reason)
