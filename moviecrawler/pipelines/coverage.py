"""Showing every movie to what watches the places of fields, before any store sees it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from scrapy.exceptions import NotConfigured

from moviecrawler.extensions.coverage import CoverageWatch
from moviecrawler.items import Movie

if TYPE_CHECKING:
    from typing import Self

    from scrapy.crawler import Crawler


class CoveragePipeline:
    """Counts every movie, and changes none."""

    def __init__(self, watch: CoverageWatch) -> None:
        self._watch = watch

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Take the crawler's CoverageWatch."""
        watch = crawler.get_extension(CoverageWatch)
        if watch is None:
            raise NotConfigured
        return cls(watch)

    def process_item(self, item: Any) -> Any:
        """Return the item."""
        if isinstance(item, Movie):
            self._watch.take(item)
        return item
