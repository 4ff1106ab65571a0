"""The project's chain of downloader middlewares with a site's answers made up.

There is no network, and no spider is running.
"""

import json
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from scrapy import Request
from scrapy.core.downloader.middleware import DownloaderMiddlewareManager
from scrapy.http import HtmlResponse, Response
from scrapy.utils.misc import build_from_crawler
from scrapy.utils.test import get_crawler

import moviecrawler.settings
from moviecrawler.frontier.budget_middleware import BudgetMiddleware
from moviecrawler.middlewares.blocks import SiteBlockMiddleware
from moviecrawler.proxies.middleware import ProxyMiddleware
from moviecrawler.spiders.imdb import ImdbSpider

URL = "https://www.imdb.com/title/tt0111161/"
PAGE = b"<html>" + b"x" * 5000 + b"</html>"


def page(
    request: Request, status: int = 200, body: bytes = PAGE, headers: dict[str, str] | None = None
) -> Response:
    """Return a page as an answer to a request."""
    return HtmlResponse(request.url, status=status, body=body, headers=headers, request=request)


class Chain:
    """Requests of IMDb's spider through so many proxies.

    Each is answered with a page, with a status where `answer` is a number, or by what it returns.
    """

    def __init__(
        self,
        proxies: int,
        folder: Path,
        answer: Callable[[Request], Awaitable[Response]] | int = 200,
        middlewares: Mapping[str, int | None] | None = None,
        **settings: Any,
    ) -> None:
        """Take also what an operator lists in DOWNLOADER_MIDDLEWARES."""
        urls = [f"http://user{n}:pa55word{n}@127.0.0.1:9" for n in range(proxies)]
        own = {name: value for name, value in vars(moviecrawler.settings).items() if name.isupper()}
        given = {
            "DATA_DIR": str(folder),
            "PROXY_POOLS": json.dumps({"datacenter": {"kind": "datacenter", "urls": urls}}),
            "PROXY_ORDER": "datacenter",
            "ROBOTSTXT_OBEY": False,
            "REDIS_URL": "",
            "RETRY_BACKOFF": 0,
            "SITE_BUDGETS": '{"www.imdb.com": {}}',
            "DOWNLOADER_MIDDLEWARES": {
                **own.get("DOWNLOADER_MIDDLEWARES", {}),
                **(middlewares or {}),
            },
        }
        crawler = get_crawler(ImdbSpider, {**own, **given, **settings})
        crawler.spider = ImdbSpider.from_crawler(crawler, ids="tt0111161")
        self._manager = build_from_crawler(DownloaderMiddlewareManager, crawler)
        self._answer = answer
        self.sent: list[tuple[str | None, bytes | None]] = []
        """Of each request that was sent the name of its proxy, None without one, and the
        credentials for that."""
        engine: Any = SimpleNamespace(
            downloader=SimpleNamespace(per_slot_settings={}, middleware=self._manager),
            running=True,
        )
        crawler._engine = engine
        chained = {type(one): one for one in self._manager.middlewares}
        self.proxies: Any = crawler.get_downloader_middleware(ProxyMiddleware)
        """The middleware; None where the site has no order of pools."""
        blocks: Any = chained[SiteBlockMiddleware]
        blocks.budgets = chained[BudgetMiddleware]
        if self.proxies is not None:
            self.proxies.blocks = blocks

    async def _download(self, request: Request) -> Response:
        self.sent.append(
            (request.meta.get("proxy_name"), request.headers.get(b"Proxy-Authorization"))
        )
        return (
            page(request, self._answer)
            if isinstance(self._answer, int)
            else await self._answer(request)
        )

    async def send(self, url: str = URL, *, is_page: bool = True, **meta: str) -> Response:
        """Send a request, and those that are made of it, until there is an answer."""
        request = Request(
            url, meta={**({"site": "imdb", "expects": "page"} if is_page else {}), **meta}
        )
        while not isinstance(
            result := await self._manager.download_async(self._download, request), Response
        ):
            request = result
        return result
