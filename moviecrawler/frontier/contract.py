"""What the frontier promises, whichever backend keeps it: Redis for many machines, SQLite for one.

A run is one pass over what a spider's arguments name. There is one queue a name, for all workers of
the run. Each method of `Backend` is one atomic step, and one suite of tests holds for all backends.
"""

from __future__ import annotations

import json
from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

import msgspec

from moviecrawler.basics.errors import ConfigurationError
from moviecrawler.frontier.serialisation import Envelope
from moviecrawler.politeness.budgets import UNLIMITED, Budget, SiteReply
from moviecrawler.politeness.ledger import Ledger
from moviecrawler.sites import SITES, Site

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Collection, Mapping, Sequence

    from moviecrawler.politeness.ledger import Result

OFF_SITE = -1
"""The level of requests that are not for the site, so that they are leased while it is closed:
the arguments of the run, a pass over datasets, and files of an archive."""
BOOSTED = 0
LISTS = 1
TITLES = 2
"""The levels of requests for the site. Within one, first in is first out."""
SEED = "seed-"
"""The prefix of the ids of seeds. Their bodies are what was pushed; all others are JSON."""
ARGUMENTS = "arguments-"
"""The prefix of the id of the request that represents the run's arguments. It has no body. Its
worker may hold it as long as the run lasts: so it becomes no dead letter, however many workers die,
and keeps none of the requests that are leased alone from its worker."""

EndKind = Literal["done", "back", "last", "dead"]
"""How a lease ends. `done`: what came of the request is durable. `back`: it is queued again at the
front of its level, `last`: at the end, and this delivery does not count. `dead`: it becomes a dead
letter."""
OUTCOMES = ("stored", "absent", "failed", "disallowed", "fresh", "dead", "read", "unread")
"""What can become of a request. Titles are `stored`, or `absent` by the site's own word, or
`failed`, or `disallowed` by robots.txt, or `fresh`: not fetched, as their record is young. Lists
and others are `read` or `unread`. Each can become a `dead` letter."""
TITLE_OUTCOMES = ("stored", "absent", "failed", "disallowed", "fresh")
_DAY_SECONDS = 86_400
RAW = "surrogateescape"
"""How bytes that are no UTF-8 become text, and bytes again."""
RunSite = Site | Literal["replay"]
"""Whose run it is: that of a site, or of `scrapy replay`, which asks none."""
RUN_SITES: tuple[RunSite, ...] = (*SITES, "replay")
"""Those that this process knows; others may have runs of more."""


class Terms(msgspec.Struct, frozen=True, kw_only=True):
    """The terms of all queues, which each step of a backend is given."""

    unused_seconds: int = 7 * _DAY_SECONDS
    """After which a run that nobody has used expires. One that waits for a site that is blocking us
    does so as long after the pause."""
    letter_seconds: int = 30 * _DAY_SECONDS
    """For which a dead letter is kept."""
    circuit_seconds: int = 14 * _DAY_SECONDS
    """After the pause of a refusal, until it is forgotten."""
    longest_pause_seconds: int = 7 * _DAY_SECONDS
    """Each refusal after a pause doubles the pause, up to this."""
    probe_seconds: int = 60
    """For which workers wait for the response to a probe before another one is sent."""
    spacing: float = 1.05
    """The factor by which the gap between two requests is longer than the budget asks for, as late
    requests would crowd the next ones."""
    deliveries_alone: int = 2
    """After so many deliveries a request may have killed its workers: it is leased alone."""
    died_seconds: int = 600
    """For which a title that became a dead letter is not queued again in any case, as the catalogue
    may not be told yet."""
    most_runs: int = 100
    """Of a site that are read: those that were used last."""


TERMS = Terms()


class RunName(NamedTuple):
    """What names a queue."""

    site: RunSite
    name: str


@dataclass(frozen=True, kw_only=True)
class Worker:
    """A worker of a run, with the terms on which it takes requests."""

    run: RunName
    name: str
    arguments: str = ""
    """Describes the arguments of the run; all workers of it have the same."""
    is_once: bool = False
    """Whether the run's name was chosen with FRONTIER_RUN: it is passed over once."""
    limit: int | None = None
    """Titles that all workers together request, at most."""
    budget: Budget = UNLIMITED
    lease_seconds: float = 60.0
    deliveries: int = 5
    """Deaths of workers after which a request becomes a dead letter."""
    has_bloom_filter: bool = False
    """Whether the dedupe set is a Bloom filter. Only Redis has one."""


class Push(msgspec.Struct, frozen=True):
    """A request to queue. It is dropped when its id is open, or when the pass has seen it."""

    level: int
    id: str
    body: str
    title: str = ""
    """The id of the title, which counts for the run's limit; empty for lists and the like."""
    is_repeatable: bool = False
    """Whether it is queued whenever it is not open: the pass does not remember it."""


class End(msgspec.Struct, frozen=True, kw_only=True):
    """The end of a lease."""

    id: str
    kind: EndKind
    number: int = 0
    """The number of the delivery that ends. Of one that is not the last any more, only `stored` is
    taken: another worker is at the request."""
    reason: str = ""
    outcomes: dict[str, int] = {}
    """With `done`: what became of the request, such as `{"stored": 1}`, and of each title of a pass
    over datasets."""


class Delivery(msgspec.Struct, kw_only=True):
    """A request that was leased to a worker, as its `number`-th delivery."""

    id: str
    number: int
    text: str
    """The body; what is no UTF-8 is as RAW says."""

    @property
    def body(self) -> bytes:
        """The body as it was queued."""
        return self.text.encode(errors=RAW)


class Account(msgspec.Struct, kw_only=True):
    """What became of the requests of a pass, over all workers and starts."""

    requested: int = 0
    titles: int = 0
    """How many of them are for titles."""
    stored: int = 0
    absent: int = 0
    failed: int = 0
    disallowed: int = 0
    fresh: int = 0
    dead: int = 0
    read: int = 0
    unread: int = 0
    open: int = 0
    """Requests that are queued or leased."""

    @property
    def ended(self) -> int:
        """Requests that have an outcome."""
        return sum(getattr(self, outcome) for outcome in OUTCOMES)

    @property
    def lost(self) -> int:
        """Requests that others have deleted from the queue."""
        return max(0, self.requested - self.ended - self.open)


class Opened(msgspec.Struct, kw_only=True):
    """What a worker finds when it opens a run."""

    over_at: float | None = None
    """Unix time at which the joined run was over; None when there is something to do."""
    other_arguments: str = ""
    """The arguments of the run, when they are not those of the worker."""
    gone: int = 0
    """Requests that were open when the run expired."""
    remarks: list[str] = []
    """Sentences that the log should have: what was taken over, moved aside, lost or expired."""


class RequestIds(msgspec.Struct):
    """The ids of a run's requests at one moment."""

    open: set[str] = set()
    """Of those that are queued or leased."""
    died: set[str] = set()
    """Of those that became dead letters in the last `Terms.died_seconds`."""


class Reply(msgspec.Struct, kw_only=True):
    """The state of the run after `take`."""

    site: SiteReply
    account: Account
    deliveries: list[Delivery] = []
    new_dead_letters: list[str] = []
    """Requests that became dead letters in this step, as their workers died."""
    was_lost: bool = False
    """Whether the state was made again since a worker was told so."""
    remarks: list[str] = []
    """Sentences that the log should have, such as of a key of another type."""


RunState = Literal["running", "finished", "no worker", "stopped", "probing", "budget spent"]
"""`no worker`: requests are queued, and no worker runs. `stopped`: the site is blocking us.
`probing`: the pause is over, and one request finds out whether the site answers again."""
_RECENTLY_SECONDS = 3600.0
"""Seconds for which a run that is over still counts as current."""


class SiteState(msgspec.Struct, kw_only=True):
    """The circuit and the budget of a site. Times are Unix times."""

    site: RunSite = ""
    refusal: str | None = None
    """Why the site is not asked, until it answers again."""
    stopped_until: float | None = None
    refused_at: float | None = None
    """When it refused us last; None where that is not known."""
    used_today: int = 0
    """Requests that were charged to today's budget (UTC)."""
    budget: Budget = UNLIMITED
    """The budget by the settings of this process, which should be those of the workers."""


class RunReport(msgspec.Struct, kw_only=True):
    """A run at one moment. Times are Unix times, by the backend's clock."""

    site: RunSite
    run: str
    arguments: str
    account: Account
    dead_letters: int
    """Those of the name, of earlier passes too."""
    requeued: int
    """Dead letters that wait for the next pass."""
    workers: int
    started_at: float
    ended_at: float | None = None
    """When the run was over; None while it is not."""
    now: float
    site_state: SiteState = msgspec.field(default_factory=SiteState)

    @property
    def per_second(self) -> float:
        """Requests that ended in a second, on average."""
        seconds = (self.ended_at or self.now) - self.started_at
        return self.account.ended / max(0.001, seconds)

    @property
    def seconds_left(self) -> float | None:
        """Seconds until the run is over at this rate; None when nothing has ended."""
        return self.account.open / self.per_second if self.account.ended else None

    @property
    def is_current(self) -> bool:
        """Whether it has something open, ended within the last hour, or has workers."""
        if self.ended_at is None or self.account.open or self.requeued or self.workers:
            return True
        return self.now - self.ended_at <= _RECENTLY_SECONDS

    @property
    def state(self) -> RunState:
        """Whether the run goes on, and if not, why."""
        if self.ended_at is not None:
            return "finished"
        site = self.site_state
        if self.account.open and site.refusal is not None:
            return "stopped" if (site.stopped_until or 0) > self.now else "probing"
        per_day = site.budget.per_day
        if self.account.open and per_day is not None and site.used_today >= per_day:
            return "budget spent"
        return "running" if self.workers else "no worker"


class FrontierReport(msgspec.Struct, kw_only=True):
    """All sites and runs at one moment."""

    now: float
    """Unix time by the backend's clock."""
    sites: dict[RunSite, SiteState]
    runs: list[RunReport] = []
    """By site, then from the run that began first."""


class DeadLetter(msgspec.Struct, kw_only=True):
    """A request or a seed that was given up."""

    run: RunName
    id: str
    reason: str
    at: float
    """Unix time."""
    body: str
    """The request or the seed as it was queued; bytes that are not UTF-8 are escaped."""

    @property
    def request(self) -> Envelope | None:
        """The request; None for a seed, or when it is damaged."""
        try:
            return msgspec.json.decode(self.body, type=Envelope)
        except (msgspec.DecodeError, RecursionError):
            return None


class _Letters(msgspec.Struct):
    letters: list[DeadLetter] = []


def holds_none(ids: Collection[str]) -> bool:
    """Return whether these are no requests but, perhaps, the arguments."""
    return all(id_.startswith(ARGUMENTS) for id_ in ids)


class Backend(Ledger):
    """The queues of all runs, and what all workers know of the sites and of their proxies.

    What a `Ledger` says of its methods holds for all of them. Each is a step, which is the function
    of the Lua script with its name in Redis, and the statements below its name over SQLite.
    """

    async def _step(
        self,
        kind: type[Result],
        step: str,
        site: str | None = None,
        run: str | None = None,
        /,
        **given: object,
    ) -> Result:
        given.update(step=step, site=site, run=run, terms=TERMS)
        reply = await self._reply_to(given)
        # Seeds, and what others have damaged, may be any bytes.
        return msgspec.convert(json.loads(reply.decode(errors=RAW)), kind, strict=False)

    @abstractmethod
    async def _reply_to(self, given: Mapping[str, object]) -> bytes:
        """Take the step that is named in what it is given; return its reply in JSON."""

    @abstractmethod
    async def place(self, site: str) -> str:
        """Return where the queues of a site are, in words without a secret.

        It is the same for all processes that share them, and for no others.
        """

    # --- A run ----------------------------------------------------------------------------------

    async def open(self, worker: Worker, requested_at: float | None, age: float) -> Opened:
        """Join the run of a name, or begin the next pass.

        A run that is not over is joined. One that was over before the worker was requested is
        passed over again, unless `worker.is_once`.

        Args:
            worker: The worker.
            requested_at: Unix time, by the backend's clock, at which the worker was requested.
            age: Seconds since then; it is used where `requested_at` is None.

        Raises:
            ConfigurationError: The run was started with other arguments.
        """
        run = worker.run
        times = {"requested_at": requested_at, "age": age}
        opened = await self._step(Opened, "open", *run, worker=worker, **times)
        if opened.other_arguments:
            raise ConfigurationError(
                f"run {run.name!r} was started with {opened.other_arguments}; this worker has"
                f" {worker.arguments}"
            )
        if opened.gone:
            opened.remarks.append(
                f"{opened.gone} requests that were left of run {run.name!r} are gone: it was unused"
                f" for a week, or the queue has lost them; what the arguments name is"
                " queued again"
            )
        return opened

    async def push(self, worker: Worker, pushes: Sequence[Push]) -> int:
        """Queue requests; return how many were dropped, as they are open or were seen.

        Raises FrontierFullError.
        """
        return await self._step(int, "push", *worker.run, worker=worker, pushes=pushes)

    async def ids(self, run: RunName) -> RequestIds:
        """Return the ids of a run's requests."""
        return await self._step(RequestIds, "ids", *run)

    async def take(self, worker: Worker, want: int = 0, renew: Collection[str] = ()) -> Reply:
        """Lease up to `want` requests, and renew the leases of the ids in `renew`.

        It is the worker's heartbeat, too. Requests of workers that died are queued again.
        """
        terms = {"want": want, "renew": list(renew), "is_idle": holds_none(renew)}
        given = {"worker": worker, "budget": worker.budget, **terms}
        reply = await self._step(Reply, "take", *worker.run, **given)
        if reply.was_lost:
            run = worker.run.name
            reply.remarks.append(f"state of run {run!r} was lost; its arguments are queued again")
        return reply

    async def finish(self, worker: Worker, ends: Sequence[End]) -> None:
        """End leases, and count what became of their requests."""
        await self._step(object, "finish", *worker.run, worker=worker, ends=ends)

    async def leave(self, worker: Worker) -> None:
        """Note that a worker has ended."""
        await self._step(object, "leave", *worker.run, worker_name=worker.name)

    # --- Operators ------------------------------------------------------------------------------

    async def read(
        self,
        budgets: Mapping[RunSite, Budget],
        site: RunSite | None = None,
        name: str | None = None,
    ) -> FrontierReport:
        """Return the state of all sites and runs, or only the runs of a site or a name."""
        report = await self._step(FrontierReport, "read", site, name, known=RUN_SITES)
        order = list(dict.fromkeys((*RUN_SITES, *sorted(report.sites))))
        report.sites = {one: report.sites[one] for one in order}
        for one, state in report.sites.items():
            state.budget = budgets.get(one, UNLIMITED)
        for run in report.runs:
            run.site_state = report.sites[run.site]
        report.runs.sort(key=lambda run: (order.index(run.site), run.started_at))
        return report

    async def dead_letters(
        self, site: RunSite | None = None, name: str | None = None
    ) -> AsyncIterator[DeadLetter]:
        """Yield the dead letters of all runs, or only of a site or a name, in no order."""
        for run in (await self.read({}, site, name)).runs:
            if run.dead_letters:
                reply = await self._step(_Letters, "letters", run.site, run.run)
                for letter in reply.letters:
                    body = letter.body.encode(errors=RAW)
                    letter.body = body.decode(errors="backslashreplace")
                    yield letter

    async def requeue(self, run: RunName, letter_id: str) -> bool:
        """Queue a dead letter again, with no deliveries; return whether it was there.

        It joins the pass that is under way. Otherwise it waits for the next one: it reopens none.
        One that died in the pass that it joins is counted as dead no more, one of an earlier pass
        as a request more.
        """
        return await self._step(bool, "requeue", *run, letter_id=letter_id)

    async def drop_letter(self, run: RunName, letter_id: str) -> bool:
        """Delete a dead letter; return whether it was there. It stays counted as dead."""
        return await self._step(bool, "drop_letter", *run, letter_id=letter_id)

    async def drop_run(self, run: RunName) -> bool:
        """Delete a run with all that it has queued; return whether it was there.

        Its dead letters stay.
        """
        return await self._step(bool, "drop_run", *run)
