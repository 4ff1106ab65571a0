"""Fetching the files of other sources for a command that waits for them, by a small crawl."""

from __future__ import annotations

import sys
from functools import partial
from typing import TYPE_CHECKING, cast

import scrapy
from scrapy import Request
from scrapy.crawler import AsyncCrawlerProcess

from moviecrawler.configuration import user_agent
from moviecrawler.datasets.downloads import Downloads, expect_parts, fetch

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
    from pathlib import Path

    from scrapy.settings import BaseSettings, Settings

    from moviecrawler.datasets.downloads import Ask


class Fetcher:
    """Asks one thing after the other, through the downloader of a crawl."""

    def __init__(self, ask: Ask, part: int) -> None:
        """Send requests by `ask`, each for `part` bytes of a large file."""
        self._ask = ask
        self._part = part

    async def download(self, files: Mapping[str, Path]) -> None:
        """Bring the file of each URL up to date, in parts, going on where an earlier try was broken off.

        Raises MissingFileError when there is no such file, and DownloadError when it can't be had.
        """
        downloads = Downloads(files, self._part)
        try:
            await downloads.finish(self._ask, partial(print, file=sys.stderr))
        finally:
            downloads.close()


class _FetchSpider(scrapy.Spider):
    """Does some work that fetches, and nothing else: no item, no store, no account of titles."""

    name = "fetch"
    work: Callable[[Fetcher], Awaitable[None]]
    error: Exception | None = None

    @classmethod
    def update_settings(cls, settings: BaseSettings) -> None:
        """Leave out what is for the crawl of a site, such as the circuit that a missing file would open, and Scrapy's own extensions.

        One of these would write an empty feed over that of a crawl.
        """
        super().update_settings(settings)
        middlewares = settings.getdict("DOWNLOADER_MIDDLEWARES")
        middlewares["moviecrawler.middlewares.blocks.SiteBlockMiddleware"] = None
        changed = {
            **{key: {} for key in ("ADDONS", "EXTENSIONS", "EXTENSIONS_BASE", "ITEM_PIPELINES", "SPIDER_MIDDLEWARES")},
            "DOWNLOADER_MIDDLEWARES": middlewares,
            "JOBDIR": None,  # what waits there is for another spider
            "USER_AGENT": user_agent(settings),
        }
        for name, value in changed.items():
            settings.set(name, value, priority="spider")

    async def start(self) -> AsyncIterator[Request]:
        """Yield nothing: the work asks the downloader."""
        expect_parts(self.crawler)
        fetcher = Fetcher(partial(fetch, self.crawler), self.settings.getint("DATASET_PART"))
        try:
            await self.work(fetcher)
        except Exception as error:  # noqa: BLE001 - raised where the work was given
            self.error = error
        return
        yield


def run_fetching(settings: BaseSettings, work: Callable[[Fetcher], Awaitable[None]]) -> None:
    """Run what fetches, in a crawl of its own; once in a process, as Twisted's reactor can't be started again.

    Raises what the work raises. Warnings are logged, and all that `--loglevel` asks for. Signals are left to the caller.
    """
    settings = settings.copy()
    settings.set("LOG_LEVEL", "WARNING", priority="project")
    process = AsyncCrawlerProcess(cast("Settings", settings))
    crawler = process.create_crawler(_FetchSpider)
    crawling = process.crawl(crawler, work=work)
    process.start(install_signal_handlers=False)
    crawling.result()
    assert isinstance(crawler.spider, _FetchSpider)  # noqa: S101 - for mypy
    if crawler.spider.error is not None:
        raise crawler.spider.error
