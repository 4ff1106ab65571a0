"""Titles from a site's sitemaps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import urlsplit

from scrapy import Request

from moviecrawler.errors import ExtractionError
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

    def sitemap_request(self, url: str | None = None) -> Request:
        """Return the request for the index, or for the part at `url`."""
        path = urlsplit(url).path if url else self.sitemap_path
        return Request(
            # The index names its parts on the live site, whatever host it was read from.
            self.home.rstrip("/") + path,
            callback=self.parse_sitemap,
            errback=self.list_failed,
            meta={"expects": "other", "site": self.site},
            priority=LIST_PRIORITY,
        )

    def parse_sitemap(self, response: Response) -> Iterator[Any]:
        """Yield the parts of an index, or the movies of a part."""
        try:
            sitemap = read_sitemap(response.body, response.url)
        except ExtractionError as error:
            yield from self.list_missed(response.url, "failed", str(error))
            return
        for location in sitemap.locations:
            if sitemap.is_index:
                file = urlsplit(location.url).path.rpartition("/")[2]
                if file.startswith(self.sitemap_parts) and not self.limit_reached():
                    yield self.sitemap_request(location.url)
            else:
                site_id = id_in_url(self.site, location.url)
                if site_id is not None and site_id.startswith(self.movie_prefix):
                    yield from self.title_requests([(site_id, None)])
