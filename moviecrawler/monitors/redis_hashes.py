"""Alarms in the Redis that nodes share."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import redis.exceptions

from moviecrawler.errors import AlarmStoreError
from moviecrawler.monitors import keys
from moviecrawler.redis_client import connect_blocking, describe_error

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

T = TypeVar("T")


class RedisHashes:
    """Hashes by key, and a list of events, as in `SqliteHashes`.

    An update is a transaction, which is repeated when another client has changed a key meanwhile.
    """

    def __init__(self, url: str, parameters: Mapping[str, Any] | None = None) -> None:
        self._client = connect_blocking(url, **{**(parameters or {}), "decode_responses": True})

    def read(self, hash_keys: Sequence[str]) -> list[dict[str, str]]:
        """See `SqliteHashes`."""
        with _errors_translated():
            pipe = self._client.pipeline(transaction=False)
            for key in hash_keys:
                pipe.hgetall(key)
            found: list[dict[str, str]] = pipe.execute()
        return found

    def update(self, hash_keys: Sequence[str], change: Callable[[list[dict[str, str]]], T], seconds: float | None) -> T:
        """See `SqliteHashes`."""

        def transact(pipe: Any) -> T:
            before = [pipe.hgetall(key) for key in hash_keys]
            after = [dict(each) for each in before]
            result = change(after)
            pipe.multi()
            for key, old, new in zip(hash_keys, before, after, strict=True):
                if gone := old.keys() - new.keys():
                    pipe.hdel(key, *gone)
                if written := {name: text for name, text in new.items() if old.get(name) != text}:
                    pipe.hset(key, mapping=written)
                if seconds is not None:
                    pipe.expire(key, round(seconds))
            return result

        with _errors_translated():
            result: T = self._client.transaction(transact, *hash_keys, value_from_callable=True)
        return result

    def add_event(self, event: str, most: int) -> None:
        """See `SqliteHashes`."""
        with _errors_translated():
            self._client.pipeline().lpush(keys.HISTORY, event).ltrim(keys.HISTORY, 0, most - 1).execute()

    def events(self, limit: int) -> list[str]:
        """See `SqliteHashes`."""
        with _errors_translated():
            found: list[str] = self._client.lrange(keys.HISTORY, 0, limit - 1)
        return found

    def close(self) -> None:
        """See `SqliteHashes`."""
        self._client.close()


@contextmanager
def _errors_translated() -> Iterator[None]:
    try:
        yield
    except redis.exceptions.RedisError as error:
        raise AlarmStoreError(
            f"alarms and what is known of pages can't be read or written: {describe_error(error)}"
        ) from error
