"""Pages that could not be read, or not wholly: counted by day and field, and the latest of each field kept."""

from __future__ import annotations

import asyncio
import gzip
import re
import time
from collections import Counter
from typing import TYPE_CHECKING, Any

import msgspec

from moviecrawler.clock import utc_now
from moviecrawler.extensions.coverage import CoverageWatch
from moviecrawler.extensions.crawl_keys import CrawlKeys
from moviecrawler.extensions.publishing import Publisher
from moviecrawler.items import Miss, Movie

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from scrapy.crawler import Crawler
    from scrapy.http import Response

_SAMPLES_KEPT_SECONDS = 7 * 86_400
_COUNTS_KEPT_SECONDS = 8 * 86_400
_SAMPLE_SECONDS = 600.0
"""In which a process keeps one sample of a field, at most."""
_MOST_FIELDS = 100
"""Of which a process keeps samples, and counts."""
_PAGE_BYTES = 4 * 1024 * 1024
"""Of a page that are kept, before compression."""
_FIELD = re.compile(r"([a-z_][a-z0-9_.]{0,63}): ")
"""The beginning of the text of an `ExtractionError`."""


class Sample(msgspec.Struct, kw_only=True):
    """A page that could not be read, or that was silent of a field."""

    site: str
    field: str
    """What was missing, or `silent <field>`; the sample's name is `<site>/<field>`."""
    site_id: str
    url: str
    reason: str
    at: float
    """Seconds since 1970."""
    size: int
    """Bytes of the page; of a large one only the beginning is kept."""


class FailedPages(Publisher):
    """Scrapy spider middleware that counts the pages whose reading failed, and keeps samples of them.

    It also keeps the latest page that was silent of each field although pages alike have its place; CoverageWatch counts these.
    """

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        self._sampled: dict[str, float] = {}
        """`<site>/<field>` → when its latest sample was taken."""
        self._saving: set[asyncio.Task[None]] = set()
        self._counted: Counter[tuple[str, str]] = Counter()
        """Day and `<site>/<field>` → pages that Redis has not counted yet."""

    @property
    def is_pending(self) -> bool:
        """Whether pages are not counted yet."""
        return bool(self._counted)

    async def process_spider_output(self, response: Response, result: AsyncIterator[Any]) -> AsyncIterator[Any]:
        """Pass everything on, and look for pages that could not be read."""
        async for item in result:
            if isinstance(item, Miss) and item.outcome == "failed" and response.body:
                found = _FIELD.match(item.reason)
                if found is not None:
                    self._count(f"{item.site}/{found[1]}")
                    self._sample(response, [found[1]], item.site_id, item.site, item.reason)
            elif isinstance(item, Movie) and item.source == "page" and item.silent:
                watch = self.crawler.get_extension(CoverageWatch)
                fields = [f"silent {name}" for name in watch.places.unexpected(item)] if watch is not None else []
                self._sample(response, fields, item.site_id or "", item.site, f"silent of {', '.join(item.silent)}")
            yield item

    async def publish(self) -> None:
        """Add the pages that were counted, and finish saving samples."""
        if self._saving:
            await asyncio.wait(self._saving)
        counted = Counter(self._counted)

        def fill(pipe: Any) -> None:
            for (day, name), number in counted.items():
                pipe.hincrby(CrawlKeys.unreadable(day), name, number)
                pipe.expire(CrawlKeys.unreadable(day), _COUNTS_KEPT_SECONDS)

        if counted and await self.send(fill):
            self._counted -= counted

    def _count(self, name: str) -> None:
        counted = (utc_now().date().isoformat(), name)
        if len(self._counted) < _MOST_FIELDS or counted in self._counted:
            self._counted[counted] += 1
        self.publish_soon()

    def _sample(self, response: Response, fields: list[str], site_id: str, site: str, reason: str) -> None:
        """Keep a page as the sample of those fields that have none of late."""
        now, samples = time.monotonic(), {}
        for field in fields:
            name = f"{site}/{field}"
            is_recent = now - self._sampled.get(name, float("-inf")) < _SAMPLE_SECONDS
            if is_recent or (len(self._sampled) >= _MOST_FIELDS and name not in self._sampled):
                continue
            self._sampled[name] = now
            samples[name] = Sample(
                site=site,
                field=field,
                site_id=site_id,
                url=response.url,
                reason=reason,
                at=time.time(),
                size=len(response.body),
            )
        if samples:
            task = asyncio.get_running_loop().create_task(self._save(samples, response.body[:_PAGE_BYTES]))
            self._saving.add(task)
            task.add_done_callback(self._saving.discard)

    async def _save(self, samples: dict[str, Sample], body: bytes) -> None:
        packed = await asyncio.to_thread(gzip.compress, body, 6)

        def fill(pipe: Any) -> None:
            saved = {name: msgspec.json.encode(sample) + b"\n" + packed for name, sample in samples.items()}
            pipe.hset(CrawlKeys.SAMPLES, mapping=saved)
            pipe.expire(CrawlKeys.SAMPLES, _SAMPLES_KEPT_SECONDS)

        await self.send(fill)


def read_sample(text: bytes) -> tuple[Sample, bytes]:
    """Return a sample and its page. Raises msgspec.DecodeError and OSError for what another version kept."""
    head, _, packed = text.partition(b"\n")
    return msgspec.json.decode(head, type=Sample), gzip.decompress(packed)
