"""Follows each item into all of its stores, and sends one signal when it is in every one."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from scrapy import signals

from moviecrawler.catalogue.rows import Listed
from moviecrawler.items import Batch, Fetched, ListPage, Miss, Movie, RawPage
from moviecrawler.signals import (
    item_outcomes,
    item_replaced,
    items_completed,
    items_passed,
    news_queued,
    page_archived,
    store_opened,
    title_failed,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Self

    from scrapy import Request
    from scrapy.crawler import Crawler
    from scrapy.http import Response
    from scrapy.signalmanager import SignalManager
    from twisted.python.failure import Failure

    from moviecrawler.signals import Outcome


_MAX_DROPPED = 2000
"""Dropped items that are remembered: more than all stores' buffers hold."""


@dataclass(slots=True, eq=False)
class _Followed:
    item: object
    """A reference to the item, so that no other one gets its id()."""
    passed: bool = False
    request: Request | None = None
    """The item's request; its response, perhaps 1 MB, would stay in memory until the batch is
    written."""
    outcomes: dict[str, Outcome] = field(default_factory=dict)


class ItemCompletion:
    """Send `items_passed` and `items_completed` with each item.

    An item has passed once it is through the pipelines, and is completed once each of its stores
    has an outcome, too. Movies, misses and pages of lists go to every store that has opened, raw
    pages to the archive, news for the catalogue to Postgres, anything else to none. Items are known
    by their id(), as two may be equal.
    """

    def __init__(self, manager: SignalManager) -> None:
        self._manager = manager
        self._stores: set[str] = set()
        self._items: dict[int, _Followed] = {}
        self._dropped: dict[int, object] = {}
        """Items that a pipeline dropped or failed on. An earlier store may still send an outcome of
        them."""
        self._replaced: dict[int, tuple[object, object]] = {}
        """By the id() of what a pipeline has put in the place of an item: both."""
        manager.connect(self._item_replaced, item_replaced)
        manager.connect(self._store_opened, store_opened)
        manager.connect(self._item_outcomes, item_outcomes)
        manager.connect(self._item_scraped, signals.item_scraped)
        manager.connect(self._item_scraped, page_archived)
        manager.connect(self._news_queued, news_queued)
        manager.connect(self._item_refused, signals.item_dropped)
        manager.connect(self._item_dropped, signals.item_error)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Follow the items of a crawl."""
        return cls(crawler.signals)

    def _store_opened(self, store: str) -> None:
        self._stores.add(store)

    def _item_replaced(self, item: object, by: object) -> None:
        self._replaced[id(by)] = by, item

    def _item_scraped(self, item: object, response: Response | Failure | None) -> None:
        _, item = self._replaced.pop(id(item), (item, item))
        items = item.movies if isinstance(item, Batch) else [item]
        self._pass(items, getattr(response, "request", None))

    def _news_queued(self, item: object, request: Request | None) -> None:
        self._pass([item], request)

    def _pass(self, items: Sequence[object], request: Request | None) -> None:
        entries = []
        for item in items:
            entry = self._items.setdefault(id(item), _Followed(item))
            entry.passed = True
            entry.request = request
            entries.append(entry)
        # Scrapy makes a task for each receiver of item_scraped. Receivers of items_passed are
        # called at once, before items_completed.
        self._manager.send_catch_log(items_passed, items=items, request=request)
        self._check(entries)

    def _item_outcomes(
        self, items: Sequence[object], store: str, outcome: Outcome, earlier: bool = False
    ) -> None:
        if earlier:
            return  # nothing of this run waits for them
        entries = []
        for item in items:
            if id(item) not in self._dropped:
                entry = self._items.setdefault(id(item), _Followed(item))
                entry.outcomes[store] = outcome
                entries.append(entry)
        self._check(entries)

    def _item_refused(self, item: object, response: Response | Failure | None) -> None:
        self._item_dropped(item)
        self._report_refused(item, getattr(response, "request", None))

    def _report_refused(self, item: object, request: Request | None) -> None:
        """Report that a title's item is not in every store; a row of a list is not one."""
        if isinstance(note := getattr(item, "note", None), Fetched):
            self._manager.send_catch_log(title_failed, note=note, request=request)

    def _item_dropped(self, item: object) -> None:
        self._items.pop(id(item), None)
        self._dropped[id(item)] = item
        if len(self._dropped) > _MAX_DROPPED:
            del self._dropped[next(iter(self._dropped))]

    def _check(self, entries: Iterable[_Followed]) -> None:
        completed: dict[tuple[Request | None, frozenset[Outcome]], list[object]] = defaultdict(list)
        for entry in entries:
            if not entry.passed or not entry.outcomes.keys() >= self._stores_of(entry.item):
                continue
            del self._items[id(entry.item)]
            outcomes = frozenset(entry.outcomes.values())
            if "rejected" in outcomes:
                self._report_refused(entry.item, entry.request)
            completed[entry.request, outcomes].append(entry.item)
        for (request, outcomes), items in completed.items():
            self._manager.send_catch_log(
                items_completed, items=items, request=request, outcomes=outcomes
            )

    def _stores_of(self, item: object) -> set[str]:
        """Return the stores that an item is for."""
        if isinstance(item, Movie | Miss | ListPage):
            return self._stores
        if isinstance(item, RawPage):
            return {"archive"}
        return {"postgres"} if isinstance(item, Fetched | Listed) else set()
