"""A front to the replica by https."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from moviecrawler.replica.process import ReplicaProcess
from tests.services.https import HttpsFront


@pytest.fixture(scope="session")
def front(running_replica: ReplicaProcess) -> Iterator[HttpsFront]:
    with HttpsFront(running_replica.urls["imdb"]) as front:
        yield front
