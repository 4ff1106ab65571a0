"""A cookie jar for each proxy, as shared cookies would show a site that two proxies belong together. A circuit's is deleted with it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

    from moviecrawler.proxies.pools import Proxy, Route


class CookieJars:
    """Names the jar of each proxy, for `cookiejar` in a request's `meta`, and deletes those that are no longer used."""

    def __init__(self, crawler: Crawler) -> None:
        self.names: dict[str, str] = {}
        """By the proxies' ids."""
        self._crawler = crawler

    def jar_of(self, proxy: Proxy, route: Route) -> str:
        """Return the name of the jar that a proxy has as long as its route is the same."""
        jar = f"{proxy.id} {hash(route)}"
        if self.names.get(proxy.id, jar) != jar:
            self._forget(self.names[proxy.id])
        self.names[proxy.id] = jar
        return jar

    def release(self, proxy: Proxy, jar: str) -> None:
        """Delete the jar of a request that ended, if its proxy has another one by now, as the answer has filled it again."""
        if self.names[proxy.id] != jar:
            self._forget(jar)

    def _forget(self, jar: str) -> None:
        if self._crawler.settings.getbool("COOKIES_ENABLED"):
            from scrapy.downloadermiddlewares.cookies import CookiesMiddleware  # noqa: PLC0415 - most crawls do without

            cookies = self._crawler.get_downloader_middleware(CookiesMiddleware)
            if cookies is not None:
                cookies.jars.pop(jar, None)
