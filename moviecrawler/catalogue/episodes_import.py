"""IMDb's episodes, from its datasets into the table `imdb_episodes`.

All of it is one transaction: the table is as the files before or as the new ones, whenever the import is killed. The database joins
the three files, as nothing can be taken from the order of their rows.
"""

from __future__ import annotations

import io
from itertools import groupby, islice
from operator import itemgetter
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple

from moviecrawler.catalogue.imdb_import import BASICS, EPISODES, RATINGS, ImdbFiles
from moviecrawler.catalogue.loading import copy_line
from moviecrawler.catalogue.sql import read_sql
from moviecrawler.datasets.titles import checked_title, integer, score_of
from moviecrawler.extract.values import check_year
from moviecrawler.texts import on_one_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from datetime import datetime

    from moviecrawler.database.connection import Database

_TABLES = {
    "places": "imdb_id, series_imdb_id, season, episode",
    "names": "imdb_id, title, year",
    "ratings": "imdb_id, rating, votes",
}
"""The temporary tables, and the columns of what is copied into them."""
_BEGIN, _END = read_sql("episodes_begin.sql"), read_sql("episodes_end.sql")
_PART = 50_000
"""Rows that are copied at once: some 5 MB."""

_MAX_NUMBER = 10**9
"""The largest season, episode or count of votes."""
_MAX_TITLE_CHARS = 500

TableName = Literal["places", "names", "ratings"]


class ImdbEpisodes(ImdbFiles):
    """What title.episode, title.basics and title.ratings have of each episode."""

    name = "episodes"
    files: ClassVar[tuple[str, ...]] = (EPISODES, BASICS, RATINGS)

    def read(self) -> Iterator[tuple[TableName, tuple[object, ...]]]:
        """Yield the rows for each temporary table, one table after the other; see `FileSource`."""
        self.damaged_tables: set[TableName] = set()
        with self.tables() as tables:
            tables.load("episodes", "title.episode", "true")
            tables.load("names", "title.basics", "tconst IN (SELECT tconst FROM episodes)")
            tables.load("ratings", "title.ratings", "tconst IN (SELECT tconst FROM episodes)")
            for name, dataset, query, read in _READ:
                for row in tables.select(query):
                    try:
                        yield name, read(row)
                    except ValueError as error:
                        tables.damage.add(dataset, str(row[0]), error)
                if dataset in tables.damage.ids:
                    self.damaged_tables.add(name)
                self.count(tables.damage)


def _place(row: tuple[Any, ...]) -> tuple[object, ...]:
    """Return ids of episode and series, season (None: of no season) and number. Raises ValueError, as the others do."""
    season, number = integer(row[2]), integer(row[3])
    if max(season or 0, number or 0) > _MAX_NUMBER:
        raise ValueError(f"season {season}, episode {number}")
    return checked_title(row[0]), checked_title(row[1]), season, number


def _name(row: tuple[Any, ...]) -> tuple[object, ...]:
    """Return an episode's id, title and year."""
    title, year = on_one_line(row[1] or "") or None, integer(row[2])
    if title is not None and len(title) > _MAX_TITLE_CHARS:
        raise ValueError(f"a title of {len(title)} characters")
    return checked_title(row[0]), title, None if year is None else check_year(year)


def _rating(row: tuple[Any, ...]) -> tuple[object, ...]:
    """Return an episode's id, rating and votes."""
    score = score_of(row[1], row[2])
    if (score.count or 0) > _MAX_NUMBER:
        raise ValueError(f"{score.count} votes")
    return checked_title(row[0]), score.value, score.count


_READ: tuple[tuple[TableName, str, str, Callable[[tuple[Any, ...]], tuple[object, ...]]], ...] = (
    ("places", "title.episode", "SELECT tconst, parentTconst, seasonNumber, episodeNumber FROM episodes", _place),
    ("names", "title.basics", "SELECT tconst, primaryTitle, startYear FROM names", _name),
    ("ratings", "title.ratings", "SELECT tconst, averageRating, numVotes FROM ratings", _rating),
)


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
    on_progress: Callable[[int], object] = lambda _: None,
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
            on_progress(len(part))
        whole = {f"{table}_whole": table not in source.damaged_tables for table in _TABLES}
        cursor.execute(_END, {**whole, "source": name, "version": version, "now": now})
        return ImportedEpisodes(*cursor.fetchone())
