"""What stores have refused, on all nodes: the latest items, in the Redis that crawls share.

The complete record is `rejected.jsonl` in the DATA_DIR of each node. Nothing here holds a crawl up: what can't be told is told
later, or not at all.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
import time
from collections import deque
from dataclasses import fields
from itertools import islice
from typing import TYPE_CHECKING, Any

import msgspec
import redis.exceptions
from scrapy import signals
from scrapy.exceptions import NotConfigured

from moviecrawler.dashboard.keys import CrawlKeys
from moviecrawler.errors import ConfigurationError
from moviecrawler.frontier.options import node_of
from moviecrawler.frontier.seeds import push_seed
from moviecrawler.frontier.shared import shared_scheduler
from moviecrawler.signals import item_rejected
from moviecrawler.urls import HOMES, parse_title_id, title_url

if TYPE_CHECKING:
    from typing import Self

    from scrapy import Spider
    from scrapy.crawler import Crawler

    from moviecrawler.items import Site

logger = logging.getLogger(__name__)

KEPT = 1000
"""Items that Redis holds, and that wait in a process for it."""
_KEPT_FOR = 30 * 86_400
_AT_ONCE = 100
"""Items that are told in one pipeline."""
_EVERY = 2.0
"""Seconds between two times that items are told."""
_LAST_WORDS = 3.0
"""Seconds that a crawl which ends has for what is not told yet."""
_LONGEST_ITEM = 3000
_LONGEST_TEXT = 500
"""Characters."""
_ID = re.compile(r"[0-9]{1,18}-[0-9]{1,18}")
_BOOSTED = 100
"""The priority that goes before all others."""


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
        """The title whose page it came from, to be fetched again; None when nobody can tell."""
        if self.site not in HOMES:
            return None
        for text in (self.site_id, self.url):
            try:
                return self.site, parse_title_id(self.site, text)
            except ConfigurationError:
                continue
        return None


class RejectedItems:
    """Scrapy extension that tells what stores refuse."""

    def __init__(self, crawler: Crawler, run: str, node: str) -> None:
        self._crawler = crawler
        self._run = run
        self._node = node
        self._waiting: deque[RejectedItem] = deque(maxlen=KEPT)
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Read REDIS_URL, FRONTIER_RUN and FRONTIER_NODE."""
        settings = crawler.settings
        if not settings.get("REDIS_URL") or not hasattr(crawler.spidercls, "site"):
            raise NotConfigured
        items = cls(crawler, settings["FRONTIER_RUN"], node_of(settings))
        crawler.signals.connect(items.item_rejected, item_rejected)
        crawler.signals.connect(items.spider_opened, signals.spider_opened)
        crawler.signals.connect(items.spider_closed, signals.spider_closed)
        return items

    def item_rejected(self, store: str, reason: str, item: Any) -> None:
        """Take down an item; when too many wait for Redis, the oldest is not told."""
        self._waiting.append(taken_down(store, reason, item, run=self._run, node=self._node, now=time.time()))
        self._wake.set()

    def spider_opened(self, spider: Spider) -> None:  # noqa: ARG002 - Scrapy's signature
        """Begin to tell."""
        self._task = asyncio.get_running_loop().create_task(self._tell_now_and_then())

    async def spider_closed(self, spider: Spider, reason: str) -> None:  # noqa: ARG002 - Scrapy's signature
        """Tell the rest; stores have settled everything by now."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task})
        try:
            async with asyncio.timeout(_LAST_WORDS):
                await self._tell()
        except TimeoutError:
            logger.debug("Redis took too long to be told of rejected items")

    async def _tell_now_and_then(self) -> None:
        while True:
            await self._wake.wait()
            await self._tell()
            await asyncio.sleep(_EVERY)

    async def _tell(self) -> None:
        """Tell what waits; what can't be told stays, for the next time."""
        scheduler = shared_scheduler(self._crawler)
        while self._waiting and scheduler is not None:
            some = list(islice(self._waiting, _AT_ONCE))
            pipe = scheduler.server.pipeline(transaction=False)
            for item in some:
                pipe.xadd(CrawlKeys.REJECTED, {"item": msgspec.json.encode(item)}, maxlen=KEPT, approximate=False)
            pipe.expire(CrawlKeys.REJECTED, _KEPT_FOR)
            try:
                await pipe.execute()
            except redis.exceptions.RedisError as error:
                logger.debug("Rejected items can't be told: %s", error)
                return
            told = set(map(id, some))
            while self._waiting and id(self._waiting[0]) in told:
                self._waiting.popleft()
        self._wake.clear()


def taken_down(store: str, reason: str, item: Any, *, run: str, node: str, now: float) -> RejectedItem:
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
        item=_shortened(item),
        run=run,
        node=node,
        at=now,
    )


def _clean(text: object, longest: int = _LONGEST_TEXT) -> str:
    """Return a text as it can be written as JSON, and not longer than that."""
    known = str(text)
    short = known if len(known) <= longest else known[:longest] + "…"
    return short.encode(errors="backslashreplace").decode()


def _shortened(item: Any) -> str:
    if isinstance(item, str):
        return _clean(item, _LONGEST_ITEM)
    # The bytes of a page stand in the file.
    values = {field.name: getattr(item, field.name) for field in fields(item)}
    plain = {name: value for name, value in values.items() if value is not None and not isinstance(value, bytes)}
    try:
        text = msgspec.json.encode(plain).decode()
    except (TypeError, ValueError, OverflowError):
        # It may be here because of just that value.
        text = json.dumps(plain, default=repr)
    return _clean(text, _LONGEST_ITEM)


# --- For the page -------------------------------------------------------------------------------------------------------


def is_place(text: str) -> bool:
    """Return whether a text is the id of an item, or could be."""
    return _ID.fullmatch(text) is not None


async def page_of_rejected(
    client: Any, before: str | None, size: int
) -> tuple[list[tuple[str, RejectedItem | None]], int]:
    """Return items with their ids, latest first, those before an id if one is given; and how many there are in all.

    None stands for what another version has written. One item more than `size` tells that there are others.
    """
    found = await client.xrevrange(CrawlKeys.REJECTED, f"({before}" if before else "+", "-", count=size + 1)
    return [(id_.decode(), _read(told)) for id_, told in found], await client.xlen(CrawlKeys.REJECTED)


async def find_rejected(client: Any, id_: str) -> RejectedItem | None:
    """Return an item; None when it is not there, or another version's."""
    found = await client.xrange(CrawlKeys.REJECTED, id_, id_, count=1)
    return _read(found[0][1]) if found else None


async def forget_rejected(client: Any, id_: str) -> bool:
    """Forget an item, which its node's file still has; return whether it was there."""
    return bool(await client.xdel(CrawlKeys.REJECTED, id_))


async def fetch_again(client: Any, id_: str, start_urls: dict[Site, str]) -> bool:
    """Have the title of an item fetched by the crawl of its site that runs, or else by the next one; and forget the item.

    It is pushed to the site's list of `start_urls`, from where workers take it whatever else they do. Return whether there
    is such an item, with a title.
    """
    item = await find_rejected(client, id_)
    if item is None or item.title is None:
        return False
    site, site_id = item.title
    seed = {"url": title_url(site, site_id), "priority": _BOOSTED}
    await push_seed(client, start_urls[site], msgspec.json.encode(seed))
    # After that: two who ask at once have it fetched twice, and one who dies in between loses nothing.
    await forget_rejected(client, id_)
    return True


def _read(told: dict[bytes, bytes]) -> RejectedItem | None:
    try:
        return msgspec.json.decode(told.get(b"item", b""), type=RejectedItem)
    except (msgspec.DecodeError, RecursionError):
        return None
