"""IMDb: its charts and title pages, or its datasets where the pages may not be fetched."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from moviecrawler.basics.clock import utc_now
from moviecrawler.spiders.datasets import DatasetSpider

if TYPE_CHECKING:
    from collections.abc import Iterator

    from scrapy import Request
    from scrapy.http import Response


class ImdbSpider(DatasetSpider):
    """Fetches IMDb's charts and title pages, or reads its datasets.

    `list` is top, popular, boxoffice, toptv, populartv, or `all` (of the datasets); `via` is auto,
    pages or datasets. `auto` is decided once, before the first page: title pages where robots.txt
    allows them, else the datasets for everything. These have no charts, which are then computed by
    IMDb's published formula and marked as computed.
    """

    name = "imdb"
    site = "imdb"
    only_on_pages = ("boxoffice",)

    def list_request(self, name: str) -> Request:
        """Return the request for a chart."""
        address = self.home + self.profile.lists[name].path
        return self.list_page(address, self.parse_list, name=name, pass_at=utc_now().isoformat())

    def parse_list(self, response: Response, name: str, pass_at: str) -> Iterator[Any]:
        """Yield the chart and the requests of its titles."""
        if (listing := self.read_list(response, "chart")) is not None:
            yield from self.items_of_list(response, listing, name, pass_at)
