"""The project's chain of downloader middlewares with a site's answers made up: no network, and no spider running."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeVar

from scrapy import Request
from scrapy.core.downloader.middleware import DownloaderMiddlewareManager
from scrapy.http import HtmlResponse, Response
from scrapy.utils.misc import build_from_crawler
from scrapy.utils.test import get_crawler

import moviecrawler.settings
from moviecrawler.middlewares.blocks import SiteBlockMiddleware
from moviecrawler.proxies.middleware import ProxyMiddleware
from moviecrawler.proxies.pools import ProxyPool
from moviecrawler.spiders.imdb import ImdbSpider

T = TypeVar("T")
Answer = Callable[[Request], Response | Awaitable[Response]]
URL = "https://www.imdb.com/title/tt0111161/"
PAGE = b"<html>" + b"x" * 5000 + b"</html>"


@dataclass(frozen=True, slots=True)
class Sent:
    """A request as it was sent."""

    proxy: str
    """Its name; "direct" without one."""
    meta: dict[str, Any]
    authorization: bytes | None


def page(request: Request, status: int = 200, body: bytes = PAGE, headers: dict[str, str] | None = None) -> Response:
    """Return a page as an answer to a request."""
    return HtmlResponse(request.url, status=status, body=body, headers=headers, request=request)


class Chain:
    """Requests of IMDb's spider through so many proxies; 0 for no rotation.

    Each is answered with a page, with a status where `answer` is a number, or by what it returns.
    """

    def __init__(self, proxies: int, folder: Path, answer: Answer | int = 200, **settings: Any) -> None:
        pools = {
            "datacenter": {
                "kind": "datacenter",
                "urls": [f"http://user{n}:pa55word{n}@127.0.0.1:9" for n in range(proxies)],
            }
        }
        own = {name: value for name, value in vars(moviecrawler.settings).items() if name.isupper()}
        given = {
            "DATA_DIR": str(folder),
            "PROXY_POOLS": json.dumps(pools) if proxies else "",
            "PROXY_ORDER": "datacenter" if proxies else "",
            "ROBOTSTXT_OBEY": False,
            "REDIS_URL": "",
            "RETRY_BACKOFF": 0,
            "SITE_BUDGETS": '{"www.imdb.com": {}}',
        }
        self.crawler = get_crawler(ImdbSpider, {**own, **given, **settings})
        self.crawler.spider = ImdbSpider.from_crawler(self.crawler, ids="tt0111161")
        self.manager = build_from_crawler(DownloaderMiddlewareManager, self.crawler)
        self.answer = answer
        self.sent: list[Sent] = []
        downloader = SimpleNamespace(per_slot_settings={}, middleware=self.manager)
        self.crawler._engine = SimpleNamespace(
            downloader=downloader,
            running=True,
            scheduler=None,
            spider=self.crawler.spider,
            _slot=SimpleNamespace(closing=None),
        )  # type: ignore[assignment]
        self.rotation = next((one for one in self.manager.middlewares if isinstance(one, ProxyMiddleware)), None)
        if self.rotation is not None:
            self.rotation.blocks = self.middleware(SiteBlockMiddleware)

    def middleware(self, kind: type[T]) -> T:
        """Return the chain's middleware of a class."""
        return next(one for one in self.manager.middlewares if isinstance(one, kind))

    @property
    def rotating(self) -> ProxyMiddleware:
        """The middleware of proxies, where the site has an order of pools."""
        assert self.rotation is not None
        return self.rotation

    def pool(self, name: str) -> ProxyPool:
        """Return one of the site's pools."""
        return next(pool for pool in self.rotating.order if pool.name == name)

    async def download(self, request: Request) -> Response:
        """Answer a request that has passed the chain."""
        meta, headers = request.meta, request.headers
        proxy = meta.get("proxy_name", "direct")
        self.sent.append(Sent(proxy, dict(meta), headers.get(b"Proxy-Authorization")))
        answer = page(request, self.answer) if isinstance(self.answer, int) else self.answer(request)
        return answer if isinstance(answer, Response) else await answer

    async def run(self, *urls: str) -> list[Response]:
        """Send requests for pages one after the other, and return their answers."""
        return [await self.send(url) for url in urls]

    async def send(self, url: str, meta: dict[str, str] | None = None) -> Response:
        """Send a request, by default for a page, and those that are made of it, until there is an answer."""
        request = Request(url, meta={"site": "imdb", "expects": "page"} if meta is None else dict(meta))
        while True:
            result = await self.manager.download_async(self.download, request)
            if isinstance(result, Response):
                return result
            request = result
