"""`scrapy replay`: read archived pages again, into the stores that are configured."""

from __future__ import annotations

import asyncio
import logging
from argparse import ArgumentTypeError
from collections import Counter
from datetime import date
from io import BytesIO
from typing import TYPE_CHECKING, Any, get_args

from scrapy import Request, Spider, signals
from scrapy.commands import ScrapyCommand

from moviecrawler.commands.base import SITE, BaseCommand, option
from moviecrawler.errors import ArchiveError, ConfigurationError, TransientStoreError
from moviecrawler.items import Site
from moviecrawler.signals import item_completed

if TYPE_CHECKING:
    import argparse
    from collections.abc import AsyncIterator, Collection, Iterable, Iterator
    from pathlib import Path
    from typing import Self

    from scrapy.crawler import Crawler
    from scrapy.settings import BaseSettings
    from scrapy.signalmanager import SignalManager

    from moviecrawler.middlewares.compression import GzipMiddleware
    from moviecrawler.pipelines.archive import Folder
    from moviecrawler.pipelines.s3 import Bucket
    from moviecrawler.pipelines.warc import Answer
    from moviecrawler.signals import Outcome
    from moviecrawler.spiders.base import MovieSpider

logger = logging.getLogger(__name__)

_MAX_IN_PIPELINES = 100
"""Items in the pipelines at once. Items in a store's buffer have left the pipelines."""
_CHECK_SECONDS = 0.01
"""Seconds between two looks at whether the pipelines have room."""
_SUCCESS = range(200, 300)
"""Statuses of answers that are read as pages, as in Scrapy."""


def _day(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise ArgumentTypeError(f"{text!r} is no date such as 2026-03-01") from None


class Command(BaseCommand, ScrapyCommand):
    """Extract again from archived pages.

    It asks no site. The same command goes on with a replay that was interrupted.
    """

    requires_crawler_process = True
    arguments = "[--site SITE] [--from DATE] [--to DATE] SOURCE"
    options = (
        option("source", metavar="SOURCE", help="the archive: s3://bucket/prefix, or a folder"),
        SITE,
        option(
            "--from",
            dest="begin",
            type=_day,
            default=date.min,
            metavar="DATE",
            help="pages of that day (UTC) on",
        ),
        option(
            "--to",
            dest="end",
            type=_day,
            default=date.max,
            metavar="DATE",
            help="pages up to that day (UTC)",
        ),
    )

    def execute(self, opts: argparse.Namespace) -> None:
        """Replay; exit code 1 when a page could not be read or an item not stored."""
        from moviecrawler.options import check_settings
        from moviecrawler.pipelines.archive import archived_files, open_archive
        from moviecrawler.pipelines.base import check_stores
        from moviecrawler.pipelines.files import check_data_dir, replacing
        from moviecrawler.pipelines.store import path_of_stores
        from moviecrawler.spiders.base import MovieSpider

        assert self.crawler_process is not None  # noqa: S101 - set by Scrapy before
        crawler = self.crawler_process.create_crawler(ReplaySpider)
        check_settings(crawler.settings)
        check_data_dir(crawler.settings["DATA_DIR"])
        check_stores(crawler.settings)
        try:
            archive = open_archive(opts.source, self.settings.get("S3_ENDPOINT_URL") or None)
            sites = [opts.site] if opts.site else get_args(Site)
            files = [
                key for site in sites for key in archived_files(archive, site, opts.begin, opts.end)
            ]
        except TransientStoreError as error:
            raise ConfigurationError(str(error)) from error
        if not files:
            raise ConfigurationError(f"{opts.source} holds no pages of that site and time")
        loader = self.crawler_process.spider_loader
        readers = [
            spider for name in loader.list() if issubclass(spider := loader.load(name), MovieSpider)
        ]
        progress = ReplayProgress(path_of_stores(self.settings, "replay-{}.txt", opts.source))
        self.crawler_process.crawl(
            crawler, archive=archive, files=files, readers=readers, progress=progress
        )
        self.crawler_process.start()
        if not progress.done.issuperset(files):
            self.exitcode = 1
        elif others := progress.done.difference(files):
            # They are of a replay of other sites or days, which goes on later.
            with replacing(progress.path) as file:
                file.writelines(f"{key}\n" for key in sorted(others))
        else:
            progress.path.unlink(missing_ok=True)


class ReplaySpider(Spider):
    """Yields the items of archived pages, read by the spiders of the sites.

    It asks no site for anything.
    """

    name = "replay"
    # It sends no requests, of which a run would keep account.
    custom_settings = {"SCHEDULER": "scrapy.core.scheduler.Scheduler"}  # noqa: RUF012 - as Scrapy's

    archive: Bucket | Folder
    files: list[str]
    progress: ReplayProgress
    readers: dict[Site, MovieSpider]
    compression: GzipMiddleware

    @classmethod
    def update_settings(cls, settings: BaseSettings) -> None:
        """Give the replay the stores of a crawl, and what watches them."""
        from moviecrawler.components import set_up

        super().update_settings(settings)
        set_up(settings)

    @classmethod
    def from_crawler(
        cls, crawler: Crawler, readers: Iterable[type[MovieSpider]], **attributes: Any
    ) -> Self:
        """Take the archive, the keys of its WARC files, the progress, and the spiders.

        The spiders are those that can read the pages.
        """
        spider = super().from_crawler(crawler, **attributes)
        spider.readers = {reader.site: reader.from_crawler(crawler) for reader in readers}
        spider.progress.connect(crawler.signals)
        return spider

    async def start(self) -> AsyncIterator[Any]:
        """Yield the items of every file that is not done yet."""
        from moviecrawler.middlewares.compression import GzipMiddleware
        from moviecrawler.pipelines.warc import read_record, read_records

        self.compression = GzipMiddleware.from_crawler(self.crawler)
        scraper: Any = self.crawler.engine.scraper
        done = self.progress.done.intersection(self.files)
        if done:
            message = (
                "An earlier replay has read %d of the %d files; remove %s to have them read again"
            )
            logger.info(message, len(done), len(self.files), self.progress.path)
        for key in self.files:
            if key in done:
                continue
            self.progress.begin(key)
            has_unread = False
            try:
                for record in read_records(BytesIO(await asyncio.to_thread(self.archive.get, key))):
                    try:
                        items = list(self.items(read_record(record)))
                    except Exception:
                        # As in a crawl, an error of any kind costs one page only.
                        has_unread = True
                        logger.exception("%s: a page can't be read", key)
                        continue
                    for item in items:
                        # Scrapy has no event for it.
                        while scraper.slot.itemproc_size >= _MAX_IN_PIPELINES:  # noqa: ASYNC110
                            await asyncio.sleep(_CHECK_SECONDS)
                        self.progress.begin(key, item)
                        yield item
            except (ArchiveError, TransientStoreError, OSError) as error:
                # The sentence says it all.
                logger.error("%s can't be read to its end: %s", key, error)  # noqa: TRY400
            else:
                if not has_unread:
                    self.progress.end(key)

    def items(self, answer: Answer) -> Iterator[Any]:
        """Yield the items that a crawl makes of an answer, and no requests.

        Raises ArchiveError when its body can't be decompressed.
        """
        from scrapy.exceptions import IgnoreRequest
        from scrapy.http import Response
        from scrapy.spidermiddlewares.httperror import HttpError
        from twisted.python.failure import Failure

        from moviecrawler.extract.identity import meta_of
        from moviecrawler.middlewares.blocks import POOL_META

        if answer.site_id is None:
            return  # a list page: the record of the title's own page has what it said (`found`)
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
            answer.url, cb_kwargs={"site_id": answer.site_id, "found": answer.found}, meta=meta
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
        self.crawler.stats.inc_value("titles/asked")
        if response.status in _SUCCESS:
            results = reader.parse_title(response, answer.site_id, answer.found, answer.due)
        else:
            failure = Failure(HttpError(response))  # type: ignore[no-untyped-call]
            # As Scrapy passes it to an errback.
            failure.request = request  # type: ignore[attr-defined]
            results = reader.title_failed(failure)
        yield from (result for result in results if not isinstance(result, Request))


class ReplayProgress:
    """Tracks which files of an archive are done: read, and each of their items stored or rejected.

    The file at `path` has their names until all are done.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.done = set(path.read_text("utf-8").splitlines()) if path.is_file() else set()
        self._files_of: dict[int, str] = {}  # by the id() of an item without an outcome
        # Of a file: its items without an outcome, plus 1 until it is read.
        self._left: Counter[str] = Counter()

    def connect(self, manager: SignalManager) -> None:
        """Follow items.

        One on which a pipeline fails never ends, so that its file is read again.
        """
        manager.connect(self._item_ended, signals.item_dropped)
        manager.connect(self._item_ended, item_completed)

    def begin(self, key: str, item: Any = None) -> None:
        """Note that a file is being read, or that an item of it goes into the pipelines."""
        self._left[key] += 1
        if item is not None:
            self._files_of[id(item)] = key

    def end(self, key: str) -> None:
        """Note that an item of a file has an outcome, or that all of them have been sent."""
        self._left[key] -= 1
        if not self._left[key]:
            self.done.add(key)
            try:
                with self.path.open("a", encoding="utf-8") as file:
                    file.write(f"{key}\n")
            except OSError as error:
                logger.warning(
                    "%s is done, but the next replay reads it again, as that can't be noted: %s",
                    key,
                    error,
                )

    def _item_ended(self, item: Any, outcomes: Collection[Outcome] = ()) -> None:
        key = self._files_of.pop(id(item), None)
        if key is not None and "lost" not in outcomes:
            self.end(key)
