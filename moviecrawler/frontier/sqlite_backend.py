"""The frontier's backend for one machine: a SQLite file, which the processes of a folder share."""

from __future__ import annotations

import asyncio
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from moviecrawler.frontier.contract import (
    MAX_RUNS,
    RUN_SITES,
    Backend,
    DeadLetter,
    FrontierReport,
    Opened,
    Reply,
    RunName,
    RunReport,
    holds_none,
)
from moviecrawler.frontier.queue_file import QueueFile
from moviecrawler.frontier.sqlite_run import LIFETIMES, Run, account_of, expire
from moviecrawler.frontier.sqlite_sites import SiteRow
from moviecrawler.frontier.worker_locks import WorkerLocks
from moviecrawler.politeness.ledger import KeptRobots, Refusal

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
    from pathlib import Path

    from moviecrawler.frontier.contract import End, Push, RequestIds, RunSite, Worker
    from moviecrawler.politeness.budgets import Budget, SiteReply

Result = TypeVar("Result")

FILE = "queue.sqlite3"
LOCKS = "queue-locks"
"""The folder with a lock file for each worker."""
_OPENING = "opening"
"""The lock file of who opens FILE; the names of those of workers end in .lock."""
_MAX_LETTERS = 200
"""Dead letters that are read in one step."""
_TELL_TIME = """
INSERT INTO clock (number, at)
VALUES (1, :now)
ON CONFLICT DO UPDATE SET at = :now WHERE abs(at - :now) > 1
"""
_READ_LETTERS = """
SELECT number, id, site, name, reason, died_at, body
FROM letters
WHERE requeued_at IS NULL
    AND died_at + :kept > :now
    AND number > :after
    AND coalesce(:site, site) = site
    AND coalesce(:name, name) = name
ORDER BY number
LIMIT :most
"""
_READ_RUNS = """
WITH used AS (
    SELECT *, row_number() OVER (PARTITION BY site ORDER BY used_at DESC) AS place
    FROM runs
    WHERE coalesce(:site, site) = site
        AND coalesce(:name, name) = name
        AND (
            used_at + :unused > :now
            OR (SELECT until FROM sites WHERE site = runs.site) + :unused > :now
        )
),
counts AS (
    SELECT
        run,
        site,
        name,
        count(*) - count(requeued_at) AS dead_letters,
        count(requeued_at) AS requeued
    FROM letters
    WHERE coalesce(:site, site) = site
        AND coalesce(:name, name) = name
        AND coalesce(requeued_at, died_at) + :kept > :now
    GROUP BY run
),
names AS (
    SELECT run, site, name
    FROM used
    UNION
    SELECT run, site, name
    FROM counts
)
SELECT
    names.site,
    names.name,
    coalesce(arguments, '') AS arguments,
    -- A run of which only letters are left began and ended now.
    coalesce(started_at, :now) AS started_at,
    CASE WHEN started_at IS NULL THEN :now ELSE over_at END AS ended_at,
    coalesce(dead_letters, 0) AS dead_letters,
    coalesce(requeued, 0) AS requeued,
    used.*
FROM names
LEFT JOIN used ON used.run = names.run
LEFT JOIN counts ON counts.run = names.run
WHERE coalesce(place, 0) <= :most
"""
_REPORTED = ("arguments", "started_at", "ended_at", "dead_letters", "requeued")
"""Columns of _READ_RUNS that a report has as they are."""


class SqliteBackend(Backend):
    """The queues of the processes that share a folder, in its `queue.sqlite3`.

    Its steps run in a thread of their own, so that the event loop never waits for the disk.
    """

    def __init__(self, folder: Path, clock: Callable[[], float] = time.time) -> None:
        """Open nothing yet. `clock` returns the Unix time."""
        locks = folder / LOCKS
        self._path = (folder / FILE).absolute()
        self._file = QueueFile(folder / FILE, opening=locks / _OPENING)
        self._locks = WorkerLocks(locks)
        self._clock = clock
        self._thread: ThreadPoolExecutor | None = None

    async def place(self, site: str) -> str:  # noqa: ARG002 - all sites share the file
        """Return the path of the file, and the machine that has it."""
        return f"{self._path} on {socket.gethostname()}"

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
        """Tell whether a site may be asked; see the contract."""

        def ask(database: sqlite3.Connection, now: float) -> SiteReply:
            row = SiteRow.read(database, site)
            if refusal is not None:
                row.refuse(refusal, now)
            elif has_answered:
                row.close_circuit()
            reply = row.reply(budget, now)
            is_charged = charge and reply.blocked == 0
            if is_charged:
                row.charge(budget, reply, now)
            if is_charged or refusal is not None or has_answered:
                row.write(database)
            return reply

        return await self._change(ask)

    async def read_robots(self, host: str) -> KeptRobots | None:
        """Read the table of robots.txt."""

        def read(database: sqlite3.Connection, _: float) -> KeptRobots | None:
            query = "SELECT text, fetched_at FROM robots WHERE host = ?"
            row = database.execute(query, (host,)).fetchone()
            return None if row is None else KeptRobots(**row)

        return await self._change(read)

    async def keep_robots(self, host: str, text: str) -> None:
        """Write the table of robots.txt."""

        def keep(database: sqlite3.Connection, now: float) -> None:
            database.execute("INSERT OR REPLACE INTO robots VALUES (?, ?, ?)", (host, text, now))

        await self._change(keep)

    async def exchange_bans(
        self, site: str, changes: Mapping[str, bytes | None]
    ) -> dict[str, bytes]:
        """Write and read the table of bans."""

        def exchange(database: sqlite3.Connection, _: float) -> dict[str, bytes]:
            for proxy, ban in changes.items():
                if ban is None:
                    delete = "DELETE FROM bans WHERE site = ? AND proxy = ?"
                    database.execute(delete, (site, proxy))
                else:
                    insert = "INSERT OR REPLACE INTO bans VALUES (?, ?, ?)"
                    database.execute(insert, (site, proxy, ban))
            rows = database.execute("SELECT proxy, ban FROM bans WHERE site = ?", (site,))
            return {row["proxy"]: row["ban"] for row in rows}

        if changes:
            return await self._change(exchange)
        return await self._visit(exchange, is_reading=True)

    # --- A run ----------------------------------------------------------------------------------

    async def open(self, worker: Worker, requested_at: float | None, age: float) -> Opened:
        """Join the run of a name, or begin the next pass; see the contract."""

        def open_(database: sqlite3.Connection, now: float) -> float | None:
            expire(database, now)
            run = self._run(database, worker.run, now)
            over_at = run.open(worker, now - age if requested_at is None else requested_at)
            run.end()
            return over_at

        over_at = await self._change(open_)
        await self._in_thread(self._locks.sweep)
        return Opened(over_at=over_at, remarks=self._file.take_remarks())

    async def push(self, worker: Worker, pushes: Sequence[Push]) -> int:
        """Queue requests; return how many were dropped; see the contract."""

        def push(run: Run) -> int:
            dropped = run.push(worker, pushes)
            run.end()
            return dropped

        return await self._step(worker, push)

    async def ids(self, run: RunName) -> RequestIds:
        """Read the tables of requests and dead letters."""
        return await self._visit_run(run, Run.ids)

    async def take(self, worker: Worker, want: int = 0, renew: Collection[str] = ()) -> Reply:
        """Lease up to `want` requests, and renew leases; see the contract."""

        def take(run: Run) -> Reply:
            self._locks.hold(worker.name)
            run.renew(worker, renew)
            for name in run.workers():
                if self._locks.is_dead(name):
                    run.remove_worker(name)
                    self._locks.remove(name)
            new_dead_letters = run.end_leases(worker)
            site = run.site().reply(worker.budget, run.now)
            deliveries = run.lease(worker, want, site, is_idle=holds_none(renew))
            state = run.end()
            return Reply(
                site=site,
                account=account_of(state),
                waiting=state["queued"],
                deliveries=deliveries,
                new_dead_letters=new_dead_letters,
            )

        reply = await self._step(worker, take)
        reply.remarks = self._file.take_remarks()
        return reply

    async def finish(self, worker: Worker, ends: Sequence[End]) -> None:
        """End leases, and count what became of their requests."""

        def finish(run: Run) -> None:
            run.finish(ends)
            run.end()

        await self._step(worker, finish)

    async def leave(self, worker: Worker) -> None:
        """Note that a worker has ended: what it still leases is queued again."""
        await self._visit_run(worker.run, partial(Run.remove_worker, worker=worker.name))
        await self._in_thread(partial(self._locks.remove, worker.name))

    # --- Operators ------------------------------------------------------------------------------

    async def read(
        self,
        budgets: Mapping[RunSite, Budget],
        site: RunSite | None = None,
        name: str | None = None,
    ) -> FrontierReport:
        """Return the state of all sites and runs, or only the runs of a site or a name."""
        which = {"site": site, "name": name, "most": MAX_RUNS}

        def read(database: sqlite3.Connection, now: float) -> FrontierReport:
            rows = database.execute(_READ_RUNS, {**which, "now": now, **LIFETIMES}).fetchall()
            known = dict.fromkeys((*RUN_SITES, *(row["site"] for row in rows)))
            sites = {each: SiteRow.read(database, each).state(budgets, now) for each in known}
            runs = []
            for row in rows:
                run = RunName(row["site"], row["name"])
                workers = self._run(database, run, now).workers()
                report = RunReport(
                    site=run.site,
                    run=run.name,
                    account=account_of(row),
                    workers=sum(not self._locks.is_dead(worker) for worker in workers),
                    now=now,
                    site_state=sites[run.site],
                    **{column: row[column] for column in _REPORTED},
                )
                runs.append(report)
            runs.sort(key=lambda run: run.order)
            return FrontierReport(now=now, sites=sites, runs=runs)

        return await self._visit(read, is_reading=True)

    async def dead_letters(
        self, site: RunSite | None = None, name: str | None = None
    ) -> AsyncIterator[DeadLetter]:
        """Yield the dead letters of all runs, or only of a site or a name, in no order."""
        which = {"site": site, "name": name, "after": 0, "most": _MAX_LETTERS, **LIFETIMES}

        def read(database: sqlite3.Connection, now: float) -> list[sqlite3.Row]:
            return database.execute(_READ_LETTERS, which | {"now": now}).fetchall()

        while letters := await self._visit(read, is_reading=True):
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
        await self._visit(expire)
        return await self._visit_run(run, partial(Run.requeue, letter_id=letter_id))

    async def drop_letter(self, run: RunName, letter_id: str) -> bool:
        """Delete a dead letter; return whether it was there. It stays counted as dead."""
        return await self._visit_run(run, partial(Run.drop_letter, letter_id=letter_id))

    async def drop_run(self, run: RunName) -> bool:
        """Delete a run with all that it has queued; return whether it was there."""
        return await self._visit_run(run, Run.drop)

    async def close(self) -> None:
        """Free the locks of this process' workers, and close the file."""
        thread = self._thread
        if thread is not None:
            await self._in_thread(self._locks.free_all)
            await self._in_thread(self._file.close)
            self._thread = None
            thread.shutdown()

    # --- The thread -----------------------------------------------------------------------------

    async def _step(self, worker: Worker, step: Callable[[Run], Result]) -> Result:
        """Run a step of a run, whose state is made again when it was lost."""

        def continue_(database: sqlite3.Connection, now: float) -> Result:
            run = self._run(database, worker.run, now)
            if run.state is None:
                run.restore(worker)
            return step(run)

        return await self._change(continue_)

    async def _change(self, step: Callable[[sqlite3.Connection, float], Result]) -> Result:
        """Run a step of a worker."""

        def timed(database: sqlite3.Connection) -> Result:
            now = self._clock()
            database.execute(_TELL_TIME, {"now": now})
            return step(database, now)

        return await self._in_thread(partial(self._file.change, timed))

    async def _visit(
        self,
        step: Callable[[sqlite3.Connection, float], Result],
        *,
        is_reading: bool = False,
    ) -> Result:
        """Run a step of an operator, which makes no file."""

        def timed(database: sqlite3.Connection) -> Result:
            return step(database, self._clock())

        return await self._in_thread(partial(self._file.visit, timed, is_reading=is_reading))

    async def _visit_run(self, name: RunName, step: Callable[[Run], Result]) -> Result:
        return await self._visit(lambda database, now: step(self._run(database, name, now)))

    async def _in_thread(self, step: Callable[[], Result]) -> Result:
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, thread_name_prefix="queue")
        return await asyncio.get_running_loop().run_in_executor(self._thread, step)

    def _run(self, database: sqlite3.Connection, name: RunName, now: float) -> Run:
        return Run(database, name, now, self._file.remarks)
