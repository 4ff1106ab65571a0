"""The connection to Postgres, with its time-outs, and its errors as the stores' own."""

from __future__ import annotations

import re
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec
import psycopg2
from psycopg2 import errors
from psycopg2.extensions import make_dsn, parse_dsn
from psycopg2.extras import NamedTupleCursor

from moviecrawler.basics.errors import (
    ConfigurationError,
    RejectedError,
    SchemaError,
    TooSlowError,
    TransientStoreError,
)
from moviecrawler.basics.texts import fold, on_one_line
from moviecrawler.database.postgres import update_postgres

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    # Psycopg2 writes its classes in small letters.
    from psycopg2.extensions import connection as Connection  # noqa: N812

Cursor: TypeAlias = NamedTupleCursor
"""A cursor whose rows have their columns as attributes."""
Row: TypeAlias = Any
"""One of its rows: psycopg2 makes a class for each query."""
_FORM = "postgresql://user:password@host:5432/database"
_KEEPALIVES = {
    "keepalives_idle": "30",  # seconds, as below
    "keepalives_interval": "10",
    "keepalives_count": "3",
}
"""Those of the client; the server's have the same names, after `tcp_`."""
_REFUSED = re.compile(
    "^invalid |authentication failed|no password supplied|no pg_hba.conf entry"
    '|(?:database|role|file) ".*" does not exist'
)
"""Messages of a server that refuses us permanently. libpq doesn't pass on their error codes."""
_WRONG_STATEMENT = (
    errors.UndefinedTable,
    errors.UndefinedColumn,
    errors.UndefinedFunction,
    errors.DatatypeMismatch,
    errors.SyntaxError,
)
"""Errors of a statement that the tables don't fit."""
REJECTIONS = (
    psycopg2.DataError,
    psycopg2.IntegrityError,
    errors.CardinalityViolation,  # an item with two scores of one kind, or the like
    errors.ProgramLimitExceeded,  # a text too long for an index
)
"""Errors that an item's own values cause."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """What a connection is for, and how long it waits.

    A server or a client that has vanished is noticed within a minute. An idle transaction must not
    keep other processes waiting.
    """

    application_name: str = "moviecrawler"
    connect_seconds: int = 10
    silence_seconds: int = 60
    """How long the server may leave what was sent without a sign of life."""
    statement_seconds: float = 60
    """Time-out of a statement; 0: none."""
    idle_seconds: float = 30
    """Time-out of a transaction between two statements."""
    updates_schema: bool = True
    """Whether the schema is made and brought up to date first."""
    settings: str = ""
    """Further statements, once the schema is up to date."""

    @property
    def parameters(self) -> dict[str, str]:
        """The parameters of a connection; the URL's own take precedence."""
        return {
            "application_name": self.application_name,
            "client_encoding": "UTF8",
            "connect_timeout": str(self.connect_seconds),
            "tcp_user_timeout": str(self.silence_seconds * 1000),
            **_KEEPALIVES,
        }

    @property
    def statements(self) -> str:
        """The statements with which a connection begins."""
        keepalives = "".join(f"SET tcp_{name} = {value};\n" for name, value in _KEEPALIVES.items())
        return f"""
            SET TimeZone = 'UTC';
            SET statement_timeout = {round(self.statement_seconds * 1000)};
            SET idle_in_transaction_session_timeout = {round(self.idle_seconds * 1000)};
            -- A stricter level would show data from before a lock was waited for.
            SET default_transaction_isolation = 'read committed';
            {keepalives}"""


WORK = Session()
"""That of the catalogue's commands."""


def read_url(url: str) -> dict[str, str]:
    """Return the parameters of DATABASE_URL.

    Raises ConfigurationError for a malformed URL, or one whose password has unescaped signs: libpq
    would take a part of the password for the host, and show it in its messages.
    """
    _, _, rest = url.partition("://")
    authority, *others = re.split(r"[/?#]", rest, maxsplit=1)
    try:
        parameters = parse_dsn(url) if url.startswith(("postgresql://", "postgres://")) else {}
    except psycopg2.ProgrammingError:
        parameters = {}
    port = parameters.get("port", "")
    misplaced = authority.count("@") > 1 or any("@" in other for other in others)
    if misplaced or not parameters.get("dbname") or not (port.replace(",", "") or "0").isdigit():
        raise ConfigurationError(
            f"DATABASE_URL is not of the form {_FORM}; write signs such as @ / : ? in a password"
            " as %40 %2F %3A %3F"
        )
    return parameters


def connect(url: str, session: Session) -> Connection:
    """Connect to a database.

    Raises ConfigurationError when the URL is malformed or the server refuses us permanently,
    TransientStoreError when it can't be reached now. Neither shows the password.
    """
    parameters = read_url(url)
    try:
        return psycopg2.connect(make_dsn(None, **{**session.parameters, **parameters}))
    except (psycopg2.OperationalError, UnicodeDecodeError) as error:
        # Before the encoding is set, a server writes messages in its own language and encoding.
        # Some versions of Python lose them.
        text = (
            error.object.decode(errors="replace")
            if isinstance(error, UnicodeDecodeError)
            else str(error)
        )
        reason = (
            fold(text) or "the server refused the connection, and its message could not be decoded"
        )
        if _REFUSED.search(reason):
            raise ConfigurationError(
                f"DATABASE_URL leads to a database that refuses us: {reason}"
            ) from None
        raise TransientStoreError(reason) from None


@contextmanager
def refusals_translated() -> Iterator[None]:
    """Raise ConfigurationError when the server doesn't let us create or write tables.

    Otherwise raise the same as `errors_translated`.
    """
    try:
        with errors_translated():
            yield
    except TransientStoreError as error:
        if isinstance(error.__cause__, errors.DependentObjectsStillExist):
            raise ConfigurationError(
                "the views of this version can't be made while others are made of those before:"
                f" {error.__cause__.diag.message_detail}; drop these, and create them again later"
            ) from error
        if isinstance(error.__cause__, psycopg2.ProgrammingError | errors.ReadOnlySqlTransaction):
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
        raise RejectedError(fold(error.diag.message_primary or str(error))) from error
    except ValueError as error:  # of psycopg2: a text has a NUL
        raise RejectedError(str(error)) from error
    except _WRONG_STATEMENT as error:
        raise SchemaError(fold(str(error))) from error
    except errors.QueryCanceled as error:
        raise TooSlowError(fold(str(error))) from error
    except psycopg2.Error as error:
        raise TransientStoreError(fold(str(error)) or type(error).__name__) from error


class Database:
    """A connection to Postgres, made on first use and again when it is lost.

    Use it in one thread at a time; only `interrupt` may be called in any.
    """

    def __init__(
        self,
        url: str,
        session: Session = WORK,
        is_ending: Callable[[], bool] = lambda: False,
    ) -> None:
        """Store what a connection is made of.

        Args:
            url: DATABASE_URL.
            session: What the connection is for.
            is_ending: Returns whether this process is shutting down, and does not wait for others.
        """
        self._url = url
        self._session = session
        self._is_ending = is_ending
        self._connection: Connection | None = None

    def open(self) -> Connection:
        """Connect, unless this is done.

        Raises the same as `connect` and `update_postgres`.
        """
        if self._connection is None or self._connection.closed:
            connection = connect(self._url, self._session)
            try:
                with refusals_translated():
                    with connection, connection.cursor() as cursor:
                        cursor.execute(self._session.statements)
                    if self._session.updates_schema:
                        update_postgres(connection, self._is_ending)
                    if self._session.settings:
                        with connection, connection.cursor() as cursor:
                            cursor.execute(self._session.settings)
            except BaseException:
                connection.close()
                raise
            self._connection = connection
        return self._connection

    def close(self) -> None:
        """Disconnect."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def interrupt(self) -> None:
        """Cancel the statement that runs in another thread."""
        if (connection := self._connection) is not None:
            with suppress(psycopg2.Error):
                connection.cancel()

    @contextmanager
    def transaction(self) -> Iterator[Cursor]:
        """Give a cursor; commit at the end of the block, or roll back."""
        connection = self.open()
        with (
            errors_translated(),
            connection,
            connection.cursor(cursor_factory=Cursor) as cursor,
        ):
            yield cursor


def storable(text: str) -> str:
    """Return a text without characters that Postgres refuses."""
    return on_one_line(text).encode(errors="replace").decode()


def as_json(rows: Sequence[object]) -> str:
    """Return rows as a JSON array."""
    return msgspec.json.encode(rows).decode()
