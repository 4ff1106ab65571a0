"""Imports IMDb's episodes from its datasets into the table `imdb_episodes`.

An import is one transaction, so that a killed one changes nothing.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, ClassVar

from msgspec import json

from moviecrawler.basics.texts import on_one_line
from moviecrawler.basics.values import check_year
from moviecrawler.catalogue.imdb_import import BASICS, EPISODES, RATINGS, ImdbFiles
from moviecrawler.catalogue.loading import Done, Imported
from moviecrawler.catalogue.sql import read_sql
from moviecrawler.database.postgres import copy_rows
from moviecrawler.datasets.titles import Number, Text, TitleId, Value, Votes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from moviecrawler.database.connection import Database

_LOAD = read_sql("episodes.sql")
_BEGIN = (
    "SET LOCAL statement_timeout = 0;"  # for millions of rows
    " SET LOCAL idle_in_transaction_session_timeout = '10min';"  # while rows are skipped
    " SET LOCAL work_mem = '64MB'; CREATE TEMPORARY TABLE found (LIKE imdb_episodes) ON COMMIT DROP"
)
_PART = 50_000
"""Rows that are copied at once, about 5 MB."""
_ROWS = """
SELECT e.tconst,
    json_array(e.tconst, parentTconst, seasonNumber, episodeNumber),
    json_array(primaryTitle, startYear),
    json_array(averageRating, numVotes)
FROM episodes e LEFT JOIN names USING (tconst) LEFT JOIN ratings USING (tconst)
"""
_EPISODES_ONLY = "tconst IN (SELECT tconst FROM episodes)"
_MAX_TITLE_CHARS = 500

Row = tuple[object, ...]


class ImdbEpisodes(ImdbFiles):
    """The episodes of title.episode.

    Their names are from title.basics, and their scores from title.ratings.
    """

    name = "episodes"
    files: ClassVar[tuple[str, ...]] = (EPISODES, BASICS, RATINGS)

    def read(self) -> Iterator[Row]:
        """Yield an episode's columns in `imdb_episodes`; see `FileSource`."""
        with self.tables() as tables:
            tables.load("episodes", "title.episode", "true", once=True)
            tables.load("names", "title.basics", _EPISODES_ONLY, once=True)
            tables.load("ratings", "title.ratings", _EPISODES_ONLY, once=True)
            for site_id, *rows in tables.select(_ROWS):
                found: list[object] = []
                for row, (dataset, read) in zip(rows, _READERS.items(), strict=True):
                    try:
                        found += read(row)
                    except ValueError as error:
                        tables.note(dataset, site_id, str(error))
                        found += [None, None]
                if found[0] is not None:
                    yield tuple(found)
            self.count(tables)

    def load(
        self,
        database: Database,
        name: str,
        version: str,
        done: Done,
        on_progress: Callable[[int], object],
    ) -> Imported:
        """Make the table equal to the files.

        Episodes that the files lack are removed only when no row was damaged.
        """
        del name, version, done
        with database.transaction() as cursor:
            cursor.execute(_BEGIN)
            rows = self.rows()
            while part := list(islice(rows, _PART)):
                copy_rows(cursor, "found", part)
                on_progress(len(part))
            cursor.execute(_LOAD, {"whole": not self.damaged})
            return Imported(**cursor.fetchone()._asdict())


_numbers = json.Decoder(tuple[TitleId, TitleId, Number, Number], strict=False)
_title = json.Decoder(tuple[Text, Number], strict=False)
_score = json.Decoder(tuple[Value, Votes], strict=False)


def _name(row: str) -> Row:
    """Return an episode's title and year. Raises ValueError."""
    text, year = _title.decode(row)
    title = on_one_line(text or "") or None
    if title is not None and len(title) > _MAX_TITLE_CHARS:
        raise ValueError(f"a title of {len(title)} characters")
    return title, None if year is None else check_year(year)


def _rating(row: str) -> Row:
    """Return an episode's rating and votes. Raises ValueError."""
    return (None, None) if row == "[null,null]" else _score.decode(row)


_READERS: dict[str, Callable[[str], Row]] = {
    "title.episode": _numbers.decode,
    "title.basics": _name,
    "title.ratings": _rating,
}
