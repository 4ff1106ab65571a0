"""`scrapy replay`: read archived pages again, into the stores that are configured."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from datetime import date
from io import BytesIO
from typing import TYPE_CHECKING, Any, get_args

import scrapy
from scrapy import Request, signals
from scrapy.exceptions import IgnoreRequest, UsageError
from scrapy.http import Response
from scrapy.spidermiddlewares.httperror import HttpError
from twisted.python.failure import Failure

from moviecrawler.errors import ArchiveError, ConfigurationError, TransientStoreError
from moviecrawler.items import Site
from moviecrawler.middlewares.blocks import POOL_META
from moviecrawler.middlewares.compression import GzipMiddleware
from moviecrawler.pipelines.archive import archived_files, open_archive
from moviecrawler.pipelines.files import check_data_dir, replacing
from moviecrawler.pipelines.store import path_of_stores
from moviecrawler.pipelines.warc import read_record, read_records
from moviecrawler.signals import item_completed
from moviecrawler.spiders.base import MovieSpider

if TYPE_CHECKING:
    import argparse
    from collections.abc import AsyncIterator, Iterable, Iterator
    from pathlib import Path
    from typing import Self

    from scrapy.crawler import Crawler
    from scrapy.signalmanager import SignalManager

    from moviecrawler.commands.base import BaseCommand
    from moviecrawler.pipelines.archive import Folder
    from moviecrawler.pipelines.s3 import Bucket
    from moviecrawler.pipelines.warc import Answer
    from moviecrawler.signals import Outcome

logger = logging.getLogger(__name__)

_MOST_IN_PIPELINES = 100
"""Items in the pipelines at once. Items in a store's buffer have left the pipelines."""
_SUCCESS = range(200, 300)
"""Statuses of answers that are read as pages, as in Scrapy."""


def replay(command: BaseCommand, args: list[str], opts: argparse.Namespace) -> None:
    """Replay; exit code 1 when not all could be read, or kept."""
    if len(args) != 1:
        raise UsageError("name one archive: s3://bucket/prefix, or a folder", print_help=False)
    assert command.crawler_process is not None  # noqa: S101 - set by Scrapy before
    begin, end = _date("--from", opts.begin, date.min), _date("--to", opts.end, date.max)
    sites: tuple[Site, ...] = (opts.site,) if opts.site else get_args(Site)
    try:
        archive = open_archive(args[0], command.settings.get("S3_ENDPOINT_URL") or None)
        files = [key for site in sites for key in archived_files(archive, site, begin, end)]
        check_data_dir(command.settings["DATA_DIR"])
    except (ConfigurationError, TransientStoreError) as error:
        raise UsageError(str(error), print_help=False) from error
    if not files:
        raise UsageError(f"{args[0]} holds no pages of that site and time", print_help=False)
    loader = command.crawler_process.spider_loader
    readers = [spider for name in loader.list() if issubclass(spider := loader.load(name), MovieSpider)]
    progress = ReplayProgress(path_of_stores(command.settings, "replay-{}.txt", args[0]))
    command.crawler_process.crawl(ReplaySpider, archive=archive, files=files, readers=readers, progress=progress)
    command.crawler_process.start()
    if progress.done.issuperset(files):
        progress.forget(files)
    else:
        command.exitcode = 1


class ReplaySpider(scrapy.Spider):
    """Yields the items of archived pages, read by the spiders of the sites; asks no site for anything."""

    name = "replay"

    archive: Bucket | Folder
    files: list[str]
    progress: ReplayProgress
    readers: dict[Site, MovieSpider]

    @classmethod
    def from_crawler(
        cls,
        crawler: Crawler,
        archive: Bucket | Folder,
        files: list[str],
        progress: ReplayProgress,
        readers: list[type[MovieSpider]],
    ) -> Self:
        """Take the archive, the keys of its WARC files, and the spiders that can read them."""
        spider = super().from_crawler(crawler)
        spider.archive, spider.files, spider.progress = archive, files, progress
        spider.readers = {reader.site: reader.from_crawler(crawler) for reader in readers}
        progress.connect(crawler.signals)
        return spider

    async def start(self) -> AsyncIterator[Any]:
        """Yield the items of every file that is not done yet."""
        self.compression = GzipMiddleware.from_crawler(self.crawler)
        done = self.progress.done.intersection(self.files)
        if done:
            message = "An earlier replay has read %d of the %d files; remove %s to have them read again"
            self.logger.info(message, len(done), len(self.files), self.progress.path)
        for key in self.files:
            if key in self.progress.done:
                continue
            self.progress.file_begun(key)
            unread = 0
            try:
                for record in read_records(BytesIO(await asyncio.to_thread(self.archive.get, key))):
                    try:
                        items = list(self.items(read_record(record)))
                    except ArchiveError as error:
                        unread += 1
                        self.logger.error("%s: a page can't be read: %s", key, error)  # noqa: TRY400 - the sentence says it all
                        continue
                    except Exception:  # whatever it is, it costs one page, as in a crawl
                        unread += 1
                        self.logger.exception("%s: a page can't be read", key)
                        continue
                    for item in items:
                        await self.progress.room()
                        self.progress.item_sent(key, item)
                        yield item
            except (ArchiveError, TransientStoreError, OSError) as error:
                self.logger.error("%s can't be read to its end: %s", key, error)  # noqa: TRY400 - the sentence says it all
            else:
                if not unread:
                    self.progress.one_settled(key)

    def items(self, answer: Answer) -> Iterator[Any]:
        """Yield the items that a crawl makes of an answer, and no requests. Raises ArchiveError when its body can't be decompressed."""
        if answer.site_id is None:
            return  # a list page: what it said of a title stands with that title's page
        reader = self.readers[answer.site]
        request = Request(
            answer.url,
            cb_kwargs={"site_id": answer.site_id, "found": answer.found},
            meta={
                "site": answer.site,
                "retry_times": answer.attempts - 1,
                "fetched_at": answer.fetched_at,
                "archive_id": answer.archive_id,
                POOL_META: answer.pool,
            },
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
            failure.request = request  # type: ignore[attr-defined]  # as Scrapy passes it to an errback
            results = reader.title_failed(failure)
        yield from (result for result in results if not isinstance(result, Request))


class ReplayProgress:
    """Which files of an archive are done: read, and all their items settled in every store.

    The file at `path` keeps it until all are done.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.done = set(path.read_text("utf-8").splitlines()) if path.is_file() else set()
        self._files_of: dict[int, str] = {}  # by the identity of an item that is on its way
        self._left: Counter[str] = Counter()  # of a file: its unsettled items, and 1 until it is read
        self._in_pipelines = 0
        self._one_less = asyncio.Event()

    def connect(self, manager: SignalManager) -> None:
        """Connect the handlers to their signals."""
        for signal in (signals.item_scraped, signals.item_dropped, signals.item_error):
            manager.connect(self._item_left, signal)
        manager.connect(self._item_settled, signals.item_dropped)
        manager.connect(self._item_failed, signals.item_error)
        manager.connect(self._item_completed, item_completed)

    def forget(self, files: Iterable[str]) -> None:
        """Let the next replay of these files begin anew. The progress of other files is kept."""
        self.done.difference_update(files)
        if self.done:
            with replacing(self.path) as file:
                file.writelines(f"{key}\n" for key in sorted(self.done))
        else:
            self.path.unlink(missing_ok=True)

    async def room(self) -> None:
        """Wait while the pipelines hold as many items as they may."""
        while self._in_pipelines >= _MOST_IN_PIPELINES:
            self._one_less.clear()
            await self._one_less.wait()

    def file_begun(self, key: str) -> None:
        """Note that a file is being read."""
        self._left[key] = 1

    def item_sent(self, key: str, item: Any) -> None:
        """Note that an item of a file is on its way."""
        self._left[key] += 1
        self._in_pipelines += 1
        self._files_of[id(item)] = key

    def _item_left(self) -> None:
        """Note that an item has left the pipelines."""
        self._in_pipelines -= 1
        self._one_less.set()

    def _item_failed(self, item: Any) -> None:
        """Note that an item's file is to be read again."""
        self._files_of.pop(id(item), None)

    def _item_completed(self, item: Any, outcomes: frozenset[Outcome]) -> None:
        """Note that an item is settled in every store."""
        if "lost" in outcomes:
            self._item_failed(item)
        else:
            self._item_settled(item)

    def _item_settled(self, item: Any) -> None:
        key = self._files_of.pop(id(item), None)
        if key is not None:
            self.one_settled(key)

    def one_settled(self, key: str) -> None:
        """Note that an item of a file is settled, or that all of them have been sent."""
        self._left[key] -= 1
        if not self._left[key]:
            self.done.add(key)
            try:
                with self.path.open("a", encoding="utf-8") as file:
                    file.write(f"{key}\n")
            except OSError as error:
                logger.warning("%s is done, which can't be written down: %s", key, error)


def _date(option: str, text: str | None, default: date) -> date:
    if text is None:
        return default
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise UsageError(f"{option} is {text!r}; give a date such as 2026-03-01", print_help=False) from None
