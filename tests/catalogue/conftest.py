"""What tests of the catalogue share."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from moviecrawler.replica.process import ReplicaProcess
from tests.catalogued import Catalogued
from tests.due_crawls import Due
from tests.services.postgres import execute, new_database

_FILLED = "records titles title_sites listed_ids imports imdb_episodes misses feeds"


@pytest.fixture(scope="session")
def catalogue_url(postgres_server: str, postgres_template: str) -> Iterator[str]:
    """Return the URL of a database that tests fill by turns."""
    url = new_database(postgres_server, postgres_template)
    yield url
    execute(postgres_server, f"DROP DATABASE {urlsplit(url).path[1:]} WITH (FORCE)")


@pytest.fixture
def store(catalogue_url: str) -> Iterator[Catalogued]:
    """Return an empty catalogue."""
    with closing(Catalogued(catalogue_url)) as store:
        yield store
    statements = [f"DELETE FROM {table}" for table in _FILLED.split()]  # noqa: S608 - ours
    execute(catalogue_url, "; ".join(statements))


@pytest.fixture
def due(database_url: str, replica: ReplicaProcess, tmp_path: Path) -> Due:
    """Return crawls of a catalogue that knows the replica's titles."""
    made = Due(database_url, replica, tmp_path)
    made.know()
    return made
