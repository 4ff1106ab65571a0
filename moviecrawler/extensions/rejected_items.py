"""What stores have refused, on all nodes: the latest items, in the Redis that crawls share.

The complete record is `rejected.jsonl` in the DATA_DIR of each node.
"""

from __future__ import annotations

import json
import time
from collections import deque
from dataclasses import fields
from itertools import islice
from typing import TYPE_CHECKING, Any

import msgspec

from moviecrawler.errors import ConfigurationError
from moviecrawler.extensions.crawl_keys import CrawlKeys
from moviecrawler.extensions.publishing import Publisher
from moviecrawler.options import node_of
from moviecrawler.signals import item_rejected
from moviecrawler.sites import SITES
from moviecrawler.urls import parse_title_id

if TYPE_CHECKING:
    from typing import Self

    from scrapy.crawler import Crawler

    from moviecrawler.items import Site

KEPT = 1000
"""Items that Redis holds, and that wait in a process for it."""
_KEPT_SECONDS = 30 * 86_400
_ITEMS_AT_ONCE = 100
_ITEM_CHARACTERS = 3000
_TEXT_CHARACTERS = 500


class RejectedItem(msgspec.Struct, kw_only=True):
    """An item that a store has refused."""

    store: str
    """`validate` for what was not offered to any."""
    reason: str
    site: str
    site_id: str
    url: str
    """From where it was fetched, as far as that is known. Empty, like site and id, when nothing of the item can be read."""
    kind: str
    """`Movie`, `Miss` or `RawPage`; `text` for a line of a spool file that holds none of them."""
    item: str
    """Its JSON, of which only the beginning is kept when it is long."""
    run: str
    node: str
    at: float
    """Seconds since 1970."""

    @property
    def title(self) -> tuple[Site, str] | None:
        """The site and id of the title whose page it came from; None when nobody can tell."""
        if self.site not in SITES:
            return None
        for text in (self.site_id, self.url):
            try:
                return self.site, parse_title_id(self.site, text)
            except ConfigurationError:
                continue
        return None


class RejectedItems(Publisher):
    """Scrapy extension that publishes the items that stores refuse."""

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        self._waiting: deque[RejectedItem] = deque(maxlen=KEPT)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Read REDIS_URL, FRONTIER_RUN and FRONTIER_NODE."""
        items = super().from_crawler(crawler)
        crawler.signals.connect(items.item_rejected, item_rejected)
        return items

    @property
    def is_pending(self) -> bool:
        """Whether items wait for Redis."""
        return bool(self._waiting)

    def item_rejected(self, store: str, reason: str, item: Any) -> None:
        """Record an item; when too many wait for Redis, the oldest is dropped."""
        run, node = self.crawler.settings["FRONTIER_RUN"], node_of(self.crawler.settings)
        self._waiting.append(record_of(store, reason, item, run=run, node=node, now=time.time()))
        self.publish_soon()

    async def publish(self) -> None:
        """Publish what waits."""
        while self._waiting:
            some = list(islice(self._waiting, _ITEMS_AT_ONCE))
            if not await self.send(lambda pipe, some=some: _add(pipe, some)):  # type: ignore[misc]  # mypy infers no default
                return
            sent = set(map(id, some))
            while self._waiting and id(self._waiting[0]) in sent:
                self._waiting.popleft()


def _add(pipe: Any, items: list[RejectedItem]) -> None:
    for item in items:
        pipe.xadd(CrawlKeys.REJECTED, {"item": msgspec.json.encode(item)}, maxlen=KEPT, approximate=False)
    pipe.expire(CrawlKeys.REJECTED, _KEPT_SECONDS)


def record_of(store: str, reason: str, item: Any, *, run: str, node: str, now: float) -> RejectedItem:
    """Return what is kept of an item: a Movie, a Miss, a RawPage or a text, with any value whatever in it."""

    def text(name: str) -> str:
        value = getattr(item, name, None)
        return _clean(value if isinstance(value, str) else "")

    return RejectedItem(
        store=store,
        reason=_clean(reason),
        site=text("site"),
        site_id=text("site_id"),
        url=_clean(getattr(getattr(item, "fetch", None), "url", None) or text("url")),
        kind="text" if isinstance(item, str) else type(item).__name__,
        item=_clean(item if isinstance(item, str) else _as_json(item), _ITEM_CHARACTERS),
        run=run,
        node=node,
        at=now,
    )


def _clean(text: object, most: int = _TEXT_CHARACTERS) -> str:
    """Return a text as it can be written as JSON, cut where it is longer."""
    known = str(text)
    short = known if len(known) <= most else known[:most] + "…"
    return short.encode(errors="backslashreplace").decode()


def _as_json(item: Any) -> str:
    # The bytes of a page stand in the file.
    values = {field.name: getattr(item, field.name) for field in fields(item)}
    plain = {name: value for name, value in values.items() if value is not None and not isinstance(value, bytes)}
    try:
        return msgspec.json.encode(plain).decode()
    except (TypeError, ValueError, OverflowError):
        # The store may have refused it because of just that value.
        return json.dumps(plain, default=repr)
