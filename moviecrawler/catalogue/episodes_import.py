"""IMDb's episodes, from its datasets into the table `imdb_episodes`.

All of it is one transaction: the table is as the files before or as the new ones, whenever the import is killed. The database joins
the three files, as nothing can be taken from the order of their rows.
"""

from __future__ import annotations

import io
from itertools import groupby, islice
from operator import itemgetter
from typing import TYPE_CHECKING, BinaryIO, ClassVar, Literal, NamedTuple

from moviecrawler.catalogue.imdb_import import BASICS, EPISODES, RATINGS, ImdbFiles
from moviecrawler.catalogue.loading import copy_line
from moviecrawler.catalogue.sql import read_sql
from moviecrawler.datasets.names import IdSet
from moviecrawler.extract.dataset_episodes import name_of_row, place_of_row, rating_of_row
from moviecrawler.extract.datasets import Table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from datetime import datetime

    from moviecrawler.database.connection import Database
    from moviecrawler.errors import ExtractionError

_TABLES = {
    "places": "imdb_id, series_imdb_id, season, episode",
    "names": "imdb_id, title, year",
    "ratings": "imdb_id, rating, votes",
}
"""The temporary tables, and the columns of what is copied into them."""
_BEGIN, _END = read_sql("episodes_begin.sql"), read_sql("episodes_end.sql")
_PART = 50_000
"""Rows that are copied at once: some 5 MB."""

TableName = Literal["places", "names", "ratings"]


class ImdbEpisodes(ImdbFiles):
    """What title.episode, title.basics and title.ratings have of each episode."""

    name = "episodes"
    files: ClassVar[tuple[str, ...]] = (EPISODES, BASICS, RATINGS)

    def read(self) -> Iterator[tuple[TableName, tuple[object, ...]]]:
        """Yield the rows for each temporary table, one table after the other; see `FileSource`."""
        places, names, ratings = self.paths
        self.damaged_tables: set[TableName] = set()
        wanted = IdSet()
        with self.reading(places) as file:
            for place in self._table("places", "title.episode", file).each(place_of_row):
                wanted.add(place[0].encode())
                yield "places", place
        with self.reading(names) as file:
            for name in self._table("names", "title.basics", file).each(name_of_row, wanted):
                yield "names", name
        with self.reading(ratings) as file:
            for rating in self._table("ratings", "title.ratings", file).each(rating_of_row, wanted):
                yield "ratings", rating

    def _table(self, name: TableName, dataset: str, file: BinaryIO) -> Table:
        def count(error: ExtractionError) -> None:
            self.damaged_tables.add(name)
            self.count_damage(error)

        return Table(dataset, self.blocks(file), count)


class ImportedEpisodes(NamedTuple):
    """What an import of episodes has done."""

    added: int
    changed: int
    removed: int


def load_episodes(
    database: Database,
    source: ImdbEpisodes,
    name: str,
    version: str,
    now: datetime,
    on_progress: Callable[[], object] = lambda: None,
) -> ImportedEpisodes:
    """Make the table what the files say, and note the import under `name`; `on_progress` is called now and then.

    What a file doesn't have leaves the table only when no row of that file is damaged. Raises ExtractionError, and nothing is
    changed, when a file isn't whole.
    """
    with database.transaction() as cursor:
        cursor.execute(_BEGIN)
        rows = source.rows()
        while part := list(islice(rows, _PART)):
            for table, found in groupby(part, itemgetter(0)):
                lines = io.StringIO("".join(copy_line(row) for _, row in found))
                cursor.copy_expert(f"COPY {table} ({_TABLES[table]}) FROM STDIN", lines)
            on_progress()
        whole = {f"{table}_whole": table not in source.damaged_tables for table in _TABLES}
        cursor.execute(_END, {**whole, "source": name, "version": version, "now": now})
        return ImportedEpisodes(*cursor.fetchone())
