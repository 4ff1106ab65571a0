"""Short transactions that answer a request quickly, or fail."""

from __future__ import annotations

import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

import psycopg2
from psycopg2.extras import NamedTupleCursor

from moviecrawler.basics.errors import AwayError, ConfigurationError, TransientStoreError
from moviecrawler.database.connection import connect, in_one_line

if TYPE_CHECKING:
    from collections.abc import Iterator

_CONNECT_PARAMETERS = "connect_timeout=3&tcp_user_timeout=8000&application_name=moviecrawler%20node"
"""`connect_timeout` is in seconds, `tcp_user_timeout` in milliseconds."""
_AWAY_SECONDS = 5.0
"""Seconds for which requests fail at once after the database could not be reached."""
_SESSION = """
SET TimeZone = 'UTC';
SET statement_timeout = %s;
SET idle_in_transaction_session_timeout = '30s';
SET jit = off;  -- compiling takes 100 ms, for queries of 10 ms
"""


class ShortTransactions:
    """Transactions on a database, each on a connection of its own; call it in threads.

    `patience` is the time-out of a statement in seconds.
    """

    def __init__(self, url: str, patience: float = 5.0) -> None:
        self._url = url
        self._patience = patience
        self._busy: set[Any] = set()
        self._away_until = float("-inf")
        self._away_reason = ""

    @contextmanager
    def transaction(self, *, write: bool = False) -> Iterator[Any]:
        """Give a cursor; commit at the end of the block, or roll back. Raises AwayError."""
        connection = self._connect()
        self._busy.add(connection)
        try:
            connection.set_session(readonly=not write)
            with connection, connection.cursor(cursor_factory=NamedTupleCursor) as cursor:
                yield cursor
        except (
            psycopg2.errors.UndefinedTable,
            psycopg2.errors.UndefinedColumn,
            psycopg2.errors.UndefinedFunction,
        ):
            raise AwayError(
                "the database lacks tables of this version; the next crawl makes them,"
                " and so does `scrapy catalogue status`"
            ) from None
        except psycopg2.errors.QueryCanceled:
            raise AwayError("the database took too long to answer") from None
        except psycopg2.Error as error:
            raise AwayError(f"the database failed: {in_one_line(str(error))}") from error
        finally:
            self._busy.discard(connection)
            connection.close()

    def interrupt(self) -> None:
        """Cancel all running queries, which raises AwayError in their threads."""
        for connection in list(self._busy):
            with suppress(psycopg2.Error):
                connection.cancel()

    def _connect(self) -> Any:
        if time.monotonic() < self._away_until:
            raise AwayError(self._away_reason)
        try:
            connection = connect(
                f"{self._url}{'&' if '?' in self._url else '?'}{_CONNECT_PARAMETERS}"
            )
        except (ConfigurationError, TransientStoreError) as error:
            self._away_reason = f"the database can't be reached: {in_one_line(str(error))}"
            self._away_until = time.monotonic() + _AWAY_SECONDS
            raise AwayError(self._away_reason) from None
        try:
            with connection, connection.cursor() as cursor:
                cursor.execute(_SESSION, (round(self._patience * 1000),))
        except psycopg2.Error as error:  # such as when the server is shutting down
            connection.close()
            raise AwayError(f"the database failed: {in_one_line(str(error))}") from error
        return connection
