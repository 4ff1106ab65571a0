"""Scrapy's feed exports: titles alone, and CSV with the columns of `movies.csv`."""

from __future__ import annotations

from contextlib import closing
from itertools import chain
from typing import TYPE_CHECKING, Any

from itemadapter import ItemAdapter
from scrapy.exporters import CsvItemExporter
from scrapy.extensions import feedexport

from moviecrawler.database.records import BatchWriter
from moviecrawler.database.sqlite import tables_in_memory
from moviecrawler.items import Batch, ListPage, Miss, Movie

if TYPE_CHECKING:
    from io import BytesIO

    from scrapy import Spider
    from scrapy.crawler import Crawler

_ROW = "SELECT * FROM csv_movies"


class _TitleFilter(feedexport.ItemFilter):
    """Accepts titles, and items of other programs."""

    def accepts(self, item: object) -> bool:
        """Return whether an item is none that only our stores need."""
        return not isinstance(item, ListPage | Miss)


class FeedExporter(feedexport.FeedExporter):
    """Export what FEEDS' `item_classes` name; where they name nothing, titles and items of others.

    A CSV has the columns of its first item.
    """

    def __init__(self, crawler: Crawler) -> None:
        """Choose the items of each feed, and the columns of a CSV whose items are named."""
        super().__init__(crawler)
        if self.exporters["csv"] is CsvItemExporter:
            self.exporters["csv"] = FlatCsvExporter
        for uri, options in self.feeds.items():
            if "item_filter" in options:  # of the user
                continue
            if not options.get("item_classes"):
                self.filters[uri] = _TitleFilter(options)
                continue
            chosen = self.filters[uri]
            if options["format"] == "csv" and options["fields"] is None:
                columns = chain.from_iterable(map(_columns_of, chosen.item_classes))
                options["fields"] = list(dict.fromkeys(columns)) or None

    def item_scraped(self, item: object, spider: Spider) -> None:
        """Export an item, or each of a batch."""
        for one in item.movies if isinstance(item, Batch) else [item]:
            super().item_scraped(one, spider)


class FlatCsvExporter(CsvItemExporter):
    """Writes a title as its row of `movies.csv`, and any other item as Scrapy does."""

    def __init__(self, file: BytesIO, **options: Any) -> None:
        """Make the tables by which titles become rows."""
        super().__init__(file, **options)
        self._tables = tables_in_memory()

    def export_item(self, item: object) -> None:
        """Write a row."""
        super().export_item(self._flat(item) if isinstance(item, Movie) else item)

    def finish_exporting(self) -> None:
        """Close the tables, too."""
        super().finish_exporting()
        self._tables.connection.close()

    def _flat(self, movie: Movie) -> dict[str, object]:
        """Return a title's row by column, as the embedded database would have it."""
        connection = self._tables.connection
        connection.execute("BEGIN")
        try:
            BatchWriter(self._tables, 0).write([movie])
            rows = connection.execute(_ROW)
            names = [name for name, *_ in rows.description]
            return dict(zip(names, rows.fetchone(), strict=True))
        finally:
            connection.execute("ROLLBACK")


def _columns_of(item_class: type) -> list[str]:
    """Return the columns of items; none of items whose fields are not known."""
    if item_class is not Movie:
        return list(ItemAdapter.get_field_names_from_class(item_class) or ())
    with closing(tables_in_memory().connection) as connection:
        return [name for name, *_ in connection.execute(_ROW).description]
