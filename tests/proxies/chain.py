"""The project's chain of downloader middlewares with proxies, and a site's answers made up.

There is no network, and no spider is running.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from scrapy import Request

import moviecrawler.settings
from moviecrawler.proxies.middleware import ProxyMiddleware
from tests import chain
from tests.chain import PAGE, URL, Answer, page

__all__ = ["PAGE", "URL", "Chain", "page"]


class Chain(chain.Chain):
    """Requests of IMDb's spider through so many proxies.

    Each is answered with a page, with a status where `answer` is a number, or by what it returns.
    """

    def __init__(
        self,
        proxies: int,
        folder: Path,
        answer: Answer = 200,
        middlewares: Mapping[str, int | None] | None = None,
        **settings: Any,
    ) -> None:
        """Take also what an operator lists in DOWNLOADER_MIDDLEWARES."""
        urls = [f"http://user{n}:pa55word{n}@127.0.0.1:9" for n in range(proxies)]
        listed: dict[str, Any] = getattr(moviecrawler.settings, "DOWNLOADER_MIDDLEWARES", {})
        given: dict[str, Any] = {
            "PROXY_POOLS": json.dumps({"datacenter": {"kind": "datacenter", "urls": urls}}),
            "PROXY_ORDER": "datacenter",
            "ROBOTSTXT_OBEY": False,
            "DOWNLOADER_MIDDLEWARES": {**listed, **(middlewares or {})},
        }
        super().__init__(folder, answer, **given | settings)
        self.proxies: Any = self.crawler.get_downloader_middleware(ProxyMiddleware)
        """The middleware; None where the site has no order of pools."""
        if self.proxies is not None:
            self.proxies.politeness = self.politeness
            self.politeness.has_proxies = True

    def record(self, request: Request) -> tuple[str | None, bytes | None]:
        """Return the name of a request's proxy, None without one, and the credentials for that."""
        return request.meta.get("proxy_name"), request.headers.get(b"Proxy-Authorization")
