"""One replica for all tests of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from moviecrawler.replica.process import ReplicaProcess
from tests.replica.client import TITLES, Control

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="session")
def replica() -> Iterator[ReplicaProcess]:
    with ReplicaProcess(titles=TITLES, seed=1) as process:
        yield process


@pytest.fixture(scope="session")
def light() -> Iterator[ReplicaProcess]:
    """The same movies on pages of a few kB."""
    with ReplicaProcess(titles=TITLES, seed=1, light=True) as process:
        yield process


@pytest.fixture
def control(replica: ReplicaProcess) -> Iterator[Control]:
    control = Control(replica.urls["imdb"])
    control.reset()
    yield control
    control.reset()
