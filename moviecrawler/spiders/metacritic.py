"""Metacritic: the finder's lists or the sitemap, then each title from the JSON host, or else from its page."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import urlencode, urlsplit

from moviecrawler.configuration import parse_choice
from moviecrawler.errors import ConfigurationError
from moviecrawler.extract import metacritic
from moviecrawler.extract.metacritic_lists import finder
from moviecrawler.sites import SITES
from moviecrawler.spiders.base import TRENDING_SIZE
from moviecrawler.spiders.sitemap import Sitemap, SitemapSpider

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Self

    from scrapy import Request
    from scrapy.crawler import Crawler
    from scrapy.http import Response

    from moviecrawler.items import Page
    from moviecrawler.spiders.plan import Found

logger = logging.getLogger(__name__)

_ORDERS = {"metascore": "-metaScore", "new": "-releaseDate", "popular": "-popularityCount"}
FINDER_LISTS = {
    f"{prefix}{name}": (number, order) for prefix, number in (("", 2), ("tv-", 1)) for name, order in _ORDERS.items()
}
"""The finder's number for films or series, and its name for the order, by the names of the lists."""
_COMPOSER = "/composer/metacritic/pages"
_COMPOSED = {"movie": "movies", "tv": "shows"}
"""What the JSON host calls each kind of titles."""
_MOST_FAILURES = 5
"""Of the JSON host in a row: each costs the budget a request, and retries, before the page is asked for."""
_KEPT = frozenset({"proxy_pool", "max_retry_times"})
"""What the fallback keeps of a request's meta: what the seed of the title asks for."""
FINDER_PAGE = 24
"""Rows that the site's own browse pages ask the finder for."""
MOST_LISTED = 20_000 * FINDER_PAGE
"""Titles of a list that are read: several times as many as the site has. A finder that goes on after that has no end."""


class MetacriticSpider(SitemapSpider):
    """`list` is an order of the finder (metascore, new, popular; of series tv-metascore and so on) or one of `sitemaps`."""

    name = "metacritic"
    site = "metacritic"
    default_list = "metascore"
    sitemaps: ClassVar[Mapping[str, Sitemap]] = {
        "sitemap": Sitemap("/movies.xml", "movie"),
        "sitemap-series": Sitemap("/tvshows.xml", "series"),
        "sitemap-seasons": Sitemap("/tvshows.xml", "season"),
    }

    @classmethod
    def check_list(cls, name: str) -> None:
        """Raise ConfigurationError when it is neither an order of the finder nor a sitemap."""
        parse_choice("list", name, [*FINDER_LISTS, *cls.sitemaps])

    def list_request(self, name: str) -> Request:
        """Return the request for the first page of the finder, or the sitemap's index."""
        return self.sitemap_request(name) if name in self.sitemaps else self.finder_request(name, 0)

    def finder_request(self, name: str, offset: int) -> Request:
        """Return the request for the finder's rows from `offset` on."""
        number, order = FINDER_LISTS[name]
        query = {"mcoTypeId": number, "sortBy": order, "limit": FINDER_PAGE, "offset": offset}
        address = f"{self.json_host}/finder/metacritic/web?{urlencode(query)}"
        return self.list_page(address, self.parse_list, "json", name=name, offset=offset)

    def parse_list(self, response: Response, name: str, offset: int) -> Iterator[Any]:
        """Yield the titles of one finder page and, from the first, all the other pages at once.

        A finder that doesn't say how many there are is asked page by page.
        """
        listing = self.read_list(response, finder)
        if listing is None:
            return
        pages: list[Request] = []
        if offset == 0 and listing.total is not None:
            # Before its titles, so that every node soon has work.
            most = TRENDING_SIZE if self.plan.lane is not None else self.plan.limit or listing.total
            wanted = min(listing.total, most)
            pages = [
                self.finder_request(name, later) for later in range(FINDER_PAGE, min(wanted, MOST_LISTED), FINDER_PAGE)
            ]
            if wanted > MOST_LISTED:
                self._endless(response)
        yield from pages
        yield from self.requests_of(listing, name, before=offset)
        listed = offset + FINDER_PAGE
        if listing.total is None and listing.entries and not self.listed_enough(listed):
            if listed < MOST_LISTED:
                yield self.finder_request(name, listed)
            else:
                self._endless(response)

    def _endless(self, response: Response) -> None:
        self.list_missed(response.url, "failed", f"it goes on after {MOST_LISTED:,} titles, which are read")

    # --- Titles -------------------------------------------------------------------------------------------------------

    json_host: str
    """Where lists are asked for, and titles, too, where it is a host of its own: beside a stand-in of the pages, only the pages' host may be there."""
    asks_json_host: bool
    """Whether titles are asked for at the JSON host, whose answer is what the page is made of, in a third of its bytes."""
    failures_of_json_host: int
    """Titles in a row that it has failed to give."""

    @classmethod
    def from_crawler(cls, crawler: Crawler, *args: Any, **arguments: Any) -> Self:
        """Create the spider. Raises ConfigurationError for a stand-in of the JSON host alone, whose titles would be the live site's."""
        spider = super().from_crawler(crawler, *args, **arguments)
        json_host = spider.hosts.get("METACRITIC_API_URL")
        if json_host is not None and SITES[cls.site].is_live(spider.home) and not SITES[cls.site].is_live(json_host):
            raise ConfigurationError(
                f"METACRITIC_API_URL is {json_host!r}, and METACRITIC_URL is the live site, where titles would be asked for; set "
                "METACRITIC_URL to a stand-in, too, or remove METACRITIC_API_URL"
            )
        if json_host is None:
            message = "METACRITIC_URL is no host of Metacritic's, and METACRITIC_API_URL is not set: all is asked for at METACRITIC_URL"
            logger.info(message, extra={"spider": spider})
        spider.json_host = json_host or spider.home
        spider.failures_of_json_host = 0
        spider.asks_json_host = json_host is not None
        return spider

    @property
    def requests_per_title(self) -> int:
        """One at the JSON host, and one for the page where that has failed."""
        return 2 if self.asks_json_host else 1

    def title_addresses(self, site_id: str) -> list[str]:
        """Return the address at the JSON host, which has none for a season, and that of the page."""
        kind, _, slug = site_id.partition("/")
        page = super().title_addresses(site_id)
        if kind not in _COMPOSED or "/" in slug:
            return page
        return [f"{self.json_host}{_COMPOSER}/{_COMPOSED[kind]}/{slug}/web?contentOnly=true", *page]

    def title_request(self, site_id: str, found: Found | None) -> Request:
        """Return the request of one title, at the JSON host until its robots.txt forbids that or it fails again and again."""
        request, address = super().title_request(site_id, found), self.title_addresses(site_id)[0]
        if not self.asks_json_host or address == request.url:
            return request
        return request.replace(url=address, meta={**request.meta, "expects": "json"})

    def fallback(self, request: Request, outcome: str) -> Request | None:
        """Return the request for a title's page when the JSON host doesn't have the title, fails, or may not be asked.

        Only the page knows what a renamed title is called now. After a refusal the site is not asked at all.
        """
        if outcome == "blocked" or not _is_composed(request.url):
            return None
        self.crawler.stats.inc_value(f"metacritic/json_host/{outcome}")
        self.failures_of_json_host = self.failures_of_json_host + 1 if outcome == "failed" else 0
        if outcome == "disallowed" and self.asks_json_host:
            self.asks_json_host = False
            logger.info("robots.txt forbids the JSON host, so that pages are read", extra={"spider": self})
        elif self.failures_of_json_host == _MOST_FAILURES and self.asks_json_host:
            self.asks_json_host = False
            message = "The JSON host has failed to give %d titles in a row, so that pages are read"
            logger.warning(message, _MOST_FAILURES, extra={"spider": self})
        if self.settings.get("REDIS_URL"):  # the worker counts it to which the frontier hands the page
            self.crawler.stats.inc_value("titles/asked", -1)
        kept = {name: value for name, value in request.meta.items() if name in _KEPT}
        page = super().title_request(request.cb_kwargs["site_id"], None)
        return page.replace(
            cb_kwargs=request.cb_kwargs, meta={**page.meta, **kept}, priority=request.priority, dont_filter=True
        )

    def read_title(self, response: Response) -> Page:
        """Return what the JSON host or a title's page says."""
        if not _is_composed(response.url):
            return metacritic.movie(response.body, response.url)
        page = metacritic.detail(response.body, response.url)
        self.failures_of_json_host = 0
        return page


def _is_composed(url: str) -> bool:
    return urlsplit(url).path.startswith(_COMPOSER)
