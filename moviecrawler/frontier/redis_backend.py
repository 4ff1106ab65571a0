"""The frontier's backend for many machines: Redis, with one Lua script a step.

It is built on scrapy-redis, and replaces what is unsafe there: a popped request that dies with its
worker (here it is leased), pickled requests (here checked JSON), a blocking pop on the event loop,
and the flush by whoever ends first.
"""

from __future__ import annotations

import time
import uuid
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec
import redis.exceptions
from scrapy_redis import defaults
from scrapy_redis.scheduler import Scheduler

from moviecrawler.basics.errors import FrontierError, FrontierFullError
from moviecrawler.basics.files import read_package_file
from moviecrawler.frontier.contract import (
    DAY_SECONDS,
    DAYS_UNUSED,
    DIED_SECONDS,
    MAX_RUNS,
    OUTCOMES,
    RUN_SITES,
    SPACING_FACTOR,
    Account,
    Backend,
    DeadLetter,
    FrontierReport,
    Opened,
    Reply,
    RequestIds,
    RunName,
    RunReport,
    SiteState,
    expired_remark,
    holds_none,
    loss_remark,
    other_arguments,
)
from moviecrawler.frontier.keys import (
    BANS_SECONDS,
    EARLIER_KEYS_OF_RUN,
    EARLIER_KEYS_OF_SITE,
    RUN_SITES_KEY,
    RunKeys,
    SiteKeys,
    bans_key,
    robots_key,
)
from moviecrawler.frontier.redis_client import (
    Client,
    check_eviction,
    check_server_clock,
    connect_by,
    describe_error,
)
from moviecrawler.frontier.scheduler import FrontierScheduler
from moviecrawler.politeness.budgets import UNLIMITED, SiteReply
from moviecrawler.politeness.ledger import KeptRobots, Refusal

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Collection, Iterator, Mapping, Sequence
    from typing import Self

    from scrapy.settings import BaseSettings

    from moviecrawler.frontier.contract import End, Push, RunSite, Worker
    from moviecrawler.politeness.budgets import Budget

_RUN_SCRIPT = ("begin", "run")
"""The files that each script of a run begins with."""
_SCRIPTS = {
    "adopt": ("begin", "adopt"),
    "ask": ("begin", "site", "ask"),
    "finish": (*_RUN_SCRIPT, "finish"),
    "open": (*_RUN_SCRIPT, "open"),
    "push": (*_RUN_SCRIPT, "push"),
    "requeue": (*_RUN_SCRIPT, "requeue"),
    "take": (*_RUN_SCRIPT, "site", "take"),
}
"""The files of which each script is made."""
_DAMAGED_KEYS = "surrogateescape"
"""How fields of a HASH that are no UTF-8 become text, so that they can be deleted."""


class RedisFrontierScheduler(FrontierScheduler, Scheduler):  # type: ignore[misc]  # no types there
    """scrapy-redis' scheduler with leases, for crawls with REDIS_URL.

    Of scrapy-redis it takes the connection's settings (REDIS_URL, REDIS_PARAMS, REDIS_ENCODING) and
    the seeds' key. Its queue, dupe filter and flush are replaced, as they lose what a killed worker
    held, read pickles and block the event loop.
    """

    @classmethod
    def from_settings(cls, settings: BaseSettings) -> Self:  # noqa: ARG003 - Scrapy's signature
        """Make no client: the scheduler uses that of its crawl's backend."""
        return cls()


class _TakeReply(Reply, kw_only=True):
    """What `take.lua` returns as JSON; the bodies of the deliveries follow it."""

    wrong_type: str
    was_lost: bool
    """Whether the state was made again since a worker was told so."""


class _OpenReply(msgspec.Struct, kw_only=True):
    """What `open.lua` returns."""

    error: str | None = None
    over_at: float | None = None
    gone: int = 0


class _TakenOver(msgspec.Struct):
    """A run of the layout before that had something left."""

    name: str
    open: int
    dead: int


class _LetterHead(msgspec.Struct):
    """The first line of a dead letter."""

    reason: str
    at: float


def _head(letter: bytes) -> _LetterHead:
    return msgspec.json.decode(letter.partition(b"\n")[0], type=_LetterHead)


@dataclass
class RedisBackend(Backend):
    """The queues of all runs in one Redis."""

    client: Client
    start_urls_form: str = defaults.START_URLS_KEY

    def __post_init__(self) -> None:
        self._scripts = {
            name: self.client.register_script(
                "\n".join(read_package_file(__package__, f"{part}.lua") for part in parts)
            )
            for name, parts in _SCRIPTS.items()
        }

    @classmethod
    def from_settings(cls, settings: BaseSettings) -> Self:
        """Read REDIS_URL, REDIS_PARAMS, REDIS_ENCODING and REDIS_START_URLS_KEY.

        Raises ConfigurationError. Nothing is connected.
        """
        form = settings.get("REDIS_START_URLS_KEY") or defaults.START_URLS_KEY
        return cls(connect_by(settings), form)

    async def place(self, site: str) -> str:
        """Return the address of Redis, as the first process had it, with a random number."""
        at = self.client.connection_pool.connection_kwargs
        address = at.get("path") or f"{at.get('host')}:{at.get('port')}"
        key = SiteKeys(site).place
        with _as_frontier_errors():
            pipe = self.client.pipeline(transaction=False)
            pipe.setnx(key, f"Redis at {address} ({uuid.uuid4().hex[:8]})")
            pipe.get(key)
            _, place = await pipe.execute()
        return str(place.decode())

    def keys_of(self, run: RunName) -> RunKeys:
        """Return the keys of a run."""
        return RunKeys(SiteKeys(run.site, self.start_urls_form), run.name)

    # --- The sites ------------------------------------------------------------------------------

    async def ask(
        self,
        site: str,
        budget: Budget,
        *,
        charge: bool = False,
        refusal: Refusal | None = None,
        has_answered: bool = False,
    ) -> SiteReply:
        """Run `ask.lua`."""
        keys = SiteKeys(site)
        given: dict[str, object] = {"charge": charge, "has_answered": has_answered}
        if refusal is not None:
            given["refusal"] = {"reason": refusal.reason, "pause": round(refusal.seconds * 1000)}
        answer = await self._run_script(
            "ask", [keys.budget, keys.circuit], **_terms(budget), **given
        )
        return msgspec.json.decode(answer, type=SiteReply)

    async def read_robots(self, host: str) -> KeptRobots | None:
        """Read the key of a host's robots.txt."""
        with _as_frontier_errors():
            kept = await self.client.get(robots_key(host))
        try:
            return msgspec.json.decode(kept, type=KeptRobots) if kept else None
        except msgspec.DecodeError:  # another program has written it
            return None

    async def keep_robots(self, host: str, text: str) -> None:
        """Write the key of a host's robots.txt."""
        kept = KeptRobots(text=text, fetched_at=time.time())
        seconds = DAYS_UNUSED * DAY_SECONDS
        with _as_frontier_errors():
            await self.client.set(robots_key(host), msgspec.json.encode(kept), ex=seconds)

    async def exchange_bans(
        self, site: str, changes: Mapping[str, bytes | None]
    ) -> dict[str, bytes]:
        """Write and read the HASH of bans, in one round trip."""
        key = bans_key(site)
        with _as_frontier_errors():
            pipe = self.client.pipeline(transaction=False)
            for proxy, ban in changes.items():
                name = proxy.encode(errors=_DAMAGED_KEYS)
                if ban is None:
                    pipe.hdel(key, name)
                else:
                    pipe.hset(key, name, ban)
            if changes:
                pipe.expire(key, BANS_SECONDS)
            pipe.hgetall(key)
            *_, bans = await pipe.execute()
        return {proxy.decode(errors=_DAMAGED_KEYS): ban for proxy, ban in bans.items()}

    # --- A run ----------------------------------------------------------------------------------

    async def open(self, worker: Worker, requested_at: float | None, age: float) -> Opened:
        """Run `open.lua`, and before it `adopt.lua` where an earlier version has left runs."""
        with _as_frontier_errors("; start it, or remove REDIS_URL"):
            await check_server_clock(self.client)
            await check_eviction(self.client)
            await self.client.sadd(RUN_SITES_KEY, worker.run.site)
            remarks = await self._take_over(SiteKeys(worker.run.site))
            answer = await self._run_step(
                "open",
                worker,
                is_once=worker.is_once,
                requested_at=round(requested_at * 1000) if requested_at else 0,
                age=round(age * 1000),
                outcomes=OUTCOMES,
                can_be_lost=False,
            )
        opened = msgspec.json.decode(answer, type=_OpenReply)
        if opened.error is not None:
            raise other_arguments(worker, opened.error)
        if opened.gone:
            remarks.append(expired_remark(worker.run.name, opened.gone))
        over_at = opened.over_at / 1000 if opened.over_at is not None else None
        return Opened(over_at=over_at, remarks=remarks)

    async def _take_over(self, keys: SiteKeys) -> list[str]:
        """Return a sentence for each run of the layout before that had something left."""
        if not await self.client.exists(keys.earlier_runs):
            return []
        answers = await self._run_script(
            "adopt",
            [keys.earlier_runs],
            earlier=keys.earlier_prefix,
            present=keys.prefix,
            of_run=EARLIER_KEYS_OF_RUN,
            of_site=EARLIER_KEYS_OF_SITE,
        )
        runs = [msgspec.json.decode(answer, type=_TakenOver) for answer in answers]
        return [
            f"{run.open:,} open requests and {run.dead:,} dead letters of run {run.name!r},"
            f" which an earlier version has left, were taken over; the command of that run, or"
            f" one with FRONTIER_RUN={run.name}, goes on with them"
            for run in runs
        ]

    async def push(self, worker: Worker, pushes: Sequence[Push]) -> int:
        """Run `push.lua`."""
        return int(
            await self._run_step(
                "push",
                worker,
                pushes=pushes,
                limit=worker.limit or 0,
                bloom=worker.has_bloom_filter,
            )
        )

    async def ids(self, run: RunName) -> RequestIds:
        """Read the HASHes of requests and dead letters, and the ZSET of leases."""
        keys = self.keys_of(run)
        with _as_frontier_errors():
            pipe = self.client.pipeline(transaction=True)
            pipe.time()
            pipe.hkeys(keys.requests)
            pipe.zrange(keys.leases, 0, -1)
            pipe.hgetall(keys.dead)
            (now, _), requests, leases, dead = await pipe.execute()
        oldest = (now - DIED_SECONDS) * 1000
        return RequestIds(
            open={id_.decode() for id_ in (*requests, *leases)},
            died={id_.decode() for id_, letter in dead.items() if _head(letter).at >= oldest},
        )

    async def take(self, worker: Worker, want: int = 0, renew: Collection[str] = ()) -> Reply:
        """Run `take.lua`."""
        encoded, bodies = await self._run_step(
            "take",
            worker,
            worker=worker.name,
            want=want,
            renew=list(renew),
            is_idle=holds_none(renew),
            lease=round(worker.lease_seconds * 1000),
            deliveries=worker.deliveries,
            **_terms(worker.budget),
        )
        reply = msgspec.json.decode(encoded, type=_TakeReply)
        for delivery, body in zip(reply.deliveries, bodies, strict=True):
            delivery.body = body
        if reply.was_lost:
            reply.remarks.append(loss_remark(worker.run.name))
        if reply.wrong_type:
            key = self.keys_of(worker.run).site.start_urls
            reply.remarks.append(
                f"the key {key} of Redis is a {reply.wrong_type}, and no seed is taken from it;"
                " push seeds to a list, a set or a sorted set"
            )
        return reply

    async def finish(self, worker: Worker, ends: Sequence[End]) -> None:
        """Run `finish.lua`."""
        await self._run_step("finish", worker, ends=ends)

    async def leave(self, worker: Worker) -> None:
        """Remove the worker from those that are alive."""
        with _as_frontier_errors():
            await self.client.zrem(self.keys_of(worker.run).workers, worker.name)

    # --- Operators ------------------------------------------------------------------------------

    async def read(
        self,
        budgets: Mapping[RunSite, Budget],
        site: RunSite | None = None,
        name: str | None = None,
    ) -> FrontierReport:
        """Return the state of all sites and runs, or only the runs of a site or a name."""
        with _as_frontier_errors():
            seconds, microseconds = await self.client.time()
            now = seconds + microseconds / 1e6
            known = await self._sites()
            sites = {each: await self._read_site(each, budgets, now) for each in known}
            names = await self._runs(site, name)
            runs = [await self._read_run(run, sites[run.site], now) for run in names]
        found = [run for run in runs if run is not None]
        return FrontierReport(now=now, sites=sites, runs=sorted(found, key=lambda run: run.order))

    async def _read_site(
        self, site: RunSite, budgets: Mapping[RunSite, Budget], now: float
    ) -> SiteState:
        keys = SiteKeys(site)
        circuit = _decode(await self.client.hgetall(keys.circuit))
        spent = _decode(await self.client.hgetall(keys.budget))
        # Its day is a later one when a clock was ahead.
        is_of_today = int(spent.get("day", -1)) >= now // DAY_SECONDS
        return SiteState(
            site=site,
            refusal=circuit.get("reason"),
            stopped_until=float(circuit["until"]) / 1000 if "until" in circuit else None,
            refused_at=float(circuit["at"]) / 1000 if "at" in circuit else None,
            used_today=int(spent["used"]) if is_of_today else 0,
            budget=budgets.get(site, UNLIMITED),
        )

    async def _read_run(self, run: RunName, site: SiteState, now: float) -> RunReport | None:
        keys = self.keys_of(run)
        pipe = self.client.pipeline(transaction=False)
        pipe.hgetall(keys.state)
        pipe.hlen(keys.requests)
        pipe.zcard(keys.leases)
        pipe.hlen(keys.dead)
        pipe.hlen(keys.requeued)
        pipe.zcount(keys.workers, now * 1000, "+inf")
        encoded, requests, leases, dead, requeued, workers = await pipe.execute()
        if not (encoded or requeued or dead):
            return None
        state = _decode(encoded)
        account = msgspec.convert(state, Account, strict=False)
        account.open = max(requests, leases)
        # A run of which only letters are left began and ended now.
        over_at = float(state.get("over_at", 0 if state else now * 1000))
        return RunReport(
            site=run.site,
            run=run.name,
            arguments=state.get("arguments", ""),
            account=account,
            dead_letters=dead,
            requeued=requeued,
            workers=workers,
            started_at=float(state.get("started_at", now * 1000)) / 1000,
            ended_at=over_at / 1000 or None,
            now=now,
            site_state=site,
        )

    async def _sites(self) -> list[RunSite]:
        """Return the sites that this process knows, and others that have had runs."""
        others = {name.decode() for name in await self.client.smembers(RUN_SITES_KEY)}
        return [*RUN_SITES, *sorted(others.difference(RUN_SITES))]

    async def _runs(self, site: RunSite | None, name: str | None) -> list[RunName]:
        """Return the names of runs of each site, from the one that was used last."""
        found = []
        for one in await self._sites():
            if site in {None, one}:
                last = -1 if name is not None else MAX_RUNS - 1
                members = await self.client.zrange(SiteKeys(one).runs, 0, last, desc=True)
                names = [member.decode() for member in members]
                found += [RunName(one, each) for each in names if name in {None, each}]
        return found

    async def dead_letters(
        self, site: RunSite | None = None, name: str | None = None
    ) -> AsyncIterator[DeadLetter]:
        """Yield the dead letters of all runs, or only of a site or a name, in no order."""
        with _as_frontier_errors():
            for run in await self._runs(site, name):
                async for letter_id, letter in self.client.hscan_iter(self.keys_of(run).dead):
                    head = _head(letter)
                    _, _, value = letter.partition(b"\n")
                    body = value.partition(b"\n")[2].decode(errors="backslashreplace")
                    yield DeadLetter(
                        run=run,
                        id=letter_id.decode(),
                        reason=head.reason,
                        at=head.at / 1000,
                        body=body,
                    )

    async def requeue(self, run: RunName, letter_id: str) -> bool:
        """Run `requeue.lua`."""
        keys = self.keys_of(run)
        given = {"run": run.name, "id": letter_id, "can_be_lost": False}
        return bool(await self._run_script("requeue", keys.for_scripts, **given))

    async def drop_letter(self, run: RunName, letter_id: str) -> bool:
        """Delete a dead letter; return whether it was there."""
        with _as_frontier_errors():
            return bool(await self.client.hdel(self.keys_of(run).dead, letter_id))

    async def drop_run(self, run: RunName) -> bool:
        """Delete all keys of a run but its dead letters; return whether it was there."""
        keys = self.keys_of(run)
        with _as_frontier_errors():
            pipe = self.client.pipeline(transaction=True)
            pipe.unlink(*keys.of_pass, keys.requeued)
            pipe.hdel(keys.site.left, run.name)
            deleted, _ = await pipe.execute()
        return bool(deleted)

    async def close(self) -> None:
        """Close the client's connections."""
        await self.client.aclose()

    # --- Scripts --------------------------------------------------------------------------------

    async def _run_step(self, script: str, worker: Worker, /, **given: object) -> Any:
        """Run a script of a run."""
        keys = self.keys_of(worker.run)
        common = {"run": worker.run.name, "arguments": worker.arguments, "can_be_lost": True}
        return await self._run_script(
            script, [*keys.for_scripts, keys.site.start_urls], **{**common, **given}
        )

    async def _run_script(self, name: str, keys: Sequence[str], /, **given: object) -> Any:
        """Run a script; raise FrontierError when Redis can't."""
        with _as_frontier_errors():
            return await self._scripts[name](keys=keys, args=[msgspec.msgpack.encode(given)])


def _decode(fields: Mapping[bytes, bytes]) -> dict[str, str]:
    return {
        name.decode(): value.decode(errors="backslashreplace") for name, value in fields.items()
    }


def _terms(budget: Budget) -> dict[str, float]:
    """Return a site's budget as the scripts take it."""
    gap = 1000 / budget.per_second * SPACING_FACTOR if budget.per_second else 0.0
    return {"gap": gap, "per_day": budget.per_day or 0}


@contextmanager
def _as_frontier_errors(otherwise: str = "") -> Iterator[None]:
    """Make errors of Redis those of the contract."""
    try:
        yield
    except redis.exceptions.RedisError as error:
        # A script that is out of memory is told so in the text of a general error.
        if isinstance(error, redis.exceptions.OutOfMemoryError) or "OOM" in str(error):
            raise FrontierFullError(f"Redis at REDIS_URL has no memory left: {error}") from error
        why = describe_error(error, otherwise)
        raise FrontierError(f"Redis at REDIS_URL can't be used: {why}") from error
