"""How far the shared crawls are, and their dead letters: the one report that commands, metrics and the dashboard show."""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import msgspec
import redis.exceptions

from moviecrawler.errors import MovieCrawlerError
from moviecrawler.frontier.budgets import UNLIMITED, Budget, site_budget
from moviecrawler.frontier.keys import Keys, SiteKeys
from moviecrawler.frontier.queue import End, Scripts
from moviecrawler.frontier.serialisation import Envelope
from moviecrawler.redis_client import connect, describe_error
from moviecrawler.sites import SITES

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from scrapy.settings import BaseSettings

    from moviecrawler.items import Site

State = Literal["running", "finished", "no worker", "stopped", "trying", "budget spent"]
"""`no worker`: there is something to do and nobody does it. `stopped`: the site has refused us. `trying`: that time is over,
and one request finds out whether it answers again. `budget spent`: that of the day."""

_DAY_SECONDS = 86_400
_MAX_RUNS = 100
"""Runs of a site that are read: those that workers have joined last."""
_RECENTLY_SECONDS = 3600.0
"""Seconds for which a run that is over is shown among those that are not."""


class FrontierAwayError(MovieCrawlerError):
    """Redis can't be asked."""


@dataclass(kw_only=True)
class SiteState:
    """A site as the frontier sees it. Times are in seconds since 1970."""

    site: Site
    refusal: str | None = None
    """Why it was stopped, until it answers again."""
    stopped_until: float | None = None
    used_today: int = 0
    """Requests that today's budget was charged for (UTC)."""
    budget: Budget = UNLIMITED
    """By the settings of the process that asks, which should be those of the workers."""


@dataclass(kw_only=True)
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
    to_go: int
    """Requests that are queued, or held by a worker."""
    dead_letters: int
    workers: int
    ended_at: float | None
    """When it was over; None while it is not."""
    now: float
    state_of_site: SiteState

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
    def per_second(self) -> float:
        """Requests that ended in a second, since it began."""
        return self.ended / max(0.001, (self.ended_at or self.now) - self.started_at)

    @property
    def seconds_left(self) -> float | None:
        """How long it takes at this rate; None when nothing has ended."""
        return self.to_go / self.per_second if self.ended else None

    @property
    def stopped_until(self) -> float | None:
        """Until when nothing is handed out, as the site has refused us."""
        return self.state_of_site.stopped_until

    @property
    def stopped(self) -> str | None:
        """Why the site may not be asked now; None when it may."""
        return self.state_of_site.refusal if (self.stopped_until or 0) > self.now else None

    @property
    def is_current(self) -> bool:
        """Whether it is not over, or ended just now."""
        return self.ended_at is None or self.now - self.ended_at <= _RECENTLY_SECONDS or self.workers > 0

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
        figures: dict[str, Any] = msgspec.to_builtins(self)
        figures |= figures.pop("state_of_site")
        names = ("state", "lost", "started_at", "per_second", "seconds_left")
        return figures | {name: getattr(self, name) for name in names}


@dataclass(kw_only=True)
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


async def read_sites(client: Any, settings: BaseSettings | None = None) -> tuple[float, dict[Site, SiteState]]:
    """Return the time by Redis' clock (seconds since 1970), and how each site stands; its budget by the settings, if given."""
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
            budget=site_budget(settings, site) if settings is not None else UNLIMITED,
        )
    return seconds + micro / 1e6, sites


async def read_runs(
    client: Any, site: Site | None = None, run: str | None = None, settings: BaseSettings | None = None
) -> list[RunReport]:
    """Return the latest run of each name, of that site and of that name if given, by site and then by age."""
    now, sites = await read_sites(client, settings)
    latest: dict[tuple[Site, str], Keys] = {}
    for keys in await _all_keys(client, site, run):
        latest.setdefault((keys.site.site, keys.run), keys)
    pipe = client.pipeline(transaction=False)
    for keys in latest.values():
        pipe.hgetall(keys.state)
        pipe.hlen(keys.requests)
        pipe.hlen(keys.dead)
        pipe.zcount(keys.workers, now * 1000, "+inf")
    answers = iter(await pipe.execute())
    reports = []
    for keys, state, to_go, dead, workers in zip(latest.values(), *[answers] * 4, strict=True):
        if state:
            figures = {name: int(state.get(name.encode(), 0)) for name in ("total", "done", "failed", "over_at")}
            report = RunReport(
                site=keys.site.site,
                run=keys.run,
                number=keys.number,
                arguments=state.get(b"arguments", b"").decode(errors="backslashreplace"),
                total=figures["total"],
                done=figures["done"],
                failed=figures["failed"],
                to_go=to_go,
                dead_letters=dead,
                workers=workers,
                ended_at=figures["over_at"] / 1000 or None,
                now=now,
                state_of_site=sites[keys.site.site],
            )
            reports.append(report)
    order = list(SITES)
    return sorted(reports, key=lambda report: (order.index(report.site), report.started_at))


async def _all_keys(client: Any, site: Site | None, run: str | None) -> list[Keys]:
    """Return the keys of runs, those that workers have joined last first."""
    found = []
    for keys in (SiteKeys(one) for one in SITES if site in {None, one}):
        for member in await client.zrange(keys.runs, 0, -1 if run is not None else _MAX_RUNS - 1, desc=True):
            name, _, number = member.decode().rpartition(":")
            if run in {None, name}:
                found.append(Keys(keys, name, number))
    return found


async def dead_letters(client: Any, site: Site | None = None, run: str | None = None) -> AsyncIterator[DeadLetter]:
    """Yield what was set aside, in no order; in all runs, or in those of that site and of that name."""
    for keys in await _all_keys(client, site, run):
        async for letter_id, letter in client.hscan_iter(keys.dead):
            head, _, value = letter.partition(b"\n")
            known = msgspec.json.decode(head)
            body = value.partition(b"\n")[2].decode(errors="backslashreplace")
            known = {"reason": known["reason"], "at": known["at"] / 1000, "body": body}
            yield DeadLetter(keys=keys, id=letter_id.decode(), **known)


async def requeue(client: Any, keys: Keys, letter_id: str) -> bool:
    """Queue a dead letter again, as if it had never been handed out; return whether it was there."""
    ends = [End(letter_id, "again")]
    return bool(await Scripts(client, UNLIMITED).run("finish", keys.for_scripts, arguments="", ends=ends))


async def drop(client: Any, keys: Keys, letter_id: str) -> bool:
    """Forget a dead letter; return whether it was there. What it was for stays counted as failed."""
    return bool(await client.hdel(keys.dead, letter_id))
