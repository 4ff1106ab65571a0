"""How the stores of each process do: published every few seconds while it runs, and once when it ends."""

from __future__ import annotations

import os
import time
from collections import deque
from typing import TYPE_CHECKING, Any

import msgspec
import redis.exceptions
from scrapy import signals

from moviecrawler.extensions.crawl_keys import CrawlKeys
from moviecrawler.extensions.publishing import PUBLISH_SECONDS, Publisher
from moviecrawler.frontier.shared import shared_scheduler
from moviecrawler.options import node_of
from moviecrawler.pipelines.base import BatchingPipeline

if TYPE_CHECKING:
    from typing import Self

    from scrapy.crawler import Crawler

SILENT_SECONDS = 3 * PUBLISH_SECONDS
"""After which a process that has published nothing is taken for dead."""
ENDED_KEPT = 20
"""Processes that have ended, whose figures are kept."""
_RATE_SECONDS = 60.0
"""A rate is the mean of this long."""
_DEAD_KEPT_SECONDS = 600.0
_KEPT_SECONDS = 86_400


class StoreFigures(msgspec.Struct, kw_only=True):
    """One store in one process. `durable` to `retries` count from the start of the process."""

    durable: int = 0
    rejected: int = 0
    spooled: int = 0
    lost: int = 0
    retries: int = 0
    per_minute: float = 0.0
    """Items that became durable, over the last minute."""
    latency: float | None = None
    """Mean seconds of a batch, over the last minute; of all when there was none. None before the first."""
    held: int = 0
    """Items in the buffer."""
    room: int = 0
    """Items that the buffer holds at most."""


class ProcessFigures(msgspec.Struct, kw_only=True):
    """What one process publishes."""

    site: str
    run: str
    node: str
    at: float
    """Seconds since 1970."""
    ended: bool
    stores: dict[str, StoreFigures]


class StoreStats(Publisher):
    """Scrapy extension that publishes how the crawl's stores do."""

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        self._node = node_of(crawler.settings)
        self._field = f"{self._node} {os.getpid()}"
        self._seen: dict[str, deque[tuple[float, int, int, float]]] = {}
        """Store → time, items, batches and seconds of batches at each publication of the last minute."""
        self._has_ended = False

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Read REDIS_URL, FRONTIER_RUN and FRONTIER_NODE."""
        stats = super().from_crawler(crawler)
        crawler.signals.connect(stats.spider_opened, signals.spider_opened)
        return stats

    is_pending = True

    async def spider_opened(self) -> None:
        """Begin to publish, and remove what processes left that died."""
        self.publish_soon()
        scheduler = shared_scheduler(self.crawler)
        if scheduler is None:
            return
        try:
            known = await scheduler.server.hgetall(CrawlKeys.STORES)
        except redis.exceptions.RedisError:
            return
        oldest = time.time() - _DEAD_KEPT_SECONDS
        dead = [name for name, text in known.items() if (one := read_figures(text)) is None or one.at < oldest]
        if dead:
            await self.send(lambda pipe: pipe.hdel(CrawlKeys.STORES, *dead))

    async def spider_closed(self) -> None:
        """Publish the final figures."""
        self._has_ended = True
        await super().spider_closed()

    async def publish(self) -> None:
        """Publish the figures of now."""
        engine = self.crawler.engine
        pipelines = engine.scraper.itemproc.middlewares if engine is not None else ()
        figures = ProcessFigures(
            site=self.crawler.spidercls.site,  # type: ignore[attr-defined]
            run=self.crawler.settings["FRONTIER_RUN"],
            node=self._node,
            at=time.time(),
            ended=self._has_ended,
            stores={one.store.name: self._measure(one) for one in pipelines if isinstance(one, BatchingPipeline)},
        )
        text = msgspec.json.encode(figures)

        def fill(pipe: Any) -> None:
            if self._has_ended:
                pipe.hdel(CrawlKeys.STORES, self._field)
                pipe.lpush(CrawlKeys.ENDED, text)
                pipe.ltrim(CrawlKeys.ENDED, 0, ENDED_KEPT - 1)
                pipe.expire(CrawlKeys.ENDED, _KEPT_SECONDS)
            else:
                pipe.hset(CrawlKeys.STORES, self._field, text)
                pipe.expire(CrawlKeys.STORES, _KEPT_SECONDS)

        await self.send(fill)

    def _measure(self, pipeline: BatchingPipeline) -> StoreFigures:
        stats = self.crawler.stats
        assert stats is not None  # noqa: S101 - Scrapy sets it before it creates components
        name = pipeline.store.name

        def stat(figure: str) -> Any:
            return stats.get_value(f"store/{name}/{figure}", 0)

        durable, batches, seconds, now = stat("durable"), stat("batches"), stat("seconds"), time.monotonic()
        seen = self._seen.setdefault(name, deque([(now, durable, batches, seconds)]))
        seen.append((now, durable, batches, seconds))
        while len(seen) > 2 and now - seen[1][0] >= _RATE_SECONDS:  # noqa: PLR2004 - a rate needs two
            seen.popleft()
        since, durable_then, batches_then, seconds_then = seen[0]
        if batches > batches_then:
            latency = (seconds - seconds_then) / (batches - batches_then)
        else:
            latency = seconds / batches if batches else None
        return StoreFigures(
            **{figure: stat(figure) for figure in ("durable", "rejected", "spooled", "lost", "retries")},
            per_minute=60 * (durable - durable_then) / max(1.0, now - since),
            latency=latency,
            held=pipeline.buffered,
            room=pipeline.limits.buffer_items,
        )


def read_figures(text: bytes) -> ProcessFigures | None:
    """Return what a process published; None for what another version did."""
    try:
        return msgspec.json.decode(text, type=ProcessFigures)
    except (msgspec.DecodeError, RecursionError):
        return None
