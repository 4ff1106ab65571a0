"""Connecting to Postgres, and translating its errors into the stores' own."""

from __future__ import annotations

import re
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import msgspec
import psycopg2
from psycopg2.extensions import make_dsn, parse_dsn
from psycopg2.extras import NamedTupleCursor

from moviecrawler.basics.errors import (
    ConfigurationError,
    RejectedError,
    SchemaError,
    TooSlowError,
    TransientStoreError,
)
from moviecrawler.basics.texts import on_one_line
from moviecrawler.database.postgres import update_postgres

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    # Psycopg2 writes its classes in small letters.
    from psycopg2.extensions import connection as Connection  # noqa: N812

_FORM = "postgresql://user:password@host:5432/database"
_SESSION = """
SET TimeZone = 'UTC';
SET statement_timeout = '60s';
-- An idle transaction must not keep other processes waiting, nor may one whose client has vanished.
SET idle_in_transaction_session_timeout = '30s';
SET tcp_keepalives_idle = 30;
SET tcp_keepalives_interval = 10;
SET tcp_keepalives_count = 3;
-- A stricter level would show data from before a lock was waited for.
SET default_transaction_isolation = 'read committed';
"""
_DEFAULTS = {
    "application_name": "moviecrawler",
    "client_encoding": "UTF8",
    "connect_timeout": "10",  # seconds
    # A server that has silently gone is noticed within a minute. Seconds; the last: milliseconds.
    "keepalives_idle": "30",
    "keepalives_interval": "10",
    "keepalives_count": "3",
    "tcp_user_timeout": "60000",
}
"""Parameters of every connection; the URL's own take precedence."""
_REFUSED = re.compile(
    "^invalid |authentication failed|no password supplied|no pg_hba.conf entry"
    '|(?:database|role|file) ".*" does not exist'
)
"""Messages of a server that refuses us permanently. libpq doesn't pass on their error codes."""
_WRONG_STATEMENT = (
    psycopg2.errors.UndefinedTable,
    psycopg2.errors.UndefinedColumn,
    psycopg2.errors.UndefinedFunction,
    psycopg2.errors.DatatypeMismatch,
    psycopg2.errors.SyntaxError,
)
"""Errors of a statement that the tables don't fit."""
REJECTIONS = (
    psycopg2.DataError,
    psycopg2.IntegrityError,
    psycopg2.errors.CardinalityViolation,  # an item with two scores of one kind, or the like
    psycopg2.errors.ProgramLimitExceeded,  # a text too long for an index
)
"""Errors that an item's own values cause."""


def read_url(url: str) -> dict[str, str]:
    """Return the parameters of DATABASE_URL.

    Raises ConfigurationError for a malformed URL, or one whose password has unescaped signs: libpq
    would take a part of the password for the host, and show it in its messages.
    """
    _, _, rest = url.partition("://")
    authority, *others = re.split(r"[/?#]", rest, maxsplit=1)
    try:
        found = parse_dsn(url) if url.startswith(("postgresql://", "postgres://")) else {}
    except psycopg2.ProgrammingError:
        found = {}
    port = found.get("port", "")
    misplaced = authority.count("@") > 1 or any("@" in other for other in others)
    if misplaced or not found.get("dbname") or not (port.replace(",", "") or "0").isdigit():
        raise ConfigurationError(
            f"DATABASE_URL is not of the form {_FORM}; write signs such as @ / : ? in a password"
            " as %40 %2F %3A %3F"
        )
    return found


def connect(url: str) -> Connection:
    """Connect to a database.

    Raises ConfigurationError when the URL is malformed or the server refuses us permanently,
    TransientStoreError when it can't be reached now. Neither shows the password.
    """
    parameters = read_url(url)
    try:
        return psycopg2.connect(make_dsn(None, **{**_DEFAULTS, **parameters}))
    except (psycopg2.OperationalError, UnicodeDecodeError) as error:
        # Before it knows our encoding, a server writes messages in its own language and encoding.
        # Some versions of Python lose them.
        text = (
            error.object.decode(errors="replace")
            if isinstance(error, UnicodeDecodeError)
            else str(error)
        )
        reason = (
            in_one_line(text)
            or "the server refused the connection, and its message could not be decoded"
        )
        if _REFUSED.search(reason):
            raise ConfigurationError(
                f"DATABASE_URL leads to a database that refuses us: {reason}"
            ) from None
        raise TransientStoreError(reason) from None


def open_database(url: str, is_ending: Callable[[], bool] = lambda: False) -> Connection:
    """Connect to a database, and update its schema.

    Raises the same as `connect` and `update_postgres`.
    """
    connection = connect(url)
    try:
        with refusals_translated():
            with connection, connection.cursor() as cursor:
                cursor.execute(_SESSION)
            update_postgres(connection, is_ending)
    except BaseException:
        connection.close()
        raise
    return connection


@contextmanager
def refusals_translated() -> Iterator[None]:
    """Raise ConfigurationError when the server doesn't let us create or write tables.

    Otherwise raise the same as `errors_translated`.
    """
    try:
        with errors_translated():
            yield
    except TransientStoreError as error:
        if isinstance(error.__cause__, psycopg2.errors.DependentObjectsStillExist):
            raise ConfigurationError(
                "the views of this version can't be made while others are made of those before:"
                f" {error.__cause__.diag.message_detail}; drop these, and create them again later"
            ) from error
        if isinstance(
            error.__cause__, psycopg2.ProgrammingError | psycopg2.errors.ReadOnlySqlTransaction
        ):
            raise ConfigurationError(
                "the database that DATABASE_URL names doesn't let us create or write our tables:"
                f" {error}"
            ) from error
        raise


@contextmanager
def errors_translated() -> Iterator[None]:
    """Raise a store's own errors in place of psycopg2's."""
    try:
        yield
    except REJECTIONS as error:
        # The error's detail may repeat the whole row.
        raise RejectedError(in_one_line(error.diag.message_primary or str(error))) from error
    except ValueError as error:  # of psycopg2: a text has a NUL
        raise RejectedError(str(error)) from error
    except _WRONG_STATEMENT as error:
        raise SchemaError(in_one_line(str(error))) from error
    except psycopg2.errors.LockNotAvailable as error:
        raise TransientStoreError(
            f"other processes hold the lock: {in_one_line(str(error))}"
        ) from error
    except psycopg2.errors.QueryCanceled as error:
        raise TooSlowError(in_one_line(str(error))) from error
    except psycopg2.Error as error:
        raise TransientStoreError(in_one_line(str(error)) or type(error).__name__) from error


def in_one_line(text: str) -> str:
    """Return a server's message without line breaks."""
    return " ".join(text.split())


class Database:
    """A connection to the catalogue's tables, made on first use and again when it is lost."""

    def __init__(self, connect: Callable[[], Connection]) -> None:
        """Store the function that connects to a database with the tables."""
        self._connect = connect
        self._connection: Connection | None = None

    def close(self) -> None:
        """Disconnect."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    @contextmanager
    def transaction(self) -> Iterator[Any]:
        """Give a cursor; commit at the end of the block, or roll back."""
        if self._connection is None or self._connection.closed:
            self._connection = self._connect()
        with (
            errors_translated(),
            self._connection as connection,
            connection.cursor(cursor_factory=NamedTupleCursor) as cursor,
        ):
            yield cursor


def storable(text: str) -> str:
    """Return a text without characters that Postgres refuses."""
    return on_one_line(text).encode(errors="replace").decode()


def as_json(rows: Sequence[dict[str, Any]]) -> str:
    """Return rows as a JSON array."""
    return msgspec.json.encode(rows).decode()
