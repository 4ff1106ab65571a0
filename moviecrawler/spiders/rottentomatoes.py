"""Rotten Tomatoes: a browse page and its continuations or the sitemaps, then each title's page."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urlencode

from moviecrawler.basics.clock import utc_now
from moviecrawler.basics.errors import ConfigurationError
from moviecrawler.spiders.sitemap import SitemapSpider

if TYPE_CHECKING:
    from collections.abc import Iterator

    from scrapy import Request
    from scrapy.http import Response

_BROWSE_PATH = re.compile(
    r"(?:movies_in_theaters|movies_at_home|movies_coming_soon|tv_series_browse)"
    r"(?:/[a-zA-Z0-9_:~,.-]+)?/?"
)
MOST_PAGES = 5000
"""Pages of a browse list that are read, several times as many as the longest has: cursors that are
new for ever have no end."""


class RottenTomatoesSpider(SitemapSpider):
    """Fetches Rotten Tomatoes' lists and title pages.

    `list` is a browse path, such as `movies_at_home/genres:drama~sort:newest`, or a sitemap.
    """

    name = "rottentomatoes"
    site = "rottentomatoes"

    @classmethod
    def check_list(cls, name: str) -> None:
        """Raise ConfigurationError when it is neither a browse path nor a sitemap."""
        if name not in cls.profile.sitemaps and not _BROWSE_PATH.fullmatch(name):
            raise ConfigurationError(
                f"list is {name!r}; give a browse path such as movies_in_theaters, "
                "movies_at_home/sort:popular or tv_series_browse/genres:drama, "
                f"or {', '.join(cls.profile.sitemaps)}"
            )

    def first_page(self, name: str) -> Request:
        """Return the request for the first page of a browse list."""
        return self.browse_request(name, utc_now().isoformat())

    def browse_request(
        self, name: str, pass_at: str, cursor: str | None = None, page: int = 0, before: int = 0
    ) -> Request:
        """Return the request for a page of a browse list: markup at first, then JSON by `cursor`.

        `before` is how many entries earlier pages have.
        """
        path = (
            f"/browse/{name}"
            if cursor is None
            else f"/cnapi/browse/{name}?{urlencode({'after': cursor})}"
        )
        expects = "page" if cursor is None else "json"
        return self.list_page(
            self.home + path,
            self.parse_list,
            expects,
            name=name,
            pass_at=pass_at,
            page=page,
            before=before,
        )

    def parse_list(
        self, response: Response, name: str, pass_at: str, page: int, before: int
    ) -> Iterator[Any]:
        """Yield the titles of one page, and the next page.

        The dupefilter drops that one if the site names it again and again.
        """
        listing = self.read_list(response, "browse_json" if page else "browse")
        if listing is None:
            return
        listed = before + len(listing.entries)
        ids = [entry.site_id for entry in listing.entries]
        ends: Literal["list", "reading"] | None = None
        if not listing.next or not listing.entries:
            ends = "list"
        elif page >= MOST_PAGES or self.listed_enough(listed, ids):
            ends = "reading"
        yield from self.items_of_list(response, listing, name, pass_at, before, ends=ends)
        if ends is None:
            yield self.browse_request(name, pass_at, listing.next, page + 1, listed)
        elif ends == "reading" and not self.listed_enough(listed, ids):
            self.list_missed(
                response.url, "failed", f"it goes on after {MOST_PAGES:,} pages, which are read"
            )
