"""IMDb: its charts and title pages, or its datasets where the pages may not be fetched."""

from __future__ import annotations

from moviecrawler.spiders.full_credits import FullCreditsSpider


class ImdbSpider(FullCreditsSpider):
    """Fetches IMDb's charts and title pages, or reads its datasets.

    `list` is top, popular, boxoffice, toptv, populartv, or `all` (of the datasets); `via` is auto,
    pages or datasets. `auto` is decided once, before the first page: title pages where robots.txt
    allows them, else the datasets for everything. These have no charts, which are then computed by
    IMDb's published formula and marked as computed. With `credits=full` each title's page of full
    credits is fetched, too: both pages are one item. Only pages have these credits.
    """

    name = "imdb"
    site = "imdb"
    only_on_pages = ("boxoffice",)
    credits_path = "fullcredits/"
