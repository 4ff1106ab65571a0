"""What earlier passes have read, so that titles whose rows are the same are not read again.

A title is left out only while the store has it as the pass left it that last read its rows: to
merge it once more would change nothing but its time.
"""

from __future__ import annotations

import csv
import hashlib
from importlib.metadata import version
from itertools import islice
from typing import TYPE_CHECKING

import duckdb

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from datetime import datetime
    from pathlib import Path

    from moviecrawler.datasets.tables import Tables

    StoredTimes = Callable[[], Iterable[tuple[str, str]]]
    """Returns the id of each stored title, and its `scraped_at` in UTC, as isoformat has it."""

_IDS_AT_ONCE = 5_000
_NONE = "SELECT '' AS id, 0::UBIGINT AS digest, '' AS read_at, '' AS request WHERE false"
_DIGESTS = """
    CREATE TABLE digests AS
    SELECT id, CAST(sum(digest) % 9223372036854775807 AS UBIGINT) AS digest
    FROM (
        SELECT DISTINCT tconst AS id, hash($version) AS digest FROM wanted
        UNION ALL
        SELECT tconst, hash(1, basics) FROM basics
        UNION ALL
        SELECT tconst, hash(2, ratings) FROM ratings
        UNION ALL
        SELECT tconst, hash(3, crew) FROM crew
        UNION ALL
        SELECT tconst, hash(4, principals) FROM principals
        UNION ALL
        SELECT tconst, hash(5, credits) FROM credits
        UNION ALL
        SELECT titleId, hash(6, akas) FROM akas
        UNION ALL
        SELECT tconst, hash(7, episode, primaryTitle)
        FROM episode
        LEFT JOIN series USING (parentTconst)
    )
    SEMI JOIN wanted ON id = tconst
    GROUP BY id"""
_UNCHANGED = "INSERT INTO unchanged SELECT id, read_at, request FROM kept"
_REMEMBERED = """
    COPY (
        SELECT
            id,
            digest,
            coalesce(unchanged.read_at, $read_at) AS read_at,
            $request || (SELECT count(*) FROM digests) AS request
        FROM digests
        LEFT JOIN unchanged USING (id)
        WHERE NOT list_contains($damaged, id)
        UNION ALL
        SELECT * FROM known WHERE id NOT IN (SELECT id FROM digests)
    ) TO '{}' (FORMAT parquet)"""


class KnownTitles:
    """A row per title that passes have read.

    It has a hash over the title's rows, the time of the pass that read it, and the request and the
    number of titles of the last pass that had it.
    """

    def __init__(self, tables: Tables, folder: Path, request: object, stored: StoredTimes) -> None:
        """Read what is known, and what the store has.

        Args:
            tables: Those of the pass.
            folder: Where the rows are kept.
            request: What the pass is to read.
            stored: Returns what the store has.
        """
        self._tables = tables
        self._path = folder / "read.parquet"
        # Another version may make something else of the same rows.
        self._version = version("moviecrawler")
        stats = [(path.name, path.stat()) for path in tables.files.values()]
        files = [(name, stat.st_size, stat.st_mtime_ns) for name, stat in stats]
        asked = repr((request, files, self._version))
        self._request = f"{hashlib.sha256(asked.encode()).hexdigest()} "
        try:
            # Earlier versions kept larger numbers, of which one does not fit.
            columns = "id, CAST(digest AS UBIGINT) AS digest, read_at, request"
            tables.run(f"CREATE TABLE known AS SELECT {columns} FROM '{_quoted(self._path)}'")
        except duckdb.Error:  # there is none, or it is damaged
            tables.run(f"CREATE TABLE known AS {_NONE}")
        times = tables.folder / "stored.csv"
        with times.open("w", encoding="utf-8", newline="") as file:
            csv.writer(file).writerows(stored())
        form = "auto_detect = false, delim = ',', columns = {'id': 'VARCHAR', 'read_at': 'VARCHAR'}"
        given = f"read_csv('{_quoted(times)}', {form})"
        tables.run(
            f"CREATE TABLE kept AS SELECT known.* FROM known JOIN {given} USING (id, read_at)"
        )

    def find_request(self) -> bool:
        """Return whether the same was read of the same files, and is stored as it was then."""
        same = "WHERE starts_with(request, $request)"
        counted = f"SELECT request, count(*) FROM kept {same} GROUP BY request"
        found = self._tables.run(counted, request=self._request)
        if len(found) != 1 or found[0][0] != f"{self._request}{found[0][1]}":
            return False
        self._tables.run(f"{_UNCHANGED} {same}", request=self._request)
        return True

    def find_rows(self) -> None:
        """Find the titles whose rows in all tables are the same as before."""
        self._tables.run(_DIGESTS, version=self._version)
        self._tables.run(f"{_UNCHANGED} JOIN digests USING (id, digest)")

    def unchanged(self) -> Iterator[list[str]]:
        """Yield the ids of the titles that were found, in parts."""
        found = self._tables.select("SELECT id FROM unchanged ORDER BY id")
        while ids := [site_id for (site_id,) in islice(found, _IDS_AT_ONCE)]:
            yield ids

    def remember(self, read_at: datetime) -> None:
        """Keep what this pass has read, but for titles with damaged rows."""
        damaged = sorted({row_id for _, row_id in self._tables.damaged})
        # Two passes at once may write, each in the folder of its own.
        part = self._tables.folder / self._path.name
        values = {"read_at": read_at.isoformat(), "damaged": damaged}
        request = "" if damaged else self._request
        self._tables.run(_REMEMBERED.format(_quoted(part)), request=request, **values)
        part.replace(self._path)


def _quoted(path: Path) -> str:
    return str(path).replace("'", "''")
