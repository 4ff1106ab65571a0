"""IMDb: its charts and title pages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from moviecrawler.errors import ExtractionError
from moviecrawler.extract import imdb
from moviecrawler.spiders.arguments import parse_choice
from moviecrawler.spiders.datasets import EVERYTHING, DatasetSpider
from moviecrawler.urls import id_in_url

if TYPE_CHECKING:
    from collections.abc import Iterator

    from scrapy import Request
    from scrapy.http import Response

    from moviecrawler.items import Page

CHARTS = {
    "top": "/chart/top/",
    "popular": "/chart/moviemeter/",
    "boxoffice": "/chart/boxoffice/",
    "toptv": "/chart/toptv/",
    "populartv": "/chart/tvmeter/",
}


class ImdbSpider(DatasetSpider):
    """`list` is top, popular, boxoffice, toptv, populartv, or `all` (of the datasets); `via` is auto, pages or datasets."""

    name = "imdb"
    site = "imdb"
    default_list = "top"
    only_on_pages = frozenset({"boxoffice"})

    @classmethod
    def check_list(cls, name: str) -> None:
        """Raise ConfigurationError when it is no list of IMDb's."""
        parse_choice("list", name, [*CHARTS, EVERYTHING])

    def list_request(self, name: str) -> Request:
        """Return the request for a chart."""
        return self.list_page(self.home + CHARTS[name], self.parse_list, name=name)

    def parse_list(self, response: Response, name: str) -> Iterator[Any]:
        """Yield the chart's titles."""
        if (listing := self.read_list(response, imdb.chart)) is not None:
            yield from self.requests_of(listing, name)

    def read_title(self, response: Response) -> Page:
        """Return what a title's page says. Raises ExtractionError, also for the page of another title than its address names.

        An id that was given up for another one is redirected there; what comes without that is somebody else's page.
        """
        page = imdb.title(response.body, response.url)
        asked, given = id_in_url("imdb", response.url), page.movie and page.movie.site_id
        if asked and given and given != asked:
            raise ExtractionError("site_id", response.url, f"the page is that of {given}")
        return page
