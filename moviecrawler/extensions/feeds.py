"""Scrapy's feed exports, without the pages of lists."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from scrapy.extensions import feedexport

from moviecrawler.items import ListPage

if TYPE_CHECKING:
    from scrapy import Spider


class FeedExporter(feedexport.FeedExporter):
    """Export titles: a file of CSV has the columns of its first item."""

    def item_scraped(self, item: Any, spider: Spider) -> None:
        """Export an item that is not a page of a list."""
        if not isinstance(item, ListPage):
            super().item_scraped(item, spider)
