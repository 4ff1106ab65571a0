"""Titles from a site's sitemaps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import urlsplit

from scrapy import Request

from moviecrawler.catalogue.current_lists import SITEMAP
from moviecrawler.errors import ExtractionError
from moviecrawler.extract.sitemaps import MOST_LOCATIONS, read_sitemap
from moviecrawler.spiders.base import LIST_PRIORITY, MovieSpider
from moviecrawler.urls import id_in_url

if TYPE_CHECKING:
    from collections.abc import Iterator

    from scrapy.http import Response


class SitemapSpider(MovieSpider):
    """A spider whose site lists its movies in a sitemap index."""

    sitemap_path: ClassVar[str]
    """Path of the index."""
    sitemap_parts: ClassVar[str] = ""
    """What a part's file name begins with when it lists movies."""
    movie_prefix: ClassVar[str]
    """What a movie's id begins with."""

    def sitemap_request(self, url: str | None = None, later: list[str] | None = None, before: int = 0) -> Request:
        """Return the request for the index, or for the part at `url`.

        `later` are the parts to ask for after it when it is not enough, `before` is how many movies the earlier ones hold.
        """
        path = _path_of(url) if url else self.sitemap_path
        return Request(
            # The index names its parts on the live site, whatever host it was read from.
            self.home.rstrip("/") + (path or "/"),
            callback=self.parse_sitemap,
            errback=self.list_failed,
            cb_kwargs={"later": later or [], "before": before},
            meta={"expects": "other", "site": self.site},
            priority=LIST_PRIORITY,
            dont_filter=self.plan.lane is not None,
        )

    def parse_sitemap(self, response: Response, later: list[str], before: int) -> Iterator[Any]:
        """Yield the parts of an index or the movies of a part.

        All parts at once; with a limit one by one, as an index does not say how many movies a part holds. An index in the
        place of a part, which the protocol does not know, could lead back to itself.
        """
        try:
            sitemap = read_sitemap(response.body, response.url)
        except ExtractionError as error:
            yield from self.list_missed(response.url, "failed", str(error))
            return
        if sitemap.is_cut:
            reason = f"it names more than {MOST_LOCATIONS:,} addresses, of which the first are read"
            yield from self.list_missed(response.url, "failed", reason)
        urls = [location.url for location in sitemap.locations]
        asked = response.meta.get("redirect_urls", [response.url])[0]
        if sitemap.is_index and asked != self.sitemap_request().url:
            yield from self.list_missed(response.url, "failed", "it is an index of sitemaps, as is what named it")
            yield from self._next_part(later, before)
            return
        if sitemap.is_index:
            paths = {url: _path_of(url) for url in urls}
            broken = [url for url, path in paths.items() if path is None]
            if broken:
                reason = f"{len(broken)} of its parts are no URLs, the first {broken[0]!r}"
                yield from self.list_missed(response.url, "failed", reason)
            others = {url: path for url, path in paths.items() if path and path != self.sitemap_path}
            parts = [url for url, path in others.items() if self._is_of_movies(path)]
            if self.plan.limit is None or self.plan.lane is not None:
                self.tell_listed(SITEMAP, further=len(parts))
                yield from map(self.sitemap_request, parts)
            else:
                yield from self._next_part([*parts, *later], before)
            return
        movies = [
            site_id for url in urls if (site_id := id_in_url(self.site, url)) and site_id.startswith(self.movie_prefix)
        ]
        self.tell_listed(SITEMAP, ids=movies)
        if self.plan.lane is not None:
            return
        yield from self.title_requests((site_id, None) for site_id in movies)
        yield from self._next_part(later, before + len(movies))

    def _is_of_movies(self, path: str) -> bool:
        return path.partition("?")[0].rpartition("/")[2].startswith(self.sitemap_parts)

    def _next_part(self, parts: list[str], listed: int) -> Iterator[Request]:
        if parts and not self.listed_enough(listed):
            yield self.sitemap_request(parts[0], parts[1:], listed)


def _path_of(url: str) -> str | None:
    """Return path and query of a URL; None of what is none, such as "https://[…"."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return None
    return parts.path + (f"?{parts.query}" if parts.query else "")
