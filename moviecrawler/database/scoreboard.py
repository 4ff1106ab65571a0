"""Decides which records of the embedded database are one title, and one row of the scoreboard."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from moviecrawler.basics.progress import Progress
from moviecrawler.database.aliases import embedded_aliases
from moviecrawler.database.records import COMPARED, read_stored
from moviecrawler.database.sql import read_sql
from moviecrawler.database.sqlite import SqliteTables, last_record_id, transaction
from moviecrawler.matching.forms import block_keys
from moviecrawler.matching.titles import match_titles, newer_records, title_of
from moviecrawler.sites import ID_SITE
from moviecrawler.sites.ids import by_authority

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Mapping

    from moviecrawler.database.records import Stored


_RECORDS_AT_ONCE = 5_000
"""Records of IMDb that are in memory while it is decided which are compared."""
_PLACE = read_sql("place_embedded.sql")


def match_embedded(
    connection: sqlite3.Connection, report: Callable[[str], object] = lambda _: None
) -> None:
    """Decide which records of the embedded database are one title. Raises sqlite3.Error.

    Only records that may share their title with another one are in memory. `report` is called with
    a line of progress every ten seconds.
    """
    tables = SqliteTables(connection)
    with transaction(connection, "DEFERRED"):
        ((written,),) = connection.execute("SELECT written FROM state")
        aliases = embedded_aliases(connection)
        compared = _compared(connection, aliases.get(ID_SITE, {}), report)
    movies = [stored.movie for stored in compared]
    ids = {id(stored.movie): stored.record_id for stored in compared}
    older = newer_records(movies, aliases)
    # The record_id, the title_id and the newer_id of each record.
    placed: list[tuple[int, int | None, int | None]] = [
        (compared[number].record_id, None, compared[newer].record_id)
        for number, newer in older.items()
    ]
    matched_by = []
    newest = (movie for number, movie in enumerate(movies) if number not in older)
    crowded: set[str] = set()
    for title in match_titles(newest, crowded):
        records = [ids[id(title.movies[site])] for site in by_authority(title.movies)]
        placed += [(record_id, records[0], None) for record_id in records]
        reasons = [", ".join(match.reasons) for match in title.matches]
        matched_by.append((records[0], msgspec.json.encode(reasons).decode()))
    if crowded:
        shown_keys = ", ".join(map(repr, sorted(crowded)[:5]))
        report(f"{len(crowded)} keys are no evidence, as too many records share them: {shown_keys}")
    with (
        Progress(report, "writing the titles of all records"),
        transaction(connection, "IMMEDIATE"),
    ):
        is_newest = connection.execute(
            "UPDATE state SET matched = ? WHERE matched < ?", (written, written)
        ).rowcount
        if not is_newest:  # another process has matched what was written since
            return
        connection.execute(
            "CREATE TEMPORARY TABLE placed (record_id INTEGER PRIMARY KEY, title_id, newer_id)"
        )
        connection.execute(
            "CREATE TEMPORARY TABLE matched (title_id INTEGER PRIMARY KEY, matched_by)"
        )
        connection.executemany("INSERT INTO placed VALUES (?, ?, ?)", placed)
        connection.executemany("INSERT INTO matched VALUES (?, ?)", matched_by)
        tables.run(_PLACE)


def has_other_sites(connection: sqlite3.Connection) -> bool:
    """Return whether there are records with which those of IMDb are compared."""
    query = "SELECT EXISTS (SELECT 1 FROM records WHERE site < ? OR site > ?)"
    ((has_some,),) = connection.execute(query, (ID_SITE, ID_SITE))
    return bool(has_some)


def _compared(
    connection: sqlite3.Connection, aliases: Mapping[str, str], report: Callable[[str], object]
) -> list[Stored]:
    """Return the records that may be one title with another, in their order.

    They are those of all other sites, those of IMDb that share a key with one of them, and those
    that `aliases` of IMDb name.
    """
    tables = SqliteTables(connection)
    condition = "kind NOT IN ('season', 'episode') AND site"
    found = read_stored(tables, f"{condition} <> {{mark}}", (), ID_SITE, view=COMPARED)
    of_aliases = {*aliases, *aliases.values()}
    if not found and not of_aliases:
        return []
    keys = {key for stored in found for key in block_keys(title_of(stored.movie))}
    last = last_record_id(connection)
    part = f"{condition} = {{mark}} AND record_id BETWEEN {{mark}} AND {{mark}}"
    with Progress(report, "comparing IMDb's records with those of other sites", last) as progress:
        for first in range(1, last + 1, _RECORDS_AT_ONCE):
            through = first + _RECORDS_AT_ONCE - 1
            for stored in read_stored(tables, part, (), ID_SITE, first, through, view=COMPARED):
                title = title_of(stored.movie)
                if stored.movie.site_id in of_aliases or not keys.isdisjoint(block_keys(title)):
                    found.append(stored)
            progress.done = min(through, last)
    return sorted(found, key=lambda stored: stored.record_id)
