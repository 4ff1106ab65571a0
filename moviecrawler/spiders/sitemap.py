"""Titles from a site's sitemaps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import urlsplit

from scrapy import Request

from moviecrawler.errors import ExtractionError
from moviecrawler.extensions.catalogue import SITEMAP
from moviecrawler.extract.sitemaps import read_sitemap
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
        path = urlsplit(url).path if url else self.sitemap_path
        return Request(
            # The index names its parts on the live site, whatever host it was read from.
            self.home.rstrip("/") + path,
            callback=self.parse_sitemap,
            errback=self.list_failed,
            cb_kwargs={"later": later or [], "before": before},
            meta={"expects": "other", "site": self.site},
            priority=LIST_PRIORITY,
            dont_filter=self.plan.lane is not None,
        )

    def parse_sitemap(self, response: Response, later: list[str], before: int) -> Iterator[Any]:
        """Yield the parts of an index or the movies of a part.

        All parts at once; with a limit one by one, as an index does not say how many movies a part holds.
        """
        try:
            sitemap = read_sitemap(response.body, response.url)
        except ExtractionError as error:
            yield from self.list_missed(response.url, "failed", str(error))
            return
        urls = [location.url for location in sitemap.locations]
        if sitemap.is_index:
            parts = [url for url in urls if urlsplit(url).path.rpartition("/")[2].startswith(self.sitemap_parts)]
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

    def _next_part(self, parts: list[str], listed: int) -> Iterator[Request]:
        if parts and not self.listed_enough(listed):
            yield self.sitemap_request(parts[0], parts[1:], listed)
