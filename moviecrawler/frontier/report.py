"""How far the shared crawls are, and what was set aside: read from Redis, for people and their programs."""

from __future__ import annotations

import math
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Literal

import msgspec
import redis.exceptions

from moviecrawler.errors import ConfigurationError, MovieCrawlerError
from moviecrawler.frontier.keys import Keys
from moviecrawler.frontier.options import Budget, FrontierOptions
from moviecrawler.frontier.queue import LEVELS, connect
from moviecrawler.urls import HOMES

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from scrapy.settings import BaseSettings

    from moviecrawler.items import Site

State = Literal["running", "finished", "no worker", "stopped", "trying", "budget spent"]
"""`no worker`: there is something to do and nobody does it. `stopped`: the site has refused us. `trying`: that time is over,
and one request finds out whether it answers again. `budget spent`: that of the day."""

_SMOOTHED_OVER = 30.0
"""Seconds after which a rate is mostly the latest one."""
_DAY = 86_400


class FrontierAwayError(MovieCrawlerError):
    """Redis can't be asked."""


@dataclass(slots=True, kw_only=True)
class RunReport:
    """A run at one moment. Times are in seconds since 1970, by Redis' clock."""

    site: Site
    run: str
    total: int
    """Requests queued so far."""
    done: int
    failed: int
    """Including dead letters."""
    dropped: int
    """Requests that were known already, or above the limit."""
    queued: int
    dead_letters: int
    workers: int
    started_at: float
    ended_at: float | None
    """When the latest request ended; None before the first."""
    now: float
    nodes: dict[str, dict[str, int]] = field(default_factory=dict)
    """`done` and `failed` by node."""
    refusal: str | None = None
    """What the site refused us with, until it answers again; None when it has not. The same for all runs, as is all below."""
    stopped_until: float | None = None
    """Until when nothing is handed out because of it."""
    used_today: int = 0
    """Requests sent in this UTC day."""
    budget: Budget = field(default_factory=Budget)
    """By the settings of the process that asks, which should be those of the workers."""

    @property
    def ended(self) -> int:
        """Requests that are over, in whatever way."""
        return self.done + self.failed

    @property
    def to_go(self) -> int:
        """Requests that are not."""
        return max(0, self.total - self.ended)

    @property
    def stopped(self) -> str | None:
        """Why the site may not be asked now; None when it may."""
        return self.refusal if (self.stopped_until or 0) > self.now else None

    @property
    def active_until(self) -> float:
        """When something was last done: now, while a worker is there."""
        return self.now if self.workers else self.ended_at or self.started_at

    @property
    def state(self) -> State:
        """What holds it up, if anything does."""
        if not self.to_go:
            return "running" if self.workers else "finished"
        if self.refusal is not None:
            return "stopped" if self.stopped else "trying"
        if self.budget.per_day is not None and self.used_today >= self.budget.per_day:
            return "budget spent"
        return "running" if self.workers else "no worker"


@dataclass(slots=True)
class Rate:
    """How many requests end a second: the mean since the start at the first look, then smoothed over those that follow."""

    since: float
    per_second: float | None = None
    _before: int = 0

    def update(self, ended: int, now: float) -> None:
        """Look at how many have ended by `now`."""
        elapsed = now - self.since
        if elapsed <= 0:
            return
        latest = max(0, ended - self._before) / elapsed  # fewer than before when dead letters were queued again
        if self.per_second is None:
            self.per_second = latest
        else:
            self.per_second += (latest - self.per_second) * -math.expm1(-elapsed / _SMOOTHED_OVER)
        self.since, self._before = now, ended

    def seconds_left(self, to_go: int) -> float | None:
        """Return the seconds that so many take at this rate; None when nothing is being done."""
        return to_go / self.per_second if self.per_second else None


@dataclass(slots=True, kw_only=True)
class DeadLetter:
    """A request or a seed that was set aside."""

    site: Site
    run: str
    id: str
    reason: str
    at: float | None
    """Seconds since 1970; None for a seed."""
    entry: str
    """What stood in the queue, with what is not UTF-8 escaped."""

    @property
    def keys(self) -> Keys:
        """The keys of its run."""
        return Keys(self.site, self.run)

    @property
    def request(self) -> dict[str, Any] | None:
        """What the entry says of the request, as far as it can be read; None when it is none."""
        try:
            version, url, site, callback, errback, cb_kwargs, expects, priority, depth, created_at, retries, *_ = (
                msgspec.json.decode(self.entry[35:])
            )
        except (msgspec.DecodeError, ValueError, TypeError):
            return None
        del version, site, expects
        return {
            "url": url,
            "callback": callback,
            "errback": errback,
            "cb_kwargs": cb_kwargs,
            "priority": priority,
            "depth": depth,
            "created_at": created_at,
            "retries": retries,
            "deliveries": self.entry[1:3],
        }


def budgets(settings: BaseSettings) -> dict[Site, Budget]:
    """Return each site's budget by the settings. Raises ConfigurationError, as for REDIS_URL and all other ones."""
    return {site: FrontierOptions.from_settings(settings, settings[f"{site.upper()}_URL"]).budget for site in HOMES}


@asynccontextmanager
async def asking(settings: BaseSettings) -> AsyncIterator[Any]:
    """Give a client of the Redis that REDIS_URL names; what goes wrong while it is used becomes FrontierAwayError."""
    try:
        client = connect(settings["REDIS_URL"], **settings.getdict("REDIS_PARAMS"))
    except ValueError as error:
        raise ConfigurationError(f"REDIS_URL is no Redis URL: {error}") from None
    try:
        yield client
    except redis.exceptions.RedisError as error:
        raise FrontierAwayError(f"Redis at REDIS_URL can't be asked: {error}") from error
    finally:
        await client.aclose()


async def read_runs(
    client: Any, site: Site | None = None, run: str | None = None, budget: Mapping[Site, Budget] | None = None
) -> list[RunReport]:
    """Return every run that Redis holds, of that site and of that name if given, by site and then by age."""
    now_s, now_us = await client.time()
    reports = []
    for keys in await _runs(client, site, run):
        report = await _read_run(client, keys, now_s + now_us / 1e6)
        if report is None:
            await client.zrem(keys.runs, keys.run)
        else:
            report.budget = (budget or {}).get(keys.site, report.budget)
            reports.append(report)
    return reports


async def _runs(client: Any, site: Site | None, run: str | None) -> list[Keys]:
    return [
        Keys(one, name.decode())
        for one in HOMES
        if site in {None, one}
        for name in await client.zrange(Keys(one, "").runs, 0, -1)
        if run in {None, name.decode()}
    ]


async def _read_run(client: Any, keys: Keys, now: float) -> RunReport | None:
    pipe = client.pipeline(transaction=False)
    pipe.hgetall(keys.state)
    pipe.hgetall(keys.nodes)
    pipe.hgetall(keys.circuit)
    pipe.hgetall(keys.budget)
    pipe.hlen(keys.dead_letters)
    pipe.zcount(keys.workers, now * 1000, "+inf")
    for level in LEVELS:
        pipe.llen(keys.requests(level))
    state, nodes, circuit, spent, dead_letters, workers, *lengths = await pipe.execute()
    if not state:
        return None
    total, done, failed, dropped = (int(state.get(name, 0)) for name in (b"total", b"done", b"failed", b"dropped"))
    by_node: dict[str, dict[str, int]] = {}
    for field_name, count in sorted(nodes.items()):
        node, _, figure = field_name.decode(errors="backslashreplace").rpartition(" ")
        by_node.setdefault(node, {"done": 0, "failed": 0})[figure] = int(count)
    return RunReport(
        site=keys.site,
        run=keys.run,
        total=total,
        done=done,
        failed=failed,
        dropped=dropped,
        queued=sum(lengths),
        dead_letters=dead_letters,
        workers=workers,
        started_at=int(state[b"started_at"]) / 1000,
        ended_at=int(state[b"ended_at"]) / 1000 if b"ended_at" in state else None,
        now=now,
        nodes=by_node,
        refusal=circuit[b"reason"].decode(errors="backslashreplace") if b"reason" in circuit else None,
        stopped_until=float(circuit[b"until"]) / 1000 if b"until" in circuit else None,
        used_today=int(spent[b"used"]) if int(spent.get(b"day", -1)) == now // _DAY else 0,
    )


async def dead_letters(client: Any, site: Site | None = None, run: str | None = None) -> AsyncIterator[DeadLetter]:
    """Yield what was set aside, in no order; in all runs, or in those of that site and of that name."""
    for keys in await _runs(client, site, run):
        async for letter_id, letter in client.hscan_iter(keys.dead_letters):
            yield _dead_letter(keys, letter_id, letter)


def _dead_letter(keys: Keys, letter_id: bytes, letter: bytes) -> DeadLetter:
    head, _, entry = letter.partition(b"\n")
    told = msgspec.json.decode(head)
    return DeadLetter(
        site=keys.site,
        run=keys.run,
        id=letter_id.decode(errors="backslashreplace"),
        reason=told["reason"],
        at=told["at"] and told["at"] / 1000,
        entry=entry.decode(errors="backslashreplace"),
    )


async def drop(client: Any, letter: DeadLetter) -> bool:
    """Forget a dead letter; return whether it was there. What it was for stays counted as failed."""
    return bool(await client.hdel(letter.keys.dead_letters, letter.id))


def line_of(report: RunReport, rate: Rate) -> str:
    """Return how far a run is, in a line: what `scrapy progress` and the log of each of its workers show."""
    return f"{name_of(report)} {report.done:,} of {report.total:,} requests done, {details_of(report, rate)}"


def name_of(report: RunReport) -> str:
    """Return whose figures these are, and how it goes."""
    return printable(f"{report.site} ({report.run}) {report.state}:")


def details_of(report: RunReport, rate: Rate) -> str:
    """Return the figures beside those of the requests done."""
    parts = [f"{report.failed:,} failed"]
    if report.dead_letters:
        parts.append(f"{report.dead_letters:,} dead letters")
    parts += [f"{report.to_go:,} to go", f"workers: {report.workers}", f"{per_minute(rate)} a minute"]
    left = rate.seconds_left(report.to_go)
    if report.state == "running" and report.to_go and left is not None:
        parts.append(f"{timedelta(seconds=round(left))} left")
    if report.budget.per_day is not None:
        parts.append(f"{report.used_today:,} of {report.budget.per_day:,} requests of the day")
    told = ", ".join(parts)
    if report.stopped is not None:
        until = datetime.fromtimestamp(report.stopped_until or 0, UTC)
        told += f"; until {until:%Y-%m-%d %H:%M} UTC: {printable(report.stopped)}"
    return told


def per_minute(rate: Rate) -> str:
    """Return a rate as a person reads it."""
    return f"{60 * (rate.per_second or 0):,.0f}"


def printable(text: str) -> str:
    r"""Return a text of others with what could move a terminal's cursor, or hide something, escaped.

    >>> printable("caf\u00e9 \x1b[31m\n")
    'café \\x1b[31m\\n'
    """
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
