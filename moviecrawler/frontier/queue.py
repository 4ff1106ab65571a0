"""The client of the frontier's scripts: each method runs one script, in one round trip and one atomic step."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal

import msgspec
import redis.exceptions

from moviecrawler.errors import ConfigurationError
from moviecrawler.frontier.budgets import SiteReply
from moviecrawler.frontier.keys import Keys
from moviecrawler.options import read_package_file

if TYPE_CHECKING:
    from collections.abc import Sequence

    from moviecrawler.frontier.budgets import Budget
    from moviecrawler.frontier.keys import SiteKeys
    from moviecrawler.options import FrontierOptions

BOOSTED, LISTS, TITLES = range(3)
"""Levels of priority; within one, first in is first out."""
SEED = "seed-"
ARGUMENTS = "arguments-"
"""Prefixes of the ids of seeds, whose body is what was pushed, and of the request that stands for
the run's arguments, which has none. The body of every other request is JSON."""
How = Literal["done", "back", "dead", "again"]
"""How a lease ends; see `finish.lua`."""

_SCRIPTS = {
    "open": ("begin", "open"),
    "push": ("begin", "run", "push"),
    "take": ("begin", "run", "site", "take"),
    "finish": ("begin", "run", "finish"),
    "ask": ("begin", "site", "ask"),
}
_MAX_SENT = 500
"""Requests that one step queues, at most, so that no other worker waits long."""
_SPACING_FACTOR = 1.05
"""The gap between two requests is longer by this factor than the budget asks for, as late ones
would crowd the next ones."""


class Push(msgspec.Struct, frozen=True, array_like=True):
    """A request to queue; it is dropped when the run has seen its id."""

    level: int
    id: str
    body: str
    title: str = ""
    """The id of the title, which counts for the run's limit; empty for lists and the like."""


class End(msgspec.Struct, frozen=True, array_like=True):
    """The end of a lease. `delivery` is the number of the delivery that the worker was given."""

    id: str
    how: How
    delivery: int = 0
    reason: str = ""


class Delivery(msgspec.Struct, frozen=True, array_like=True):
    """A request that was leased to this worker, as its `number`-th delivery."""

    id: str
    number: int
    body: bytes


class Reply(msgspec.Struct):
    """The state of the run after `take`."""

    site: SiteReply
    total: int
    done: int
    failed: int
    open: int
    """Requests that are queued or leased."""
    waiting: int
    """Requests that are queued."""
    deliveries: list[Delivery]
    new_dead_letters: list[str]
    """Requests that became dead letters in this step."""

    @property
    def lost(self) -> int:
        """How many requests were deleted in Redis by others."""
        return max(0, self.total - self.done - self.failed - self.open)

    @property
    def in_words(self) -> str:
        """What became of the requests that are not done."""
        counts = {
            "wait for the next worker": self.open,
            "are dead letters": self.failed,
            "are lost": self.lost,
        }
        return (
            ", ".join(f"{count:,} {what}" for what, count in counts.items() if count)
            or "all are done"
        )


class Scripts:
    """The scripts of one client, with a site's budget.

    Each call raises redis.RedisError when Redis can't do it.
    """

    def __init__(self, client: Any, budget: Budget) -> None:
        gap = 1000 / budget.per_second * _SPACING_FACTOR if budget.per_second else 0
        self._site = {"gap": gap, "per_day": budget.per_day or 0}
        self._scripts = {
            name: client.register_script(
                "\n".join(read_package_file(__package__, f"{part}.lua") for part in parts)
            )
            for name, parts in _SCRIPTS.items()
        }

    async def run(self, name: str, keys: Sequence[str], **given: Any) -> Any:
        """Run a script."""
        return await self._scripts[name](
            keys=keys, args=[msgspec.msgpack.encode({**self._site, **given})]
        )

    async def ask(self, keys: SiteKeys, **step: Any) -> SiteReply:
        """Ask whether a site may be asked; charge a request or report something, see `ask.lua`."""
        return msgspec.json.decode(
            await self.run("ask", [keys.budget, keys.circuit], **step), type=SiteReply
        )


@dataclass
class SharedQueue:
    """One run of one site, as one worker sees it.

    Each method raises redis.RedisError when Redis can't do it.
    """

    scripts: Scripts
    site: SiteKeys
    options: FrontierOptions
    worker: str
    arguments: str = ""
    limit: int | None = None
    """Titles that all workers together ask for, at most; None for no limit."""
    keys: Keys = field(init=False)

    async def open(self, run: str, asked_at: float) -> float | None:
        """Join the latest run of a name, or begin the next.

        Return when a joined run was over, in seconds since 1970.

        `asked_at` is when this worker was requested: seconds since 1970, or minus the seconds ago,
        or 0 to join the run in any case. Raises ConfigurationError when the run was begun with
        other arguments.
        """
        given: dict[str, Any] = {
            "run": run,
            "arguments": self.arguments,
            "asked_at": round(asked_at * 1000),
        }
        number, arguments, over_at = await self.scripts.run(
            "open", [self.site.latest(run), self.site.runs], **given
        )
        if arguments.decode() != self.arguments:
            theirs = arguments.decode(errors="replace")
            raise ConfigurationError(
                f"run {run!r} was begun with {theirs}, and this worker has {self.arguments}"
            )
        self.keys = Keys(self.site, run, number.decode())
        return float(over_at) / 1000 if over_at else None

    async def push(self, pushes: Sequence[Push]) -> int:
        """Queue requests; return how many the run had seen already.

        Raises ResponseError when Redis has no memory left.
        """
        bloom = self.options.dupefilter == "bloom"
        return int(await self._run("push", pushes=pushes, limit=self.limit or 0, bloom=bloom))

    async def take(self, want: int = 0, renew: Sequence[str] = ()) -> Reply:
        """Move up to `want` seeds to the queue, lease up to `want` requests, and renew the leases of the ids in `renew`."""
        of_run: dict[str, Any] = {
            "deliveries": self.options.deliveries,
            "lease": round(self.options.lease * 1000),
        }
        answer = await self._run("take", worker=self.worker, want=want, renew=renew, **of_run)
        site, counts, open_, waiting, deliveries, dead = answer
        (total, done, failed) = map(int, counts)
        of_site = msgspec.json.decode(site, type=SiteReply)
        handed_out = [Delivery(id_.decode(), number, body) for id_, number, body in deliveries]
        return Reply(
            of_site, total, done, failed, open_, waiting, handed_out, [id_.decode() for id_ in dead]
        )

    async def finish(self, ends: Sequence[End]) -> int:
        """End leases; return how many dead letters were queued again."""
        return int(await self._run("finish", ends=ends))

    async def _run(self, name: str, **given: Any) -> Any:
        return await self.scripts.run(
            name, self.keys.for_scripts, arguments=self.arguments, **given
        )


class Outbox:
    """Requests and ends of leases that a worker has to send.

    A lease ends only after the requests added before it are queued.
    """

    def __init__(self, shared: SharedQueue) -> None:
        self._shared = shared
        self.pushes: deque[Push] = deque()
        self.ends: deque[tuple[int, End]] = (
            deque()
        )  # with the number of pushes that must be sent first
        self._added = 0
        self.filtered = 0
        """Requests that the run had seen already."""

    def push(self, push: Push) -> None:
        """Add a request to queue."""
        self.pushes.append(push)
        self._added += 1

    def end(self, end: End) -> None:
        """Add a lease to end."""
        self.ends.append((self._added, end))

    async def send(self) -> None:
        """Send everything.

        Raises redis.RedisError; the next call then sends the rest, and sending twice does no harm.
        """
        try:
            while pushes := list(islice(self.pushes, _MAX_SENT)):
                self.filtered += await self._shared.push(pushes)
                for _ in pushes:
                    self.pushes.popleft()
        except redis.exceptions.ResponseError:
            await self._send_ends()  # frees memory in Redis, which may have none left
            raise
        await self._send_ends()

    async def _send_ends(self) -> None:
        queued = self._added - len(self.pushes)
        if ends := [end for after, end in self.ends if after <= queued]:
            await self._shared.finish(ends)
            for _ in ends:
                self.ends.popleft()
