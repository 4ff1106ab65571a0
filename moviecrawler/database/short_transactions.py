"""Asking the database for an answer to a request: quickly, or not at all."""

from __future__ import annotations

import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

import psycopg2
from psycopg2.extras import NamedTupleCursor

from moviecrawler.database.connection import connect, in_one_line
from moviecrawler.errors import AwayError, ConfigurationError, TransientStoreError

if TYPE_CHECKING:
    from collections.abc import Iterator

_CONNECT_PARAMETERS = "connect_timeout=3&tcp_user_timeout=8000&application_name=moviecrawler%20node"
"""Seconds to connect, and milliseconds without a word after which a server is gone."""
_AWAY_SECONDS = 5.0
"""After a database could not be reached, it is not tried again for so many seconds: requests fail at once meanwhile."""
_SESSION = """
SET TimeZone = 'UTC';
SET statement_timeout = %s;
SET idle_in_transaction_session_timeout = '30s';
SET jit = off;  -- it costs a tenth of a second, for queries that take a hundredth
"""


class ShortTransactions:
    """Transactions on the database that a URL names, each on a connection of its own. Call it in threads.

    `patience` is how long a statement may take (s).
    """

    def __init__(self, url: str, patience: float = 5.0) -> None:
        self._url = url
        self._patience = patience
        self._busy: set[Any] = set()
        self._away_until = float("-inf")
        self._away_because = ""

    @contextmanager
    def transaction(self, *, write: bool = False) -> Iterator[Any]:
        """Give a cursor, and commit when all went well. Raises AwayError."""
        connection = self._connect()
        self._busy.add(connection)
        try:
            connection.set_session(readonly=not write)
            with connection, connection.cursor(cursor_factory=NamedTupleCursor) as cursor:
                yield cursor
        except (psycopg2.errors.UndefinedTable, psycopg2.errors.UndefinedColumn, psycopg2.errors.UndefinedFunction):
            raise AwayError(
                "the database lacks tables of this version; the next crawl makes them, and so does `scrapy catalogue status`"
            ) from None
        except psycopg2.errors.QueryCanceled:
            raise AwayError("the database took too long to answer") from None
        except psycopg2.Error as error:
            raise AwayError(f"the database failed: {in_one_line(str(error))}") from error
        finally:
            self._busy.discard(connection)
            connection.close()

    def interrupt(self) -> None:
        """Break off what is being asked, in whatever thread; that is an AwayError there."""
        for connection in list(self._busy):
            with suppress(psycopg2.Error):
                connection.cancel()

    def _connect(self) -> Any:
        if time.monotonic() < self._away_until:
            raise AwayError(self._away_because)
        try:
            connection = connect(f"{self._url}{'&' if '?' in self._url else '?'}{_CONNECT_PARAMETERS}")
        except (ConfigurationError, TransientStoreError) as error:
            self._away_because = f"the database can't be reached: {in_one_line(str(error))}"
            self._away_until = time.monotonic() + _AWAY_SECONDS
            raise AwayError(self._away_because) from None
        try:
            with connection, connection.cursor() as cursor:
                cursor.execute(_SESSION, (round(self._patience * 1000),))
        except psycopg2.Error as error:  # such as of a server that ends at this moment
            connection.close()
            raise AwayError(f"the database failed: {in_one_line(str(error))}") from error
        return connection
