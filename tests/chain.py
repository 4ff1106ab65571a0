"""The project's chain of downloader middlewares with a site's answers made up.

There is no network, and no spider is running.
"""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from scrapy import Request
from scrapy.core.downloader.middleware import DownloaderMiddlewareManager
from scrapy.http import HtmlResponse, Response
from scrapy.utils.misc import build_from_crawler
from scrapy.utils.test import get_crawler

import moviecrawler.settings
from moviecrawler.frontier.sqlite_backend import SqliteBackend
from moviecrawler.politeness.middleware import PolitenessMiddleware
from moviecrawler.spiders.base import MovieSpider
from moviecrawler.spiders.imdb import ImdbSpider

URL = "https://www.imdb.com/title/tt0111161/"
PAGE = b"<html>" + b"x" * 5000 + b"</html>"
DAY = 86_400.0
NOON = 1_790_000_000 // 86_400 * 86_400 + 43_200.0
"""A Unix time at noon."""
UNLIMITED = '{"imdb": {"per_second": null, "per_day": null}}'
Answer = Callable[[Request], Awaitable[Response]] | int


def page(
    request: Request, status: int = 200, body: bytes = PAGE, headers: dict[str, str] | None = None
) -> Response:
    """Return a page as an answer to a request."""
    return HtmlResponse(request.url, status=status, body=body, headers=headers, request=request)


class Engine:
    """An engine, as far as gates, middlewares and the ends of crawls use it."""

    def __init__(self, chain: "Chain") -> None:
        self.spider = chain.crawler.spider
        self.running = True
        self.downloader = SimpleNamespace(per_slot_settings={}, middleware=chain.manager)
        self.reasons: list[str] = []
        """Why the crawl was to end."""
        self._slot = SimpleNamespace(closing=None)
        self._chain = chain

    async def download_async(self, request: Request) -> Response:
        """Send a request past the spider, as one for a robots.txt."""
        return await self._chain.download(request)

    async def close_spider_async(self, reason: str) -> None:
        """Begin to close."""
        self._slot.closing = True
        self.reasons.append(reason)


class Chain:
    """Requests of a movie spider that are answered by what `answer` returns.

    Where that is a number, it is the status of a page, and there is no robots.txt.
    """

    def __init__(
        self,
        folder: Path,
        answer: Answer = 200,
        spider: type[MovieSpider] = ImdbSpider,
        clock: Callable[[], float] | None = None,
        **settings: Any,
    ) -> None:
        """Take the clock of the queue, which is real by default."""
        own = {name: value for name, value in vars(moviecrawler.settings).items() if name.isupper()}
        given = {
            "DATA_DIR": str(folder),
            "REDIS_URL": "",
            "RETRY_BACKOFF": 0,
            "SITE_BUDGETS": UNLIMITED,
        }
        crawler: Any = get_crawler(spider, {**own, **given, **settings})
        crawler.spider = spider.from_crawler(crawler)
        self.crawler = crawler
        self.manager: Any = build_from_crawler(DownloaderMiddlewareManager, self.crawler)
        self.engine: Any = Engine(self)
        self.crawler._engine = self.engine
        self.politeness: Any = self.crawler.get_downloader_middleware(PolitenessMiddleware)
        if clock is not None:
            self.politeness.clock = clock
            self.crawler.spider.backend = SqliteBackend(folder, clock)
        self._answer = answer
        self.sent: list[Any] = []
        """What `record` returns of each request that has left."""

    def record(self, request: Request) -> Any:
        """Return what is remembered of a request that leaves: its address."""
        return request.url

    async def send(self, url: str = URL, **meta: Any) -> Response:
        """Send a request of the spider, and those that are made of it, until there is an answer."""
        named = {"site": self.crawler.spidercls.site, "expects": "page"}
        return await self.download(Request(url, meta=named | meta))

    async def download(self, request: Request) -> Response:
        """Send a request, and those that are made of it."""
        while True:
            result = await self.manager.download_async(self._download, request)
            if isinstance(result, Response):
                return result
            request = result

    async def _download(self, request: Request) -> Response:
        self.sent.append(self.record(request))
        if not isinstance(self._answer, int):
            return await self._answer(request)
        if request.url.endswith("/robots.txt"):
            return page(request, 404)
        return page(request, self._answer)

    async def close(self) -> None:
        """Finish what is to be reported."""
        await self.politeness.engine_stopped()


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop whose time passes while everything waits, and then at once.

    What is run in an executor runs in this thread.
    """

    def __init__(self) -> None:
        super().__init__()
        self._seconds = 0.0
        selector: Any = self._selector  # type: ignore[attr-defined]
        select = selector.select

        def advance(timeout: float | None) -> Any:
            events = select(0)
            if not events:
                assert timeout is not None, "everything waits, and nothing will happen"
                self._seconds += timeout
            return events

        selector.select = advance

    def time(self) -> float:
        """Return the seconds that have passed."""
        return self._seconds

    def run_in_executor(  # type: ignore[override]
        self,
        executor: Any,  # noqa: ARG002 - of the base
        func: Any,
        *args: Any,
    ) -> Any:
        """Run a function now."""
        future = self.create_future()
        try:
            future.set_result(func(*args))
        except Exception as error:  # noqa: BLE001 - who waits for it gets it
            future.set_exception(error)
        return future
