"""The frontier's backend for one machine: a SQLite file, which the processes of a folder share."""

from __future__ import annotations

import asyncio
import math
import time
import uuid
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from functools import partial
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, TypeVar

from moviecrawler.errors import ConfigurationError
from moviecrawler.frontier.contract import (
    ARGUMENTS,
    DAYS_DEAD,
    DAYS_UNUSED,
    DELIVERIES_ALONE,
    LONGEST_PAUSE_SECONDS,
    MAX_RUNS,
    OFF_SITE,
    OUTCOMES,
    PROBE_SECONDS,
    RUN_SITES,
    SPACING_FACTOR,
    TITLE_OUTCOMES,
    Account,
    Backend,
    DeadLetter,
    Delivery,
    FrontierReport,
    KeptRobots,
    Opened,
    Reply,
    RunName,
    RunReport,
    SiteState,
)
from moviecrawler.frontier.queue_file import QueueFile
from moviecrawler.frontier.worker_locks import WorkerLocks
from moviecrawler.politeness.budgets import UNLIMITED, SiteReply

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import AsyncIterator, Callable, Collection, Iterator, Mapping, Sequence
    from pathlib import Path

    from moviecrawler.frontier.contract import End, Push, RunSite, Worker
    from moviecrawler.frontier.queue_file import Kind
    from moviecrawler.politeness.budgets import Budget

Result = TypeVar("Result")

FILE = "queue.sqlite3"
LOCKS = "queue-locks"
"""The folder with a lock file for each worker."""
_OPENING = "opening"
"""The lock file of who makes FILE; the names of those of workers end in .lock."""
_DAY_SECONDS = 86_400
_UNUSED_SECONDS = DAYS_UNUSED * _DAY_SECONDS
_DEAD_SECONDS = DAYS_DEAD * _DAY_SECONDS
_CIRCUIT_SECONDS = 14 * _DAY_SECONDS
"""Seconds after a pause for which it is known that the site has refused us."""
_MOST_DOUBLINGS = 30
_SET_BACK_SECONDS = 1.0
"""When the last use is further ahead than this, the clock was set back since."""
_MAX_DELETED = 20_000
"""Requests of a run that are deleted in one step."""
_MAX_LETTERS = 200
"""Dead letters that are read in one step."""


class SqliteBackend(Backend):
    """The queues of the processes that share a folder, in its `queue.sqlite3`.

    Its steps run in a thread of their own, so that the event loop never waits for the disk.
    """

    def __init__(self, folder: Path, clock: Callable[[], float] = time.time) -> None:
        """Open nothing yet. `clock` returns the Unix time."""
        locks = folder / LOCKS
        self._file = QueueFile(folder / FILE, opening=locks / _OPENING)
        self._locks = WorkerLocks(locks)
        self._clock = clock
        self._thread: ThreadPoolExecutor | None = None
        self._remarks: list[str] = []

    # --- The sites ------------------------------------------------------------------------------

    async def ask(
        self,
        site: str,
        budget: Budget,
        *,
        charge: bool = False,
        refusal: tuple[str, float] | None = None,
        has_answered: bool = False,
    ) -> SiteReply:
        """Tell whether a site may be asked; see the contract."""

        def ask(database: sqlite3.Connection) -> SiteReply:
            now = self._clock()
            asked = _site_to_ask(database, site, now)
            if refusal is not None:
                reason, pause = refusal
                asked.refuse(reason, pause, now)
            elif has_answered:
                asked.close_circuit()
            reply = asked.reply(budget, now)
            is_charged = charge and reply.blocked == 0
            if is_charged:
                asked.charge(budget, reply, now)
            if is_charged or refusal is not None or has_answered:
                asked.write(database, now)
            return reply

        return await self._change(ask)

    async def read_robots(self, host: str) -> KeptRobots | None:
        """Return the robots.txt of a scheme and host that was fetched last; None without one."""

        def read(database: sqlite3.Connection) -> KeptRobots | None:
            query = "SELECT text, fetched_at FROM robots WHERE host = ?"
            row = database.execute(query, (host,)).fetchone()
            return None if row is None else KeptRobots(**row)

        return await self._change(read)

    async def keep_robots(self, host: str, text: str) -> None:
        """Keep the robots.txt of a scheme and host."""
        row = (host, text, self._clock())

        def keep(database: sqlite3.Connection) -> None:
            database.execute("INSERT OR REPLACE INTO robots VALUES (?, ?, ?)", row)

        await self._change(keep)

    async def exchange_bans(
        self, site: str, changes: Mapping[str, bytes | None]
    ) -> dict[str, bytes]:
        """Write and read the table of bans."""

        def exchange(database: sqlite3.Connection) -> dict[str, bytes]:
            for proxy, ban in changes.items():
                if ban is None:
                    delete = "DELETE FROM bans WHERE site = ? AND proxy = ?"
                    database.execute(delete, (site, proxy))
                else:
                    insert = "INSERT OR REPLACE INTO bans VALUES (?, ?, ?)"
                    database.execute(insert, (site, proxy, ban))
            return _bans_of(database, site)

        return await self._change(exchange)

    async def read_bans(self, site: str) -> dict[str, bytes]:
        """Read the table of bans."""
        return await self._visit(partial(_bans_of, site=site), "DEFERRED", {})

    # --- A run ----------------------------------------------------------------------------------

    async def open(self, worker: Worker, requested_at: float | None, age: float) -> Opened:
        """Join the run of a name, or begin the next pass; see the contract."""

        def open_(database: sqlite3.Connection) -> tuple[Opened, _Run, set[str]]:
            now = self._clock()
            run = _Run(database, worker.run, now)
            opened = Opened(expired_open=_forget_expired(run))
            opened.over_at = _open(run, worker, now - age if requested_at is None else requested_at)
            run.end(worker)
            return opened, run, _known_workers(database)

        while await self._change(self._expire):
            pass  # in parts, so that no other process waits for long
        opened, run, known_workers = await self._change(open_)
        await self._in_thread(partial(self._locks.sweep, known_workers))
        self._note_loss(run)
        opened.remarks = self._new_remarks()
        return opened

    async def push(self, worker: Worker, pushes: Sequence[Push]) -> int:
        """Queue requests; return how many were dropped; see the contract."""
        return await self._step(worker, partial(_push, worker=worker, pushes=pushes))

    async def take(self, worker: Worker, want: int = 0, renew: Collection[str] = ()) -> Reply:
        """Lease up to `want` requests, and renew leases; see the contract."""
        dead_workers: list[str] = []

        def take(run: _Run) -> Reply:
            self._locks.hold(worker.name)
            _renew(run, worker, renew)
            others = _workers_of(run) - {worker.name}
            dead_workers[:] = [name for name in others if self._locks.is_dead(name)]
            for name in dead_workers:
                _remove_worker(run, name)
            new_dead_letters = _end_leases(run, worker)
            site = _site_to_ask(run.database, worker.run.site, run.now)
            answer = site.reply(worker.budget, run.now)
            deliveries = _lease(run, worker, want, answer, is_idle=not renew)
            state = run.end(worker)
            return Reply(
                site=answer,
                account=_account(state),
                waiting=state["queued"],
                deliveries=deliveries,
                new_dead_letters=new_dead_letters,
            )

        reply = await self._step(worker, take)
        if dead_workers:
            await self._in_thread(partial(self._remove_locks, dead_workers))
        reply.remarks = self._new_remarks()
        return reply

    async def finish(self, worker: Worker, ends: Sequence[End]) -> None:
        """End leases, and count what became of their requests."""
        await self._step(worker, partial(_finish, worker=worker, ends=ends))

    async def leave(self, worker: Worker) -> None:
        """Note that a worker has ended: the next `take` of another ends what it still leases."""

        def leave(database: sqlite3.Connection) -> None:
            _remove_worker(_Run(database, worker.run, self._clock()), worker.name)

        await self._visit(leave, "IMMEDIATE", None)
        await self._in_thread(partial(self._remove_locks, [worker.name]))

    # --- Operators ------------------------------------------------------------------------------

    async def read(
        self,
        budgets: Mapping[RunSite, Budget],
        site: RunSite | None = None,
        name: str | None = None,
    ) -> FrontierReport:
        """Return the state of all sites and runs, or only the runs of a site or a name."""

        def read(database: sqlite3.Connection) -> FrontierReport:
            report = _read_sites(database, budgets, self._clock())
            for run in _read_runs(database, report, MAX_RUNS if name is None else None):
                if site in {None, run.site} and name in {None, run.run}:
                    alive = _alive_workers(database, RunName(run.site, run.run), report.now)
                    run.workers = sum(not self._locks.is_dead(worker) for worker in alive)
                    report.runs.append(run)
            return report

        now = self._clock()
        unasked = {each: _Site(site=each).state(budgets, now) for each in RUN_SITES}
        empty = FrontierReport(now=now, sites=unasked)
        report = await self._visit(read, "DEFERRED", empty)
        order = list(RUN_SITES)
        report.runs.sort(key=lambda run: (order.index(run.site), run.started_at))
        return report

    async def dead_letters(
        self, site: RunSite | None = None, name: str | None = None
    ) -> AsyncIterator[DeadLetter]:
        """Yield the dead letters of all runs, or only of a site or a name, in no order."""
        which: dict[str, Any] = {
            "site": site,
            "name": name,
            "oldest": self._clock() - _DEAD_SECONDS,
            "after": 0,
            "most": _MAX_LETTERS,
        }
        none: list[sqlite3.Row] = []
        while letters := await self._visit(partial(_read_letters, which=which), "DEFERRED", none):
            for letter in letters:
                yield DeadLetter(
                    run=RunName(letter["site"], letter["name"]),
                    id=letter["id"],
                    reason=letter["reason"],
                    at=letter["died_at"],
                    body=letter["body"].decode(errors="backslashreplace"),
                )
            which["after"] = letters[-1]["number"]

    async def requeue(self, run: RunName, letter_id: str) -> bool:
        """Queue a dead letter again, with no deliveries; see the contract."""

        def requeue(database: sqlite3.Connection) -> bool:
            return _requeue(_Run(database, run, self._clock()), letter_id)

        while await self._visit(self._expire, "IMMEDIATE", otherwise=False):
            pass
        return await self._visit(requeue, "IMMEDIATE", otherwise=False)

    async def drop_letter(self, run: RunName, letter_id: str) -> bool:
        """Delete a dead letter; return whether it was there. It stays counted as dead."""

        def drop(database: sqlite3.Connection) -> bool:
            return database.execute(_DROP_LETTER, (_key(run), letter_id)).rowcount > 0

        return await self._visit(drop, "IMMEDIATE", otherwise=False)

    async def drop_run(self, run: RunName) -> bool:
        """Delete a run with all that it has queued; return whether it was there."""
        key = _key(run)
        was_there = False
        rows = _MAX_DELETED
        while rows == _MAX_DELETED:
            delete = partial(_delete_requests, key=key)
            rows = await self._visit(delete, "IMMEDIATE", 0)
            was_there = was_there or rows > 0

        def drop(database: sqlite3.Connection) -> bool:
            states = _delete_state(database, key)
            letters = database.execute(_DROP_REQUEUED, (key,)).rowcount
            database.execute("DELETE FROM expired WHERE run = ?", (key,))
            return states + letters > 0

        return await self._visit(drop, "IMMEDIATE", otherwise=False) or was_there

    async def close(self) -> None:
        """Free the locks of this process' workers, and close the file."""
        thread = self._thread
        if thread is not None:
            await self._in_thread(self._release)
            self._thread = None
            thread.shutdown()

    # --- The thread -----------------------------------------------------------------------------

    async def _step(self, worker: Worker, step: Callable[[_Run], Result]) -> Result:
        """Run a step of a run, which is made again when its state was lost."""

        def continue_(database: sqlite3.Connection) -> tuple[_Run, Result]:
            run = _Run(database, worker.run, self._clock())
            if run.state is None:
                run.restore(worker)
            return run, step(run)

        run, result = await self._change(continue_)
        self._note_loss(run)
        return result

    async def _change(self, step: Callable[[sqlite3.Connection], Result]) -> Result:
        return await self._in_thread(partial(self._file.change, step))

    async def _visit(
        self, step: Callable[[sqlite3.Connection], Result], kind: Kind, otherwise: Result
    ) -> Result:
        return await self._in_thread(partial(self._file.visit, step, kind, otherwise))

    async def _in_thread(self, step: Callable[[], Result]) -> Result:
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, thread_name_prefix="queue")
        return await asyncio.get_running_loop().run_in_executor(self._thread, step)

    def _expire(self, database: sqlite3.Connection) -> bool:
        return _expire(database, self._clock())

    def _remove_locks(self, workers: list[str]) -> None:
        for worker in workers:
            self._locks.remove(worker)

    def _release(self) -> None:
        self._locks.free_all()
        self._file.close()

    def _note_loss(self, run: _Run) -> None:
        if run.was_lost:
            self._remarks.append(
                f"the state of run {run.name.name!r} was lost: what its arguments name is queued"
                " again"
            )

    def _new_remarks(self) -> list[str]:
        remarks = [*self._file.remarks, *self._remarks]
        self._file.remarks.clear()
        self._remarks.clear()
        return remarks


# --- The state of a run -------------------------------------------------------------------------


_COUNT_REQUESTS = """
SELECT count(*) AS open, count(lease_until) AS leased, total(is_title) AS titles
FROM requests
WHERE run = ?
"""
_COUNT_LETTERS = """
SELECT count(*) AS letters, total(is_title) AS titles
FROM letters
WHERE run = ? AND requeued_at IS NULL
"""
_BEGIN_RUN = """
INSERT OR REPLACE INTO runs (
    run, site, name, arguments, started_at, used_at, queued, leased, requested, titles, dead
)
VALUES (
    :run, :site, :name, :arguments, :now, :now, :queued, :leased, :requested, :titles, :dead
)
"""
_END_STEP = """
UPDATE runs
SET arguments = CASE arguments WHEN '' THEN :arguments ELSE arguments END,
    used_at = :now,
    over_at = CASE WHEN queued + leased = 0 THEN coalesce(over_at, :now) END,
    requested = requested + :requested,
    titles = titles + :titles,
    stored = stored + :stored,
    absent = absent + :absent,
    failed = failed + :failed,
    disallowed = disallowed + :disallowed,
    dead = dead + :dead,
    read = read + :read,
    unread = unread + :unread
WHERE run = :run
RETURNING *
"""
_QUEUE = """
INSERT OR IGNORE INTO requests (run, id, level, is_title, body)
SELECT :run, :id, :level, :is_title, :body
WHERE :is_repeatable OR NOT EXISTS (SELECT 1 FROM seen WHERE run = :run AND id = :id)
"""
_BURY = """
INSERT OR REPLACE INTO letters (
    run, id, site, name, reason, died_at, level, is_title, body
)
SELECT run, id, :site, :name, :reason, :now, level, is_title, body
FROM requests
WHERE run = :run AND id = :id
"""
_REQUEUED = """
SELECT id, level, is_title, is_counted, body
FROM letters
WHERE run = ? AND requeued_at IS NOT NULL
ORDER BY requeued_at, number
"""


_DROP_REQUEUED = "DELETE FROM letters WHERE run = ? AND requeued_at IS NOT NULL"
_DROP_LETTER = "DELETE FROM letters WHERE run = ? AND id = ? AND requeued_at IS NULL"
_MOVE_BACK = (
    """
    UPDATE runs
    SET used_at = used_at - :seconds,
        started_at = started_at - :seconds,
        over_at = over_at - :seconds
    WHERE run = :run
    """,
    """
    UPDATE requests
    SET lease_until = lease_until - :seconds
    WHERE run = :run AND lease_until IS NOT NULL
    """,
    "UPDATE workers SET alive_until = alive_until - :seconds WHERE run = :run",
)


class _Run:
    """A run within one step."""

    def __init__(self, database: sqlite3.Connection, name: RunName, now: float) -> None:
        self.database = database
        self.name = name
        self.now = now
        self.key = _key(name)
        self.changes: Counter[str] = Counter()
        """What the step adds to the account."""
        self.was_lost = False
        """Whether the step began without a state although the run had begun."""
        self.state = self.read_state()
        self.was_set_back = (
            self.state is not None and self.state["used_at"] > now + _SET_BACK_SECONDS
        )
        """Whether the clock was set back since the last step."""
        if self.state is not None and self.was_set_back:
            self._move_back(self.state["used_at"] - now)

    def read_state(self) -> sqlite3.Row | None:
        """Return the row of `runs`; None when there is none."""
        row: sqlite3.Row | None = self.database.execute(
            "SELECT * FROM runs WHERE run = ?", (self.key,)
        ).fetchone()
        return row

    def restore(self, worker: Worker) -> None:
        """Make a state that was lost: what the arguments name is queued again, and none is seen."""
        self.was_lost = True
        requests = self.database.execute(_COUNT_REQUESTS, (self.key,)).fetchone()
        letters = self.database.execute(_COUNT_LETTERS, (self.key,)).fetchone()
        self.database.execute("UPDATE letters SET is_counted = 1 WHERE run = ?", (self.key,))
        self._begin(
            worker,
            queued=requests["open"] - requests["leased"],
            leased=requests["leased"],
            requested=requests["open"] + letters["letters"],
            titles=int(requests["titles"] + letters["titles"]),
            dead=letters["letters"],
        )

    def begin_pass(self, worker: Worker) -> None:
        """Begin a pass, with the dead letters that wait for it."""
        self.database.execute("UPDATE letters SET is_counted = 0 WHERE run = ?", (self.key,))
        self._begin(worker)
        self.queue_letters()

    def queue(
        self,
        request_id: str,
        level: int,
        body: bytes,
        *,
        is_title: bool,
        is_repeatable: bool = True,
    ) -> bool:
        """Queue a request at the end of its level; return whether that was done.

        It is not when the request is open, or when the pass has seen it and it is not repeatable.
        """
        request = {
            "run": self.key,
            "id": request_id,
            "level": level,
            "body": body,
            "is_title": is_title,
            "is_repeatable": is_repeatable,
        }
        if self.database.execute(_QUEUE, request).rowcount == 0:
            return False
        self.changes["requested"] += 1
        self.changes["titles"] += is_title
        return True

    def queue_letters(self) -> bool:
        """Queue the dead letters that wait for the next pass; return whether there were any."""
        letters = self.database.execute(_REQUEUED, (self.key,)).fetchall()
        for letter in letters:
            self.queue_letter(letter)
        self.database.execute(_DROP_REQUEUED, (self.key,))
        return bool(letters)

    def queue_letter(self, letter: sqlite3.Row) -> None:
        """Queue the request of a dead letter, unless that is open again.

        One that the pass counts as dead is dead no more; any other is a request more.
        """
        is_title = bool(letter["is_title"])
        is_queued = self.queue(letter["id"], letter["level"], letter["body"], is_title=is_title)
        if is_queued and letter["is_counted"]:
            self.changes["dead"] -= 1
            self.changes["requested"] -= 1
            self.changes["titles"] -= is_title

    def bury(self, request_id: str, reason: str) -> None:
        """Make a dead letter of a request."""
        letter = {
            "run": self.key,
            "id": request_id,
            "site": self.name.site,
            "name": self.name.name,
            "reason": reason.encode(errors="backslashreplace").decode(),
            "now": self.now,
        }
        self.database.execute(_BURY, letter)
        self.database.execute(
            "DELETE FROM requests WHERE run = ? AND id = ?", (self.key, request_id)
        )
        self.changes["dead"] += 1

    def end(self, worker: Worker | None = None) -> sqlite3.Row:
        """Write what the step has changed; return the new state."""
        arguments = worker.arguments if worker is not None else ""
        counts = dict.fromkeys(("requested", "titles", *OUTCOMES), 0) | self.changes
        changes = {"run": self.key, "now": self.now, "arguments": arguments, **counts}
        row: sqlite3.Row = self.database.execute(_END_STEP, changes).fetchone()
        return row

    def _begin(
        self,
        worker: Worker,
        *,
        queued: int = 0,
        leased: int = 0,
        requested: int = 0,
        titles: int = 0,
        dead: int = 0,
    ) -> None:
        """Write a new state, and queue the arguments."""
        self.database.execute("DELETE FROM seen WHERE run = ?", (self.key,))
        self.database.execute("DELETE FROM limited_titles WHERE run = ?", (self.key,))
        state = {
            "run": self.key,
            "site": self.name.site,
            "name": self.name.name,
            "arguments": worker.arguments,
            "now": self.now,
            "queued": queued,
            "leased": leased,
            "requested": requested,
            "titles": titles,
            "dead": dead,
        }
        self.database.execute(_BEGIN_RUN, state)
        self.state = self.read_state()
        self.queue(f"{ARGUMENTS}{uuid.uuid4().hex}", OFF_SITE, b"", is_title=False)

    def _move_back(self, seconds: float) -> None:
        """Move all times of the run back by as much as the clock was set back."""
        times = {"run": self.key, "seconds": seconds}
        for statement in _MOVE_BACK:
            self.database.execute(statement, times)
        self.state = self.read_state()


def _key(run: RunName) -> int:
    """Return the number that stands for a run in the tables."""
    digest = blake2b(f"{run.site}\0{run.name}".encode(), digest_size=6)
    return int.from_bytes(digest.digest(), "big")


def _account(state: sqlite3.Row) -> Account:
    counts = {name: state[name] for name in ("requested", "titles", *OUTCOMES)}
    return Account(open=state["queued"] + state["leased"], **counts)


# --- Opening ------------------------------------------------------------------------------------


def _open(run: _Run, worker: Worker, requested: float) -> float | None:
    """Join a run, or begin the next pass; return when a joined one was over."""
    state = run.state
    if state is None:
        has_requests = "SELECT 1 FROM requests WHERE run = ? LIMIT 1"
        if run.database.execute(has_requests, (run.key,)).fetchone() is None:
            run.begin_pass(worker)
        else:
            run.restore(worker)
        return None
    theirs = state["arguments"]
    if theirs not in {"", worker.arguments}:
        raise ConfigurationError(
            f"run {run.name.name!r} was begun with {theirs}, and this worker has {worker.arguments}"
        )
    over_at: float | None = state["over_at"]
    if over_at is None:
        return None
    if worker.is_once and run.queue_letters():
        return None
    # When the clock was set back, nobody knows which was first: rather twice than never.
    is_earlier = over_at < requested or run.was_set_back
    if _account(state).lost > 0 or (is_earlier and not worker.is_once):
        run.begin_pass(worker)
        return None
    return over_at


_UNUSED_RUNS = "SELECT * FROM runs WHERE used_at <= ?"
_EXPIRE_LETTERS = "DELETE FROM letters WHERE coalesce(requeued_at, died_at) <= ?"


def _expire(database: sqlite3.Connection, now: float) -> bool:
    """Delete a part of the runs that nobody has used for a week; return whether more is left."""
    database.execute("DELETE FROM expired WHERE expired_at <= ?", (now - _DEAD_SECONDS,))
    database.execute(_EXPIRE_LETTERS, (now - _DEAD_SECONDS,))
    for run in database.execute(_UNUSED_RUNS, (now - _UNUSED_SECONDS,)).fetchall():
        if _expires_at(database, run, now) <= now:
            open_requests = run["queued"] + run["leased"]
            if open_requests:
                expired = (run["run"], open_requests, now)
                database.execute("INSERT OR IGNORE INTO expired VALUES (?, ?, ?)", expired)
            if _delete_requests(database, key=run["run"]) == _MAX_DELETED:
                return True
            _delete_state(database, run["run"])
    return False


def _expires_at(database: sqlite3.Connection, run: sqlite3.Row, now: float) -> float:
    """Return when a run expires; the week begins when its site may be asked again."""
    until = _read_site(database, run["site"], now).until
    begins: float = max(run["used_at"], until or 0.0)
    return begins + _UNUSED_SECONDS


def _forget_expired(run: _Run) -> int | None:
    """Return how many requests of the run expired, once."""
    forget = "DELETE FROM expired WHERE run = ? RETURNING open"
    rows = run.database.execute(forget, (run.key,)).fetchall()
    return rows[0]["open"] if rows else None


_DELETE_REQUESTS = """
DELETE FROM requests
WHERE number IN (SELECT number FROM requests NOT INDEXED WHERE run = ? LIMIT ?)
"""


def _delete_requests(database: sqlite3.Connection, *, key: int) -> int:
    """Delete requests of a run; return how many. They are all when there are not _MAX_DELETED."""
    return database.execute(_DELETE_REQUESTS, (key, _MAX_DELETED)).rowcount


def _delete_state(database: sqlite3.Connection, key: int) -> int:
    """Delete all of a run but its requests and letters; return how many states it had: 0 or 1."""
    for statement in (
        "DELETE FROM seen WHERE run = ?",
        "DELETE FROM limited_titles WHERE run = ?",
        "DELETE FROM workers WHERE run = ?",
    ):
        database.execute(statement, (key,))
    return database.execute("DELETE FROM runs WHERE run = ?", (key,)).rowcount


# --- Queueing -----------------------------------------------------------------------------------


def _push(run: _Run, worker: Worker, pushes: Sequence[Push]) -> int:
    """Queue requests; return how many were dropped."""
    dropped = 0
    limit = _Limit(run, worker.limit)
    for push in pushes:
        is_counted = limit.counts(push.title)
        if is_counted and limit.is_reached:
            continue
        is_queued = run.queue(
            push.id,
            push.level,
            push.body.encode(),
            is_title=bool(push.title),
            is_repeatable=push.is_repeatable,
        )
        run.database.execute("INSERT OR IGNORE INTO seen VALUES (?, ?)", (run.key, push.id))
        if not is_queued:
            dropped += 1
        elif is_counted:
            limit.add(push.title)
    run.end(worker)
    return dropped


class _Limit:
    """The titles that a pass has requested, when it has a limit."""

    def __init__(self, run: _Run, limit: int | None) -> None:
        self._run = run
        self._limit = limit
        self._titles: set[str] = set()
        if limit is not None:
            rows = run.database.execute(
                "SELECT title FROM limited_titles WHERE run = ?", (run.key,)
            )
            self._titles = {row["title"] for row in rows}

    def counts(self, title: str) -> bool:
        """Tell whether a request for a title counts: it is the first for that title."""
        return self._limit is not None and title != "" and title not in self._titles

    @property
    def is_reached(self) -> bool:
        return self._limit is not None and len(self._titles) >= self._limit

    def add(self, title: str) -> None:
        self._titles.add(title)
        self._run.database.execute(
            "INSERT OR IGNORE INTO limited_titles VALUES (?, ?)", (self._run.key, title)
        )


_LETTER = "SELECT * FROM letters WHERE run = ? AND id = ? AND requeued_at IS NULL"


def _requeue(run: _Run, letter_id: str) -> bool:
    """Queue a dead letter in the pass that is under way, or have it wait for the next one."""
    letter = run.database.execute(_LETTER, (run.key, letter_id)).fetchone()
    if letter is None:
        return False
    if run.state is None or run.state["over_at"] is not None:
        run.database.execute(
            "UPDATE letters SET requeued_at = ? WHERE number = ?", (run.now, letter["number"])
        )
        return True
    run.queue_letter(letter)
    run.database.execute("DELETE FROM letters WHERE number = ?", (letter["number"],))
    run.end()
    return True


# --- Leasing ------------------------------------------------------------------------------------


_RENEW = """
UPDATE requests
SET lease_until = ?
WHERE run = ? AND id = ? AND worker = ? AND lease_until IS NOT NULL
"""
_END_LEASES_OF = """
UPDATE requests
SET lease_until = ?
WHERE run = ? AND worker = ? AND lease_until IS NOT NULL
"""
_LEASE_HOLDERS = "SELECT DISTINCT worker FROM requests WHERE run = ? AND lease_until IS NOT NULL"
_ENDED_LEASES = "SELECT id, deliveries FROM requests WHERE run = ? AND lease_until <= ?"
_PUT_BACK = """
UPDATE requests
SET lease_until = NULL,
    worker = NULL,
    place = :is_last,
    number = CASE WHEN :is_last THEN (SELECT max(number) + 1 FROM requests) ELSE number END,
    deliveries = max(0, deliveries - :undelivered)
WHERE run = :run AND id = :id
"""
_NEXT_REQUESTS = """
SELECT number, id, level, deliveries, body
FROM requests
WHERE run = ? AND lease_until IS NULL
ORDER BY level, place, number
LIMIT ?
"""
_LEASE = """
UPDATE requests
SET deliveries = deliveries + 1,
    worker = ?,
    lease_until = ?
WHERE number = ?
"""


def _renew(run: _Run, worker: Worker, ids: Collection[str]) -> None:
    """Renew leases of a worker, and note that it lives."""
    until = run.now + worker.lease_seconds
    run.database.executemany(_RENEW, [(until, run.key, one, worker.name) for one in ids])
    run.database.execute(
        "INSERT OR REPLACE INTO workers VALUES (?, ?, ?)", (run.key, worker.name, until)
    )
    run.database.execute(
        "DELETE FROM workers WHERE run = ? AND alive_until <= ?", (run.key, run.now)
    )


def _workers_of(run: _Run) -> set[str]:
    """Return the workers of a run, and those that hold leases of it."""
    names = run.database.execute("SELECT name FROM workers WHERE run = ?", (run.key,))
    holders = run.database.execute(_LEASE_HOLDERS, (run.key,))
    return {row["name"] for row in names} | {row["worker"] for row in holders}


def _known_workers(database: sqlite3.Connection) -> set[str]:
    """Return the workers of all runs, and those that hold leases."""
    names = database.execute("SELECT name FROM workers")
    holders = database.execute("SELECT DISTINCT worker FROM requests WHERE lease_until IS NOT NULL")
    return {row["name"] for row in names} | {row["worker"] for row in holders}


def _remove_worker(run: _Run, name: str) -> None:
    """Note that a worker has ended, and with it its leases."""
    run.database.execute("DELETE FROM workers WHERE run = ? AND name = ?", (run.key, name))
    run.database.execute(_END_LEASES_OF, (run.now, run.key, name))


def _end_leases(run: _Run, worker: Worker) -> list[str]:
    """Queue again what dead workers held; return what they have died of too often."""
    new_dead_letters = []
    for row in run.database.execute(_ENDED_LEASES, (run.key, run.now)).fetchall():
        times = row["deliveries"]
        if times < worker.deliveries:
            _put_back(run, row["id"], undelivered=0)
        else:
            reason = f"handed out {times} times, each time to a worker that died before it was done"
            run.bury(row["id"], reason)
            new_dead_letters.append(row["id"])
    return new_dead_letters


def _put_back(run: _Run, request_id: str, *, undelivered: int, is_last: bool = False) -> None:
    """Queue a request again, before the others of its level or after them."""
    parameters = {
        "run": run.key,
        "id": request_id,
        "undelivered": undelivered,
        "is_last": is_last,
    }
    run.database.execute(_PUT_BACK, parameters)


def _lease(
    run: _Run, worker: Worker, want: int, site: SiteReply, *, is_idle: bool
) -> list[Delivery]:
    """Lease the next requests. `is_idle` says that the worker holds none."""
    most = min(want, 1) if site.half_open else _share(run, want)
    leased: list[sqlite3.Row] = []
    for row in run.database.execute(_NEXT_REQUESTS, (run.key, most)).fetchall():
        may_be_deadly = row["deliveries"] >= DELIVERIES_ALONE
        if site.blocked > 0 and row["level"] > OFF_SITE:
            break
        if may_be_deadly and (leased or not is_idle):
            break
        leased.append(row)
        if may_be_deadly:
            break
    until = run.now + worker.lease_seconds
    run.database.executemany(_LEASE, [(worker.name, until, row["number"]) for row in leased])
    return [
        Delivery(id=row["id"], number=row["deliveries"] + 1, body=row["body"]) for row in leased
    ]


def _share(run: _Run, want: int) -> int:
    """Return how many requests a worker may take, so that others get some of the last ones."""
    count = "SELECT count(*) AS workers FROM workers WHERE run = ?"
    workers = run.database.execute(count, (run.key,)).fetchone()["workers"]
    state = run.read_state()
    if workers <= 1 or state is None:
        return want
    share: int = math.ceil(state["queued"] / 2 / workers)
    return min(want, share)


# --- Ends of leases -----------------------------------------------------------------------------


_END_DONE = """
DELETE FROM requests
WHERE run = :run
    AND id = :id
    AND (:is_stored OR (deliveries = :number AND lease_until IS NOT NULL))
RETURNING is_title
"""
_DROP_STORED_LETTER = f"{_DROP_LETTER} RETURNING is_title, is_counted"
_IS_LAST_DELIVERY = """
SELECT 1
FROM requests
WHERE run = ? AND id = ? AND deliveries = ? AND lease_until IS NOT NULL
"""


def _finish(run: _Run, worker: Worker, ends: Sequence[End]) -> None:
    """End leases."""
    for end in ends:
        if end.how == "done":
            _end_done(run, end)
        elif run.database.execute(_IS_LAST_DELIVERY, (run.key, end.id, end.number)).fetchone():
            if end.how in {"back", "last"}:
                _put_back(run, end.id, undelivered=1, is_last=end.how == "last")
            else:
                run.bury(end.id, end.reason)
    run.end(worker)


def _end_done(run: _Run, end: End) -> None:
    is_stored = end.outcomes.get("stored", 0) > 0
    done = {"run": run.key, "id": end.id, "is_stored": is_stored, "number": end.number}
    request = run.database.execute(_END_DONE, done).fetchone()
    if request is None and is_stored:
        # Its worker was only slow, and was taken for dead.
        request = run.database.execute(_DROP_STORED_LETTER, (run.key, end.id)).fetchone()
        if request is None or not request["is_counted"]:
            return
        run.changes["dead"] -= 1
    if request is not None:
        titles = sum(end.outcomes.get(outcome, 0) for outcome in TITLE_OUTCOMES)
        run.changes.update(end.outcomes)
        run.changes["requested"] += sum(end.outcomes.values()) - 1
        run.changes["titles"] += titles - request["is_title"]


# --- Sites --------------------------------------------------------------------------------------


_WRITE_SITE = """
INSERT OR REPLACE INTO sites (
    site, asked_at, day, used, next_at, reason, until, trips, probe_until
)
VALUES (
    :site, :asked_at, :day, :used, :next_at, :reason, :until, :trips, :probe_until
)
"""


@dataclass(kw_only=True)
class _Site:
    """A row of `sites`."""

    site: Any
    asked_at: float = 0.0
    """When it was last written."""
    day: int = 0
    """The UTC day of `used`, counted from 1970."""
    used: int = 0
    next_at: float = 0.0
    """When the next request may be sent."""
    reason: str = ""
    """Why the site has refused us."""
    until: float | None = None
    """When the pause ends; None when the circuit is closed."""
    trips: int = 0
    """Refusals in a row."""
    probe_until: float | None = None
    """Until when others wait for the answer to the probe."""

    def refuse(self, reason: str, pause: float, now: float) -> None:
        """Open the circuit; when a request that was on its way is refused, too, for the longest."""
        if self.until is not None and self.until > now:
            self.until = max(self.until, now + pause)
            return
        seconds = min(pause * 2 ** min(self.trips, _MOST_DOUBLINGS), LONGEST_PAUSE_SECONDS)
        self.reason = reason
        self.until = now + seconds
        self.trips += 1
        self.probe_until = None

    def close_circuit(self) -> None:
        """Ask the site again."""
        self.reason = ""
        self.until = None
        self.trips = 0
        self.probe_until = None

    def move_back(self, now: float) -> bool:
        """Move all times back when the clock was set back since; return whether it was."""
        ahead = self.asked_at - now
        if ahead <= _SET_BACK_SECONDS:
            return False
        self.next_at -= ahead
        if self.until is not None:
            self.until -= ahead
        if self.probe_until is not None:
            self.probe_until -= ahead
        self.day = min(self.day, _day_of(self.turn(now)))
        return True

    def turn(self, now: float) -> float:
        """Return when the next request may be sent. It is charged to the day of its turn."""
        return max(self.next_at, now)

    def used_on(self, day: int) -> int:
        """Return the requests that were charged to a day."""
        return self.used if self.day >= day else 0  # above it when the clock was set back

    def reply(self, budget: Budget, now: float) -> SiteReply:
        """Tell whether the site may be asked."""
        day = _day_of(self.turn(now))
        used = self.used_on(day)
        blocked = max(self.until or 0.0, self.probe_until or 0.0) - now
        if blocked > 0:
            return SiteReply(
                blocked=math.ceil(blocked * 1000),
                reason=self.reason,
                probed=(self.until or 0.0) <= now,
                used=used,
            )
        half_open = self.until is not None
        if budget.per_day is not None and used >= budget.per_day:
            return SiteReply(
                blocked=math.ceil(((day + 1) * _DAY_SECONDS - now) * 1000),
                reason="the budget of the day is spent",
                spent=True,
                half_open=half_open,
                used=used,
            )
        return SiteReply(reason=self.reason, half_open=half_open, used=used)

    def charge(self, budget: Budget, reply: SiteReply, now: float) -> None:
        """Charge a request, and write its turn into the reply."""
        gap = SPACING_FACTOR / budget.per_second if budget.per_second else 0.0
        turn = self.turn(now)
        reply.delay = math.ceil((turn - now) * 1000)
        reply.used += 1
        reply.probing = reply.half_open
        self.day = _day_of(turn)
        self.used = reply.used
        self.next_at = turn + gap
        if reply.probing:
            self.probe_until = now + PROBE_SECONDS

    def write(self, database: sqlite3.Connection, now: float) -> None:
        """Write the row."""
        self.asked_at = now
        database.execute(_WRITE_SITE, asdict(self))

    def state(self, budgets: Mapping[RunSite, Budget], now: float) -> SiteState:
        """Return what a report says of the site."""
        return SiteState(
            site=self.site,
            refusal=self.reason if self.until is not None else None,
            stopped_until=self.until,
            used_today=self.used_on(_day_of(now)),
            budget=budgets.get(self.site, UNLIMITED),
        )


def _read_site(database: sqlite3.Connection, site: Any, now: float) -> _Site:
    row = database.execute("SELECT * FROM sites WHERE site = ?", (site,)).fetchone()
    asked = _Site(**row) if row is not None else _Site(site=site)
    if asked.until is not None and asked.until + _CIRCUIT_SECONDS <= now:
        asked.close_circuit()
    return asked


def _bans_of(database: sqlite3.Connection, site: str) -> dict[str, bytes]:
    rows = database.execute("SELECT proxy, ban FROM bans WHERE site = ?", (site,))
    return {row["proxy"]: row["ban"] for row in rows}


def _site_to_ask(database: sqlite3.Connection, site: str, now: float) -> _Site:
    """Return a site, its times moved back when the clock was set back since they were written."""
    asked = _read_site(database, site, now)
    if asked.move_back(now):
        asked.write(database, now)
    return asked


def _day_of(time: float) -> int:
    """Return the UTC day of a Unix time, counted from 1970."""
    return int(time // _DAY_SECONDS)


# --- Reports ------------------------------------------------------------------------------------


_LETTER_COUNTS = """
SELECT run, site, name, count(*) - count(requeued_at) AS dead, count(requeued_at) AS requeued
FROM letters
WHERE coalesce(requeued_at, died_at) > ?
GROUP BY run, site, name
"""
_READ_LETTERS = """
SELECT number, id, site, name, reason, died_at, body
FROM letters
WHERE requeued_at IS NULL
    AND died_at > :oldest
    AND number > :after
    AND coalesce(:site, site) = site
    AND coalesce(:name, name) = name
ORDER BY number
LIMIT :most
"""


_RUNS_OF_SITE = "SELECT * FROM runs WHERE site = ? ORDER BY used_at DESC"


def _read_sites(
    database: sqlite3.Connection, budgets: Mapping[RunSite, Budget], now: float
) -> FrontierReport:
    sites = {site: _read_site(database, site, now).state(budgets, now) for site in RUN_SITES}
    return FrontierReport(now=now, sites=sites)


def _read_runs(
    database: sqlite3.Connection, report: FrontierReport, most: int | None
) -> Iterator[RunReport]:
    """Yield up to `most` runs of each site, from the last used, and those with letters alone."""
    counts = database.execute(_LETTER_COUNTS, (report.now - _DEAD_SECONDS,)).fetchall()
    letters = {row["run"]: row for row in counts}
    for site in RUN_SITES:
        states = database.execute(_RUNS_OF_SITE, (site,)).fetchall()
        used = [state for state in states if _expires_at(database, state, report.now) > report.now]
        letters_of_used = [letters.pop(state["run"], None) for state in used]
        for state, row in zip(used[:most], letters_of_used, strict=False):
            yield _run_report(
                report,
                RunName(site, state["name"]),
                dead_letters=row["dead"] if row is not None else 0,
                requeued=row["requeued"] if row is not None else 0,
                arguments=state["arguments"],
                account=_account(state),
                started_at=state["started_at"],
                ended_at=state["over_at"],
            )
    for row in letters.values():
        yield _run_report(
            report,
            RunName(row["site"], row["name"]),
            dead_letters=row["dead"],
            requeued=row["requeued"],
            arguments="",
            account=Account(),
            started_at=report.now,
            ended_at=report.now,
        )


def _run_report(report: FrontierReport, name: RunName, **figures: Any) -> RunReport:
    return RunReport(
        site=name.site,
        run=name.name,
        workers=0,
        now=report.now,
        state_of_site=report.sites[name.site],
        **figures,
    )


def _alive_workers(database: sqlite3.Connection, run: RunName, now: float) -> list[str]:
    alive = "SELECT name FROM workers WHERE run = ? AND alive_until > ?"
    return [row["name"] for row in database.execute(alive, (_key(run), now))]


def _read_letters(database: sqlite3.Connection, *, which: Mapping[str, Any]) -> list[sqlite3.Row]:
    return database.execute(_READ_LETTERS, which).fetchall()
