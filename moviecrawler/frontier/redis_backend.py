"""The frontier's backend for many machines: Redis, with one Lua script that takes each step.

It is built on scrapy-redis, and replaces what is unsafe there: a popped request that dies with its
worker (here it is leased), pickled requests (here checked JSON), a blocking pop on the event loop,
and the flush by whoever ends first.
"""

from __future__ import annotations

import secrets
from contextlib import contextmanager
from typing import TYPE_CHECKING
from urllib.parse import quote

import msgspec
import redis.exceptions
from scrapy_redis import defaults
from scrapy_redis.scheduler import Scheduler

from moviecrawler.basics.errors import FrontierError, FrontierFullError
from moviecrawler.basics.files import read_package_file
from moviecrawler.frontier.contract import RAW, Backend, Opened
from moviecrawler.frontier.redis_client import (
    Client,
    check_server,
    connect,
    describe_error,
)
from moviecrawler.frontier.scheduler import FrontierScheduler

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Self

    from scrapy.settings import BaseSettings

    from moviecrawler.frontier.contract import Worker

_FILES = (
    "keys",
    "site",
    "run",
    "adopt",
    "open",
    "push",
    "take",
    "finish",
    "letters",
    "report",
    "step",
)
"""The files of the script, from what the others use."""


class RedisFrontierScheduler(FrontierScheduler, Scheduler):  # type: ignore[misc]  # no types there
    """scrapy-redis' scheduler with leases, for crawls with REDIS_URL.

    Of scrapy-redis it takes the connection's settings (REDIS_URL, REDIS_PARAMS, REDIS_ENCODING) and
    the seeds' key. Its queue, dupe filter and flush are replaced, as they lose what a killed worker
    held, read pickles and block the event loop.
    """


class RedisBackend(Backend):
    """The queues of all runs in one Redis."""

    def __init__(self, client: Client, start_urls_form: str = defaults.START_URLS_KEY) -> None:
        """Connect nothing. `start_urls_form` is REDIS_START_URLS_KEY, scrapy-redis' own setting."""
        self.client = client
        self._start_urls_form = start_urls_form
        parts = [read_package_file(__package__, f"{name}.lua") for name in _FILES]
        self._script = client.register_script("\n".join(parts))

    @classmethod
    def from_settings(cls, settings: BaseSettings) -> Self:
        """Read REDIS_URL, REDIS_PARAMS, REDIS_ENCODING and REDIS_START_URLS_KEY.

        Raises ConfigurationError. Nothing is connected.
        """
        client = connect(settings["REDIS_URL"], **settings.getdict("REDIS_PARAMS"))
        return cls(client, settings.get("REDIS_START_URLS_KEY") or defaults.START_URLS_KEY)

    async def place(self, site: str) -> str:
        """Return the address of Redis, as the first process had it, with a random number."""
        at = self.client.connection_pool.connection_kwargs
        address = at.get("path") or f"{at.get('host')}:{at.get('port')}"
        place = f"Redis at {address} ({secrets.token_hex(4)})"
        return await self._step(str, "place", site, place=place)

    async def exchange_bans(self, site: str, changes: Mapping[str, str | None]) -> dict[str, str]:
        """Write and read the HASH of bans, whose keys may be any bytes."""
        # The script takes text only.
        quoted = {quote(key, errors=RAW): ban or "" for key, ban in changes.items()}
        return await super().exchange_bans(site, quoted)

    async def open(self, worker: Worker, requested_at: float | None, age: float) -> Opened:
        """Check that Redis can be used, and join a run."""
        with _as_frontier_errors():
            await check_server(self.client)
        return await super().open(worker, requested_at, age)

    async def close(self) -> None:
        """Close the client's connections."""
        await self.client.aclose()

    async def _reply_to(self, given: Mapping[str, object]) -> bytes:
        """Have the script take a step."""
        start_urls = self._start_urls_form % {"name": given["site"]}
        packed = msgspec.msgpack.encode({**given, "start_urls": start_urls})
        with _as_frontier_errors():
            reply: bytes = await self._script(args=[packed])
        return reply


@contextmanager
def _as_frontier_errors() -> Iterator[None]:
    """Make errors of Redis those of the contract."""
    try:
        yield
    except redis.exceptions.RedisError as error:
        # A script that is out of memory is told so in the text of a general error.
        if isinstance(error, redis.exceptions.OutOfMemoryError) or "OOM" in str(error):
            raise FrontierFullError(f"Redis at REDIS_URL has no memory left: {error}") from error
        why = describe_error(error, "; start it, or remove REDIS_URL")
        raise FrontierError(f"Redis at REDIS_URL can't be used: {why}") from error
