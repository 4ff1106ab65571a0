"""Rotten Tomatoes: a browse page and its continuations or the sitemaps, then each title's page."""

from __future__ import annotations

from urllib.parse import urlencode

from moviecrawler.spiders.sitemap import SitemapSpider


class RottenTomatoesSpider(SitemapSpider):
    """Fetches Rotten Tomatoes' lists and title pages.

    `list` is a browse path, such as `movies_at_home/genres:drama~sort:newest`, or a sitemap.
    """

    name = "rottentomatoes"
    site = "rottentomatoes"

    def list_url(self, name: str, _before: int, cursor: str | None) -> str:
        """Return the address of a browse page, or by its cursor of the JSON that continues it."""
        if cursor is None:
            return f"{self.home}/browse/{name}"
        return f"{self.home}/cnapi/browse/{name}?{urlencode({'after': cursor})}"
