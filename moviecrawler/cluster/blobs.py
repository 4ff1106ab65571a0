"""Where eggs are kept, under their SHA-256: in Redis, or in a bucket."""

from __future__ import annotations

import os
from functools import cached_property
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from moviecrawler.cluster.keys import Keys

ANSWER_SECONDS = 30.0
"""For a whole egg's way from or to the store."""


class RedisBlobs:
    """Raises redis.RedisError."""

    def __init__(self, client: Any, keys: Keys) -> None:
        """Take a client that waits long enough for a whole egg."""
        self._client = client
        self._keys = keys

    def put(self, digest: str, data: bytes) -> None:
        """Keep an egg."""
        self._client.set(self._keys.egg(digest), data)

    def get(self, digest: str) -> bytes | None:
        """Return an egg; None when it is not there."""
        data: bytes | None = self._client.get(self._keys.egg(digest))
        return data

    def delete(self, digest: str) -> None:
        """Forget an egg."""
        self._client.delete(self._keys.egg(digest))


class S3Blobs:
    """The same in a bucket: S3_ENDPOINT_URL says where, and credentials are where boto3 finds them. Raises botocore's errors."""

    def __init__(self, bucket: str, prefix: str) -> None:
        self._bucket = bucket
        self._prefix = prefix

    @cached_property
    def _client(self) -> Any:
        # Costs 30 MB, which a node without a bucket does not need.
        import boto3  # noqa: PLC0415
        from botocore.config import Config  # noqa: PLC0415

        return boto3.client(
            "s3",
            endpoint_url=os.environ.get("S3_ENDPOINT_URL") or None,
            config=Config(connect_timeout=5, read_timeout=ANSWER_SECONDS, retries={"max_attempts": 2}),
        )

    def _at(self, digest: str) -> dict[str, str]:
        return {"Bucket": self._bucket, "Key": f"{self._prefix}{digest}.egg"}

    def put(self, digest: str, data: bytes) -> None:
        """Keep an egg."""
        self._client.put_object(**self._at(digest), Body=data)

    def get(self, digest: str) -> bytes | None:
        """Return an egg; None when it is not there."""
        try:
            data: bytes = self._client.get_object(**self._at(digest))["Body"].read()
        except self._client.exceptions.NoSuchKey:
            return None
        return data

    def delete(self, digest: str) -> None:
        """Forget an egg."""
        self._client.delete_object(**self._at(digest))
