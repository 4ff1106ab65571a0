"""An S3 endpoint for tests.

It is started by the test run itself, or is the one that S3_ENDPOINT_URL names.
"""

import functools
import gzip
import logging
import os
import uuid
from collections.abc import Iterable, Iterator
from operator import attrgetter
from typing import Any, Self, cast

import boto3
import msgspec
import pytest

from moviecrawler.basics.clock import latest
from moviecrawler.items import Movie
from moviecrawler.matching.merging import merged
from moviecrawler.options import StoreOptions

_MARGIN = StoreOptions().freshness_margin
CREDENTIALS = {
    "AWS_ACCESS_KEY_ID": "test",
    "AWS_SECRET_ACCESS_KEY": "test-secret",
    "AWS_DEFAULT_REGION": "us-east-1",
}
"""Of an endpoint of our own, which takes any."""
_SLOW_DOWN = b"<Error><Code>SlowDown</Code><Message>Reduce your request rate.</Message></Error>"


class S3Server:
    """An endpoint of our own in a thread, which fails when a test says so.

    Used as a context manager.
    """

    def __init__(self) -> None:
        self.failures: list[str] = []
        """The statuses that the next requests are answered with."""
        self.requests: list[str] = []
        """Method and path of each request."""

    def __enter__(self) -> Self:
        from moto.server import ThreadedMotoServer  # noqa: PLC0415 - most processes never start one

        logging.getLogger("werkzeug").disabled = True  # it logs each request
        self._moto = ThreadedMotoServer("127.0.0.1", port=0, verbose=False)
        self._moto.start()
        host, port = self._moto.get_host_and_port()
        self.url = f"http://{host}:{port}"
        self._server = cast("Any", self._moto._server)
        self._app = self._server.app
        self._server.app = self._answer
        return self

    def __exit__(self, *_: object) -> None:
        self._moto.stop()
        self._server.server_close()

    def _answer(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        self.requests.append(f"{environ['REQUEST_METHOD']} {environ['PATH_INFO']}")
        if self.failures:
            # Else what is left of the request would be taken for the next one.
            environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
            start_response(self.failures.pop(), [("Content-Type", "application/xml")])
            return [_SLOW_DOWN]
        answer: Iterable[bytes] = self._app(environ, start_response)
        return answer


@functools.cache
def s3_client(endpoint_url: str) -> Any:
    """Return a client with the credentials that are set first.

    Making one costs more than most tests.
    """
    return boto3.session.Session().client("s3", endpoint_url=endpoint_url)


def objects(endpoint_url: str, bucket: str, prefix: str = "") -> dict[str, bytes]:
    """Return the objects of a bucket whose keys begin with `prefix`, by their keys."""
    s3 = s3_client(endpoint_url)
    pages = s3.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix)
    keys = [found["Key"] for page in pages for found in page.get("Contents", ())]
    return {key: s3.get_object(Bucket=bucket, Key=key)["Body"].read() for key in keys}


def s3_movies(endpoint_url: str, bucket: str, prefix: str = "") -> list[Movie]:
    """Return the movies of a bucket, each as all of its lines together say."""
    lines = [
        msgspec.json.decode(line, type=Movie)
        for data in objects(endpoint_url, bucket, f"{prefix}/movies/".removeprefix("/")).values()
        for line in gzip.decompress(data).splitlines()
    ]
    movies: dict[tuple[str, str | None], Movie] = {}
    for movie in sorted(lines, key=attrgetter("scraped_at")):
        key = movie.site, movie.site_id
        known = movies.get(key)
        movies[key] = (
            (merged(movie, known, _MARGIN, latest()) or known) if known is not None else movie
        )
    return list(movies.values())


@pytest.fixture(scope="session")
def own_s3() -> Iterator[S3Server]:
    """Return an endpoint that can be made to fail."""
    with S3Server() as server:
        yield server


@pytest.fixture
def s3_url(own_s3: S3Server, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the URL of an endpoint, with credentials where boto3 looks for them."""
    for name, value in CREDENTIALS.items():
        monkeypatch.setenv(name, os.environ.get(name, value))
    return os.environ.get("S3_ENDPOINT_URL") or own_s3.url


@pytest.fixture
def bucket_name(s3_url: str) -> str:
    """Return the name of a fresh bucket."""
    name = f"test-{uuid.uuid4().hex}"
    s3_client(s3_url).create_bucket(Bucket=name)
    return name
