"""The one way to Redis for all parts: making a client, and saying in a sentence what is wrong.

Redis 6.2 or newer, Valkey, and either of them behind Sentinel. Redis Cluster is not supported: all keys of a site are in one
of its slots, so that it would spread nothing.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import redis
import redis.asyncio
import redis.asyncio.sentinel
import redis.exceptions
import redis.sentinel
from redis.asyncio.connection import parse_url
from redis.asyncio.retry import Retry as AsyncRetry
from redis.backoff import ConstantBackoff, NoBackoff
from redis.retry import Retry

from moviecrawler.errors import ConfigurationError
from moviecrawler.package_files import read_package_file

if TYPE_CHECKING:
    from collections.abc import Mapping

    from scrapy.settings import BaseSettings

_TIMEOUTS = {"socket_connect_timeout": 5.0, "socket_timeout": 5.0}
"""Seconds to connect, and to get an answer."""
_RETRY_PAUSE_SECONDS = 0.02
_NO_CLUSTER = "Redis Cluster is not supported; set REDIS_URL to a single Redis or Valkey, or to one behind Sentinel"


def redis_parameters(settings: BaseSettings | Mapping[str, Any]) -> dict[str, Any]:
    """Return REDIS_PARAMS: the further arguments of redis-py's clients. Raises ConfigurationError.

    `sentinels` ([[host, port], …]), `service_name` and `sentinel_kwargs` are redis-py's for Sentinel: with them, Sentinel says
    where the server is, and REDIS_URL gives database and credentials only.
    """
    given = settings.get("REDIS_PARAMS") or {}
    try:
        parameters = json.loads(given) if isinstance(given, str | bytes) else dict(given)
    except (TypeError, ValueError):
        parameters = None
    if not isinstance(parameters, dict):
        # Not the value itself, which may hold a password.
        raise ConfigurationError("REDIS_PARAMS is no JSON object")
    if "redis_cls" in parameters:
        raise ConfigurationError(f"REDIS_PARAMS has redis_cls, which is gone: {_NO_CLUSTER}")
    sentinels = parameters.get("sentinels", [])
    if ("sentinels" in parameters) != ("service_name" in parameters) or not _are_addresses(sentinels):
        raise ConfigurationError(
            'REDIS_PARAMS takes Sentinel as {"sentinels": [["host", 26379], ...], "service_name": "mymaster"}'
        )
    return parameters


def _are_addresses(given: Any) -> bool:
    return isinstance(given, list) and all(
        isinstance(one, list) and len(one) == 2 and isinstance(one[0], str) and isinstance(one[1], int)  # noqa: PLR2004 - host and port
        for one in given
    )


def connect(url: str, **parameters: Any) -> Any:  # redis-py's types leave open whether answers are bytes
    """Return a client for an event loop, which connects with its first command. `parameters` are REDIS_PARAMS.

    It never repeats a command that failed, because the server may have run it. Raises ConfigurationError.
    """
    given = {**_TIMEOUTS, **parameters, "decode_responses": False, "retry": AsyncRetry(NoBackoff(), 0)}
    return _made(url, given, redis.asyncio.Redis, redis.asyncio.sentinel.Sentinel, _ClientOverSentinel)


def connect_blocking(url: str, **parameters: Any) -> Any:
    """Return a client for threads. After a connection that was lost, it tries once more: an idle one is, when Redis restarts.

    Raises ConfigurationError.
    """
    retry = Retry(ConstantBackoff(_RETRY_PAUSE_SECONDS), 1, supported_errors=(redis.exceptions.ConnectionError,))
    given = {**_TIMEOUTS, "retry": retry, **parameters}
    return _made(url, given, redis.Redis, redis.sentinel.Sentinel, redis.Redis)


def _made(url: str, given: dict[str, Any], single: Any, sentinel: Any, over_sentinel: Any) -> Any:
    sentinels, service_name = given.pop("sentinels", None), given.pop("service_name", None)
    try:
        if not sentinels:
            client = single.from_url(url, **given)
            client.connection_pool.connection_class(**client.connection_pool.connection_kwargs)  # opens nothing
            return client
        from_url = {name: value for name, value in parse_url(url).items() if name not in {"host", "port", "path"}}
        from_url.pop("connection_class", None)
        named = {"ssl": True} if url.startswith("rediss:") else {}
        to_sentinels = {**_TIMEOUTS, **given.pop("sentinel_kwargs", {})}
        asked = sentinel(sentinels, sentinel_kwargs=to_sentinels, **named, **from_url, **given)
        return asked.master_for(service_name, redis_class=over_sentinel)
    except ValueError:
        # Not the error's text, which may hold a part of the password.
        raise ConfigurationError("REDIS_URL is no Redis URL; set it to one such as redis://127.0.0.1:6379/0") from None
    except TypeError as error:
        raise ConfigurationError(
            f"REDIS_PARAMS has what redis-py's client does not take: {str(error).partition('()')[2].strip()}"
        ) from None


class _ClientOverSentinel(redis.asyncio.Redis):
    """Closes its connections to Sentinel, too."""

    async def aclose(self, close_connection_pool: bool | None = None) -> None:
        await super().aclose(close_connection_pool)
        for sentinel in self.connection_pool.sentinel_manager.sentinels:  # type: ignore[attr-defined]
            await sentinel.aclose()


def load_script(client: Any, package: str, name: str) -> Any:
    """Return the Lua script `name`.lua of a package, as something to call with keys and arguments."""
    return client.register_script(read_package_file(package, f"{name}.lua"))


def describe_error(error: Exception, otherwise: str = "") -> str:
    """Return why Redis can't do what it was asked. `otherwise` says what to do where the error does not."""
    if isinstance(error, redis.exceptions.MovedError | redis.exceptions.ClusterCrossSlotError):
        return _NO_CLUSTER
    return f"{error}{otherwise}"
