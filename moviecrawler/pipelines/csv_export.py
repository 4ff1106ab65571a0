"""The CSV files, made from `movies.sqlite3`.

A title's rows are made once, when it has changed, and kept in the table `rendered`: an export joins them, and so costs what
changed, and a copy of the rest.
"""

from __future__ import annotations

import csv
import io
from contextlib import ExitStack, contextmanager
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import msgspec

from moviecrawler.catalogue.tables import (
    AWARD_COLUMNS,
    CREDIT_COLUMNS,
    MISS_COLUMNS,
    MOVIE_COLUMNS,
    OFFER_COLUMNS,
    OTHER_TITLE_COLUMNS,
    PEOPLE_COLUMNS,
    RELATED_COLUMNS,
    SCORE_COLUMNS,
    award_rows,
    credit_rows,
    miss_row,
    movie_row,
    offer_rows,
    other_title_rows,
    related_rows,
    score_rows,
    write_row,
)
from moviecrawler.items import Miss, Movie
from moviecrawler.pipelines.files import replacing

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path


# Triggers note what has changed, so that a version of this project that doesn't know the tables may write between two that do.
_SCHEMA = """
-- The lines of a title in each file, as UTF-8: _COLUMNS.
CREATE TABLE IF NOT EXISTS rendered (seq INTEGER PRIMARY KEY);  -- of movies
CREATE TABLE IF NOT EXISTS unrendered (
    seq INTEGER PRIMARY KEY,
    changes INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE IF NOT EXISTS rendering (format TEXT NOT NULL);  -- of what is rendered
CREATE TRIGGER IF NOT EXISTS movie_added AFTER INSERT ON movies BEGIN
    INSERT INTO unrendered (seq) VALUES (NEW.seq) ON CONFLICT (seq) DO UPDATE SET changes = changes + 1;
END;
CREATE TRIGGER IF NOT EXISTS movie_changed AFTER UPDATE OF movie ON movies BEGIN
    INSERT INTO unrendered (seq) VALUES (NEW.seq) ON CONFLICT (seq) DO UPDATE SET changes = changes + 1;
END;
"""
_BEGIN_ANEW = """
DELETE FROM rendered;
INSERT OR IGNORE INTO unrendered (seq) SELECT seq FROM movies;
DELETE FROM rendering;
CREATE TABLE IF NOT EXISTS rendered_otherwise (seq INTEGER PRIMARY KEY);
DROP TRIGGER IF EXISTS line_made;
"""
# A job of an older version may still run, and export into the same files: its lines have other columns.
_NOTE_OTHER_LINES = """
CREATE TRIGGER line_made AFTER INSERT ON rendered WHEN NEW.format <> x'{}' BEGIN
    INSERT OR IGNORE INTO rendered_otherwise VALUES (NEW.seq);
END
"""
_RENDERED_OTHERWISE = "SELECT 1 FROM rendered_otherwise LIMIT 1"
_RENDER_AGAIN = """
INSERT OR IGNORE INTO unrendered (seq) SELECT seq FROM rendered_otherwise;
DELETE FROM rendered_otherwise;
"""
_CHANGED = "SELECT u.seq, u.changes, m.movie FROM unrendered u JOIN movies m USING (seq) LIMIT ?"
_NO_LONGER = "DELETE FROM unrendered WHERE seq = ? AND changes = ?"
# Chart order where a list led to the title; an index gives it without sorting.
_IN_ORDER = """
SELECT {} FROM movies m CROSS JOIN rendered r USING (seq)
ORDER BY m.site, m.list_name IS NULL, m.list_name, m.list_rank IS NULL, m.list_rank, m.seq
"""
_MISSES_IN_ORDER = "SELECT miss FROM misses ORDER BY site, site_id"
# As `catalogue.tables.neutralise` does it, without a call for each of a million people.
_NEUTRAL = """
CASE WHEN substr(ltrim({0}, ''''), 1, 1) IN ('=', '+', '-', '@', char(9), char(13), char(10), '＝', '＋', '－', '＠')
    THEN '''' || {0} ELSE {0} END
"""  # noqa: RUF001 - full-width forms are run as well
_PEOPLE_IN_ORDER = f"""
SELECT site, {_NEUTRAL.format("person_id")}, {_NEUTRAL.format("name")} FROM people ORDER BY site, person_id, known_as
"""  # noqa: S608 - nothing but the names of columns

TABLES = {
    "misses.csv": MISS_COLUMNS,
    "scores.csv": SCORE_COLUMNS,
    "credits.csv": CREDIT_COLUMNS,
    "other_titles.csv": OTHER_TITLE_COLUMNS,
    "offers.csv": OFFER_COLUMNS,
    "related.csv": RELATED_COLUMNS,
    "awards.csv": AWARD_COLUMNS,
    "people.csv": PEOPLE_COLUMNS,
    "movies.csv": MOVIE_COLUMNS,
}
_ROWS: dict[str, tuple[str, Callable[[Movie], Iterable[Iterable[Any]]]]] = {
    "movie": ("movies.csv", lambda movie: [movie_row(movie)]),
    "credits": ("credits.csv", credit_rows),
    "scores": ("scores.csv", score_rows),
    "other_titles": ("other_titles.csv", other_title_rows),
    "offers": ("offers.csv", offer_rows),
    "related": ("related.csv", related_rows),
    "awards": ("awards.csv", award_rows),
}
"""The file of each column of `rendered`, and what makes a title's rows in it."""
_COLUMNS = (*_ROWS, "format")
_RENDERED = f"INSERT OR REPLACE INTO rendered (seq, {', '.join(_COLUMNS)}) VALUES (?{', ?' * len(_COLUMNS)})"  # noqa: S608 - ours
_FORMAT = repr((2, TABLES))
"""Of lines. Raise the number when a movie's lines are written in another way: then all are made anew."""
_AT_ONCE = 500
"""Titles that are rendered in one transaction."""


class OutOfTimeError(Exception):
    """An export has taken as long as it may. Nothing is lost: what was rendered is kept for the next one."""


@contextmanager
def transaction(connection: sqlite3.Connection, kind: str) -> Iterator[None]:
    """Commit at the end of the block, or roll back; `kind` is DEFERRED to read, IMMEDIATE to write."""
    connection.execute(f"BEGIN {kind}")
    try:
        yield
    except BaseException:
        # SQLite itself has rolled back after some errors, such as a full disk.
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


def prepare_export(connection: sqlite3.Connection) -> None:
    """Make the tables of rendered lines, and forget lines of another format.

    The version of the schema stays, so that an older version of this project can be gone back to.
    """
    if connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'movie_changed'").fetchone() is None:
        connection.executescript(f"BEGIN IMMEDIATE; {_SCHEMA} COMMIT;")
    if _missing_columns(connection):
        with transaction(connection, "IMMEDIATE"):
            for column in _missing_columns(connection):  # by now: another process may have added them
                connection.execute(f"ALTER TABLE rendered ADD COLUMN {column} BLOB NOT NULL DEFAULT x''")
    if connection.execute("SELECT format FROM rendering").fetchall() != [(_FORMAT,)]:
        with transaction(connection, "IMMEDIATE"):
            _execute_each(connection, _BEGIN_ANEW)
            connection.execute(_NOTE_OTHER_LINES.format(_format_id().hex()))
            connection.execute("INSERT INTO rendering VALUES (?)", (_FORMAT,))


def _execute_each(connection: sqlite3.Connection, statements: str) -> None:
    for statement in statements.split(";")[:-1]:
        connection.execute(statement)


def _format_id() -> bytes:
    return blake2b(_FORMAT.encode(), digest_size=8).digest()


def _missing_columns(connection: sqlite3.Connection) -> set[str]:
    return set(_COLUMNS) - {column[1] for column in connection.execute("PRAGMA table_info(rendered)")}


def export(connection: sqlite3.Connection, folder: Path, check_time: Callable[[], None]) -> int:
    """Replace the CSV files of a folder, and return the number of titles in them. One process at a time may do so.

    `check_time` is called now and then, and may raise OutOfTimeError. Raises that, OSError or sqlite3.OperationalError.
    """
    # What is written from here on may be in some files: it is exported once more.
    (written,) = connection.execute("SELECT written FROM state").fetchone()
    if connection.execute(_RENDERED_OTHERWISE).fetchone():
        with transaction(connection, "IMMEDIATE"):
            _execute_each(connection, _RENDER_AGAIN)
    while _render(connection):
        check_time()
    count = _replace_files(connection, folder, check_time)
    connection.execute("UPDATE state SET exported = ? WHERE exported < ?", (written, written))
    return count


def _render(connection: sqlite3.Connection) -> int:
    """Make the lines of some titles that have changed; return how many."""
    changed = connection.execute(_CHANGED, (_AT_ONCE,)).fetchall()
    rows = [(seq, *_lines(encoded), _format_id()) for seq, _, encoded in changed]
    if rows:
        with transaction(connection, "IMMEDIATE"):
            connection.executemany(_RENDERED, rows)
            # One that has changed again meanwhile stays among them.
            connection.executemany(_NO_LONGER, [(seq, changes) for seq, changes, _ in changed])
    return len(rows)


def _lines(encoded: bytes) -> tuple[bytes, ...]:
    """Return the lines of a title, as in `_ROWS`."""
    movie = msgspec.json.decode(encoded, type=Movie)
    found = []
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    for _, rows_of in _ROWS.values():
        text.seek(0)
        text.truncate()
        for row in rows_of(movie):
            write_row(writer, row)
        found.append(text.getvalue().encode())
    return tuple(found)


def _replace_files(connection: sqlite3.Connection, folder: Path, check_time: Callable[[], None]) -> int:
    count = 0
    with ExitStack() as stack:
        # All reads see the same moment, while other processes go on writing.
        stack.enter_context(transaction(connection, "DEFERRED"))
        # Replaced in reverse order, `movies.csv` before the tables that refer to it.
        files = {name: stack.enter_context(replacing(folder / name)) for name in TABLES}
        for name, file in files.items():
            csv.writer(file).writerow(TABLES[name])
            file.flush()
        of_titles = [files[name].buffer for name, _ in _ROWS.values()]
        for count, lines in enumerate(
            connection.execute(_IN_ORDER.format(", ".join(f"r.{column}" for column in _ROWS))), 1
        ):
            for buffer, written in zip(of_titles, lines, strict=True):
                buffer.write(written)
            if not count % _AT_ONCE:
                check_time()
        csv.writer(files["people.csv"]).writerows(connection.execute(_PEOPLE_IN_ORDER))
        check_time()
        misses: Any = csv.writer(files["misses.csv"])
        for (encoded,) in connection.execute(_MISSES_IN_ORDER):
            write_row(misses, miss_row(msgspec.json.decode(encoded, type=Miss)))
    return count
