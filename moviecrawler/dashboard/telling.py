"""What crawls tell the dashboard, through the Redis that they share: how their stores do, and pages that could not be read, or not wholly.

Nothing here holds a crawl up: what can't be told is told later, or not at all.
"""

from __future__ import annotations

import asyncio
import gzip
import logging
import os
import re
import time
from collections import Counter, deque
from typing import TYPE_CHECKING, Any

import msgspec
import redis.exceptions
from scrapy import signals
from scrapy.exceptions import NotConfigured

from moviecrawler.clock import utc_now
from moviecrawler.dashboard.keys import CrawlKeys
from moviecrawler.extensions.coverage import CoverageWatch
from moviecrawler.frontier.options import node_of
from moviecrawler.frontier.shared import shared_scheduler
from moviecrawler.items import Miss, Movie
from moviecrawler.pipelines.base import BatchingPipeline

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from typing import Self

    from scrapy import Spider
    from scrapy.crawler import Crawler
    from scrapy.http import Response

logger = logging.getLogger(__name__)

EVERY = 4.0
"""Seconds between two times that figures are told."""
SILENT = 3 * EVERY
"""Seconds after which a process that has not told is taken for gone."""
_WINDOW = 60.0
"""Seconds of which a rate is the mean."""
_FORGOTTEN = 600.0
"""Seconds after which figures of a process that has died are removed."""
ENDED_KEPT = 20
"""Processes that have ended, whose figures are kept."""
_STORES_KEPT = 86_400
_SAMPLES_KEPT = 7 * 86_400
_UNREADABLE_KEPT = 8 * 86_400
_SAMPLE_EVERY = 600.0
"""Seconds in which a process keeps one sample of a field, at most."""
_MOST_SAMPLES = 100
"""Fields of which a process keeps samples."""
_LARGEST = 4 * 1024 * 1024
"""Bytes of a page that are kept, before compression."""
_FIELD = re.compile(r"([a-z_][a-z0-9_.]{0,63}): ")
"""What `ExtractionError` begins with."""


class StoreTold(msgspec.Struct, kw_only=True):
    """A store's figures in one process. `durable` to `retries` count from its start."""

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
    """Items that it holds at most."""


class ProcessFigures(msgspec.Struct, kw_only=True):
    """What one process tells."""

    site: str
    run: str
    node: str
    at: float
    """Seconds since 1970."""
    ended: bool
    stores: dict[str, StoreTold]


class Sample(msgspec.Struct, kw_only=True):
    """A page that could not be read, or that was silent of a field."""

    site: str
    field: str
    """As in its name, `<site>/<field>`: what was missing, or `silent <field>`."""
    site_id: str
    url: str
    reason: str
    at: float
    """Seconds since 1970."""
    size: int
    """Bytes of the page; of a large one only the beginning is kept."""


class StoreFigures:
    """Scrapy extension that tells how the crawl's stores do, every few seconds."""

    def __init__(self, crawler: Crawler, run: str, node: str) -> None:
        self._crawler = crawler
        self._run = run
        self._node = node
        self._field = f"{node} {os.getpid()}"
        self._seen: dict[str, deque[tuple[float, int, int, float]]] = {}
        self._task: asyncio.Task[None] | None = None

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Read REDIS_URL, FRONTIER_RUN and FRONTIER_NODE."""
        settings = crawler.settings
        if not settings.get("REDIS_URL") or not hasattr(crawler.spidercls, "site"):
            raise NotConfigured
        figures = cls(crawler, settings["FRONTIER_RUN"], node_of(settings))
        crawler.signals.connect(figures.spider_opened, signals.spider_opened)
        crawler.signals.connect(figures.spider_closed, signals.spider_closed)
        return figures

    def spider_opened(self, spider: Spider) -> None:  # noqa: ARG002 - Scrapy's signature
        """Begin to tell."""
        self._task = asyncio.get_running_loop().create_task(self._tell_now_and_then())

    async def spider_closed(self, spider: Spider, reason: str) -> None:  # noqa: ARG002 - Scrapy's signature
        """Tell the final figures."""
        if self._task is not None:
            self._task.cancel()
        await self._tell(ended=True)

    async def _tell_now_and_then(self) -> None:
        await self._clear()
        while True:
            await self._tell(ended=False)
            await asyncio.sleep(EVERY)

    async def _clear(self) -> None:
        """Remove what processes left that ended long ago."""
        scheduler = shared_scheduler(self._crawler)
        if scheduler is None:
            return
        try:
            known = await scheduler.server.hgetall(CrawlKeys.STORES)
            old = [name for name, text in known.items() if _is_old(text, time.time())]
            if old:
                await scheduler.server.hdel(CrawlKeys.STORES, *old)
        except redis.exceptions.RedisError as error:
            logger.debug("Old figures of stores can't be removed: %s", error)

    async def _tell(self, *, ended: bool) -> None:
        scheduler = shared_scheduler(self._crawler)
        if scheduler is None:
            return
        figures = ProcessFigures(
            site=self._crawler.spidercls.site,  # type: ignore[attr-defined]
            run=self._run,
            node=self._node,
            at=time.time(),
            ended=ended,
            stores={store.store.name: self._look(store) for store in _stores(self._crawler)},
        )
        try:
            pipe = scheduler.server.pipeline(transaction=False)
            if ended:
                pipe.hdel(CrawlKeys.STORES, self._field)
                pipe.lpush(CrawlKeys.ENDED, msgspec.json.encode(figures))
                pipe.ltrim(CrawlKeys.ENDED, 0, ENDED_KEPT - 1)
                pipe.expire(CrawlKeys.ENDED, _STORES_KEPT)
            else:
                pipe.hset(CrawlKeys.STORES, self._field, msgspec.json.encode(figures))
                pipe.expire(CrawlKeys.STORES, _STORES_KEPT)
            await pipe.execute()
        except redis.exceptions.RedisError as error:
            logger.debug("Figures of stores can't be told: %s", error)

    def _look(self, pipeline: BatchingPipeline) -> StoreTold:
        stats = self._crawler.stats
        assert stats is not None  # noqa: S101 - Scrapy sets it before it creates components
        name = pipeline.store.name

        def stat(figure: str) -> Any:
            return stats.get_value(f"store/{name}/{figure}", 0)

        durable, batches, seconds, now = stat("durable"), stat("batches"), stat("seconds"), time.monotonic()
        seen = self._seen.setdefault(name, deque([(now, durable, batches, seconds)]))
        seen.append((now, durable, batches, seconds))
        while len(seen) > 2 and now - seen[1][0] >= _WINDOW:  # noqa: PLR2004 - two make a difference
            seen.popleft()
        since, durable_then, batches_then, seconds_then = seen[0]
        if batches > batches_then:
            latency = (seconds - seconds_then) / (batches - batches_then)
        else:
            latency = seconds / batches if batches else None
        return StoreTold(
            durable=durable,
            rejected=stat("rejected"),
            spooled=stat("spooled"),
            lost=stat("lost"),
            retries=stat("retries"),
            per_minute=60 * (durable - durable_then) / max(1.0, now - since),
            latency=latency,
            held=pipeline.buffered,
            room=pipeline.limits.buffer_items,
        )


class FailedPages:
    """Scrapy spider middleware that counts the pages whose reading failed, and keeps the latest, of each site and field.

    It also keeps the latest page that was silent of each field although pages alike have its place; CoverageWatch counts these.
    """

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._kept: dict[str, float] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._counted: Counter[tuple[str, str]] = Counter()
        """By day and `<site>/<field>`, those that Redis does not know of yet."""
        self._counting: asyncio.Task[None] | None = None

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Read REDIS_URL."""
        if not crawler.settings.get("REDIS_URL"):
            raise NotConfigured
        pages = cls(crawler)
        crawler.signals.connect(pages.spider_closed, signals.spider_closed)
        return pages

    async def spider_closed(self, spider: Spider, reason: str) -> None:  # noqa: ARG002 - Scrapy's signature
        """Tell the rest."""
        if self._counting is not None:
            self._counting.cancel()
            await asyncio.wait({self._counting})
        await self._tell_counted()

    async def process_spider_output(self, response: Response, result: AsyncIterator[Any]) -> AsyncIterator[Any]:
        """Pass everything on, and look for pages that could not be read."""
        async for item in result:
            if isinstance(item, Miss) and item.outcome == "failed":
                self._consider(response, item)
            elif isinstance(item, Movie) and item.source == "page" and item.silent:
                self._consider_partial(response, item)
            yield item

    def _consider(self, response: Response, miss: Miss) -> None:
        found = _FIELD.match(miss.reason)
        if found is None or not response.body:
            return
        self._count(f"{miss.site}/{found[1]}")
        self._keep_some(
            response.body, [found[1]], site=miss.site, site_id=miss.site_id, url=miss.url, reason=miss.reason
        )

    def _consider_partial(self, response: Response, movie: Movie) -> None:
        watch = self._crawler.get_extension(CoverageWatch)
        fields = [f"silent {name}" for name in watch.places.unexpected(movie)] if watch is not None else []
        reason = f"silent of {', '.join(movie.silent)}"
        self._keep_some(
            response.body, fields, site=movie.site, site_id=movie.site_id or "", url=response.url, reason=reason
        )

    def _keep_some(self, body: bytes, fields: list[str], *, site: str, site_id: str, url: str, reason: str) -> None:
        """Keep a page as the sample of those fields that have none of late."""
        now, samples = time.monotonic(), {}
        for field in fields:
            name = f"{site}/{field}"
            is_known = now - self._kept.get(name, float("-inf")) < _SAMPLE_EVERY
            if is_known or (len(self._kept) >= _MOST_SAMPLES and name not in self._kept):
                continue
            self._kept[name] = now
            samples[name] = Sample(
                site=site, field=field, site_id=site_id, url=url, reason=reason, at=time.time(), size=len(body)
            )
        if samples:
            task = asyncio.get_running_loop().create_task(self._keep(samples, body[:_LARGEST]))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    def _count(self, name: str) -> None:
        counted = (utc_now().date().isoformat(), name)
        if len(self._counted) < _MOST_SAMPLES or counted in self._counted:
            self._counted[counted] += 1
        if self._counting is None or self._counting.done():
            self._counting = asyncio.get_running_loop().create_task(self._tell_counted_soon())

    async def _tell_counted_soon(self) -> None:
        while self._counted:
            await asyncio.sleep(EVERY)
            await self._tell_counted()

    async def _tell_counted(self) -> None:
        scheduler = shared_scheduler(self._crawler)
        if scheduler is None or not self._counted:
            return
        told = Counter(self._counted)
        pipe = scheduler.server.pipeline(transaction=False)
        for (day, name), number in told.items():
            pipe.hincrby(CrawlKeys.unreadable(day), name, number)
            pipe.expire(CrawlKeys.unreadable(day), _UNREADABLE_KEPT)
        try:
            await pipe.execute()
        except redis.exceptions.RedisError as error:
            logger.debug("Pages that could not be read can't be counted: %s", error)
        else:
            self._counted -= told

    async def _keep(self, samples: dict[str, Sample], body: bytes) -> None:
        scheduler = shared_scheduler(self._crawler)
        if scheduler is None:
            return
        packed = await asyncio.to_thread(gzip.compress, body, 6)
        kept = {name: msgspec.json.encode(sample) + b"\n" + packed for name, sample in samples.items()}
        try:
            pipe = scheduler.server.pipeline(transaction=False)
            pipe.hset(CrawlKeys.SAMPLES, mapping=kept)
            pipe.expire(CrawlKeys.SAMPLES, _SAMPLES_KEPT)
            await pipe.execute()
        except redis.exceptions.RedisError as error:
            logger.warning("A page that could not be read can't be kept as a sample: %s", error)


def _stores(crawler: Crawler) -> list[BatchingPipeline]:
    engine = crawler.engine
    if engine is None:
        return []
    return [part for part in engine.scraper.itemproc.middlewares if isinstance(part, BatchingPipeline)]


def _is_old(text: bytes, now: float) -> bool:
    figures = read_figures(text)
    return figures is None or now - figures.at > _FORGOTTEN


def read_figures(text: bytes) -> ProcessFigures | None:
    """Return what a process told; None for what another version did."""
    try:
        return msgspec.json.decode(text, type=ProcessFigures)
    except msgspec.DecodeError:
        return None


def read_sample(text: bytes) -> tuple[Sample, bytes]:
    """Return a sample and its page. Raises msgspec.DecodeError and OSError for what another version kept."""
    head, _, packed = text.partition(b"\n")
    return msgspec.json.decode(head, type=Sample), gzip.decompress(packed)
