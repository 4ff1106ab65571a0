"""Exchanging what is known of exits with other processes, through Redis, several times a second."""

from __future__ import annotations

import asyncio
import logging
import time
import uuid
from contextlib import suppress
from importlib.resources import files
from typing import TYPE_CHECKING

import msgspec
import redis.asyncio
import redis.exceptions

from moviecrawler.proxies.health import FORGIVEN_AFTER, LONGEST_QUARANTINE, Figures, Quarantine
from moviecrawler.proxies.keys import HOUR, HOURS_KEPT, Keys

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from moviecrawler.proxies.health import Health

logger = logging.getLogger(__name__)

EVERY = 0.4
"""Seconds between two exchanges; what others have to know at once does not wait for the next one."""
_FIGURES_EVERY = 2.0
"""Seconds between two looks at the figures, of which there are many and which change a little."""
_COALESCE = 0.02
EXCHANGE_TIMEOUTS = {"socket_connect_timeout": 3.0, "socket_timeout": 3.0}
"""Seconds to connect and to get an answer, for clients that exchange: they go on alone after that."""
_LONGEST_RETRY = 5.0
_FIGURES = ("successes", "failures", "bans", "ms")
_MS = 1000
_HOURS_USED = 2
"""Hours whose figures decide how much an exit is used, the current one included."""


class SharedHealth:
    """Keeps the `Health` of one site the same in all processes. While Redis is away, each goes on by what it knows."""

    def __init__(
        self, client: redis.asyncio.Redis, site: str, health: Health, probe_within: float, changed: Callable[[], None]
    ) -> None:
        """Take how long a probe may take (s), and what to call when something of `health` has changed."""
        self._client = client
        self._script = client.register_script(files(__package__).joinpath("exchange.lua").read_text("utf-8"))
        self._keys = Keys(site)
        self._health = health
        self._probe_ms = round(probe_within * _MS)
        self._told_changed = changed
        self._me = uuid.uuid4().hex
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._figures_at = float("-inf")
        health.alone = False

    async def start(self) -> None:
        """Learn what others know, and go on exchanging. Raises RedisError."""
        await self.exchange()
        self._task = asyncio.get_running_loop().create_task(self._exchange_forever())

    def hurry(self) -> None:
        """Exchange now."""
        self._wake.set()

    async def close(self) -> None:
        """Tell what is left to tell, and disconnect."""
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task
            with suppress(redis.exceptions.RedisError):
                await self.exchange()
        await self._client.aclose()

    async def _exchange_forever(self) -> None:
        pause, working = EVERY, True
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await self._wake.wait()
                    await asyncio.sleep(_COALESCE)
            self._wake.clear()
            try:
                await self.exchange()
                pause, working = EVERY, True
            except redis.exceptions.RedisError as error:
                if working:
                    logger.warning("Redis can't be told of exits: %s; going on alone and trying again", error)
                await self._client.aclose()  # drops its connections; the next command makes new ones
                pause, working = min(_LONGEST_RETRY, 2 * pause), False
            except Exception:
                logger.exception("Exits can't be shared; going on alone and trying again")
                pause = _LONGEST_RETRY

    async def exchange(self) -> None:
        """Tell and ask everything in one round trip. Raises RedisError when nothing of it may have been done."""
        health, keys = self._health, self._keys
        figures, quarantines = health.tell()
        hour = int(health.now() // HOUR)
        wanted = sorted(health.wanted)
        looked_at = time.monotonic()
        hours = _HOURS_USED if looked_at - self._figures_at >= _FIGURES_EVERY else 0
        arguments = {
            "me": self._me,
            "probe": self._probe_ms,
            "wanted": len(wanted),
            "figures": [
                (f"{exit_id} {name}", number)
                for exit_id, more in figures.items()
                for name, number in zip(_FIGURES, _numbers(more), strict=True)
                if number
            ],
            "quarantines": [(exit_id, msgspec.json.encode(one).decode()) for exit_id, one in quarantines.items()],
            "keep_figures": (HOURS_KEPT + 1) * HOUR,
            "keep_quarantines": round(2 * LONGEST_QUARANTINE),
            "hours": hours,
        }
        try:
            seconds, micro, granted_to_us, told, *figures_told = await self._script(
                keys=[
                    keys.quarantines,
                    *(keys.figures(hour - before) for before in range(_HOURS_USED)),
                    *map(keys.probe, [*wanted, *quarantines]),
                ],
                args=[msgspec.msgpack.encode(arguments)],
            )
        except BaseException:  # also when it is cancelled
            health.untell(figures, quarantines)
            raise
        health.shift += int(seconds) + int(micro) / 1e6 - health.now()
        now = health.now()
        health.wanted.clear()
        for exit_id, granted in zip(wanted, granted_to_us, strict=True):
            if granted:
                health.granted[exit_id] = now + self._probe_ms / _MS
        known = _quarantines(_fields(told))
        if hours:
            self._figures_at = looked_at
        changed = health.learn(_sum(map(_fields, figures_told)) if hours else None, known)
        if changed or wanted:
            self._told_changed()
        old = [exit_id for exit_id, one in known.items() if now - one.until > FORGIVEN_AFTER]
        if old:
            await self._client.hdel(keys.quarantines, *old)


def _numbers(figures: Figures) -> tuple[int, int, int, int]:
    return figures.successes, figures.failures, figures.bans, round(figures.seconds * _MS)


def _fields(told: Sequence[bytes]) -> dict[bytes, bytes]:
    """Return a hash as a script tells it: names and values by turns."""
    return dict(zip(told[::2], told[1::2], strict=True))


def _sum(hours: Iterable[dict[bytes, bytes]]) -> dict[str, Figures]:
    figures: dict[str, Figures] = {}
    for hour in hours:
        for field, number in hour.items():
            exit_id, _, name = field.decode().rpartition(" ")
            one = figures.setdefault(exit_id, Figures())
            if name == "ms":
                one.seconds += int(number) / _MS
            elif name in _FIGURES:
                setattr(one, name, getattr(one, name) + int(number))
    return figures


def _quarantines(fields: dict[bytes, bytes]) -> dict[str, Quarantine]:
    quarantines = {}
    for exit_id, text in fields.items():
        with suppress(msgspec.DecodeError, UnicodeDecodeError):  # written by another version
            quarantines[exit_id.decode()] = msgspec.json.decode(text, type=Quarantine)
    return quarantines


# --- For `scrapy proxies` ------------------------------------------------------------------------------------------------


async def read_health(
    client: redis.asyncio.Redis, site: str
) -> tuple[float, dict[str, Figures], dict[str, Quarantine]]:
    """Return the time by Redis' clock (seconds since 1970), each exit's figures of the last day, and the quarantines."""
    keys = Keys(site)
    seconds, micro = await client.time()
    pipe = client.pipeline(transaction=False)
    for before in range(HOURS_KEPT):
        pipe.hgetall(keys.figures(seconds // HOUR - before))
    pipe.hgetall(keys.quarantines)
    *hours, quarantines = await pipe.execute()
    return seconds + micro / 1e6, _sum(hours), _quarantines(quarantines)


async def clear_quarantines(client: redis.asyncio.Redis, site: str, exit_ids: Iterable[str]) -> int:
    """Let exits be used at once; return how many were quarantined."""
    keys = Keys(site)
    ids = list(exit_ids)
    if not ids:
        return 0
    await client.delete(*(keys.probe(exit_id) for exit_id in ids))
    return int(await client.hdel(keys.quarantines, *ids))
