"""A replica that all crawls of these tests ask, and a front to it by https."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from moviecrawler.replica.process import ReplicaProcess
from tests.crawling import reset
from tests.proxies.fleets import TITLES, tell
from tests.services.https import HttpsFront


@pytest.fixture(scope="session")
def running() -> Iterator[ReplicaProcess]:
    with ReplicaProcess(titles=TITLES, light=True) as replica:
        yield replica


@pytest.fixture
def replica(running: ReplicaProcess) -> ReplicaProcess:
    tell(running, "faults")
    tell(running, "clients")
    reset(running)
    return running


@pytest.fixture(scope="session")
def front(running: ReplicaProcess) -> Iterator[HttpsFront]:
    with HttpsFront(running.urls["imdb"]) as front:
        yield front
