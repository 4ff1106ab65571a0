"""Hands every response that reaches a spider to the archive."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

from moviecrawler.basics.clock import utc_now
from moviecrawler.middlewares.compression import sent_body
from moviecrawler.pipelines.archive import ArchivePipeline
from moviecrawler.pipelines.warc import Answer, write_record
from moviecrawler.politeness.meta import DIRECT, POOL_META
from moviecrawler.signals import page_archived
from moviecrawler.sites import SITES
from moviecrawler.sites.identity import redirects_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from typing import Self

    from scrapy.crawler import Crawler
    from scrapy.http import Response

_TRANSFER_HEADERS = frozenset(
    {b"Connection", b"Content-Encoding", b"Content-Length", b"Transfer-Encoding"}
)
"""Headers of how the body was sent; the archived body gets its own."""


class ArchiveMiddleware:
    """Hand every response of a site to ArchivePipeline before the spider reads it.

    That includes a 404, but no refusal. The response is not an item, as it would turn up in feed
    exports. For its items the spider finds `fetched_at` (datetime, UTC) and `archive_id` in
    `response.meta`.
    """

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Create the middleware."""
        return cls(crawler)

    def process_spider_input(self, response: Response) -> None:
        """Give the page its id in the archive before the spider reads it."""
        if response.meta.get("site") in SITES:
            response.meta["fetched_at"] = utc_now()
            response.meta["archive_id"] = uuid.uuid4().urn

    async def process_spider_output(
        self, response: Response, result: AsyncIterator[object]
    ) -> AsyncIterator[object]:
        """Archive the page, then yield what the spider yields.

        It waits only while the archive's buffer is full.
        """
        if "archive_id" in response.meta:
            pipeline = self._crawler.get_item_pipeline(ArchivePipeline)
            assert pipeline is not None  # noqa: S101 - it is there when S3_BUCKET is set
            page = await pipeline.process_item(write_record(_answer(response)))
            self._crawler.signals.send_catch_log(page_archived, item=page, response=response)
        async for item in result:
            yield item


def _answer(response: Response) -> Answer:
    body, encoding = sent_body(response)
    headers = [
        (name.decode("latin-1"), value.decode("latin-1"))
        for name, values in dict.items(response.headers)  # unchanged
        if name not in _TRANSFER_HEADERS
        for value in values
    ]
    if encoding is not None:
        headers.append(("Content-Encoding", encoding.decode("latin-1")))
    headers.append(("Content-Length", str(len(body))))
    assert response.request is not None  # noqa: S101 - Scrapy sets it
    arguments = response.request.cb_kwargs
    return Answer(
        site=response.meta["site"],
        site_id=arguments.get("site_id"),
        url=response.url,
        status=response.status,
        headers=headers,
        body=body,
        fetched_at=response.meta["fetched_at"],
        archive_id=response.meta["archive_id"],
        attempts=1 + response.meta.get("retry_times", 0),
        found=arguments.get("found"),
        pool=response.meta.get(POOL_META, DIRECT),
        redirects=redirects_of(response.meta),
    )
