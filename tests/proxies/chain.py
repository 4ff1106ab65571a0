"""The project's chain of downloader middlewares with a site's answers made up: no network, and no spider running."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from scrapy import Request
from scrapy.core.downloader.middleware import DownloaderMiddlewareManager
from scrapy.http import Response
from scrapy.utils.misc import build_from_crawler
from scrapy.utils.test import get_crawler

import moviecrawler.settings
from moviecrawler.middlewares.blocks import SiteBlockMiddleware
from moviecrawler.proxies.middleware import ProxyMiddleware
from moviecrawler.spiders.imdb import ImdbSpider

Answer = Callable[[Request], Awaitable[Response]]


class Chain:
    """Requests of IMDb's spider through so many proxies; 0 for no rotation."""

    def __init__(self, proxies: int, folder: Path, answer: Answer, **settings: Any) -> None:
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
            "RETRY_BACKOFF_MAX": 0,
        }
        self.crawler = get_crawler(ImdbSpider, {**own, **given, **settings})
        self.crawler.spider = ImdbSpider.from_crawler(self.crawler, ids="tt0111161")
        self.manager = build_from_crawler(DownloaderMiddlewareManager, self.crawler)
        self._answer = answer
        downloader = SimpleNamespace(per_slot_settings={}, middleware=self.manager)
        self.crawler._engine = SimpleNamespace(downloader=downloader, running=True, scheduler=None)  # type: ignore[assignment]
        self.rotation = next((one for one in self.manager.middlewares if isinstance(one, ProxyMiddleware)), None)
        if self.rotation is not None:
            blocks = next(one for one in self.manager.middlewares if isinstance(one, SiteBlockMiddleware))
            self.rotation.blocks = blocks

    async def send(self, url: str, meta: dict[str, str] | None = None) -> Response:
        """Send a request, by default for a page, and those that are made of it, until there is an answer."""
        request = Request(url, meta={"site": "imdb", "expects": "page"} if meta is None else dict(meta))
        while True:
            result = await self.manager.download_async(self._answer, request)  # type: ignore[arg-type]  # a coroutine all the same
            if isinstance(result, Response):
                return result
            request = result
