"""How far the shared crawls are: read from Redis, for people and their programs."""

from __future__ import annotations

from contextlib import asynccontextmanager
from math import isfinite
from typing import TYPE_CHECKING, Any, NamedTuple

import redis.exceptions

from moviecrawler.errors import MovieCrawlerError
from moviecrawler.frontier.budgets import Budget, site_budget
from moviecrawler.frontier.keys import Keys
from moviecrawler.frontier.queue import LEVELS
from moviecrawler.frontier.runs import RunReport, SiteState
from moviecrawler.options import FrontierOptions
from moviecrawler.redis_client import connect, describe_error, load_script, redis_parameters
from moviecrawler.sites import SITES

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping, Sequence

    from scrapy.settings import BaseSettings

    from moviecrawler.items import Site

_DAY = 86_400
MOST_CURRENT = 300
"""Of a site; more would be runs of which hundreds were broken off."""
_NEWEST = 10
_AT_ONCE = 100
"""Runs of which all is asked in one pipeline."""


class FrontierAwayError(MovieCrawlerError):
    """Redis can't be asked."""


def budgets(settings: BaseSettings) -> dict[Site, Budget]:
    """Return each site's budget by the settings. Raises ConfigurationError, as for REDIS_URL and all other ones."""
    FrontierOptions.read(settings)
    return {site: site_budget(settings, site) for site in SITES}


@asynccontextmanager
async def asking(settings: BaseSettings) -> AsyncIterator[Any]:
    """Give a client of the Redis that REDIS_URL names; what goes wrong while it is used becomes FrontierAwayError."""
    client = connect(settings["REDIS_URL"], **redis_parameters(settings))
    try:
        yield client
    except redis.exceptions.RedisError as error:
        raise FrontierAwayError(f"Redis at REDIS_URL can't be asked: {describe_error(error)}") from error
    finally:
        await client.aclose()


async def read_runs(
    client: Any, site: Site | None = None, run: str | None = None, budget: Mapping[Site, Budget] | None = None
) -> list[RunReport]:
    """Return every run that Redis holds, of that site and of that name if given, by site and then by age.

    There may be ten thousand, as each job of a cluster is one for two windows: what only asks for some says so.
    """
    pipe = client.pipeline(transaction=False)
    asked = [one for one in SITES if site in {None, one}]
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
    """Sorted by site, and then by age."""
    left_out: int
    """How many others may not be over, with which workers began before all of these."""


async def read_current_runs(
    client: Any, budget: Mapping[Site, Budget] | None = None, most: int = MOST_CURRENT
) -> Current:
    """Return the runs that are not over, or ended within the last hour; of each site at most those begun with last.

    What it costs does not grow with the runs that are over.
    """
    pipe = client.pipeline(transaction=False)
    for site in SITES:
        keys = Keys(site, "")
        pipe.zrange(keys.current, 0, most - 1, desc=True, withscores=True)
        pipe.zcard(keys.current)
        pipe.zrange(keys.runs, 0, _NEWEST - 1, desc=True)
        pipe.zrandmember(keys.runs, _NEWEST)
    answers = iter(await pipe.execute())
    listed: dict[Keys, float | None] = {}
    left_out = 0
    for site, current, count, newest, some in zip(SITES, *[answers] * 4, strict=True):
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
    for site in SITES:
        top = "+inf" if before is None else f"({before:.0f}"
        pipe.zrange(Keys(site, "").runs, top, "-inf", desc=True, byscore=True, offset=0, num=size + 1, withscores=True)
    started = sorted(
        (
            (when, Keys(site, name.decode()))
            for site, of_site in zip(SITES, await pipe.execute(), strict=True)
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
    now, sites = await read_sites(client, budget)
    reports: list[RunReport] = []
    gone: list[tuple[Keys, str]] = []
    keys_of = list(listed)
    for first in range(0, len(keys_of), _AT_ONCE):
        some = keys_of[first : first + _AT_ONCE]
        for keys, answer in zip(some, await _ask(client, some, now), strict=True):
            report = _report(keys, answer, sites[keys.site], now)
            if report is None:
                gone.append((keys, ""))
                continue
            reports.append(report)
            opened = listed[keys]
            if opened is not None and not report.is_current:
                gone.append((keys, f"{opened:.0f}"))
    await _forget(client, gone)
    order = {site: place for place, site in enumerate(SITES)}
    return sorted(reports, key=lambda report: (order[report.site], report.started_at, report.run))


async def read_sites(client: Any, budget: Mapping[Site, Budget] | None = None) -> tuple[float, dict[Site, SiteState]]:
    """Return the time by Redis' clock (seconds since 1970), and how each site stands."""
    seconds, micro = await client.time()
    now = seconds + micro / 1e6
    pipe = client.pipeline(transaction=False)
    for site in SITES:
        pipe.hgetall(Keys(site, "").circuit)
        pipe.hgetall(Keys(site, "").budget)
    answers = iter(await pipe.execute())
    sites: dict[Site, SiteState] = {}
    for site, circuit, spent in zip(SITES, *[answers] * 2, strict=True):
        sites[site] = SiteState(
            site=site,
            refusal=circuit[b"reason"].decode(errors="backslashreplace") if b"reason" in circuit else None,
            stopped_until=_number(circuit, b"until") / 1000 if b"until" in circuit else None,
            used_today=int(_number(spent, b"used")) if _number(spent, b"day", -1) == now // _DAY else 0,
            budget=(budget or {}).get(site, Budget()),
        )
    return now, sites


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
    script = load_script(client, __package__, "forget")
    for site in SITES:
        of_site = [(keys, opened) for keys, opened in gone if keys.site == site]
        for first in range(0, len(of_site), _AT_ONCE):
            some = of_site[first : first + _AT_ONCE]
            await script(
                keys=[some[0][0].runs, some[0][0].current, *(keys.state for keys, _ in some)],
                args=[argument for keys, opened in some for argument in (keys.run, opened)],
            )


def _number(values: Mapping[bytes, bytes], name: bytes, default: float = 0.0) -> float:
    """Return a number of a hash; the default when there is none, or none that can be read, which workers drop with their next exchange."""
    try:
        value = float(values.get(name, default))
    except ValueError:
        return default
    return value if isfinite(value) else default


def _report(keys: Keys, answer: Sequence[Any], site: SiteState, now: float) -> RunReport | None:
    """Return a run's report; None when nothing of it is left."""
    state, nodes, letters, workers, *lengths = answer
    if not state:
        return None
    total, done, failed, dropped = (int(_number(state, name)) for name in (b"total", b"done", b"failed", b"dropped"))
    by_node: dict[str, dict[str, int]] = {}
    for field_name in sorted(nodes):
        node, _, figure = field_name.decode(errors="backslashreplace").rpartition(" ")
        by_node.setdefault(node, {"done": 0, "failed": 0})[figure] = int(_number(nodes, field_name))
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
        started_at=_number(state, b"started_at") / 1000,
        ended_at=_number(state, b"ended_at") / 1000 if b"ended_at" in state else None,
        now=now,
        nodes=by_node,
        refusal=site.refusal,
        stopped_until=site.stopped_until,
        used_today=site.used_today,
        budget=site.budget,
    )
