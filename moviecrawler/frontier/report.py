"""The progress of the shared runs, and their dead letters, for commands, metrics and the dashboard."""

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

State = Literal["running", "finished", "no worker", "stopped", "probing", "budget spent"]
"""`no worker`: requests are queued, and no worker runs. `stopped`: the site has refused us. `probing`: the pause is over, and one
request finds out whether the site answers again. `budget spent`: the budget of the day is spent."""

_DAY_SECONDS = 86_400
_MAX_RUNS = 100
"""Runs of a site that are read, at most: those that workers joined last."""
_RECENTLY_SECONDS = 3600.0
"""Seconds for which a run that is over still counts as current."""


class FrontierAwayError(MovieCrawlerError):
    """Redis can't be asked."""


@dataclass(kw_only=True)
class SiteState:
    """The circuit and the budget of a site. Times are in seconds since 1970."""

    site: Site
    refusal: str | None = None
    """Why the site is not asked, until it answers again."""
    stopped_until: float | None = None
    used_today: int = 0
    """Requests that today's budget (UTC) was charged for."""
    budget: Budget = UNLIMITED
    """The budget by the settings of this process, which should be those of the workers."""


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
    """Dead letters, with those that were dropped."""
    to_go: int
    """Requests that are queued or leased."""
    dead_letters: int
    workers: int
    ended_at: float | None
    """When the run was over; None while it is not."""
    now: float
    state_of_site: SiteState

    @property
    def started_at(self) -> float:
        """When the run began."""
        return int(self.number) / 1000

    @property
    def ended(self) -> int:
        """Requests that are done or dead letters."""
        return self.done + self.failed

    @property
    def lost(self) -> int:
        """Requests that were deleted in Redis by others."""
        return max(0, self.total - self.ended - self.to_go)

    @property
    def per_second(self) -> float:
        """Requests that ended in a second, on average."""
        return self.ended / max(0.001, (self.ended_at or self.now) - self.started_at)

    @property
    def seconds_left(self) -> float | None:
        """Seconds until the run is over at this rate; None when nothing has ended."""
        return self.to_go / self.per_second if self.ended else None

    @property
    def stopped_until(self) -> float | None:
        """When the pause after the site's refusal ends; None without a refusal."""
        return self.state_of_site.stopped_until

    @property
    def stopped(self) -> str | None:
        """Why the site may not be asked now; None when it may."""
        return self.state_of_site.refusal if (self.stopped_until or 0) > self.now else None

    @property
    def is_current(self) -> bool:
        """Whether the run is not over, ended within the last hour, or has workers."""
        return self.ended_at is None or self.now - self.ended_at <= _RECENTLY_SECONDS or self.workers > 0

    @property
    def state(self) -> State:
        """Whether the run goes on, and if not, why."""
        if self.ended_at is not None:
            return "finished"
        site = self.state_of_site
        if self.to_go and site.refusal is not None:
            return "stopped" if self.stopped else "probing"
        if self.to_go and site.budget.per_day is not None and site.used_today >= site.budget.per_day:
            return "budget spent"
        return "running" if self.workers else "no worker"

    def as_json(self) -> dict[str, Any]:
        """Return the figures for JSON."""
        figures: dict[str, Any] = msgspec.to_builtins(self)
        figures |= figures.pop("state_of_site")
        names = ("state", "lost", "started_at", "per_second", "seconds_left")
        return figures | {name: getattr(self, name) for name in names}


@dataclass(kw_only=True)
class DeadLetter:
    """A request or a seed that is a dead letter."""

    keys: Keys
    id: str
    reason: str
    at: float
    """Seconds since 1970."""
    body: str
    """The request or the seed as it was queued; bytes that are not UTF-8 are escaped."""

    @property
    def request(self) -> dict[str, Any] | None:
        """The fields of the request; None for a seed, or when it is damaged."""
        try:
            return msgspec.structs.asdict(msgspec.json.decode(self.body, type=Envelope))
        except (msgspec.DecodeError, RecursionError):
            return None


@asynccontextmanager
async def frontier_client(settings: BaseSettings) -> AsyncIterator[Any]:
    """Give a client of the Redis at REDIS_URL. Its errors become FrontierAwayError."""
    client = connect(settings["REDIS_URL"])
    try:
        yield client
    except redis.exceptions.RedisError as error:
        raise FrontierAwayError(f"Redis at REDIS_URL can't be asked: {describe_error(error)}") from error
    finally:
        await client.aclose()


async def read_sites(client: Any, settings: BaseSettings | None = None) -> tuple[float, dict[Site, SiteState]]:
    """Return the time by Redis' clock (seconds since 1970), and the state of each site; budgets are read if settings are given."""
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
    client: Any,
    site: Site | None = None,
    run: str | None = None,
    settings: BaseSettings | None = None,
    known: tuple[float, dict[Site, SiteState]] | None = None,
) -> list[RunReport]:
    """Return the latest run of each name, or only of `site` and of the name `run`, by site and then by age.

    `known` is what `read_sites` has just returned, if the caller needs that, too.
    """
    now, sites = known or await read_sites(client, settings)
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
    """Return the keys of runs, from the one that a worker joined last."""
    found = []
    for keys in (SiteKeys(one) for one in SITES if site in {None, one}):
        for member in await client.zrange(keys.runs, 0, -1 if run is not None else _MAX_RUNS - 1, desc=True):
            name, _, number = member.decode().rpartition(":")
            if run in {None, name}:
                found.append(Keys(keys, name, number))
    return found


async def dead_letters(client: Any, site: Site | None = None, run: str | None = None) -> AsyncIterator[DeadLetter]:
    """Yield the dead letters of all runs, or only of `site` and of the name `run`, in no order."""
    for keys in await _all_keys(client, site, run):
        async for letter_id, letter in client.hscan_iter(keys.dead):
            head, _, value = letter.partition(b"\n")
            known = msgspec.json.decode(head)
            body = value.partition(b"\n")[2].decode(errors="backslashreplace")
            known = {"reason": known["reason"], "at": known["at"] / 1000, "body": body}
            yield DeadLetter(keys=keys, id=letter_id.decode(), **known)


async def requeue(client: Any, keys: Keys, letter_id: str) -> bool:
    """Queue a dead letter again, with no deliveries; return whether it was there."""
    ends = [End(letter_id, "again")]
    return bool(await Scripts(client, UNLIMITED).run("finish", keys.for_scripts, arguments="", ends=ends))


async def drop(client: Any, keys: Keys, letter_id: str) -> bool:
    """Delete a dead letter; return whether it was there. It stays counted as failed."""
    return bool(await client.hdel(keys.dead, letter_id))
