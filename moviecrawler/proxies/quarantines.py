"""The quarantines of one site's proxies, which all workers share through the queue's backend."""

from __future__ import annotations

import asyncio
import logging
import time
from contextlib import suppress
from typing import TYPE_CHECKING

import msgspec

from moviecrawler.basics.errors import FrontierError
from moviecrawler.basics.outages import Outage
from moviecrawler.proxies.pools import BAN_MEMORY_SECONDS, Ban

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from moviecrawler.politeness.ledger import Ledger
    from moviecrawler.proxies.pools import Proxy, ProxyPool

logger = logging.getLogger(__name__)

_READ_SECONDS = 1.0  # between two exchanges


def decode_bans(fields: Mapping[str, str]) -> dict[str, Ban]:
    """Return bans by the key of their proxy; one that can't be read is logged and left out."""
    bans: dict[str, Ban] = {}
    for key, text in fields.items():
        try:
            key.encode()  # UTF-8, as all keys of ours
            bans[key] = msgspec.json.decode(text, type=Ban)
        except (ValueError, RecursionError) as error:
            logger.warning(
                "The quarantine of the proxy %r can't be read, and does not count: %s",
                key,
                error,
            )
    return bans


class Quarantines:
    """Begins and ends quarantines.

    While the queue is unavailable, they hold for this process only.
    """

    def __init__(self, site: str, pools: Iterable[ProxyPool], ledger: Ledger) -> None:
        self._site = site
        self._pools = tuple(pools)
        self._ledger = ledger
        self._unsent: dict[str, Ban | None] = {}  # changes to send; None for a ban to delete
        self._wake = asyncio.Event()
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
            self._wake.set()
        return until - now

    def report_success(self, pool: ProxyPool, proxy: Proxy) -> None:
        """Note a good response through a proxy, which resets its count of bans."""
        if pool.report_success(proxy.name) and proxy.key is not None:
            self._unsent[proxy.key] = None

    async def start(self) -> None:
        """Exchange quarantines with the other workers, now and every second.

        Raises FrontierError when the first exchange fails.
        """
        await self._exchange()
        self._task = asyncio.create_task(self._run())

    async def close(self) -> None:
        """Send what is left."""
        # The task is not cancelled, as a client may swallow that when a time-out comes at the same
        # moment.
        self._closing.set()
        self._wake.set()
        if self._task is not None:
            await self._task

    async def _run(self) -> None:
        outage = Outage()
        is_last = False
        while not is_last:
            with suppress(TimeoutError):
                async with asyncio.timeout(_READ_SECONDS):
                    await self._wake.wait()
            self._wake.clear()
            is_last = self._closing.is_set()
            try:
                await self._exchange()
                outage.mark_up()
            except FrontierError as error:
                if outage.mark_down():
                    logger.warning(
                        "Quarantines of proxies can't be shared: %s; this process continues alone",
                        error,
                    )

    async def _exchange(self) -> None:
        """End quarantines that have expired, send changes, and read those of all workers.

        Raises FrontierError.
        """
        now = time.time()
        for pool in self._pools:
            pool.reanimate(now)
        sent = self._unsent.copy()
        changes = {
            key: None if ban is None else msgspec.json.encode(ban).decode()
            for key, ban in sent.items()
        }
        fields = await self._ledger.exchange_bans(self._site, changes)
        self._unsent = {
            key: ban for key, ban in self._unsent.items() if key not in sent or ban != sent[key]
        }
        known = decode_bans(fields)
        for key in fields:
            if key not in known or now - known[key].until > BAN_MEMORY_SECONDS:
                self._unsent[key] = None  # damaged, or expired long ago
        for pool in self._pools:
            for proxy in pool.members.values():
                if proxy.key is not None and proxy.key not in self._unsent:
                    pool.apply_shared_ban(proxy.name, known.get(proxy.key), now)
