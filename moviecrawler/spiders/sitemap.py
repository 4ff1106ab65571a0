"""Titles from a site's sitemaps."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from moviecrawler.basics.errors import ExtractionError
from moviecrawler.catalogue.rows import SITEMAP
from moviecrawler.sites.ids import id_in_url, kind_of_id
from moviecrawler.sites.sitemaps import MOST_LOCATIONS, read_sitemap
from moviecrawler.spiders.lists import ListSpider

if TYPE_CHECKING:
    from collections.abc import Iterator

    from scrapy import Request
    from scrapy.http import Response

    from moviecrawler.sites.profile import Sitemap
    from moviecrawler.spiders.results import Result


class SitemapSpider(ListSpider):
    """A spider whose site lists its titles in sitemaps, too."""

    def list_request(self, name: str) -> Request:
        """Return the request for the index of sitemaps, or for the first page of another list."""
        if name in self.profile.sitemaps:
            return self.sitemap_request(name)
        return super().list_request(name)

    def sitemap_request(
        self, name: str, path: str = "", later: list[str] | None = None, before: int = 0
    ) -> Request:
        """Return the request for the index of a list, or for one of its parts.

        `later` are the parts to request after it when it is not enough, `before` is how many titles
        the earlier ones hold.
        """
        # The index names its parts on the live site, whatever host it was read from.
        address = self.home + (path or self.profile.sitemaps[name].path)
        return self.list_page(
            address, self.parse_sitemap, "other", name=name, later=later or [], before=before
        )

    def parse_sitemap(
        self, response: Response, name: str, later: list[str], before: int
    ) -> Iterator[Result]:
        """Yield the parts of an index, or the titles of a part.

        What names none of those that are known could not be read. All parts are requested at once;
        with a limit one by one, as an index does not say how many movies a part holds. An index in
        the place of a part, which the protocol does not know, could lead back to itself.
        """
        try:
            sitemap = read_sitemap(response.body, response.url)
        except ExtractionError as error:
            self.report_failure(response.url, str(error))
            return
        if sitemap.is_cut:
            reason = f"it names more than {MOST_LOCATIONS:,} addresses, of which the first are read"
            self.report_failure(response.url, reason)
        asked = response.meta.get("redirect_urls", [response.url])[0]
        if not sitemap.is_index:
            titles = self._titles(sitemap.urls, name, response.url)
            if not self.plan.is_due:
                yield from self.title_requests(titles)
                yield from self._next_part(name, later, before + len(titles))
        elif asked != self.sitemap_request(name).url:
            self.report_failure(response.url, "it is an index of sitemaps, as is what named it")
            yield from self._next_part(name, later, before)
        elif self.plan.limit is None or self.plan.is_due:
            for part in self._parts(sitemap.urls, name, response.url):
                yield self.sitemap_request(name, part)
        else:
            yield from self._next_part(name, self._parts(sitemap.urls, name, response.url), before)

    def _next_part(self, name: str, parts: list[str], listed: int) -> Iterator[Request]:
        if parts and not self.has_enough_titles(listed):
            yield self.sitemap_request(name, parts[0], parts[1:], listed)

    def _parts(self, urls: list[str], name: str, index: str) -> list[str]:
        """Return the paths of those parts of an index that list what is requested."""
        own = self.profile.sitemaps[name].path
        begin = tuple(one.parts for one in self._read_for(name))
        paths = [_path_of(url) for url in urls]
        if None in paths:
            self.report_failure(index, f"{paths.count(None)} of its {len(urls)} parts are no URLs")
        names = {
            path: path.partition("?")[0].rpartition("/")[2]
            for path in paths
            if path and path != own
        }
        parts = [path for path, file_name in names.items() if file_name.startswith(begin)]
        if not parts:
            self.report_failure(
                index,
                f"none of the {len(urls)} parts that it names "
                f"begins with {' or '.join(begin) or 'a name'}",
            )
        return parts

    def _titles(self, urls: list[str], name: str, part: str) -> list[str]:
        """Return the ids of a part that are requested, and send the signal for them."""
        kinds = {one.kind for one in self._read_for(name)}
        ids = [site_id for url in urls if (site_id := id_in_url(self.site, url))]
        if not ids:
            self.report_failure(part, f"none of its {len(urls)} addresses is that of a title")
        titles = [site_id for site_id in ids if kind_of_id(self.site, site_id) in kinds]
        # A season is found on its series' page; a sitemap says only that there is one.
        self.report_listed(SITEMAP, ids=titles if "season" not in kinds else [])
        return titles

    def _read_for(self, name: str) -> list[Sitemap]:
        """Return the lists that an index is read for.

        With `lane=due` these are films and series at once, as the queue has each address once.
        """
        own = self.profile.sitemaps[name]
        if not self.plan.is_due:
            return [own]
        return [
            one
            for one in self.profile.sitemaps.values()
            if one.path == own.path and one.kind != "season"
        ]


def _path_of(url: str) -> str | None:
    """Return path and query of a URL; None of what is none, such as "https://[…"."""
    match = re.fullmatch(r"https?://[\w.:-]+(/[^#\s]*)(?:#\S*)?", url)
    return match and match[1]
