"""The frontier's Redis side: one method for each script, which is one atomic step and one round trip."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import msgspec
import redis.exceptions

from moviecrawler.errors import MovieCrawlerError
from moviecrawler.frontier.keys import Keys
from moviecrawler.options import read_package_file

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from moviecrawler.frontier.budgets import Budget
    from moviecrawler.frontier.keys import SiteKeys
    from moviecrawler.options import FrontierOptions

BOOSTED, LISTS, TITLES = range(3)
"""Levels of priority; within one, first in is first out."""
SEED = "seed-"
"""What the ids of seeds begin with, whose body is what was pushed; every other body is JSON."""

How = Literal["done", "back", "dead", "again"]
"""How a lease ends, see `finish.lua`."""

_SCRIPTS = {
    "open": ("begin", "open"),
    "push": ("begin", "run", "push"),
    "take": ("begin", "run", "site", "take"),
    "finish": ("begin", "run", "finish"),
    "turn": ("begin", "site", "turn"),
}
_MOST_SEEDS = 100
"""Seeds that one step moves to the queue."""
_MILLISECONDS = 1000
_SPACING_FACTOR = 1.05
"""Requests are spaced by so much more than the budget asks for, as some come late and would crowd the next ones."""


class RunRefusedError(MovieCrawlerError):
    """The run that this worker would join was begun with other arguments."""


class Push(msgspec.Struct, frozen=True, array_like=True):
    """A request to queue."""

    level: int
    id: str
    body: str
    filtered: bool = True
    """Whether it is dropped when the run has seen its id."""
    title: str = ""
    """The id of the title that the run's limit counts; empty for what it does not count."""


class End(msgspec.Struct, frozen=True, array_like=True):
    """The end of a lease."""

    id: str
    how: How
    delivery: int = 0
    """The number of the delivery that the worker was given."""
    reason: str = ""
    unsent_day: int = -1
    """The day whose budget was charged for a request that was not sent; -1 for one that was."""


class Delivery(msgspec.Struct, frozen=True):
    """A request that was leased to this worker."""

    id: str
    number: int
    """How many times it was handed out, with this one."""
    delay: int
    """ms until it may be sent."""
    body: bytes


class Reply(msgspec.Struct):
    """How the run is. Times are in ms from now."""

    open: int
    """Requests that are queued or held by any worker."""
    waiting: int
    """Those that are queued."""
    workers: int
    seeded: bool
    """Whether all that the arguments name is queued."""
    seeding: bool
    """Whether this worker is the one that is to queue it."""
    total: int
    done: int
    failed: int
    shut: int
    """How long nothing will be handed out, because the site has refused us or the day's budget is spent."""
    reason: str
    """Why."""
    spent: bool
    """Whether it is for the budget."""
    probing: bool
    """Whether this worker was handed the one request that tries whether the site answers again."""
    start: int
    """When the budget allows the next request."""
    day: int
    """The UTC day whose budget is charged, in days since 1970."""
    seeds_in: str
    """The type of the key of seeds."""
    buried: list[str] = msgspec.field(default_factory=list)
    """Requests that became dead letters in this step."""
    deliveries: list[Delivery] = msgspec.field(default_factory=list)

    @property
    def lost(self) -> int:
        """How many requests were deleted in Redis by others."""
        return max(0, self.total - self.done - self.failed - self.open)


class Turn(msgspec.Struct):
    """The answer to a worker that asks for a turn at a site. Times are in ms from now."""

    shut: int
    reason: str
    spent: bool
    probing: bool
    delay: int
    used: int
    """Requests that the day's budget was charged for."""


class Scripts:
    """The scripts of one client, and what they take of a site's budget. Raises redis.RedisError when Redis can't do it."""

    def __init__(self, client: Any, budget: Budget, probe_seconds: float) -> None:
        self.round_trips = 0
        self._site = {
            "gap": _MILLISECONDS / budget.per_second * _SPACING_FACTOR if budget.per_second else 0,
            "burst": budget.burst,
            "per_day": budget.per_day or 0,
            "probe": round(probe_seconds * _MILLISECONDS),
        }
        self._scripts = {
            name: client.register_script("\n".join(read_package_file(__package__, f"{part}.lua") for part in parts))
            for name, parts in _SCRIPTS.items()
        }

    async def run(self, name: str, keys: Sequence[str], **given: Any) -> Any:
        """Run a script."""
        self.round_trips += 1
        try:
            return await self._scripts[name](keys=keys, args=[msgspec.msgpack.encode({**self._site, **given})])
        except redis.exceptions.ResponseError as error:
            # Redis 6.2 says it inside a sentence on the script.
            if "OOM command not allowed" in str(error):
                raise redis.exceptions.OutOfMemoryError(str(error)) from None
            raise

    async def turn(
        self, keys: SiteKeys, *, turn: bool = False, refusal: tuple[str, int] | None = None, answered: bool = False
    ) -> Turn:
        """Charge a request, if `turn`, or report a refusal (reason, and the pause in ms) or an answer to the probe."""
        step = {"turn": turn, "refusal": refusal or False, "answered": answered}
        return msgspec.json.decode(await self.run("turn", [keys.budget, keys.circuit], **step), type=Turn)


class SharedQueue:
    """One run of one site's crawl, as one worker sees it. Raises redis.RedisError when Redis can't do what it is asked."""

    keys: Keys

    def __init__(
        self,
        scripts: Scripts,
        site: SiteKeys,
        options: FrontierOptions,
        *,
        worker: str,
        arguments: str = "",
        limit: int | None = None,
    ) -> None:
        self.worker = worker
        self._scripts = scripts
        self._site = site
        self._options = options
        self._arguments = arguments
        self._limit = limit

    async def open(self, run: str, asked_at: float) -> float | None:
        """Join the latest run of a name, or begin the next; return when the one that was joined was over, in seconds since 1970.

        `asked_at` is when somebody asked for this worker: seconds since 1970, or seconds ago below 0, or 0 to join the run whenever
        that was. Raises RunRefusedError.
        """
        number, arguments, over_at = await self._scripts.run(
            "open",
            [self._site.latest(run), self._site.runs],
            prefix=f"{{{self._site.site}}}:{run}:",
            run=run,
            arguments=self._arguments,
            asked_at=round(asked_at * _MILLISECONDS),
        )
        if arguments.decode() != self._arguments:
            theirs = arguments.decode(errors="replace")
            raise RunRefusedError(f"run {run!r} was begun with {theirs}, and this worker has {self._arguments}")
        self.keys = Keys(self._site, run, number.decode())
        return float(over_at) / _MILLISECONDS if over_at else None

    async def push(self, pushes: Sequence[Push]) -> tuple[int, int]:
        """Queue requests; return how many the run had seen, and how many are above its limit. Raises OutOfMemoryError when none is."""
        bloom = self._options.dupefilter == "bloom"
        filtered, above = await self._run("push", pushes=pushes, limit=self._limit or 0, bloom=bloom)
        return filtered, above

    async def take(
        self,
        want: int = 0,
        *,
        renew: Collection[str] = (),
        holds: bool = False,
        seeder: str = "",
        claims: bool = True,
        seeded: bool = False,
        seeds: bool = True,
    ) -> Reply:
        """Lease at most `want` requests, and keep those that this worker holds; see `take.lua`."""
        header, *parts = await self._run(
            "take",
            worker=self.worker,
            lease=round(self._options.lease * _MILLISECONDS),
            deliveries=self._options.deliveries,
            want=want,
            renew=list(renew),
            holds=holds,
            seeder=seeder,
            claims=claims,
            seeded=seeded,
            seeds=_MOST_SEEDS if seeds else 0,
        )
        reply = msgspec.json.decode(header, type=Reply)
        of_requests = zip(parts[::4], parts[1::4], parts[2::4], parts[3::4], strict=True)
        reply.deliveries = [Delivery(id_.decode(), number, delay, body) for id_, number, delay, body in of_requests]
        return reply

    async def finish(self, ends: Sequence[End]) -> int:
        """End leases; return how many dead letters were queued again."""
        return int(await self._run("finish", ends=ends))

    async def _run(self, name: str, **given: Any) -> Any:
        return await self._scripts.run(name, self.keys.for_scripts, arguments=self._arguments, **given)
