"""A server that speaks MongoDB's protocol for tests.

It is started by the test run itself, or is the one that MONGO_URL names.
"""

import os
import socket
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Iterator
from typing import Any, Self
from urllib.parse import urlsplit, urlunsplit

import msgspec
import pytest
from pymongo import MongoClient

from moviecrawler.items import Movie

_START_WITHIN = 20_000  # milliseconds


class MongoServer:
    """A server of our own, over SQLite, that runs while the `with` block does."""

    def __enter__(self) -> Self:
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.url = f"mongodb://127.0.0.1:{free.getsockname()[1]}"
        self._folder = tempfile.TemporaryDirectory(prefix="mongo-")
        options = [
            f"--{option}={self._folder.name}/{option}"
            for option in ("data-dir", "log-file", "pid-file")
        ]
        command = [sys.executable, "-c", "from nx_27017.nx_27017 import main; main()"]
        self._process = subprocess.Popen(
            [*command, f"--port={urlsplit(self.url).port}", *options],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        with MongoClient[dict[str, Any]](
            self.url, serverSelectionTimeoutMS=_START_WITHIN
        ) as client:
            client.admin.command("ping")
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()
        self._folder.cleanup()


def documents(url: str, collection: str) -> dict[str, dict[str, Any]]:
    """Return what a collection of a URL's database holds, by `_id`."""
    with MongoClient[dict[str, Any]](url, tz_aware=True) as client:
        return {found["_id"]: found for found in client.get_default_database()[collection].find()}


def mongo_movies(url: str) -> list[Movie]:
    """Return the movies that a URL's database holds."""
    return [msgspec.convert(found, Movie) for found in documents(url, "movies").values()]


@pytest.fixture(scope="session")
def mongo_server() -> Iterator[str]:
    """Return the URL of a server on which databases can be made."""
    given = os.environ.get("MONGO_URL")
    if given:
        yield given
        return
    with MongoServer() as server:
        yield server.url


@pytest.fixture
def mongo_url(mongo_server: str) -> Iterator[str]:
    """Return the URL of a fresh database."""
    name = f"test_{uuid.uuid4().hex}"
    yield urlunsplit(urlsplit(mongo_server)._replace(path=f"/{name}"))
    with MongoClient[dict[str, Any]](mongo_server) as client:
        client.drop_database(name)
