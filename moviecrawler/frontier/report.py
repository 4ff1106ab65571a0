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
"""`no worker`: requests are queued, and no worker runs. `stopped`: the site has refused us.
`probing`: the pause is over, and one request finds out whether the site answers again. `budget
spent`: the budget of the day is spent."""

_DAY_SECONDS = 86_400
_MAX_RUNS = 100
"""Runs of a site that are read, at most: those that workers joined last."""
_RECENTLY_SECONDS = 3600.0
"""Seconds for which a run that is over still counts as current."""


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
    total: int
    """Requests queued so far."""
    done: int
    failed: int
    """Dead letters, with those that were dropped."""
    to_go: int
    """Requests that are queued or leased."""
    dead_letters: int
    workers: int
    started_at: float
    ended_at: float | None
    """When the run was over; None while it is not."""
    now: float
    state_of_site: SiteState

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
    def is_current(self) -> bool:
        """Whether the run is not over, ended within the last hour, or has workers."""
        return (
            self.ended_at is None
            or self.now - self.ended_at <= _RECENTLY_SECONDS
            or self.workers > 0
        )

    @property
    def state(self) -> State:
        """Whether the run goes on, and if not, why."""
        if self.ended_at is not None:
            return "finished"
        site = self.state_of_site
        if self.to_go and site.refusal is not None:
            return "stopped" if (site.stopped_until or 0) > self.now else "probing"
        if (
            self.to_go
            and site.budget.per_day is not None
            and site.used_today >= site.budget.per_day
        ):
            return "budget spent"
        return "running" if self.workers else "no worker"

    def as_json(self) -> dict[str, Any]:
        """Return the figures for JSON."""
        figures: dict[str, Any] = msgspec.to_builtins(self)
        figures |= figures.pop("state_of_site")
        return figures | {
            name: getattr(self, name) for name in ("state", "lost", "per_second", "seconds_left")
        }


@dataclass(kw_only=True)
class Frontier:
    """The frontier at one moment."""

    now: float
    """Seconds since 1970, by Redis' clock."""
    sites: dict[Site, SiteState]
    runs: list[RunReport]
    """The latest run of each name, by site and then by age."""


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
    """Give a client of the Redis at REDIS_URL. Its errors become MovieCrawlerError."""
    client = connect(settings["REDIS_URL"])
    try:
        yield client
    except redis.exceptions.RedisError as error:
        raise MovieCrawlerError(
            f"Redis at REDIS_URL can't be asked: {describe_error(error)}"
        ) from error
    finally:
        await client.aclose()


async def read_frontier(
    client: Any,
    settings: BaseSettings | None = None,
    site: Site | None = None,
    run: str | None = None,
) -> Frontier:
    """Return the state of all sites and runs, or only the runs of `site` and of the name `run`; budgets are read from `settings`."""
    seconds, micro = await client.time()
    now = seconds + micro / 1e6
    latest: dict[tuple[Site, str], Keys] = {}
    for keys in await _all_keys(client, site, run):
        latest.setdefault((keys.site.site, keys.run), keys)
    pipe = client.pipeline(transaction=False)
    for one in map(SiteKeys, SITES):
        pipe.hgetall(one.circuit).hgetall(one.budget)
    for keys in latest.values():
        pipe.hgetall(keys.state).hlen(keys.requests).hlen(keys.dead).zcount(
            keys.workers, now * 1000, "+inf"
        )
    answers = iter(await pipe.execute())
    sites: dict[Site, SiteState] = {}
    for name in SITES:
        circuit = next(answers)
        spent = next(answers)
        is_today = int(spent.get(b"day", -1)) == seconds // _DAY_SECONDS
        sites[name] = SiteState(
            site=name,
            refusal=circuit[b"reason"].decode(errors="backslashreplace")
            if b"reason" in circuit
            else None,
            stopped_until=float(circuit[b"until"]) / 1000 if b"until" in circuit else None,
            used_today=int(spent[b"used"]) if is_today else 0,
            budget=site_budget(settings, name) if settings is not None else UNLIMITED,
        )
    runs = []
    for keys, state, to_go, dead, workers in zip(latest.values(), *[answers] * 4, strict=True):
        if state:
            counts = {
                name: int(state.get(name.encode(), 0)) for name in ("total", "done", "failed")
            }
            times = {
                "started_at": int(keys.number) / 1000,
                "ended_at": int(state.get(b"over_at", 0)) / 1000 or None,
            }
            figures: dict[str, Any] = {
                **counts,
                **times,
                "to_go": to_go,
                "dead_letters": dead,
                "workers": workers,
            }
            state_of_site = sites[keys.site.site]
            runs.append(
                RunReport(
                    site=keys.site.site,
                    run=keys.run,
                    now=now,
                    state_of_site=state_of_site,
                    **figures,
                )
            )
    order = list(SITES)
    return Frontier(
        now=now,
        sites=sites,
        runs=sorted(runs, key=lambda run: (order.index(run.site), run.started_at)),
    )


async def _all_keys(client: Any, site: Site | None, run: str | None) -> list[Keys]:
    """Return the keys of runs, from the one that a worker joined last."""
    found = []
    for keys in (SiteKeys(one) for one in SITES if site in {None, one}):
        for member in await client.zrange(
            keys.runs, 0, -1 if run is not None else _MAX_RUNS - 1, desc=True
        ):
            name, _, number = member.decode().rpartition(":")
            if run in {None, name}:
                found.append(Keys(keys, name, number))
    return found


async def dead_letters(
    client: Any, site: Site | None = None, run: str | None = None
) -> AsyncIterator[DeadLetter]:
    """Yield the dead letters of all runs, or only of `site` and of the name `run`, in no order."""
    for keys in await _all_keys(client, site, run):
        async for letter_id, letter in client.hscan_iter(keys.dead):
            head, _, value = letter.partition(b"\n")
            known = msgspec.json.decode(head)
            body = value.partition(b"\n")[2].decode(errors="backslashreplace")
            yield DeadLetter(
                keys=keys,
                id=letter_id.decode(),
                reason=known["reason"],
                at=known["at"] / 1000,
                body=body,
            )


async def requeue(client: Any, keys: Keys, letter_id: str) -> bool:
    """Queue a dead letter again, with no deliveries; return whether it was there."""
    ends = [End(letter_id, "again")]
    return bool(
        await Scripts(client, UNLIMITED).run("finish", keys.for_scripts, arguments="", ends=ends)
    )


async def drop(client: Any, keys: Keys, letter_id: str) -> bool:
    """Delete a dead letter; return whether it was there. It stays counted as failed."""
    return bool(await client.hdel(keys.dead, letter_id))
