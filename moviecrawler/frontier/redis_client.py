"""Making clients of Redis, for all parts, and saying in a sentence what is wrong.

Redis 6.2 or newer, or Valkey. Redis Cluster is not supported: all keys of a site are in one of its
slots, so that it would spread nothing.
"""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import redis
import redis.asyncio
import redis.exceptions
from redis.asyncio.retry import Retry as AsyncRetry
from redis.backoff import ConstantBackoff, NoBackoff
from redis.retry import Retry

from moviecrawler.basics.clock import check_clock
from moviecrawler.basics.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


_OPTIONS = {"socket_connect_timeout": 5.0, "socket_timeout": 5.0, "driver_info": None}
"""Seconds to connect, and to get a response. A query in REDIS_URL, such as `?socket_timeout=2`,
comes first. Without `driver_info`, redis-py would look up its own version and tell it with each
connection."""
_RETRY_PAUSE_SECONDS = 0.02
Client = Any
"""A client of redis-py, whose types leave open whether replies are bytes."""


def connect(url: str, **given: object) -> Client:
    """Return a client for an event loop, which connects with its first command.

    It never repeats a command that failed, because the server may have run it. Raises
    ConfigurationError.
    """
    return _client(
        redis.asyncio.Redis.from_url,
        url,
        {**_OPTIONS, **given, "retry": AsyncRetry(NoBackoff(), 0)},
    )


def connect_blocking(url: str, **given: object) -> Client:
    """Return a client for threads.

    After a connection that was lost, it tries once more: an idle one is, when Redis restarts.
    Raises ConfigurationError.
    """
    retry = Retry(
        ConstantBackoff(_RETRY_PAUSE_SECONDS),
        1,
        supported_errors=(redis.exceptions.ConnectionError,),
    )
    return _client(redis.Redis.from_url, url, {**_OPTIONS, "retry": retry, **given})


def _client(make: Callable[..., Client], url: str, given: dict[str, object]) -> Client:
    try:
        client = make(url, **given)
        # Opens nothing.
        client.connection_pool.connection_class(**client.connection_pool.connection_kwargs)
    except (ValueError, TypeError):
        # Not the error's text, which may hold a part of the password.
        raise ConfigurationError("REDIS_URL is not a Redis URL; use redis://host:6379/0") from None
    return client


async def check_server(client: Client) -> None:
    """Raise ConfigurationError when Redis throws keys away where it is full.

    What is queued would go with them. Raise ClockError when this machine's clock is not its clock.
    """
    seconds, _ = await client.time()
    check_clock(datetime.fromtimestamp(seconds, UTC), "Redis")
    with suppress(redis.exceptions.ResponseError):  # where we may not ask
        if fault := eviction_fault(await client.info("memory")):
            raise ConfigurationError(fault)


def eviction_fault(info: Mapping[str, object]) -> str:
    """Return a sentence when Redis throws keys away where it is full; otherwise nothing.

    `info` is its answer to INFO memory.
    """
    policy = info.get("maxmemory_policy", "noeviction")
    if not info.get("maxmemory") or policy == "noeviction":
        return ""
    return (
        f"Redis throws keys away when it is full ({policy}); set its maxmemory-policy to noeviction"
    )


def describe_error(error: Exception, otherwise: str = "") -> str:
    """Return why Redis can't do what it was asked.

    `otherwise` says what to do where the error does not.
    """
    if isinstance(error, redis.exceptions.MovedError | redis.exceptions.ClusterCrossSlotError):
        return "Redis Cluster is not supported; set REDIS_URL to a single Redis or Valkey"
    if isinstance(error, redis.exceptions.OutOfMemoryError) or "OOM command" in str(error):
        return "Redis is full: it has reached its maxmemory; give it more"
    if isinstance(error, redis.exceptions.AuthenticationError):
        return (
            "Redis refuses the password in REDIS_URL, or the lack of one; it may have been changed"
        )
    return f"{error}".rstrip(".") + otherwise


def state_error(error: Exception) -> str:
    """Return a sentence that names Redis, and says why it can't do what it was asked."""
    reason = describe_error(error)
    return reason if reason.startswith("Redis ") else f"Redis can't be reached: {reason}"
