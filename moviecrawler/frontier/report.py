"""How far the shared crawls are, and their dead letters: the one report that commands, metrics and the dashboard show."""

from __future__ import annotations

import math
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Literal

import msgspec
import redis.exceptions

from moviecrawler.clock import utc_text
from moviecrawler.errors import MovieCrawlerError
from moviecrawler.frontier.budgets import UNLIMITED, Budget, site_budget
from moviecrawler.frontier.keys import Keys, SiteKeys
from moviecrawler.frontier.queue import End, Scripts
from moviecrawler.frontier.serialisation import Envelope
from moviecrawler.options import FrontierOptions
from moviecrawler.redis_client import connect, describe_error
from moviecrawler.sites import SITES
from moviecrawler.texts import printable

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from scrapy.settings import BaseSettings

    from moviecrawler.items import Site

State = Literal["running", "finished", "no worker", "stopped", "trying", "budget spent"]
"""`no worker`: there is something to do and nobody does it. `stopped`: the site has refused us. `trying`: that time is over,
and one request finds out whether it answers again. `budget spent`: that of the day."""

_DAY_SECONDS = 86_400
_MOST_RUNS = 100
"""Runs of a site that are read: those that workers have joined last."""
_SMOOTHED_OVER = 30.0
"""Seconds after which a rate is mostly the latest one."""
_RECENTLY = 3600.0
"""Seconds for which a run that is over is shown among those that are not."""


class FrontierAwayError(MovieCrawlerError):
    """Redis can't be asked."""


@dataclass(slots=True, kw_only=True)
class SiteState:
    """A site as the frontier sees it."""

    site: Site
    refusal: str | None = None
    """Why it was stopped, until it answers again."""
    stopped_until: float | None = None
    """Seconds since 1970."""
    used_today: int = 0
    """Requests that today's budget was charged for (UTC)."""
    budget: Budget = UNLIMITED
    """By the settings of the process that asks, which should be those of the workers."""
    seeds: int = 0
    """Titles that were pushed for its next crawl, which no worker has taken yet."""


@dataclass(slots=True, kw_only=True)
class RunReport:
    """A run at one moment. Times are in seconds since 1970, by Redis' clock."""

    site: Site
    run: str
    number: str
    arguments: str
    total: int
    """Requests queued so far."""
    done: int
    failed: int
    """Dead letters, those that were dropped included."""
    dropped: int
    """Requests that the run had seen, or that were above its limit."""
    to_go: int
    """Requests that are queued, or held by a worker."""
    queued: int
    dead_letters: int
    workers: int
    seeded: bool
    """Whether all that the arguments name is queued."""
    ended_at: float | None
    """When it was over; None while it is not."""
    now: float
    state_of_site: SiteState = field(repr=False)

    @property
    def started_at(self) -> float:
        """When it began."""
        return int(self.number) / 1000

    @property
    def ended(self) -> int:
        """Requests that are over, in whatever way."""
        return self.done + self.failed

    @property
    def lost(self) -> int:
        """Requests that others have deleted in Redis."""
        return max(0, self.total - self.ended - self.to_go)

    @property
    def stopped(self) -> str | None:
        """Why the site may not be asked now; None when it may."""
        return self.state_of_site.refusal if (self.state_of_site.stopped_until or 0) > self.now else None

    @property
    def stopped_until(self) -> float | None:
        """Until when nothing is handed out because of it."""
        return self.state_of_site.stopped_until

    @property
    def is_current(self) -> bool:
        """Whether it is not over, or ended just now."""
        return self.ended_at is None or self.now - self.ended_at <= _RECENTLY or self.workers > 0

    @property
    def state(self) -> State:
        """What holds it up, if anything does."""
        if self.ended_at is not None:
            return "finished"
        site = self.state_of_site
        if self.to_go and site.refusal is not None:
            return "stopped" if self.stopped else "trying"
        if self.to_go and site.budget.per_day is not None and site.used_today >= site.budget.per_day:
            return "budget spent"
        return "running" if self.workers else "no worker"

    def as_json(self) -> dict[str, Any]:
        """Return its figures for a program."""
        names = (
            *("site", "run", "number", "arguments", "state", "total", "done", "failed", "dropped", "to_go", "queued"),
            *("dead_letters", "lost", "workers", "started_at", "ended_at", "now", "stopped_until"),
        )
        site = self.state_of_site
        return {name: getattr(self, name) for name in names} | {
            "refusal": site.refusal,
            "used_today": site.used_today,
            "budget": msgspec.to_builtins(site.budget),
        }


@dataclass(slots=True)
class Rate:
    """How many requests end a second: the mean since the start at the first look, then smoothed over those that follow."""

    since: float
    per_second: float | None = None
    _before: int = 0

    def update(self, report: RunReport) -> None:
        """Look at how many have ended by now."""
        now = report.ended_at or report.now
        elapsed = now - self.since
        if elapsed <= 0:
            return
        latest = max(0, report.ended - self._before) / elapsed  # fewer than before when dead letters were queued again
        if self.per_second is None:
            self.per_second = latest
        else:
            self.per_second += (latest - self.per_second) * -math.expm1(-elapsed / _SMOOTHED_OVER)
        self.since, self._before = now, report.ended

    def seconds_left(self, to_go: int) -> float | None:
        """Return the seconds that so many take at this rate; None when nothing is being done."""
        return to_go / self.per_second if self.per_second else None


# --- Reading ----------------------------------------------------------------------------------------------------------


def budgets(settings: BaseSettings) -> dict[Site, Budget]:
    """Return each site's budget by the settings. Raises ConfigurationError, as for REDIS_URL and all other ones."""
    FrontierOptions.read(settings)
    return {site: site_budget(settings, site) for site in SITES}


@asynccontextmanager
async def asking(settings: BaseSettings) -> AsyncIterator[Any]:
    """Give a client of the Redis that REDIS_URL names; what goes wrong while it is used becomes FrontierAwayError."""
    client = connect(settings["REDIS_URL"])
    try:
        yield client
    except redis.exceptions.RedisError as error:
        raise FrontierAwayError(f"Redis at REDIS_URL can't be asked: {describe_error(error)}") from error
    finally:
        await client.aclose()


async def read_sites(client: Any, budget: Mapping[Site, Budget] | None = None) -> tuple[float, dict[Site, SiteState]]:
    """Return the time by Redis' clock (seconds since 1970), and how each site stands."""
    seconds, micro = await client.time()
    pipe = client.pipeline(transaction=False)
    for site in SITES:
        pipe.hgetall(SiteKeys(site).circuit)
        pipe.hgetall(SiteKeys(site).budget)
    answers = iter(await pipe.execute())
    sites: dict[Site, SiteState] = {}
    for site, circuit, spent in zip(SITES, *[answers] * 2, strict=True):
        is_today = int(spent.get(b"day", -1)) == seconds // _DAY_SECONDS
        sites[site] = SiteState(
            site=site,
            refusal=circuit[b"reason"].decode(errors="backslashreplace") if b"reason" in circuit else None,
            stopped_until=float(circuit[b"until"]) / 1000 if b"until" in circuit else None,
            used_today=int(spent[b"used"]) if is_today else 0,
            budget=(budget or {}).get(site, UNLIMITED),
        )
    return seconds + micro / 1e6, sites


async def read_runs(
    client: Any, site: Site | None = None, run: str | None = None, budget: Mapping[Site, Budget] | None = None
) -> list[RunReport]:
    """Return the latest run of each name, of that site and of that name if given, by site and then by age."""
    now, sites = await read_sites(client, budget)
    latest: dict[tuple[Site, str], Keys] = {}
    for keys in await _all_keys(client, site, run):
        latest.setdefault((keys.site.site, keys.run), keys)
    pipe = client.pipeline(transaction=False)
    for keys in latest.values():
        pipe.hgetall(keys.state)
        pipe.hlen(keys.requests)
        pipe.zcard(keys.queue)
        pipe.hlen(keys.dead)
        pipe.zcount(keys.workers, now * 1000, "+inf")
    answers = iter(await pipe.execute())
    reports = [
        _report(keys, sites[keys.site.site], now, *answer)
        for keys, answer in zip(latest.values(), zip(*[answers] * 5, strict=True), strict=True)
        if answer[0]
    ]
    order = list(SITES)
    return sorted(reports, key=lambda report: (order.index(report.site), report.started_at))


async def _all_keys(client: Any, site: Site | None, run: str | None) -> list[Keys]:
    """Return the keys of runs, those that workers have joined last first."""
    asked = [SiteKeys(one) for one in SITES if site in {None, one}]
    pipe = client.pipeline(transaction=False)
    for keys in asked:
        pipe.zrange(keys.runs, 0, -1 if run is not None else _MOST_RUNS - 1, desc=True)
    found = []
    for keys, members in zip(asked, await pipe.execute(), strict=True):
        for member in members:
            name, _, number = member.decode().rpartition(":")
            if run in {None, name}:
                found.append(Keys(keys, name, number))
    return found


def _report(
    keys: Keys, site: SiteState, now: float, state: dict[bytes, bytes], to_go: int, queued: int, dead: int, workers: int
) -> RunReport:
    def number(name: bytes) -> int:
        return int(float(state.get(name, 0)))

    return RunReport(
        site=site.site,
        run=keys.run,
        number=keys.number,
        arguments=state.get(b"arguments", b"").decode(errors="backslashreplace"),
        total=number(b"total"),
        done=number(b"done"),
        failed=number(b"failed"),
        dropped=number(b"filtered") + number(b"above_limit"),
        to_go=to_go,
        queued=queued,
        dead_letters=dead,
        workers=workers,
        seeded=b"seeded" in state,
        ended_at=number(b"over_at") / 1000 if b"over_at" in state else None,
        now=now,
        state_of_site=site,
    )


async def count_seeds(client: Any, key: str) -> int:
    """Return how many seeds wait under a key, of whatever type it is; 0 for a type that seeds are not taken from."""
    kind = (await client.type(key)).decode()
    count = {"list": client.llen, "set": client.scard, "zset": client.zcard}.get(kind)
    return 0 if count is None else int(await count(key))


# --- Dead letters -----------------------------------------------------------------------------------------------------


@dataclass(slots=True, kw_only=True)
class DeadLetter:
    """A request or a seed that was set aside."""

    keys: Keys
    id: str
    reason: str
    at: float
    """Seconds since 1970."""
    body: str
    """What stood in the queue, with what is not UTF-8 escaped."""

    @property
    def request(self) -> dict[str, Any] | None:
        """What it says of the request; None when it is none."""
        try:
            return msgspec.structs.asdict(msgspec.json.decode(self.body, type=Envelope))
        except (msgspec.DecodeError, RecursionError):
            return None


class _Head(msgspec.Struct):
    reason: str
    at: float


async def dead_letters(client: Any, site: Site | None = None, run: str | None = None) -> AsyncIterator[DeadLetter]:
    """Yield what was set aside, in no order; in all runs, or in those of that site and of that name."""
    for keys in await _all_keys(client, site, run):
        async for letter_id, letter in client.hscan_iter(keys.dead):
            head, _, value = letter.partition(b"\n")
            told = msgspec.json.decode(head, type=_Head)
            body = value.partition(b"\n")[2].decode(errors="backslashreplace")
            yield DeadLetter(keys=keys, id=letter_id.decode(), reason=told.reason, at=told.at / 1000, body=body)


async def requeue(client: Any, keys: Keys, letter_id: str) -> bool:
    """Queue a dead letter again, as if it had never been handed out; return whether it was there."""
    ends = [End(letter_id, "again")]
    return bool(await Scripts(client, UNLIMITED, 0).run("finish", keys.for_scripts, arguments="", ends=ends))


async def drop(client: Any, keys: Keys, letter_id: str) -> bool:
    """Forget a dead letter; return whether it was there. What it was for stays counted as failed."""
    return bool(await client.hdel(keys.dead, letter_id))


# --- In words ---------------------------------------------------------------------------------------------------------


def line_of(report: RunReport, rate: Rate) -> str:
    """Return how far a run is, in a line: what `scrapy progress` and the log of each of its workers show."""
    return f"{name_of(report)} {report.done:,} of {report.total:,} requests done, {details_of(report, rate)}"


def name_of(report: RunReport) -> str:
    """Return whose figures these are, and how it goes."""
    return printable(f"{report.site} ({report.run}) {report.state}:")


def details_of(report: RunReport, rate: Rate) -> str:
    """Return the figures beside those of the requests done."""
    site = report.state_of_site
    counts = {"dead letters": report.failed, "lost": report.lost}
    parts = [f"{count:,} {what}" for what, count in counts.items() if count]
    parts += [f"{report.to_go:,} to go", f"workers: {report.workers}", f"{60 * (rate.per_second or 0):,.0f} a minute"]
    left = rate.seconds_left(report.to_go)
    if report.state == "running" and report.to_go and left is not None:
        parts.append(f"{timedelta(seconds=round(left))} left")
    if site.budget.per_day is not None:
        parts.append(f"{site.used_today:,} of {site.budget.per_day:,} requests of the day")
    details = ", ".join(parts)
    if report.stopped is not None:
        details += f"; until {utc_text(site.stopped_until or 0)}: {printable(report.stopped)}"
    return details
