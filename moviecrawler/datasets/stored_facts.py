"""What the stores have of IMDb's datasets by now, so that only titles whose facts have changed are written again.

One small SQLite file for each set of stores. Without it, or with another set of stores, all titles are written.
"""

from __future__ import annotations

import json
import sqlite3
from hashlib import blake2b
from typing import TYPE_CHECKING, NamedTuple

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime, timedelta
    from pathlib import Path

    from moviecrawler.items import Movie

_SCHEMA = """
CREATE TABLE IF NOT EXISTS titles (
    site_id TEXT PRIMARY KEY,
    facts BLOB NOT NULL,  -- a hash of all but the votes
    votes INTEGER,
    stored_at REAL NOT NULL  -- seconds since 1970
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS passes (  -- over files of which all was stored
    version TEXT PRIMARY KEY,  -- of the files, the titles asked for, and the program
    titles INTEGER NOT NULL,
    absent TEXT NOT NULL  -- JSON: ids that the files don't have
) WITHOUT ROWID;
"""
_FIND = "SELECT site_id, facts, votes FROM titles WHERE site_id IN (SELECT value FROM json_each(?))"
_UPSERT = """
INSERT INTO titles AS stored (site_id, facts, votes, stored_at) VALUES (?, ?, ?, ?)
ON CONFLICT (site_id) DO UPDATE SET facts = excluded.facts, votes = excluded.votes, stored_at = excluded.stored_at
WHERE excluded.stored_at - stored.stored_at >= ?
"""
_BATCH = 2_000
_LOCK_TIMEOUT_SECONDS = 10.0


class Pass(NamedTuple):
    """A pass over the datasets whose titles are all stored."""

    titles: int
    absent: list[str]
    """Ids that were asked for and that the datasets don't have."""


class Facts(NamedTuple):
    """What is kept of a title."""

    site_id: str
    hashed: bytes
    """The hash of all facts but the votes."""
    votes: int | None


class StoredFacts:
    """What was stored of titles. Threads may call it one after the other."""

    def __init__(self, path: Path, *, least_change: float, margin: timedelta) -> None:
        """Keep it in the file at `path`.

        least_change: the share by which votes have to move to count as a change while the rating stays, such as 0.01. margin: for
        so long the stores don't take a newer reading in place of one that they have, so that it has to be offered again.
        """
        path.parent.mkdir(parents=True, exist_ok=True)
        self._least_change = least_change
        self._margin = margin.total_seconds()
        self._waiting: list[tuple[str, bytes, int | None, float, float]] = []
        self._connection = sqlite3.connect(
            path, timeout=_LOCK_TIMEOUT_SECONDS, isolation_level=None, check_same_thread=False
        )
        self._connection.executescript(_SCHEMA)

    def changed(self, movies: Iterable[Movie]) -> list[tuple[Movie, Facts]]:
        """Return the movies whose facts the stores don't have; votes that have hardly moved are no change."""
        given = {movie.site_id: (movie, _facts(movie)) for movie in movies}
        for site_id, hashed, before in self._connection.execute(_FIND, (json.dumps(list(given)),)):
            _, now = given[site_id]
            if hashed == now.hashed and self._is_close(before, now.votes):
                del given[site_id]
        return list(given.values())

    def _is_close(self, before: int | None, votes: int | None) -> bool:
        if before is None or votes is None:
            return before == votes
        return before == votes or abs(votes - before) < self._least_change * before

    def add(self, facts: Facts, scraped_at: datetime) -> None:
        """Note that all stores have a title as it was then."""
        self._waiting.append((*facts, scraped_at.timestamp(), self._margin))
        if len(self._waiting) >= _BATCH:
            self.flush()

    def flush(self) -> None:
        """Write what was added. What can't be written is forgotten, and so is stored again by a later pass."""
        waiting, self._waiting = self._waiting, []
        with self._connection:
            self._connection.execute("BEGIN IMMEDIATE")
            self._connection.executemany(_UPSERT, waiting)

    def known_pass(self, version: str) -> Pass | None:
        """Return a pass of this version whose titles are all stored; None when there was none."""
        found = self._connection.execute("SELECT titles, absent FROM passes WHERE version = ?", (version,)).fetchone()
        return None if found is None else Pass(found[0], json.loads(found[1]))

    def add_pass(self, version: str, titles: int, absent: Iterable[str]) -> None:
        """Note that all that a pass gave is stored; passes over older files are forgotten."""
        self.flush()
        with self._connection:
            self._connection.execute("BEGIN IMMEDIATE")
            # The first part of a version is that of the files.
            older = "DELETE FROM passes WHERE substr(version, 1, instr(version, ' ')) <> ?"
            self._connection.execute(older, (version.partition(" ")[0] + " ",))
            row = (version, titles, json.dumps(list(absent)))
            self._connection.execute("INSERT OR REPLACE INTO passes VALUES (?, ?, ?)", row)

    def close(self) -> None:
        """Write what was added, and close the file."""
        try:
            self.flush()
        finally:
            self._connection.close()


def _facts(movie: Movie) -> Facts:
    score = movie.score("imdb")
    votes = None if score is None else score.count
    kept = movie.scraped_at, movie.fetch, [each.count for each in movie.scores]
    # Not a copy of it: that takes longer than the rest.
    movie.scraped_at = movie.fetch = None
    for each in movie.scores:
        each.count = None
    try:
        hashed = blake2b(msgspec.msgpack.encode(movie), digest_size=8).digest()
    finally:
        movie.scraped_at, movie.fetch, counts = kept
        for each, count in zip(movie.scores, counts, strict=True):
            each.count = count
    return Facts(movie.site_id or "", hashed, votes)
