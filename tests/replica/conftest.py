"""One replica for all tests of it, with pages as large as the sites'."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from moviecrawler.replica.process import ReplicaProcess
from tests.crawling import reset

if TYPE_CHECKING:
    from collections.abc import Iterator

TITLES = 300


@pytest.fixture(scope="session")
def large_replica() -> Iterator[ReplicaProcess]:
    with ReplicaProcess(titles=TITLES) as process:
        yield process


@pytest.fixture
def replica(large_replica: ReplicaProcess) -> ReplicaProcess:
    reset(large_replica)
    return large_replica
