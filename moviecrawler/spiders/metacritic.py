"""Metacritic: the finder's lists or the sitemap, then each movie's page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import urlencode

from scrapy import Request

from moviecrawler.configuration import parse_choice
from moviecrawler.errors import ExtractionError
from moviecrawler.extract import metacritic
from moviecrawler.spiders.base import LIST_PRIORITY, TRENDING_SIZE
from moviecrawler.spiders.sitemap import SitemapSpider

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from scrapy.http import Response

    from moviecrawler.catalogue.sightings import Reading
    from moviecrawler.items import Page

FINDER_ORDERS = {"metascore": "-metaScore", "new": "-releaseDate", "popular": "-popularityCount"}
FINDER_PAGE = 24
"""Rows that the site's own browse pages ask the finder for."""
MOST_LISTED = 20_000 * FINDER_PAGE
"""Titles of a list that are read: several times as many as the site has. A finder that goes on after that has no end."""


class MetacriticSpider(SitemapSpider):
    """`list` is an order of the finder (metascore, new, popular) or `sitemap`."""

    name = "metacritic"
    site = "metacritic"
    home_setting = "METACRITIC_URL"
    default_list = "metascore"
    sitemap_path = "/movies.xml"
    movie_prefix = "movie/"
    current_lists: ClassVar[Mapping[Reading, Sequence[str]]] = {"lists": ["popular", "new"], "sitemap": ["sitemap"]}

    @classmethod
    def home_settings(cls) -> tuple[str, ...]:
        """Return the pages' host and the JSON host."""
        return ("METACRITIC_URL", "METACRITIC_API_URL")

    @classmethod
    def check_list(cls, name: str) -> None:
        """Raise ConfigurationError when it is neither an order of the finder nor `sitemap`."""
        parse_choice("list", name, [*FINDER_ORDERS, "sitemap"])

    def list_request(self, name: str) -> Request:
        """Return the request for the first page of the finder, or the sitemap's index."""
        return self.sitemap_request() if name == "sitemap" else self.finder_request(name, 0)

    def finder_request(self, name: str, offset: int) -> Request:
        """Return the request for the finder's rows from `offset` on."""
        query = {"mcoTypeId": 2, "sortBy": FINDER_ORDERS[name], "limit": FINDER_PAGE, "offset": offset}
        return Request(
            f"{self.settings['METACRITIC_API_URL']}/finder/metacritic/web?{urlencode(query)}",
            callback=self.parse_list,
            errback=self.list_failed,
            cb_kwargs={"name": name, "offset": offset},
            meta={"expects": "json", "site": self.site},
            priority=LIST_PRIORITY,
            dont_filter=self.plan.lane is not None,
        )

    def parse_list(self, response: Response, name: str, offset: int) -> Iterator[Any]:
        """Yield the titles of one finder page and, from the first, all the other pages at once.

        A finder that doesn't say how many there are is asked page by page.
        """
        try:
            listing = metacritic.finder(response.body, response.url)
        except ExtractionError as error:
            yield from self.list_missed(response.url, "failed", str(error))
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
                yield from self._endless(response)
        yield from pages
        yield from self.requests_of(listing, name, before=offset, further=len(pages))
        listed = offset + FINDER_PAGE
        if listing.total is None and listing.entries and not self.listed_enough(listed):
            if listed < MOST_LISTED:
                yield self.finder_request(name, listed)
            else:
                yield from self._endless(response)

    def _endless(self, response: Response) -> Iterator[Any]:
        return self.list_missed(response.url, "failed", f"it goes on after {MOST_LISTED:,} titles, which are read")

    def read_title(self, response: Response) -> Page:
        """Return what a movie's page says."""
        return metacritic.movie(response.body, response.url)
