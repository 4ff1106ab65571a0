"""How far the shared crawls are: read from Redis, for people and their programs."""

from __future__ import annotations

import math
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import redis.exceptions

from moviecrawler.errors import ConfigurationError, MovieCrawlerError
from moviecrawler.frontier.keys import Keys
from moviecrawler.frontier.options import Budget, FrontierOptions, redis_parameters
from moviecrawler.frontier.queue import LEVELS, connect, trouble_of
from moviecrawler.urls import HOMES

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping, Sequence

    from scrapy.settings import BaseSettings

    from moviecrawler.items import Site

State = Literal["running", "finished", "no worker", "stopped", "trying", "budget spent"]
"""`no worker`: there is something to do and nobody does it. `stopped`: the site has refused us. `trying`: that time is over,
and one request finds out whether it answers again. `budget spent`: that of the day."""

_SMOOTHED_OVER = 30.0
"""Seconds after which a rate is mostly the latest one."""
_DAY = 86_400
_RECENTLY = 3600.0
"""Seconds for which a run that is over still is one of the current ones."""
MOST_CURRENT = 300
"""Of a site; more would be runs of which hundreds were broken off."""
_NEWEST = 10
_AT_ONCE = 100
"""Runs of which all is asked in one pipeline."""


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
    def is_current(self) -> bool:
        """Whether it is not over, or has ended just now."""
        left = self.workers or self.to_go or self.queued or self.dead_letters
        return bool(left) or self.now - self.active_until <= _RECENTLY

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


def budgets(settings: BaseSettings) -> dict[Site, Budget]:
    """Return each site's budget by the settings. Raises ConfigurationError, as for REDIS_URL and all other ones."""
    return {site: FrontierOptions.from_settings(settings, settings[f"{site.upper()}_URL"]).budget for site in HOMES}


@asynccontextmanager
async def asking(settings: BaseSettings) -> AsyncIterator[Any]:
    """Give a client of the Redis that REDIS_URL names; what goes wrong while it is used becomes FrontierAwayError."""
    try:
        client = connect(settings["REDIS_URL"], **redis_parameters(settings))
    except ValueError as error:
        raise ConfigurationError(f"REDIS_URL is no Redis URL: {error}") from None
    try:
        yield client
    except redis.exceptions.RedisError as error:
        raise FrontierAwayError(f"Redis at REDIS_URL can't be asked: {trouble_of(error)}") from error
    finally:
        await client.aclose()


async def read_runs(
    client: Any, site: Site | None = None, run: str | None = None, budget: Mapping[Site, Budget] | None = None
) -> list[RunReport]:
    """Return every run that Redis holds, of that site and of that name if given, by site and then by age.

    There may be ten thousand, as each job of a cluster is one for two windows: what only asks for some says so.
    """
    pipe = client.pipeline(transaction=False)
    asked = [one for one in HOMES if site in {None, one}]
    if run is not None:
        return await _read(client, {Keys(one, run): None for one in asked}, budget)
    for one in asked:
        pipe.zrange(Keys(one, "").runs, 0, -1)
    names = await pipe.execute()
    listed: dict[Keys, float | None] = {
        Keys(one, name.decode()): None for one, of_site in zip(asked, names, strict=True) for name in of_site
    }
    return await _read(client, listed, budget)


class Current(NamedTuple):
    """The runs that matter now."""

    runs: list[RunReport]
    """By site and then by age."""
    left_out: int
    """How many others may not be over, with which workers began before all of these."""


async def read_current_runs(
    client: Any, budget: Mapping[Site, Budget] | None = None, most: int = MOST_CURRENT
) -> Current:
    """Return the runs that are not over, or ended within the last hour; of each site at most those begun with last.

    What it costs does not grow with the runs that are over.
    """
    pipe = client.pipeline(transaction=False)
    for site in HOMES:
        keys = Keys(site, "")
        pipe.zrange(keys.current, 0, most - 1, desc=True, withscores=True)
        pipe.zcard(keys.current)
        pipe.zrange(keys.runs, 0, _NEWEST - 1, desc=True)
        pipe.zrandmember(keys.runs, _NEWEST)
    answers = iter(await pipe.execute())
    listed: dict[Keys, float | None] = {}
    left_out = 0
    for site, current, count, newest, some in zip(HOMES, *[answers] * 4, strict=True):
        opened = {name.decode(): when for name, when in current}
        left_out += count - len(opened)
        # Some of the others each time, so that those are forgotten that have expired.
        names = dict.fromkeys([*opened, *(name.decode() for name in (*newest, *some))])
        listed.update({Keys(site, name): opened.get(name) for name in names})
    reports = await _read(client, listed, budget)
    return Current([report for report in reports if report.is_current], left_out)


async def read_earlier_runs(
    client: Any, before: float | None, size: int, budget: Mapping[Site, Budget] | None = None
) -> tuple[list[RunReport], float | None]:
    """Return runs that are over for more than an hour, the latest first, and where the next ones begin; None for the end.

    They are those among about `size` runs that were started before a time (ms); without one, among the latest.
    """
    pipe = client.pipeline(transaction=False)
    for site in HOMES:
        top = "+inf" if before is None else f"({before:.0f}"
        pipe.zrange(Keys(site, "").runs, top, "-inf", desc=True, byscore=True, offset=0, num=size + 1, withscores=True)
    started = sorted(
        (
            (when, Keys(site, name.decode()))
            for site, of_site in zip(HOMES, await pipe.execute(), strict=True)
            for name, when in of_site
        ),
        key=lambda one: -one[0],
    )
    # With all that began at the same moment as the last one, which a next page would not have.
    last = started[min(size, len(started)) - 1][0] if started else 0.0
    page = {keys: None for when, keys in started if when >= last}
    reports = await _read(client, dict(page), budget)
    over = sorted((report for report in reports if not report.is_current), key=lambda report: -report.started_at)
    return over, last if len(page) < len(started) else None


async def _read(
    client: Any, listed: Mapping[Keys, float | None], budget: Mapping[Site, Budget] | None
) -> list[RunReport]:
    """Return the reports of runs, by site and then by age; forget those of which nothing is left.

    With each run stands when a worker last began with it (ms), if it is to be taken out of the current ones once it is over.
    """
    now_s, now_us = await client.time()
    now = now_s + now_us / 1e6
    pipe = client.pipeline(transaction=False)
    for site in HOMES:
        pipe.hgetall(Keys(site, "").circuit)
        pipe.hgetall(Keys(site, "").budget)
    answers = iter(await pipe.execute())
    sites = {site: (circuit, spent) for site, circuit, spent in zip(HOMES, *[answers] * 2, strict=True)}
    reports: list[RunReport] = []
    gone: list[tuple[Keys, str]] = []
    keys_of = list(listed)
    for first in range(0, len(keys_of), _AT_ONCE):
        some = keys_of[first : first + _AT_ONCE]
        for keys, answer in zip(some, await _ask(client, some, now), strict=True):
            report = _report(keys, answer, *sites[keys.site], now)
            if report is None:
                gone.append((keys, ""))
                continue
            report.budget = (budget or {}).get(keys.site, report.budget)
            reports.append(report)
            opened = listed[keys]
            if opened is not None and not report.is_current:
                gone.append((keys, f"{opened:.0f}"))
    await _forget(client, gone)
    order = {site: place for place, site in enumerate(HOMES)}
    return sorted(reports, key=lambda report: (order[report.site], report.started_at, report.run))


async def _ask(client: Any, some: Sequence[Keys], now: float) -> list[list[Any]]:
    """Return what is kept of each run, in one pipeline."""
    pipe = client.pipeline(transaction=False)
    for keys in some:
        pipe.hgetall(keys.state)
        pipe.hgetall(keys.nodes)
        pipe.hlen(keys.dead_letters)
        pipe.zcount(keys.workers, now * 1000, "+inf")
        for level in LEVELS:
            pipe.llen(keys.requests(level))
    answers = await pipe.execute()
    each = len(answers) // len(some)
    return [answers[place : place + each] for place in range(0, len(answers), each)]


async def _forget(client: Any, gone: Sequence[tuple[Keys, str]]) -> None:
    script = client.register_script(files(__package__).joinpath("forget.lua").read_text("utf-8"))
    for site in HOMES:
        of_site = [(keys, opened) for keys, opened in gone if keys.site == site]
        for first in range(0, len(of_site), _AT_ONCE):
            some = of_site[first : first + _AT_ONCE]
            await script(
                keys=[some[0][0].runs, some[0][0].current, *(keys.state for keys, _ in some)],
                args=[argument for keys, opened in some for argument in (keys.run, opened)],
            )


def _report(
    keys: Keys, answer: Sequence[Any], circuit: Mapping[bytes, bytes], spent: Mapping[bytes, bytes], now: float
) -> RunReport | None:
    """Return a run's report; None when nothing of it is left."""
    state, nodes, letters, workers, *lengths = answer
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
        dead_letters=letters,
        workers=workers,
        started_at=int(state[b"started_at"]) / 1000,
        ended_at=int(state[b"ended_at"]) / 1000 if b"ended_at" in state else None,
        now=now,
        nodes=by_node,
        refusal=circuit[b"reason"].decode(errors="backslashreplace") if b"reason" in circuit else None,
        stopped_until=float(circuit[b"until"]) / 1000 if b"until" in circuit else None,
        used_today=int(spent[b"used"]) if int(spent.get(b"day", -1)) == now // _DAY else 0,
    )


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
