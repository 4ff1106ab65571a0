"""Metacritic: the finder's lists or the sitemap, then each title's page."""

from __future__ import annotations

from urllib.parse import urlencode

from moviecrawler.spiders.sitemap import SitemapSpider


class MetacriticSpider(SitemapSpider):
    """Fetches Metacritic's lists and title pages.

    `list` is an order of the finder (metascore, new, popular; of series tv-metascore and so on) or
    a sitemap.
    """

    name = "metacritic"
    site = "metacritic"

    def list_url(self, name: str, before: int, _cursor: str | None) -> str:
        """Return the address of the finder's rows from `before` on."""
        chosen = self.profile.lists[name]
        host = self.hosts.get("METACRITIC_API_URL", self.home)
        return f"{host}{chosen.path}&{urlencode({'limit': chosen.rows, 'offset': before})}"
