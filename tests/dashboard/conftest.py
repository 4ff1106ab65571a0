"""What the tests of the dashboard share: real nodes with a crawl that runs, on the replica, Redis and Postgres."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.dashboard.operated import Operated, operated


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory, postgres_server: str) -> Iterator[Operated]:
    """Return a cluster with a crawl that is over, and one that runs for as long as the tests do."""
    with operated(tmp_path_factory.mktemp("operated"), postgres_server) as made:
        yield made
