"""The embedded database, `DATA_DIR/movies.sqlite3`: its columns, opening it, and its transactions.

`sql/embedded.sql` describes its tables.
"""

from __future__ import annotations

import sqlite3
from contextlib import contextmanager
from typing import TYPE_CHECKING, get_args

from filelock import FileLock, Timeout

from moviecrawler.basics.errors import ConfigurationError, TransientStoreError
from moviecrawler.database.sql import read_sql
from moviecrawler.items import Role
from moviecrawler.sites import SCORES
from moviecrawler.sites.fields import NUMBERS, TEXT_LISTS, TEXTS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

FILE = "movies.sqlite3"
PLAIN_COLUMNS = ("site", "title", "kind", "source", "list_computed", *NUMBERS, *TEXTS)
"""The columns of `movies` that hold a movie's field as it is."""
JSON_COLUMNS = ("unknown_fields", *TEXT_LISTS, "external_ids")
AMOUNTS = {
    "budget": "budget",
    "opening_weekend": "opening_weekend",
    "domestic": "domestic_gross",
    "worldwide": "worldwide_gross",
}
"""The column of each kind of amount; the column of its currency ends in _currency."""
PARTS: dict[str, tuple[str, ...]] = {
    "scores": (
        "kind",
        "value",
        "scale",
        "count",
        "average",
        "average_scale",
        "reviews",
        "liked",
        "neutral",
        "disliked",
        "certified",
        "sentiment",
        "histogram",
    ),
    "credits": ("role", "position", "person_id", "name", "character"),
    "offers": (
        "provider",
        "kind",
        "country",
        "quality",
        "price",
        "currency",
        "url",
        "source",
        "seen_at",
    ),
    "related": ("relation", "related_id", "title", "connection", "position"),
    "awards": ("event", "wins", "nominations"),
    "other_titles": ("title", "country", "language", "kind", "position"),
}
"""The tables of a movie's lists of objects, with their columns after `site` and `site_id`."""
_ORDERS = {
    "scores": f"instr('{', '.join(SCORES)},', kind || ',')",
    "credits": f"instr('{', '.join(get_args(Role))}', role), position",
    "offers": "rowid",
    "awards": "rowid",
}
"""The order of a list in its table; by `position` if none is named."""

_VERSION = 1
"""The version of the schema, stored as `PRAGMA user_version`."""
_LOCK_TIMEOUT_SECONDS = 10.0
"""Seconds to wait for another process's batch before writing fails."""


def open_embedded(folder: Path) -> sqlite3.Connection:
    """Open a folder's database, and create it when it is missing.

    Raises TransientStoreError when that may work later, ConfigurationError when the file is not one
    of this version's.
    """
    path = folder / FILE
    try:
        connection = sqlite3.connect(path, timeout=_LOCK_TIMEOUT_SECONDS, isolation_level=None)
        try:
            _prepare(connection, path)
        except BaseException:
            connection.close()
            raise
    except (OSError, sqlite3.OperationalError) as error:
        raise TransientStoreError(f"{path}: {error}") from error
    except sqlite3.DatabaseError as error:
        raise ConfigurationError(
            f"{path} is damaged or no SQLite file ({error}); move it away"
        ) from error
    return connection


def read_embedded(folder: Path) -> sqlite3.Connection:
    """Open a folder's database to read it.

    Raises FileNotFoundError when there is none, sqlite3.Error when it is no such file.
    """
    path = (folder / FILE).resolve()
    if not path.exists():
        raise FileNotFoundError(None, "there is no such file", str(folder / FILE))
    return sqlite3.connect(
        f"{path.as_uri()}?mode=ro", uri=True, timeout=_LOCK_TIMEOUT_SECONDS, isolation_level=None
    )


@contextmanager
def transaction(connection: sqlite3.Connection, kind: str) -> Iterator[None]:
    """Commit at the end of the block, or roll back.

    `kind` is DEFERRED to read, IMMEDIATE to write.
    """
    connection.execute(f"BEGIN {kind}")
    try:
        yield
    except BaseException:
        # After some errors, such as a full disk, SQLite has rolled back by itself.
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


def _prepare(connection: sqlite3.Connection, path: Path) -> None:
    # SQLite fails when two processes do this to a new file at the same time.
    try:
        with FileLock(path.with_name("open.lock"), timeout=_LOCK_TIMEOUT_SECONDS):
            connection.execute("PRAGMA journal_mode = WAL")
            ((version,),) = connection.execute("PRAGMA user_version")
            ((tables,),) = connection.execute("SELECT count(*) FROM sqlite_master")
            if version != _VERSION and (version or tables):
                raise ConfigurationError(
                    f"{path} was made by another version of moviecrawler; move it away, and crawl"
                    " or run scrapy replay again"
                )
            if version != _VERSION:
                script = read_sql("embedded.sql") + read_sql("part_scores.sql") + _items_view()
                connection.executescript(
                    f"BEGIN IMMEDIATE; {script} PRAGMA user_version = {_VERSION}; COMMIT;"
                )
            connection.execute(read_sql("embedded_aliases.sql"))
    except Timeout:
        raise TransientStoreError(
            f"another process has been opening {path} for {_LOCK_TIMEOUT_SECONDS:g} s"
        ) from None
    # A commit must be on the disk when it returns, as the batch is then reported durable.
    connection.execute("PRAGMA synchronous = FULL")
    # 32 MB: a batch of titles writes all over the indexes of people, and with SQLite's 2 MB a sixth
    # of a large crawl's time is reading them.
    connection.execute("PRAGMA cache_size = -32000")


def _items_view() -> str:
    """Return the statement that creates `items`.

    That view has each row of `movies` with all that belongs to it, as JSON of a `Movie`.
    """
    values = {name: f'm."{name}"' for name in (*PLAIN_COLUMNS, "scraped_at")}
    values |= {name: f'json(m."{name}")' for name in (*JSON_COLUMNS, "fetch")}
    values["list_computed"] = _boolean("m.list_computed")
    for table, columns in PARTS.items():
        part = {
            "site_id" if column == "related_id" else column: f"x.{column}" for column in columns
        }
        if table == "scores":
            part |= {"certified": _boolean("x.certified"), "histogram": "json(x.histogram)"}
        # S608: the names are ours, here and below.
        rows = (
            f"SELECT * FROM {table} WHERE site = m.site AND site_id = m.site_id"  # noqa: S608
            f" ORDER BY {_ORDERS.get(table, 'position')}"
        )
        values[table] = f"(SELECT json_group_array({_object(part)}) FROM ({rows}) x)"  # noqa: S608
    amounts = " UNION ALL ".join(
        f"SELECT '{kind}' AS kind, m.{column} AS value, m.{column}_currency AS currency"
        for kind, column in AMOUNTS.items()
    )
    amount = _object({name: f"x.{name}" for name in ("kind", "value", "currency")})
    values["amounts"] = (
        f"(SELECT json_group_array({amount}) FROM ({amounts}) x"  # noqa: S608
        " WHERE x.value IS NOT NULL)"
    )
    return (
        "CREATE VIEW items AS"  # noqa: S608
        f" SELECT m.id, m.site, m.site_id, {_object(values)} AS item FROM movies m;"
    )


def _object(values: Mapping[str, str]) -> str:
    pairs = ", ".join(f"'{name}', {value}" for name, value in values.items())
    return f"json_object({pairs})"


def _boolean(column: str) -> str:
    return f"json(CASE {column} WHEN 1 THEN 'true' WHEN 0 THEN 'false' END)"
