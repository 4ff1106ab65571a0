"""IMDb: its charts and title pages, or its datasets where the pages may not be fetched."""

from __future__ import annotations

from moviecrawler.spiders.datasets import DatasetSpider


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
