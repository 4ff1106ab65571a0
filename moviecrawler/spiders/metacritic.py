"""Metacritic: the finder's lists or the sitemap, then each title's page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urlencode

from moviecrawler.basics.clock import utc_now
from moviecrawler.spiders.base import TRENDING_SIZE
from moviecrawler.spiders.sitemap import SitemapSpider

if TYPE_CHECKING:
    from collections.abc import Iterator

    from scrapy import Request
    from scrapy.http import Response

FINDER_PAGE = 24
"""Rows that the site's own browse pages ask the finder for."""
MOST_LISTED = 20_000 * FINDER_PAGE
"""Titles of a list that are read: several times as many as the site has. A finder that goes on
after that has no end."""


class MetacriticSpider(SitemapSpider):
    """Fetches Metacritic's lists and title pages.

    `list` is an order of the finder (metascore, new, popular; of series tv-metascore and so on) or
    a sitemap.
    """

    name = "metacritic"
    site = "metacritic"

    def first_page(self, name: str) -> Request:
        """Return the request for the finder's first rows."""
        return self.finder_request(name, 0, utc_now().isoformat())

    def finder_request(self, name: str, offset: int, pass_at: str) -> Request:
        """Return the request for the finder's rows from `offset` on."""
        rows = urlencode({"limit": FINDER_PAGE, "offset": offset})
        host = self.hosts.get("METACRITIC_API_URL", self.home)
        address = f"{host}{self.profile.lists[name].path}&{rows}"
        return self.list_page(
            address, self.parse_list, "json", name=name, offset=offset, pass_at=pass_at
        )

    def parse_list(self, response: Response, name: str, offset: int, pass_at: str) -> Iterator[Any]:
        """Yield the titles of one finder page and, from the first, all the other pages at once."""
        listing = self.read_list(response, "finder")
        if listing is None:
            return
        end = offset + FINDER_PAGE
        ends: Literal["list", "reading"] | None = None
        if listing.total is None:
            self.list_missed(
                response.url,
                "failed",
                "it does not say how many titles it has; its first page is read",
            )
        else:
            most = TRENDING_SIZE if self.plan.is_due else self.plan.limit or listing.total
            wanted = min(listing.total, most)
            if end >= listing.total:
                ends = "list"
            elif end >= min(wanted, MOST_LISTED):
                ends = "reading"
            if offset == 0:
                # Before its titles, so that every node soon has work.
                for later in range(FINDER_PAGE, min(wanted, MOST_LISTED), FINDER_PAGE):
                    yield self.finder_request(name, later, pass_at)
                if wanted > MOST_LISTED:
                    reason = f"it goes on after {MOST_LISTED:,} titles, which are read"
                    self.list_missed(response.url, "failed", reason)
        yield from self.items_of_list(response, listing, name, pass_at, offset, end, ends)
