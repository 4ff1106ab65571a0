"""Shares the quarantines of proxies with other processes through Redis, several times a second, and publishes their figures."""

from __future__ import annotations

import asyncio
import logging
import uuid
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import msgspec
import redis.exceptions

from moviecrawler.proxies.health import FORGIVEN_AFTER_SECONDS, MAX_QUARANTINE_SECONDS, Figures, Quarantine
from moviecrawler.proxies.keys import HOUR, HOURS_KEPT, Keys
from moviecrawler.redis_client import load_script

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from moviecrawler.proxies.health import Health

logger = logging.getLogger(__name__)

_INTERVAL_SECONDS = 0.4
"""Seconds between two exchanges. Urgent news does not wait for the next one."""
_COALESCE_SECONDS = 0.02
EXCHANGE_TIMEOUTS = {"socket_connect_timeout": 3.0, "socket_timeout": 3.0}
"""Seconds to connect and to get an answer; after that the process goes on alone."""
_MAX_RETRY_SECONDS = 5.0
_FIGURES = ("successes", "failures", "bans", "ms")
_MILLISECONDS = 1000


class SharedHealth:
    """Keeps the quarantines of one site the same in all processes. Without Redis, each process goes on with its own."""

    def __init__(
        self, client: Any, site: str, health: Health, probe_seconds: float, on_change: Callable[[], None]
    ) -> None:
        """Create it. `probe_seconds` limits a probe; `on_change` is called when `health` has changed."""
        self._client = client
        self._script = load_script(client, __package__, "exchange")
        self._keys = Keys(site)
        self._health = health
        self._probe_ms = round(probe_seconds * _MILLISECONDS)
        self._on_change = on_change
        self._me = uuid.uuid4().hex
        self._wakeup = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        health.is_shared = True

    async def start(self) -> None:
        """Read what other processes know, and start the exchanges. Raises RedisError."""
        await self.exchange()
        self._task = asyncio.get_running_loop().create_task(self._exchange_forever())

    def exchange_soon(self) -> None:
        """Exchange now."""
        self._wakeup.set()

    async def close(self) -> None:
        """Publish what is left, and disconnect."""
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task
            with suppress(redis.exceptions.RedisError):
                await self.exchange()
        await self._client.aclose()

    async def _exchange_forever(self) -> None:
        pause, working = _INTERVAL_SECONDS, True
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await self._wakeup.wait()
                    await asyncio.sleep(_COALESCE_SECONDS)
            self._wakeup.clear()
            try:
                await self.exchange()
                pause, working = _INTERVAL_SECONDS, True
            except redis.exceptions.RedisError as error:
                if working:
                    logger.warning("The health of proxies can't be shared through Redis: %s; going on alone", error)
                await self._client.aclose()  # drops its connections; the next command makes new ones
                pause, working = min(_MAX_RETRY_SECONDS, 2 * pause), False
            except Exception:
                logger.exception("The health of proxies can't be shared; going on alone and trying again")
                pause = _MAX_RETRY_SECONDS

    async def exchange(self) -> None:
        """Publish and read everything in one round trip. Raises RedisError when nothing of it may have been done."""
        health, keys = self._health, self._keys
        figures, quarantines = health.take_unpublished()
        hour = int(health.now() // HOUR)
        wanted = sorted(health.wanted_probes)
        arguments = {
            "me": self._me,
            "probe": self._probe_ms,
            "wanted": len(wanted),
            "figures": [
                (f"{proxy_id} {name}", number)
                for proxy_id, more in figures.items()
                for name, number in zip(_FIGURES, _numbers(more), strict=True)
                if number
            ],
            "quarantines": [(proxy_id, msgspec.json.encode(one).decode()) for proxy_id, one in quarantines.items()],
            "keep_figures": (HOURS_KEPT + 1) * HOUR,
            "keep_quarantines": round(2 * MAX_QUARANTINE_SECONDS),
        }
        try:
            seconds, micro, granted, known_quarantines = await self._script(
                keys=[keys.quarantines, keys.figures(hour), *map(keys.probe, [*wanted, *quarantines])],
                args=[msgspec.msgpack.encode(arguments)],
            )
        except BaseException:  # also when it is cancelled
            health.put_back(figures, quarantines)
            raise
        health.shift += int(seconds) + int(micro) / 1e6 - health.now()
        now = health.now()
        health.wanted_probes.clear()
        for proxy_id, is_ours in zip(wanted, granted, strict=True):
            if is_ours:
                health.granted_probes[proxy_id] = now + self._probe_ms / _MILLISECONDS
        known = _quarantines(dict(zip(known_quarantines[::2], known_quarantines[1::2], strict=True)))
        if health.merge(known) or wanted:
            self._on_change()
        old = [proxy_id for proxy_id, one in known.items() if now - one.until > FORGIVEN_AFTER_SECONDS]
        if old:
            await self._client.hdel(keys.quarantines, *old)


def _numbers(figures: Figures) -> tuple[int, int, int, int]:
    return figures.successes, figures.failures, figures.bans, round(figures.seconds * _MILLISECONDS)


def _sum(hours: Iterable[dict[bytes, bytes]]) -> dict[str, Figures]:
    figures: dict[str, Figures] = {}
    for hour in hours:
        for field, number in hour.items():
            proxy_id, _, name = field.decode().rpartition(" ")
            one = figures.setdefault(proxy_id, Figures())
            if name == "ms":
                one.seconds += int(number) / _MILLISECONDS
            elif name in _FIGURES:
                setattr(one, name, getattr(one, name) + int(number))
    return figures


def _quarantines(fields: dict[bytes, bytes]) -> dict[str, Quarantine]:
    quarantines = {}
    for proxy_id, text in fields.items():
        with suppress(msgspec.DecodeError, UnicodeDecodeError):  # written by another version
            quarantines[proxy_id.decode()] = msgspec.json.decode(text, type=Quarantine)
    return quarantines


# --- For `scrapy proxies` ------------------------------------------------------------------------------------------------


async def read_health(client: Any, site: str) -> tuple[float, dict[str, Figures], dict[str, Quarantine]]:
    """Return the time by Redis' clock (seconds since 1970), each proxy's figures of the last day, and the quarantines."""
    keys = Keys(site)
    seconds, micro = await client.time()
    pipe = client.pipeline(transaction=False)
    for before in range(HOURS_KEPT):
        pipe.hgetall(keys.figures(seconds // HOUR - before))
    pipe.hgetall(keys.quarantines)
    *hours, quarantines = await pipe.execute()
    return seconds + micro / 1e6, _sum(hours), _quarantines(quarantines)


async def clear_quarantines(client: Any, site: str, proxy_ids: Iterable[str]) -> int:
    """End the quarantines of proxies; return how many there were."""
    keys = Keys(site)
    ids = list(proxy_ids)
    if not ids:
        return 0
    await client.delete(*(keys.probe(proxy_id) for proxy_id in ids))
    return int(await client.hdel(keys.quarantines, *ids))
