"""The IMDb titles that are at hand without a catalogue: stored ones, and those of the datasets."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from moviecrawler.catalogue.imdb_import import ImdbDatasets, Selection
from moviecrawler.database.reading import reading_sqlite
from moviecrawler.database.records import COMPARED, read_stored
from moviecrawler.matching.facts import TitleFacts
from moviecrawler.matching.forms import prepare
from moviecrawler.matching.titles import title_of
from moviecrawler.sites import ID_SITE

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from moviecrawler.items import TitleKind
    from moviecrawler.matching.forms import Title

_RECORDS_AT_ONCE = 5_000
_WITH_IMDB_ID = """
SELECT record_id FROM (
    SELECT record_id, row_number() OVER (
        PARTITION BY imdb_id ORDER BY site <> {mark}, record_id
    ) AS place
    FROM records
    WHERE imdb_id IS NOT NULL AND kind NOT IN ('season', 'episode')
) named
WHERE place = 1
"""
_KINDS: frozenset[TitleKind] = frozenset({"movie", "series", "short", "video"})
"""What lists of films and series name."""


def stored_titles(folder: Path) -> Iterator[Title]:
    """Yield the titles of the embedded database that have an IMDb id, each once.

    The record of IMDb itself counts first. Raises the same as `reading_sqlite`.
    """
    with reading_sqlite(folder) as tables:
        ids = [record_id for (record_id,) in tables.select(_WITH_IMDB_ID, (), ID_SITE)]
        for first in range(0, len(ids), _RECORDS_AT_ONCE):
            some = ids[first : first + _RECORDS_AT_ONCE]
            for stored in read_stored(tables, "record_id {ids}", some, view=COMPARED):
                title = title_of(stored.movie)
                title.site = ID_SITE
                yield title


def dataset_titles(url: str, data_dir: Path) -> Iterator[Title] | None:
    """Return the titles of IMDb's datasets, or None when they were not fetched to `data_dir`."""
    datasets = ImdbDatasets(url, data_dir, Selection(kinds=_KINDS))
    if not all(path.is_file() for path in datasets.paths):
        return None
    return (
        prepare(ID_SITE, msgspec.convert(row, TitleFacts, from_attributes=True))
        for row in datasets.rows()
    )
