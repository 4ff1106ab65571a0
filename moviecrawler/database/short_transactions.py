"""Short transactions for a node's web pages, which succeed quickly or fail."""

from __future__ import annotations

import time
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING

from moviecrawler.basics.errors import (
    ConfigurationError,
    RejectedError,
    SchemaError,
    TooSlowError,
    TransientStoreError,
    UnavailableError,
)
from moviecrawler.database.connection import Database, Session

if TYPE_CHECKING:
    from collections.abc import Iterator

    from moviecrawler.database.connection import Cursor

_SESSION = Session(
    application_name="moviecrawler node",
    connect_seconds=3,
    silence_seconds=8,
    statement_seconds=5,
    updates_schema=False,
    settings="SET jit = off",  # compiling takes 100 ms, for queries of 10 ms
)
_UNAVAILABLE_SECONDS = 5.0
"""Seconds during which requests fail at once after the database could not be reached."""


class ShortTransactions:
    """Transactions on a database, each on a connection of its own; call it in threads."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._busy: set[Database] = set()
        self._unavailable_until = float("-inf")
        self._reason = ""

    @contextmanager
    def transaction(self, *, write: bool = False) -> Iterator[Cursor]:
        """Give a cursor; commit at the end of the block, or roll back. Raises UnavailableError."""
        if time.monotonic() < self._unavailable_until:
            raise UnavailableError(self._reason)
        with closing(Database(self._url, _SESSION)) as database:
            try:
                database.open()
            except (ConfigurationError, TransientStoreError) as error:
                self._reason = f"the database can't be reached: {error}"
                self._unavailable_until = time.monotonic() + _UNAVAILABLE_SECONDS
                raise UnavailableError(self._reason) from None
            self._busy.add(database)
            try:
                with database.transaction() as cursor:
                    if not write:
                        cursor.execute("SET TRANSACTION READ ONLY")
                    yield cursor
            except SchemaError:
                raise UnavailableError(
                    "the database lacks tables of this version; the next crawl makes them,"
                    " and so does `scrapy catalogue status`"
                ) from None
            except TooSlowError:
                raise UnavailableError("the database took too long to answer") from None
            except (RejectedError, TransientStoreError) as error:
                raise UnavailableError(f"the database failed: {error}") from error
            finally:
                self._busy.discard(database)

    def interrupt(self) -> None:
        """Cancel all running queries, which raises UnavailableError in their threads."""
        for database in list(self._busy):
            database.interrupt()
