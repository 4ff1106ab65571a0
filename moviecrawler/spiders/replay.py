"""Reads archived pages again: a file of the archive is one request."""

from __future__ import annotations

import asyncio
from functools import cached_property
from io import BytesIO
from typing import TYPE_CHECKING
from urllib.parse import quote

from scrapy import Request
from scrapy.exceptions import IgnoreRequest
from scrapy.http import Response
from scrapy.spidermiddlewares.httperror import HttpError
from twisted.python.failure import Failure

from moviecrawler.basics.errors import ArchiveError, TransientStoreError
from moviecrawler.items import Noted
from moviecrawler.middlewares.compression import GzipMiddleware
from moviecrawler.politeness.gate import Closed
from moviecrawler.politeness.meta import CLOSED_META, POOL_META
from moviecrawler.scrapy_internals import is_closing
from moviecrawler.sites.identity import meta_of
from moviecrawler.spiders.arguments import Plan
from moviecrawler.spiders.base import RunSpider
from moviecrawler.spiders.components import leave_out, list_components, set_up

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Iterator
    from typing import Self

    from scrapy.crawler import Crawler
    from scrapy.settings import BaseSettings

    from moviecrawler.pipelines.archive import Folder
    from moviecrawler.pipelines.s3 import Bucket
    from moviecrawler.pipelines.warc import Answer
    from moviecrawler.sites import Site
    from moviecrawler.spiders.base import MovieSpider
    from moviecrawler.spiders.results import Result

_SUCCESS = range(200, 300)
"""Statuses of answers that are read as pages, as in Scrapy."""
_OF_SITES = (
    "moviecrawler.extensions.alerts.Alerts",
    "moviecrawler.extensions.coverage.CoverageWatch",
    "moviecrawler.extensions.metrics.Metrics",
)
"""What watches how a site answers today, and is left out."""


class FileAnswers:
    """Downloader middleware that answers the request for a file, so that nothing is downloaded."""

    def process_request(self, request: Request) -> Response:
        """Return an empty answer; the callback reads the file."""
        return Response(request.url)


class ReplaySpider(RunSpider):
    """Yields the items of archived pages, read by the spiders of the sites.

    Each file of the archive is a request of a run, which is done when all items of the file's pages
    are durable. No request is sent to a site.
    """

    # The class has no name: `scrapy crawl` does not offer it.
    site = "replay"

    archive: Bucket | Folder
    files: dict[str, None]
    """The keys of the files, in order."""
    readers: dict[Site, MovieSpider]
    reading: asyncio.Lock
    """Held while a file is read: in memory there is one."""

    @classmethod
    def update_settings(cls, settings: BaseSettings) -> None:
        """Give the replay the queue and the stores of a crawl."""
        super().update_settings(settings)
        set_up(settings)
        leave_out(settings, "EXTENSIONS", _OF_SITES)
        # Before all others, of which none sees the request then.
        list_components(
            settings, "DOWNLOADER_MIDDLEWARES", {"moviecrawler.spiders.replay.FileAnswers": 0}
        )

    @classmethod
    def from_crawler(
        cls, crawler: Crawler, readers: Iterable[type[MovieSpider]], **attributes: object
    ) -> Self:
        """Take the archive, the keys of its files, what describes them, and who reads the pages."""
        spider = super().from_crawler(crawler, name="replay", **attributes)
        spider.readers = {reader.site: reader.from_crawler(crawler) for reader in readers}
        spider.plan = Plan(titles=[], list_name=None, limit=None)
        spider.requested_ids = set()
        spider.reading = asyncio.Lock()
        return spider

    @cached_property
    def compression(self) -> GzipMiddleware:
        """What decompresses the archived pages, as in a crawl."""
        return GzipMiddleware.from_crawler(self.crawler)

    async def requests_of_arguments(self) -> AsyncIterator[Request]:
        """Yield a request for each file."""
        for key in self.files:
            yield self.file_request(key)

    def file_request(self, key: str) -> Request:
        """Return the request for a file. Raises ValueError when it is none of the archive's."""
        if key not in self.files:
            raise ValueError(f"the archive has no file {key!r}")
        return Request(
            f"archive://{quote(key, safe='/=')}",
            callback=self.read_file,
            cb_kwargs={"key": key},
            meta={"expects": "other"},
        )

    async def read_file(self, response: Response, key: str) -> AsyncIterator[Result]:
        """Yield the items of a file's pages."""
        # Every crawl imports this module, and only a replay needs the library for archives.
        from moviecrawler.pipelines.warc import read_record, read_records  # noqa: PLC0415

        async with self.reading:
            if is_closing(self.crawler.engine):
                response.meta[CLOSED_META] = Closed("the replay ends")  # the next start reads it
                return
            try:
                content = await asyncio.to_thread(self.archive.get, key)
                for record in read_records(BytesIO(content)):
                    try:
                        answer = read_record(record)
                    except ArchiveError as error:
                        self.report_failure(response.url, f"a page can't be read: {error}")
                        continue
                    for item in self._items_or_miss(answer, key):
                        yield item
                    await asyncio.sleep(0)  # the stores and the queue have their turn
            except (ArchiveError, TransientStoreError, OSError) as error:
                self.report_failure(response.url, f"it can't be read to its end: {error}")

    def _items_or_miss(self, answer: Answer, key: str) -> list[Result]:
        """Return the items that a crawl makes of an answer; a Miss when it can't be read."""
        if answer.site_id is None:
            return []  # a list page: the record of the title's own page has what it said (`found`)
        try:
            return list(self._items(answer, answer.site_id))
        except ArchiveError as error:
            reason = str(error)
        except Exception as error:  # as in a crawl, an error of any kind costs one page only
            self.logger.exception("%s: the page of %s can't be read", key, answer.site_id)
            reason = f"{type(error).__name__}: {error}"
        reader = self.readers[answer.site]
        return list(reader.title_missed(answer.site_id, "failed", reason, answer.fetched_at))

    def _items(self, answer: Answer, site_id: str) -> Iterator[Result]:
        """Yield the items that a crawl makes of an answer, and no requests.

        Raises ArchiveError when its body can't be decompressed.
        """
        reader = self.readers[answer.site]
        meta = {
            "site": answer.site,
            "retry_times": answer.attempts - 1,
            "fetched_at": answer.fetched_at,
            "archive_id": answer.archive_id,
            POOL_META: answer.pool,
            **meta_of(answer.redirects),
        }
        request = Request(
            answer.url, cb_kwargs={"site_id": site_id, "found": answer.found}, meta=meta
        )
        headers: dict[str, list[str]] = {}
        for name, value in answer.headers:
            headers.setdefault(name, []).append(value)
        archived = Response(answer.url, answer.status, headers, answer.body, request=request)
        try:
            response = self.compression.process_response(request, archived)
        except IgnoreRequest as error:
            raise ArchiveError(str(error)) from error
        if not isinstance(response, Response):
            raise ArchiveError(f"{answer.archive_id}: the body is damaged")
        if response.status in _SUCCESS:
            results = reader.parse_title(response, site_id, answer.found)
        else:
            failure = Failure(HttpError(response))  # type: ignore[no-untyped-call]
            # As Scrapy passes it to an errback.
            failure.request = request  # type: ignore[attr-defined]
            results = reader.title_failed(failure)
        for result in results:
            if isinstance(result, Noted):
                result.note = None  # the catalogue is not told of what was fetched long ago
            if not isinstance(result, Request):
                yield result
