"""The catalogue's connection to Postgres, and what may be written there."""

from __future__ import annotations

import re
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import msgspec
import psycopg2
from psycopg2.extensions import parse_dsn
from psycopg2.extras import NamedTupleCursor

from moviecrawler.errors import ConfigurationError, RejectedError, TransientStoreError
from moviecrawler.texts import on_one_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from psycopg2.extensions import connection as Connection  # noqa: N812 - psycopg2 writes its classes in small letters

    from moviecrawler.items import Site


_FORM = "postgresql://user:password@host:5432/database"


def read_url(url: str) -> dict[str, str]:
    """Return the parameters of DATABASE_URL.

    Raises ConfigurationError for one that is malformed, or of which a part of the password would be taken for something else: libpq's
    sentences would show that part.
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
            f"DATABASE_URL is not of the form {_FORM}; write signs such as @ / : ? in a password as %40 %2F %3A %3F"
        )
    return found


class Database:
    """One connection to the catalogue's tables, made when it is first needed, and again when it is lost."""

    def __init__(self, connect: Callable[[], Connection], rejoin: Callable[[Any, Site, Sequence[str]], None]) -> None:
        """Take what connects to a database that has the tables, and what joins records anew: cursor, site, ids."""
        self._connect = connect
        self._rejoin = rejoin
        self._connection: Connection | None = None

    def close(self) -> None:
        """Disconnect."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    @contextmanager
    def transaction(self) -> Iterator[Any]:
        """Give a cursor, and commit when all went well."""
        try:
            if self._connection is None or self._connection.closed:
                self._connection = self._connect()
            with self._connection as connection, connection.cursor(cursor_factory=NamedTupleCursor) as cursor:
                yield cursor
        except (psycopg2.DataError, psycopg2.IntegrityError) as error:
            raise RejectedError(" ".join((error.diag.message_primary or str(error)).split())) from error
        except psycopg2.Error as error:
            raise TransientStoreError(" ".join(str(error).split()) or type(error).__name__) from error


def storable(text: str) -> str:
    """Return a text without what the database takes nowhere; pages say what they like."""
    return on_one_line(text).encode(errors="replace").decode()


def as_json(rows: Sequence[dict[str, Any]]) -> str:
    """Return rows as a JSON array."""
    return msgspec.json.encode(rows).decode()
