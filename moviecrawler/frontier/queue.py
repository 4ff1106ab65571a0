"""The frontier's Redis side: scripts that each are one atomic step and one round trip."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import msgspec
import redis.exceptions

from moviecrawler.errors import MovieCrawlerError
from moviecrawler.frontier.budgets import UNLIMITED
from moviecrawler.redis_client import load_script

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from redis.commands.core import AsyncScript

    from moviecrawler.frontier.budgets import Budget
    from moviecrawler.frontier.keys import Keys
    from moviecrawler.frontier.leases import How
    from moviecrawler.options import FrontierOptions

BOOSTED, LISTS, TITLES = range(3)
"""Levels of priority; within one, first in is first out."""
LEVELS = (BOOSTED, LISTS, TITLES)
MOST_HANGS = 2
"""Times that a page may make a worker hang, until it is set aside. Each costs a worker a minute, and says for certain which page it was."""
_LISTEN_CHECK_SECONDS = 60.0  # seconds between two looks at whether the connection is still there
_MILLISECONDS = 1000
_REVIVE_BATCH = 500
_SPACING_FACTOR = 1.05
"""Requests are spaced by so much more than the budget asks for, as some come late and would crowd the next ones."""


class RunGoneError(MovieCrawlerError):
    """Redis no longer holds the run that was opened: it was replaced, emptied, or has lost its data."""


class Push(msgspec.Struct, frozen=True, array_like=True):
    """A request to queue."""

    level: int
    id: str
    request: str
    filtered: bool
    """Whether it is dropped when the page is known."""
    is_title: bool
    by_round: bool = False
    """Whether known is only what this round has queued by itself, and not all that was queued within the window."""


@dataclass(slots=True, kw_only=True)
class Batch:
    """What a worker sends in an exchange, and how much it asks for."""

    pushes: Sequence[Push] = ()
    first: int | None = None
    """How many pushes of this worker were queued before these, as far as it knows: those that it sends a second time are skipped. None
    to queue all."""
    ends: Sequence[tuple[str, How, str]] = ()
    spent: int = 0
    unsent: int = 0
    refusal: tuple[str, int] | None = None
    """Reason, and the pause in ms."""
    answered: bool = False
    want: int = 0
    regardless: bool = False
    join: bool = False
    leave: bool = False


class Reply(msgspec.Struct):
    """The answer to an exchange. Times are in ms from now."""

    open: int
    """Requests that are queued or held by any worker."""
    waiting: int
    """Those that are queued."""
    held: int
    """Those that this worker holds."""
    lost: bool
    """Whether this worker's leases have ended, so that it holds none and gets none until it joins anew."""
    shut: int
    """How long nothing will be handed out, because the site has refused us or the day's budget is spent."""
    reason: str
    """Why."""
    spent: bool
    """Whether the day's budget is spent, and nothing is handed out for that."""
    probing: bool
    """Whether this worker holds the one request that tries whether the site answers again."""
    start: int
    """When the budget allows the next request."""
    dropped: int
    """How many of the pushes were known, or above the limit."""
    workers: int
    """How many share the crawl."""
    left: int | None = None
    """How many requests the budget of the day still allows to hand out; None for any number."""
    damaged: list[str] = msgspec.field(default_factory=list)
    """What could not be read in Redis and was dropped."""
    gone: list[str] = msgspec.field(default_factory=list)
    """Workers whose leases have ended."""
    handed_out: list[tuple[bytes, int]] = msgspec.field(default_factory=list)
    """Entries, and when each may be sent."""


async def requeue(client: Any, keys: Keys, letter: str) -> bool:
    """Queue a dead letter again; return whether it was a request that could be."""
    return bool(
        await load_script(client, __package__, "requeue")(
            keys=[keys.state, keys.dead_letters, *map(keys.requests, LEVELS)], args=[letter]
        )
    )


class SharedQueue:
    """One run of one site's crawl, as one worker sees it. Raises redis.RedisError when Redis can't do what it is asked."""

    def __init__(
        self,
        client: Any,
        keys: Keys,
        options: FrontierOptions,
        *,
        budget: Budget = UNLIMITED,
        worker: str,
        digest: str = "",
        limit: int | None = None,
    ) -> None:
        self.server = client
        self.keys = keys
        self.worker = worker
        self.deliveries = options.deliveries
        self.spaced = budget.per_second is not None
        """Whether requests are handed out for certain moments."""
        self.round_trips = 0
        self._options = options
        self._budget = budget
        self._digest = digest
        self._limit = limit
        self._run_id = ""
        self._scripts: dict[str, AsyncScript] = {
            name: load_script(client, __package__, name) for name in ("open", "exchange", "reap", "revive")
        }

    async def open(self, nonce: str) -> None:
        """Begin the run, or join it; `nonce` is new with each call."""
        self._run_id = (await self._open(nonce, "", "ask"))[0]

    async def seeding(
        self, step: Literal["ask", "done", "again"] = "ask", *, ago: float = 0.0
    ) -> Literal["seed", "wait", "done"]:
        """Ask whether to queue what the arguments name, report that it is queued, or begin a round whatever was done before.

        `ago` is how many seconds ago this worker was asked to crawl, where FRONTIER_ASKED_AT doesn't say when.
        """
        return (await self._open("", self._digest, step, ago))[1]  # type: ignore[no-any-return]

    async def _open(self, nonce: str, digest: str, step: str, ago: float = 0.0) -> list[Any]:
        options = self._options
        asked_at = options.asked_at or min(-ago, -1 / _MILLISECONDS)
        answer = await self._run(
            "open",
            [self.keys.state, self.keys.workers, self.keys.runs, self.keys.current, self.keys.round],
            [
                nonce,
                self.keys.run,
                self.worker,
                digest,
                step,
                round(options.window * _MILLISECONDS),
                round(asked_at * _MILLISECONDS),
            ],
        )
        return [part.decode() for part in answer]

    async def exchange(self, batch: Batch) -> Reply:
        """Tell and ask everything in one step. Raises RunGoneError, or OutOfMemoryError when nothing of it was done."""
        options, budget = self._options, self._budget
        arguments = {
            "run_id": self._run_id,
            "worker": self.worker,
            "node": options.node,
            "join": batch.join,
            "leave": batch.leave,
            "lease": round(options.lease * _MILLISECONDS),
            "window": round(options.window * _MILLISECONDS),
            "pushes": batch.pushes,
            "first": False if batch.first is None else batch.first,
            "digest": self._digest,
            "limit": self._limit or 0,
            "bloom": options.dupefilter == "bloom",
            "capacity": options.capacity,
            "error": options.error,
            "ends": batch.ends,
            "spent": batch.spent,
            "unsent": batch.unsent,
            "refusal": batch.refusal or False,
            "answered": batch.answered,
            "wakeup": self.keys.wakeup,
            "deliveries": options.deliveries,
            "hangs": MOST_HANGS,
            "want": batch.want,
            "regardless": batch.regardless,
            "gap": _MILLISECONDS / budget.per_second * _SPACING_FACTOR if budget.per_second else 0,
            "burst": budget.burst,
            "per_day": budget.per_day or 0,
        }
        keys = self.keys
        try:
            header, *entries = await self._run(
                "exchange",
                [
                    *(keys.state, keys.workers, keys.leases(self.worker)),
                    *map(keys.requests, LEVELS),
                    *(keys.dupefilter(0), keys.dupefilter(1)),
                    *(keys.dead_letters, keys.failed, keys.nodes, keys.round, keys.budget, keys.circuit, keys.hangs),
                ],
                [msgspec.msgpack.encode(arguments)],
            )
        except redis.exceptions.ResponseError as error:
            if "GONE" in str(error):
                raise RunGoneError(str(error)) from None
            # Redis 6.2 says it inside a sentence on the script.
            if "OOM command not allowed" in str(error):
                raise redis.exceptions.OutOfMemoryError(str(error)) from None
            raise
        reply = msgspec.json.decode(header, type=Reply)
        reply.handed_out = list(zip(entries[::2], entries[1::2], strict=True))
        return reply

    async def reap(self, worker: str) -> tuple[int, int]:
        """Give back what a worker held whose leases have ended; return how many went back, and to the dead letters."""
        keys = self.keys
        answer = await self._run(
            "reap",
            [keys.state, keys.workers, keys.leases(worker), *map(keys.requests, LEVELS), keys.dead_letters],
            [worker, self._options.deliveries],
        )
        return answer[0], answer[1]

    async def revive(self) -> int:
        """Queue the requests that have failed once more, if the run has nothing else to do; return how many."""
        keys = [self.keys.state, self.keys.failed, *map(self.keys.requests, LEVELS), self.keys.round]
        revived = more = await self._run("revive", keys, [_REVIVE_BATCH, 0, self._digest])
        while more == _REVIVE_BATCH:
            more = await self._run("revive", keys, [_REVIVE_BATCH, 1, self._digest])
            revived += more
        return int(revived)

    async def held(self) -> set[str]:
        """Return the ids of the requests that this worker holds, as Redis has it."""
        self.round_trips += 1
        return {name.decode() for name in await self.server.hkeys(self.keys.leases(self.worker))}

    async def listen(self, heard: Callable[[], None]) -> None:
        """Call `heard` when the wait for requests may be over, until Redis fails or this is cancelled."""
        async with self.server.pubsub() as channel:
            await channel.subscribe(self.keys.wakeup)
            while True:
                # With the answer to the subscription, too: before it, something may have been missed.
                if await channel.get_message(timeout=_LISTEN_CHECK_SECONDS) is not None:
                    heard()

    async def eviction(self) -> str | None:
        """Return the policy by which Redis throws keys away when it is full, which may be queued titles.

        None if it doesn't, and where we may not ask.
        """
        self.round_trips += 1
        try:
            info = await self.server.info("memory")
        except redis.exceptions.ResponseError:
            return None
        policy: str = info.get("maxmemory_policy", "noeviction")
        return policy if info.get("maxmemory") and policy != "noeviction" else None

    async def disconnect(self) -> None:
        """Drop all connections; a next command would make a new one."""
        await self.server.aclose()

    async def _run(self, name: str, keys: list[str], arguments: list[Any]) -> Any:
        self.round_trips += 1
        return await self._scripts[name](keys=keys, args=arguments)
