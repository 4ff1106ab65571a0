"""A client of Redis for tests that are coroutines."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from moviecrawler.redis_client import connect


@pytest.fixture
def client(runner: asyncio.Runner, redis_url: str) -> Iterator[Any]:
    """Return one of an empty database."""
    client = connect(redis_url)
    yield client
    runner.run(client.aclose())
