"""The private parts of Scrapy that the frontier leans on, in a real crawl: what fails here fails with a new Scrapy."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

import pytest
from scrapy import Request, Spider, signals
from scrapy.crawler import AsyncCrawlerRunner
from scrapy.exceptions import DontCloseSpider
from scrapy.http import Response

from moviecrawler.frontier.engine import EngineSlot

URL = "data:text/plain,page"


class Probe(Spider):
    """Yields an item a page, and another request from the first."""

    name = "probe"

    @classmethod
    def from_crawler(cls, crawler: Any, *args: Any, **kwargs: Any) -> Probe:
        spider = super().from_crawler(crawler, *args, **kwargs)
        spider.told = []
        crawler.signals.connect(spider.opened, signals.spider_opened)
        crawler.signals.connect(spider.passed, signals.item_scraped)
        crawler.signals.connect(spider.scheduled, signals.request_scheduled)
        return spider

    told: list[str]

    def opened(self) -> None:
        self.slot = EngineSlot(self.crawler.engine)
        self.slot.on_request_ended(lambda request: self.told.append(f"ended {request.url[-1]}"))

    async def start(self) -> AsyncIterator[Request]:
        yield Request(URL + "1")

    def parse(self, response: Response) -> Iterator[Any]:
        yield {"page": response.url[-1]}
        if response.url.endswith("1"):
            yield Request(URL + "2", errback=self.failed)

    def failed(self, failure: object) -> None:
        raise AssertionError(failure)

    async def passed(self, item: dict[str, str], response: Response) -> None:
        await asyncio.sleep(0.01)
        assert response.request is not None
        self.told.append(f"item {item['page']} of {response.request.url[-1]}")

    def scheduled(self, request: Request) -> None:
        self.told.append(f"scheduled {request.url[-1]}")


def crawl(spider: type[Probe]) -> tuple[list[str], float]:
    """Run a crawl, and return what its spider was told and how many seconds it took."""

    async def run() -> tuple[list[str], float]:
        runner = AsyncCrawlerRunner({"TELNETCONSOLE_ENABLED": False, "TWISTED_REACTOR_ENABLED": False})
        crawler = runner.create_crawler(spider)
        loop = asyncio.get_running_loop()
        began = loop.time()
        await runner.crawl(crawler)
        assert isinstance(crawler.spider, Probe)
        return crawler.spider.told, loop.time() - began

    return asyncio.run(run())


@pytest.fixture(scope="module")
def crawls() -> Iterator[Callable[[type[Probe]], tuple[list[str], float]]]:
    """Return `crawl` in a process of its own, as other tests install a reactor in this one."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        yield lambda spider: pool.submit(crawl, spider).result(60)


def test_request_has_ended_once_its_items_have_passed_and_its_requests_are_scheduled(crawls: Any) -> None:
    told, _ = crawls(Probe)
    assert told.index("item 1 of 1") < told.index("ended 1")
    assert told.index("scheduled 2") < told.index("ended 1")
    assert told.index("item 2 of 2") < told.index("ended 2")
    assert told.count("ended 1") == told.count("ended 2") == 1


def test_engine_can_be_woken(crawls: Any) -> None:
    _, seconds = crawls(Waiting)
    assert 0.3 < seconds < 4  # less than the engine's own 5 seconds


class Waiting(Probe):
    """Ends as soon as it may be idle, which something else than the engine finds out."""

    name = "waiting"

    def opened(self) -> None:
        self.may_end = False
        self.crawler.signals.connect(self.idle, signals.spider_idle)
        slot = EngineSlot(self.crawler.engine)

        def end() -> None:
            self.may_end = True
            slot.wake()

        asyncio.get_running_loop().call_later(0.5, end)

    def idle(self) -> None:
        if not self.may_end:
            raise DontCloseSpider
