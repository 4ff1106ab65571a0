"""The quarantines of one site's proxies, shared with all nodes through Redis."""

from __future__ import annotations

import asyncio
import logging
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import msgspec
import redis.exceptions

from moviecrawler.proxies.pools import BAN_MEMORY_SECONDS, MAX_QUARANTINE_SECONDS, Ban

if TYPE_CHECKING:
    from collections.abc import Iterable

    from moviecrawler.proxies.pools import Proxy, ProxyPool

logger = logging.getLogger(__name__)

_READ_SECONDS = 1.0  # between two exchanges with Redis


def bans_key(site: str) -> str:
    """Return the key of a HASH: proxy's key → JSON of a `Ban`.

    It expires when no ban counts any more.
    """
    return f"{{{site}}}:proxies"


def decode_bans(fields: dict[bytes, bytes]) -> dict[str, Ban]:
    """Return the bans in that HASH; one that can't be read is logged and left out."""
    bans: dict[str, Ban] = {}
    for key, text in fields.items():
        try:
            bans[key.decode()] = msgspec.json.decode(text, type=Ban)
        except (ValueError, RecursionError) as error:
            logger.warning(
                "The quarantine of the proxy %r in Redis can't be read, and does not count: %s",
                key,
                error,
            )
    return bans


class Quarantines:
    """Begins and ends quarantines.

    Without Redis, or while it is away, they hold for this process only.
    """

    def __init__(self, site: str, pools: Iterable[ProxyPool], client: Any = None) -> None:
        self._key = bans_key(site)
        self._pools = tuple(pools)
        self._client = client
        self._unsent: dict[str, Ban | None] = {}  # changes to send; None for a ban to delete
        self._soon = asyncio.Event()
        self._closing = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def ban(
        self, pool: ProxyPool, proxy: Proxy, reason: str, min_seconds: float = 0.0
    ) -> float | None:
        """Begin a quarantine; return its seconds, None when the proxy is in one already."""
        now = time.time()
        until = pool.ban(proxy.name, now, min_seconds)
        if until is None:
            return None
        if proxy.key is not None:
            self._unsent[proxy.key] = Ban(until, pool.proxies[proxy.name].failed_attempts, reason)
            self._soon.set()
        return until - now

    def answered(self, pool: ProxyPool, proxy: Proxy) -> None:
        """Note a good answer through a proxy, which ends its count of bans."""
        if pool.answered(proxy.name) and proxy.key is not None:
            self._unsent[proxy.key] = None

    async def start(self) -> None:
        """Exchange quarantines with Redis now and every second.

        Raises redis.RedisError when the first exchange fails.
        """
        await self._exchange()
        self._task = asyncio.create_task(self._run())

    async def close(self) -> None:
        """Send what is left, and disconnect."""
        # The task is not cancelled, as a client may swallow that when a time-out comes at the same
        # moment.
        self._closing.set()
        self._soon.set()
        if self._task is not None:
            await self._task
        if self._client is not None:
            await self._client.aclose()

    async def _run(self) -> None:
        is_away = False
        is_last = False
        while not is_last:
            with suppress(TimeoutError):
                async with asyncio.timeout(_READ_SECONDS):
                    await self._soon.wait()
            self._soon.clear()
            is_last = self._closing.is_set()
            try:
                await self._exchange()
                is_away = False
            except redis.exceptions.RedisError as error:
                if not is_away:
                    logger.warning(
                        "Quarantines of proxies can't be shared: %s; this process goes on alone",
                        error,
                    )
                is_away = True
                await self._client.aclose()  # the next command makes a new connection

    async def _exchange(self) -> None:
        """End quarantines whose time is over, send changes, and read those of all nodes.

        Raises redis.RedisError.
        """
        now = time.time()
        for pool in self._pools:
            pool.reanimate(now)
        if self._client is None:
            return
        sent = self._unsent.copy()
        pipe = self._client.pipeline(transaction=False)
        for key, ban in sent.items():
            if ban is None:
                pipe.hdel(self._key, key)
            else:
                pipe.hset(self._key, key, msgspec.json.encode(ban))
                pipe.expire(self._key, round(MAX_QUARANTINE_SECONDS + BAN_MEMORY_SECONDS))
        pipe.hgetall(self._key)
        *_, fields = await pipe.execute()
        self._unsent = {
            key: ban for key, ban in self._unsent.items() if key not in sent or ban != sent[key]
        }
        known = decode_bans(fields)
        damaged = [key for key in fields if key.decode(errors="replace") not in known]
        if damaged:
            await self._client.hdel(self._key, *damaged)
        self._unsent.update(
            {key: None for key, ban in known.items() if now - ban.until > BAN_MEMORY_SECONDS}
        )
        for pool in self._pools:
            for proxy in pool.members.values():
                if proxy.key is not None and proxy.key not in self._unsent:
                    pool.learn(proxy.name, known.get(proxy.key), now)
