"""Stores movies and misses as JSON Lines in an S3 bucket, and reads and writes its objects."""

from __future__ import annotations

import base64
import hashlib
from collections import defaultdict
from contextlib import contextmanager
from datetime import UTC
from functools import cache
from typing import TYPE_CHECKING

import boto3
import botocore.session
from botocore.config import Config
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    ConnectionError,  # noqa: A004 - its name
    HTTPClientError,
)
from isal import igzip
from scrapy.exceptions import NotConfigured

from moviecrawler.basics.credentials import redacted
from moviecrawler.basics.errors import ConfigurationError, TransientStoreError
from moviecrawler.basics.service_urls import is_open_to_others
from moviecrawler.items import ListPage, Miss, Movie
from moviecrawler.pipelines.base import BatchingPipeline
from moviecrawler.pipelines.store import Limits, Store, time_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime

    from botocore.client import BaseClient
    from scrapy.settings import BaseSettings

    from moviecrawler.items import Site
    from moviecrawler.pipelines.store import Record

_TRY_LATER = frozenset({408, 409, 429, *range(500, 600)})  # HTTP statuses

S3_LIMITS = Limits(
    # Few large objects are cheaper than many small ones, but a movie takes 20 kB of memory until
    # its batch is written.
    batch_items=1_000,
    batch_bytes=8 * 1024 * 1024,
    batch_seconds=60.0,
    buffer_items=10_000,
    buffer_bytes=24 * 1024 * 1024,
)
"""The default limits of both stores in a bucket."""


_FOLDERS = {Movie: "movies", Miss: "misses", ListPage: "lists"}
"""The folder of each kind of item."""


class S3Pipeline(BatchingPipeline):
    """Writes movies and misses to S3_BUCKET as gzipped JSON Lines."""

    default_limits = S3_LIMITS

    @classmethod
    def store_from_settings(cls, settings: BaseSettings) -> S3Store:
        """Read the settings of `Bucket`."""
        return S3Store(Bucket.from_settings(settings))


class Bucket:
    """A bucket of S3 or a compatible server, and the prefix of its keys."""

    def __init__(self, name: str, prefix: str = "", endpoint_url: str | None = None) -> None:
        self._name = name
        self._prefix = f"{prefix.strip('/')}/".removeprefix("/")
        self._endpoint_url = endpoint_url
        self._client: BaseClient = None  # of an untyped library

    @classmethod
    def from_settings(cls, settings: BaseSettings) -> Bucket:
        """Read S3_BUCKET, S3_PREFIX and S3_ENDPOINT_URL. Raises NotConfigured without S3_BUCKET.

        boto3 finds credentials and region: in environment variables, its files, or the machine's
        role.
        """
        if not settings.get("S3_BUCKET"):
            # Without a reason, of which Scrapy would warn: a store that is not configured is not
            # a mistake.
            raise NotConfigured
        return cls(
            settings["S3_BUCKET"],
            settings.get("S3_PREFIX") or "",
            settings.get("S3_ENDPOINT_URL") or None,
        )

    def open(self) -> None:
        """Connect, and check that the bucket exists.

        Raises ConfigurationError or TransientStoreError.
        """
        self.close()
        config = Config(
            connect_timeout=5,
            read_timeout=30,
            s3={
                # Bucket names in host names need DNS entries, which other endpoints than Amazon's
                # seldom have.
                "addressing_style": "path" if self._endpoint_url else "auto",
                # TLS and our checksum protect an upload; to sign its SHA-256, too, would take a
                # third of the archive's time.
                "payload_signing_enabled": is_open_to_others(self._endpoint_url or ""),
            },
            # `put` sends a checksum as a header; boto3 would send it in a trailer, which not every
            # endpoint understands.
            request_checksum_calculation="when_required",
            response_checksum_validation="when_required",
        )
        try:
            # Not boto3's default session, which must not be used by several threads and keeps old
            # credentials.
            session = botocore.session.get_session()
            session.register_component("data_loader", _service_models())
            boto = boto3.session.Session(botocore_session=session)
            self._client = boto.client("s3", endpoint_url=self._endpoint_url, config=config)
            self._client.head_bucket(Bucket=self._name)
        except (ConnectionError, HTTPClientError) as error:
            raise TransientStoreError(_message(error)) from None
        except (ClientError, BotoCoreError, ValueError) as error:
            if (
                isinstance(error, ClientError)
                and error.response["ResponseMetadata"]["HTTPStatusCode"] in _TRY_LATER
            ):
                raise TransientStoreError(_message(error)) from None
            raise ConfigurationError(
                f"the bucket {self._name!r} can't be used ({_message(error)}); create it,"
                " let these credentials list and write it,"
                " or correct S3_BUCKET or S3_ENDPOINT_URL"
            ) from None

    def close(self) -> None:
        """Disconnect."""
        if self._client is not None:
            self._client.close()
            self._client = None

    def put(self, key: str, data: bytes, content_type: str) -> None:
        """Write an object with its MD5, which every server checks, and Object Lock requires.

        Raises TransientStoreError.
        """
        digest = hashlib.md5(data, usedforsecurity=False).digest()
        with _errors_translated():
            self._client.put_object(
                Bucket=self._name,
                Key=self._prefix + key,
                Body=data,
                ContentType=content_type,
                ContentMD5=base64.b64encode(digest).decode(),
            )

    def keys(self, folder: str) -> Iterator[str]:
        """Yield the keys that begin with `folder`, without the bucket's prefix, sorted.

        Raises TransientStoreError.
        """
        with _errors_translated():
            listing = self._client.get_paginator("list_objects_v2")
            for page in listing.paginate(Bucket=self._name, Prefix=self._prefix + folder):
                for found in page.get("Contents", ()):
                    yield found["Key"].removeprefix(self._prefix)

    def get(self, key: str) -> bytes:
        """Return an object. Raises TransientStoreError."""
        with _errors_translated():
            found = self._client.get_object(Bucket=self._name, Key=self._prefix + key)
            body: bytes = found["Body"].read()
            return body


class S3Store(Store):
    """Write movies as `movies/site=…/date=…/*.jsonl.gz`, misses as `misses/…`, lists as `lists/…`.

    Each item is a line; the date is that of its page. A title has a line for each time that it was
    stored; `matching.merging.merged` makes one record of them. A batch that is written again
    replaces its own objects.
    """

    name = "s3"

    def __init__(self, bucket: Bucket) -> None:
        self._bucket = bucket

    def open(self) -> None:
        """Connect."""
        self._bucket.open()

    def close(self) -> None:
        """Disconnect."""
        self._bucket.close()

    def write(self, records: Sequence[Record]) -> None:
        """Write an object for each kind of item, site and date of the batch."""
        folders: dict[str, list[Record]] = defaultdict(list)
        for record in records:
            item = record.item
            folders[folder_of(_FOLDERS[type(item)], item.site, time_of(item))].append(record)
        for folder, members in folders.items():
            lines = b"".join(record.encoded + b"\n" for record in members)
            name = object_name(min(time_of(record.item) for record in members), lines)
            self._bucket.put(f"{folder}/{name}.jsonl.gz", igzip.compress(lines), "application/gzip")


def folder_of(kind: str, site: Site, time: datetime) -> str:
    """Return the folder of a kind, a site and a day, such as `raw/site=imdb/date=2026-03-01`."""
    return f"{kind}/site={site}/date={time.astimezone(UTC):%Y-%m-%d}"


def object_name(time: datetime, contents: bytes) -> str:
    """Return a name that sorts by time and is unique to these contents."""
    return f"{time.astimezone(UTC):%Y%m%dT%H%M%S}-{hashlib.sha256(contents).hexdigest()[:24]}"


@cache
def _service_models() -> object:
    """Return botocore's loader of service descriptions.

    All clients share it, as these take 12 MB.
    """
    return botocore.session.get_session().get_component("data_loader")


@contextmanager
def _errors_translated() -> Iterator[None]:
    try:
        yield
    except (ClientError, BotoCoreError) as error:  # S3 stores any bytes, so no item is to blame
        raise TransientStoreError(_message(error)) from None


def _message(error: Exception) -> str:
    """Return the error's message without the password that the endpoint's URL may have."""
    return redacted(str(error))
