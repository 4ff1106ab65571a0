"""What tests of the catalogue's tables share."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest

from tests.catalogue.catalogued import Catalogued
from tests.services.postgres import execute, new_database

if TYPE_CHECKING:
    from collections.abc import Iterator

_FILLED = "records titles title_sites listed_ids imports site_pauses imdb_episodes misses"


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
    execute(catalogue_url, "; ".join(f"DELETE FROM {table}" for table in _FILLED.split()))  # noqa: S608 - ours
