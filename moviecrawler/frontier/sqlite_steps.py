"""The steps of the frontier in the queue's file, each within one transaction."""

from __future__ import annotations

import math
import uuid
from collections import Counter
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import msgspec

from moviecrawler.frontier.contract import (
    ARGUMENTS,
    DAY_SECONDS,
    DAYS_DEAD,
    DAYS_UNUSED,
    DELIVERIES_ALONE,
    OFF_SITE,
    OUTCOMES,
    RAW,
    TITLE_OUTCOMES,
    Account,
    DeadLetter,
    Delivery,
    FrontierReport,
    Opened,
    Push,
    Reply,
    RequestIds,
    RunName,
    RunReport,
    SiteState,
)
from moviecrawler.politeness.budgets import SiteReply
from moviecrawler.politeness.ledger import KeptRobots

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Collection, Mapping, Sequence

    from moviecrawler.frontier.contract import End, Worker
    from moviecrawler.frontier.worker_locks import WorkerLocks
    from moviecrawler.politeness.budgets import Budget
    from moviecrawler.politeness.ledger import Refusal

_FIGURES = ("requested", "titles", *OUTCOMES)
_LIFETIMES = {
    "unused": DAYS_UNUSED * DAY_SECONDS,
    "kept": DAYS_DEAD * DAY_SECONDS,
    "circuit": 14 * DAY_SECONDS,
}
"""Seconds: of a run without use, of a letter, and of a refusal after its pause."""
_TERMS = {
    "longest": 7.0 * DAY_SECONDS,
    "most_doublings": 30,
    "probe": 60.0,
    "spacing": 1.05,
}
"""Of a site: the longest pause in seconds, as each refusal doubles the one before; the seconds that
workers wait for the response to a probe before another one is sent; and the factor by which the gap
between two requests is longer than the budget asks for, as late requests would crowd the next
ones."""
_TELL_TIME = """
INSERT INTO clock (number, at)
VALUES (1, :now)
ON CONFLICT DO UPDATE SET at = :now WHERE abs(at - :now) > 1
"""
_READ_SITES = """
SELECT
    site,
    CASE WHEN until IS NOT NULL THEN reason END AS refusal,
    until AS stopped_until,
    -- Its day is a later one when the clock was set back.
    CASE WHEN day >= CAST(:now / :day AS INTEGER) THEN used ELSE 0 END AS used_today
FROM sites
"""
_ASK_SITE = """
WITH known AS (
    -- One row, also for a site that was never asked.
    SELECT
        max(until) AS until,
        max(0, coalesce(max(until), 0), coalesce(max(probe_until), 0)) - :now AS closed,
        coalesce(max(reason), '') AS reason,
        max(:now, coalesce(max(next_at), 0)) AS turn,
        max(day) AS charged_day,
        max(used) AS used
    FROM sites
    WHERE site = :site
),
-- A request is charged to the day of its turn.
today AS (
    SELECT
        *,
        CAST(turn / :day AS INTEGER) AS today,
        CASE WHEN charged_day >= CAST(turn / :day AS INTEGER) THEN used ELSE 0 END AS used_today
    FROM known
),
conditions AS (
    SELECT
        *,
        CASE
            WHEN until > :now THEN 'refused'
            WHEN closed > 0 THEN 'probed'
            WHEN used_today >= :per_day THEN 'budget_spent'
            WHEN until IS NOT NULL THEN 'half_open'
            ELSE 'open'
        END AS state
    FROM today
)
SELECT
    turn,
    today,
    state,
    CASE state WHEN 'budget_spent' THEN 'the daily budget is exhausted' ELSE reason END AS reason,
    used_today AS used,
    -- In ms, and above 0 until the time has come.
    CAST(
        0.999 + 1000 * CASE state
            WHEN 'budget_spent' THEN (today + 1) * :day - :now
            ELSE max(0, closed)
        END
        AS INTEGER
    ) AS blocked
FROM conditions
"""
_REFUSE = """
INSERT INTO sites (site, day, used, next_at, reason, until, trips)
VALUES (:site, 0, 0, 0, :reason, :now + min(:seconds, :longest), 1)
ON CONFLICT DO UPDATE
-- A request that was on its way is refused, too: then the longest pause counts.
SET until = CASE
        WHEN until > :now THEN max(until, :now + :seconds)
        ELSE :now + min(:seconds * (1 << min(trips, :most_doublings)), :longest)
    END,
    reason = CASE WHEN until > :now THEN reason ELSE :reason END,
    trips = trips + (until IS NULL OR until <= :now),
    probe_until = CASE WHEN until > :now THEN probe_until END
"""
_CLOSE_CIRCUIT = """
UPDATE sites
SET reason = '', until = NULL, trips = 0, probe_until = NULL
WHERE site = :site
"""
_CHARGE = """
INSERT INTO sites (site, day, used, next_at, reason, trips)
VALUES (:site, :today, :used, :next_at, '', 0)
ON CONFLICT DO UPDATE
SET day = :today,
    used = :used,
    next_at = :next_at,
    -- After that another worker sends a probe.
    probe_until = CASE WHEN :probing THEN :now + :probe ELSE probe_until END
"""
_EXPIRE = (
    "DELETE FROM letters WHERE coalesce(requeued_at, died_at) + :kept <= :now",
    "DELETE FROM runs WHERE used_at + :kept <= :now AND expired_open IS NOT NULL",
    """
    UPDATE runs
    SET expired_open = queued + leased
    WHERE expired_open IS NULL
        AND used_at + :unused <= :now
        AND coalesce((SELECT until FROM sites WHERE site = runs.site), 0) + :unused <= :now
    """,
    """
    UPDATE sites
    SET until = NULL, probe_until = NULL, trips = 0, reason = ''
    WHERE until + :circuit <= :now
    """,
)
_BEGIN = """
INSERT OR REPLACE INTO runs (
    run, site, name, arguments, started_at, used_at, is_restored,
    queued, leased, requested, titles, dead
)
SELECT
    :run, :site, :name, :arguments, :now, :now, :is_restored,
    open - leased, leased, open + dead, open_titles + dead_titles, dead
FROM (
    SELECT
        count(*) AS open,
        count(lease_until) AS leased,
        coalesce(sum(is_title), 0) AS open_titles
    FROM requests
    WHERE run = :run
), (
    SELECT count(*) AS dead, coalesce(sum(is_title), 0) AS dead_titles
    FROM letters
    WHERE run = :run AND is_counted
)
"""
_END_STEP = """
UPDATE runs
SET used_at = :now,
    over_at = CASE WHEN queued + leased = 0 THEN coalesce(over_at, :now) END,
    requested = requested + :requested,
    titles = titles + :titles,
    stored = stored + :stored,
    absent = absent + :absent,
    failed = failed + :failed,
    disallowed = disallowed + :disallowed,
    fresh = fresh + :fresh,
    dead = dead + :dead,
    read = read + :read,
    unread = unread + :unread
WHERE run = :run
RETURNING *, queued + leased AS open
"""
_QUEUE = """
INSERT OR IGNORE INTO requests (run, id, level, is_title, body)
SELECT :run, :id, :level, :is_title, CAST(:body AS BLOB)
WHERE :is_repeatable OR NOT EXISTS (SELECT 1 FROM seen WHERE run = :run AND id = :id)
"""
_IS_BEYOND_LIMIT = """
SELECT 1
WHERE :limit <= (SELECT max(number) FROM limited_titles WHERE run = :run)
    AND NOT EXISTS (SELECT 1 FROM limited_titles WHERE run = :run AND title = :title)
"""
_COUNT_FOR_LIMIT = """
INSERT OR IGNORE INTO limited_titles (run, title, number)
SELECT :run, :title, coalesce(max(number), 0) + 1
FROM limited_titles
WHERE run = :run
"""
_RENEW = """
UPDATE requests
SET lease_until = :until
WHERE run = :run AND id = :id AND worker = :worker AND lease_until IS NOT NULL
"""
_END_LEASES_OF = """
UPDATE requests
SET lease_until = :now
WHERE run = :run AND worker = :worker AND lease_until IS NOT NULL
"""
_PUT_BACK = """
UPDATE requests
SET lease_until = NULL,
    worker = NULL,
    place = :is_last,
    number = CASE WHEN :is_last THEN (SELECT max(number) + 1 FROM requests) ELSE number END,
    deliveries = max(0, deliveries - 1)
WHERE run = :run AND id = :id
"""
_PUT_BACK_ENDED = """
UPDATE requests
SET lease_until = NULL,
    worker = NULL,
    place = 0
WHERE run = :run
    AND lease_until <= :now
    -- The arguments' worker may hold them as long as the run lasts: its death says nothing of them.
    AND (deliveries < :most OR id GLOB 'arguments-*')
"""
_NEXT_REQUESTS = """
SELECT number, id, level, deliveries, body
FROM requests
WHERE run = :run AND lease_until IS NULL
ORDER BY level, place, number
LIMIT (
    -- Others get some of the last ones.
    SELECT CASE
        WHEN count(*) > 1 THEN min(:want, (queued + 2 * count(*) - 1) / (2 * count(*)))
        ELSE :want
    END
    FROM workers, runs
    WHERE workers.run = :run AND runs.run = :run
)
"""
_LEASE = """
UPDATE requests
SET deliveries = deliveries + 1,
    worker = :worker,
    lease_until = :until
WHERE number = :number
"""
_END_DONE = """
DELETE FROM requests
WHERE run = :run
    AND id = :id
    AND (:is_stored OR (deliveries = :number AND lease_until IS NOT NULL))
RETURNING is_title
"""
_IS_LAST_DELIVERY = """
SELECT 1
FROM requests
WHERE run = :run AND id = :id AND deliveries = :number AND lease_until IS NOT NULL
"""
_BURY = """
INSERT OR REPLACE INTO letters (run, id, site, name, reason, died_at, level, is_title, body)
SELECT run, id, :site, :name, :reason, :now, level, is_title, body
FROM requests
WHERE run = :run AND id = :id
"""
_REQUEUE = """
UPDATE letters
SET requeued_at = :now
WHERE run = :run AND id = :id AND requeued_at IS NULL
"""
_COUNT_REQUEUED = """
SELECT
    coalesce(sum(1 - is_counted), 0) AS requested,
    coalesce(sum(is_title AND NOT is_counted), 0) AS titles,
    -coalesce(sum(is_counted), 0) AS dead
FROM letters
WHERE run = :run
    AND requeued_at IS NOT NULL
    AND coalesce(:id, id) = id
    AND NOT EXISTS (SELECT 1 FROM requests WHERE run = letters.run AND id = letters.id)
"""
_QUEUE_REQUEUED = """
INSERT OR IGNORE INTO requests (run, id, level, is_title, body)
SELECT run, id, level, is_title, body
FROM letters
WHERE run = :run AND requeued_at IS NOT NULL AND coalesce(:id, id) = id
ORDER BY requeued_at, number
"""
_DROP_LETTER = "DELETE FROM letters WHERE run = :run AND id = :id AND requeued_at IS NULL"
_END_DEAD = f"{_DROP_LETTER} RETURNING is_title, is_counted"
_DROP_REQUEUED = """
DELETE FROM letters
WHERE run = :run AND requeued_at IS NOT NULL AND coalesce(:id, id) = id
"""
_DROP = (
    "DELETE FROM runs WHERE run = :run",
    "DELETE FROM requests WHERE run = :run",
    "DELETE FROM seen WHERE run = :run",
    "DELETE FROM limited_titles WHERE run = :run",
    "DELETE FROM workers WHERE run = :run",
    _DROP_REQUEUED,
)
_READ_LETTERS = """
SELECT id, reason, died_at AS at, body
FROM letters
WHERE run = :run AND requeued_at IS NULL AND died_at + :kept > :now
ORDER BY number
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
    names.run AS number,
    names.site,
    names.name AS run,
    :now AS now,
    coalesce(arguments, '') AS arguments,
    -- A run of which only letters are left began and ended now.
    coalesce(started_at, :now) AS started_at,
    CASE WHEN started_at IS NULL THEN :now ELSE over_at END AS ended_at,
    coalesce(dead_letters, 0) AS dead_letters,
    coalesce(requeued, 0) AS requeued,
    coalesce(requested, 0) AS requested,
    coalesce(titles, 0) AS titles,
    coalesce(stored, 0) AS stored,
    coalesce(absent, 0) AS absent,
    coalesce(failed, 0) AS failed,
    coalesce(disallowed, 0) AS disallowed,
    coalesce(fresh, 0) AS fresh,
    coalesce(dead, 0) AS dead,
    coalesce(read, 0) AS read,
    coalesce(unread, 0) AS unread,
    coalesce(queued + leased, 0) AS open
FROM names
LEFT JOIN used ON used.run = names.run
LEFT JOIN counts ON counts.run = names.run
WHERE coalesce(place, 0) <= :most
"""


class Steps:
    """The steps of a run, or of its site, at one time. They write into `locks` who lives."""

    def __init__(
        self,
        database: sqlite3.Connection,
        run: tuple[str | None, str | None],
        now: float,
        locks: WorkerLocks,
    ) -> None:
        site, name = run
        digest = blake2b(f"{site}\0{name}".encode(), digest_size=6).digest()
        self._database = database
        self._now = now
        self._locks = locks
        self._common: dict[str, Any] = {
            "run": int.from_bytes(digest, "big"),
            "site": site,
            "name": name,
            "now": now,
            "day": DAY_SECONDS,
            **_LIFETIMES,
        }
        # What the step adds to the account.
        self._changes: Counter[str] = Counter()

    def tell_time(self) -> None:
        """Note the time: when the clock was set back, all times are moved back."""
        self._execute(_TELL_TIME)

    # --- The sites ------------------------------------------------------------------------------

    def ask(
        self,
        budget: Budget,
        *,
        charge: bool = False,
        refusal: Refusal | None = None,
        has_answered: bool = False,
    ) -> SiteReply:
        """Charge a request, or note what the site has answered."""
        if refusal is not None:
            self._execute(_REFUSE, reason=refusal.reason, seconds=refusal.seconds, **_TERMS)
        elif has_answered:
            self._execute(_CLOSE_CIRCUIT)
        site = self._execute(_ASK_SITE, per_day=budget.per_day).fetchone()
        reply = msgspec.convert({**site}, SiteReply)
        if charge and not reply.blocked:
            gap = _TERMS["spacing"] / budget.per_second if budget.per_second else 0.0
            reply.delay = math.ceil((site["turn"] - self._now) * 1000)
            reply.used += 1
            reply.probing = reply.state == "half_open"
            charged = {"used": reply.used, "probing": reply.probing, "next_at": site["turn"] + gap}
            self._execute(_CHARGE, today=site["today"], **charged, **_TERMS)
        return reply

    def read_robots(self, host: str) -> KeptRobots | None:
        """Read the table of robots.txt."""
        query = "SELECT text, fetched_at FROM robots WHERE host = :host"
        row = self._execute(query, host=host).fetchone()
        return None if row is None else KeptRobots(**row)

    def keep_robots(self, host: str, text: str) -> None:
        """Write the table of robots.txt."""
        keep = "INSERT OR REPLACE INTO robots VALUES (:host, :text, :now)"
        self._execute(keep, host=host, text=text)

    def exchange_bans(self, changes: Mapping[str, str | None]) -> dict[str, str]:
        """Write and read the table of bans."""
        for proxy, ban in changes.items():
            self._execute("DELETE FROM bans WHERE site = :site AND proxy = :proxy", proxy=proxy)
            if ban is not None:
                keep = "INSERT INTO bans VALUES (:site, :proxy, CAST(:ban AS BLOB))"
                self._execute(keep, proxy=proxy, ban=ban)
        rows = self._execute("SELECT proxy, ban FROM bans WHERE site = :site")
        return {row["proxy"]: row["ban"].decode(errors=RAW) for row in rows}

    # --- Passes ---------------------------------------------------------------------------------

    def open(self, worker: Worker, requested_at: float | None, age: float) -> Opened:
        """Join the run, or begin the next pass."""
        for statement in _EXPIRE:
            self._execute(statement)
        self._locks.sweep()
        state = self._read_state()
        opened = Opened()
        if state is None:
            any_request = "SELECT 1 FROM requests WHERE run = :run LIMIT 1"
            is_restored = self._execute(any_request).fetchone() is not None
            self._begin(worker, is_restored=is_restored)
        elif state["expired_open"] is not None:
            opened.gone = state["expired_open"]
            self._begin(worker)
        elif state["arguments"] != worker.arguments:
            return Opened(other_arguments=state["arguments"])
        elif state["over_at"] is not None and not (worker.is_once and self._queue_letters()):
            since = self._now - age if requested_at is None else requested_at
            is_passed_again = state["over_at"] < since and not worker.is_once
            if is_passed_again or msgspec.convert({**state}, Account).lost:
                self._begin(worker)
            else:
                opened.over_at = state["over_at"]
        self._end()
        return opened

    def _begin(self, worker: Worker, *, is_restored: bool = False) -> None:
        """Write a new state, and queue the arguments and the letters that wait.

        A new pass does not count the dead letters that there are; after a loss, they are counted,
        so that no failure is hidden.
        """
        count = "UPDATE letters SET is_counted = :is_restored WHERE run = :run"
        self._execute(count, is_restored=is_restored)
        self._execute(_BEGIN, arguments=worker.arguments, is_restored=is_restored)
        id_ = f"{ARGUMENTS}{uuid.uuid4().hex}"
        self._queue(Push(level=OFF_SITE, id=id_, body="", is_repeatable=True))
        self._queue_letters()

    def _restore_if_lost(self, worker: Worker) -> None:
        if self._read_state() is None:
            self._begin(worker, is_restored=True)

    def _read_state(self) -> sqlite3.Row | None:
        query = "SELECT *, queued + leased AS open FROM runs WHERE run = :run"
        state: sqlite3.Row | None = self._execute(query).fetchone()
        return state

    def _end(self) -> sqlite3.Row:
        """Write what the step has changed; return the new state."""
        changes = {figure: self._changes[figure] for figure in _FIGURES}
        state: sqlite3.Row = self._execute(_END_STEP, **changes).fetchone()
        return state

    # --- Queueing -------------------------------------------------------------------------------

    def push(self, worker: Worker, pushes: Sequence[Push]) -> int:
        """Queue requests."""
        self._restore_if_lost(worker)
        dropped = 0
        for push in pushes:
            is_limited = worker.limit is not None and push.title != ""
            title = {"title": push.title, "limit": worker.limit}
            if is_limited and self._execute(_IS_BEYOND_LIMIT, **title).fetchone():
                continue
            is_queued = self._queue(push)
            if not push.is_repeatable:
                self._execute("INSERT OR IGNORE INTO seen VALUES (:run, :id)", id=push.id)
            if not is_queued:
                dropped += 1
            elif is_limited:
                self._execute(_COUNT_FOR_LIMIT, **title)
        self._end()
        return dropped

    def _queue(self, push: Push) -> bool:
        """Queue a request at the end of its level; return whether that was done.

        It is not when the request is open, or when the pass has seen it and it is not repeatable.
        """
        is_title = push.title != ""
        request = {**msgspec.structs.asdict(push), "is_title": is_title}
        is_queued = self._execute(_QUEUE, **request).rowcount > 0
        self._changes["requested"] += is_queued
        self._changes["titles"] += is_queued and is_title
        return is_queued

    def _queue_letters(self, letter_id: str | None = None) -> bool:
        """Queue the dead letters that were requeued, or one of them; return whether there were any.

        One that the pass counts as dead is dead no more; any other is a request more.
        """
        queued = self._execute(_COUNT_REQUEUED, id=letter_id).fetchone()
        self._changes.update({**queued})
        self._execute(_QUEUE_REQUEUED, id=letter_id)
        return self._execute(_DROP_REQUEUED, id=letter_id).rowcount > 0

    # --- Leasing --------------------------------------------------------------------------------

    def take(self, worker: Worker, want: int, renew: Collection[str], *, is_idle: bool) -> Reply:
        """Lease requests, and renew leases."""
        self._restore_if_lost(worker)
        self._locks.hold(worker.name)
        until = {"worker": worker.name, "until": self._now + worker.lease_seconds}
        for request_id in renew:
            self._execute(_RENEW, id=request_id, **until)
        self._execute("INSERT OR REPLACE INTO workers VALUES (:run, :worker, :until)", **until)
        self._execute("DELETE FROM workers WHERE run = :run AND alive_until <= :now")
        for row in self._execute("SELECT name FROM workers WHERE run = :run").fetchall():
            if self._locks.is_dead(row["name"]):
                self.leave(row["name"])
        new_dead_letters = self._end_leases(worker)
        site = self.ask(worker.budget)
        most = min(want, 1) if site.state == "half_open" else want
        deliveries: list[Delivery] = []
        for row in self._execute(_NEXT_REQUESTS, want=most).fetchall():
            is_arguments = row["id"].startswith(ARGUMENTS)
            may_be_deadly = row["deliveries"] >= DELIVERIES_ALONE and not is_arguments
            is_blocked = site.blocked > 0 and row["level"] > OFF_SITE
            if is_blocked or (may_be_deadly and (deliveries or not is_idle)):
                break
            self._execute(_LEASE, number=row["number"], **until)
            text = row["body"].decode(errors=RAW)
            deliveries.append(Delivery(id=row["id"], number=row["deliveries"] + 1, text=text))
            if may_be_deadly:
                break
        state = self._end()
        if state["is_restored"]:
            self._execute("UPDATE runs SET is_restored = 0 WHERE run = :run")
        return Reply(
            site=site,
            account=msgspec.convert({**state}, Account),
            deliveries=deliveries,
            new_dead_letters=new_dead_letters,
            was_lost=bool(state["is_restored"]),
        )

    def leave(self, name: str) -> None:
        """Queue again what a worker leases that has ended."""
        self._execute(_END_LEASES_OF, worker=name)
        self._execute("DELETE FROM workers WHERE run = :run AND name = :worker", worker=name)
        self._locks.remove(name)

    def _end_leases(self, worker: Worker) -> list[str]:
        """Queue again what dead workers held; return what they have died of too often."""
        self._execute(_PUT_BACK_ENDED, most=worker.deliveries)
        ended = "SELECT id, deliveries FROM requests WHERE run = :run AND lease_until <= :now"
        new_dead_letters = []
        for row in self._execute(ended).fetchall():
            times = row["deliveries"]
            reason = f"handed out {times} times, each time to a worker that died before it was done"
            self._bury(row["id"], reason)
            new_dead_letters.append(row["id"])
        return new_dead_letters

    # --- Ends of leases -------------------------------------------------------------------------

    def finish(self, worker: Worker, ends: Sequence[End]) -> None:
        """End leases."""
        self._restore_if_lost(worker)
        for end in ends:
            if end.kind == "done":
                self._end_done(end)
            elif self._execute(_IS_LAST_DELIVERY, id=end.id, number=end.number).fetchone():
                if end.kind == "dead":
                    self._bury(end.id, end.reason)
                else:
                    self._execute(_PUT_BACK, id=end.id, is_last=end.kind == "last")
        self._end()

    def _end_done(self, end: End) -> None:
        is_stored = end.outcomes.get("stored", 0) > 0
        done = {"id": end.id, "is_stored": is_stored, "number": end.number}
        request = self._execute(_END_DONE, **done).fetchone()
        if request is None and is_stored:
            # Its worker may have been taken for dead, and was only slow.
            letter = self._execute(_END_DEAD, **done).fetchone()
            if letter is not None and letter["is_counted"]:
                request = letter
                self._changes["dead"] -= 1
        if request is None:
            return
        titles = sum(end.outcomes.get(outcome, 0) for outcome in TITLE_OUTCOMES)
        self._changes.update(end.outcomes)
        self._changes["requested"] += sum(end.outcomes.values()) - 1
        self._changes["titles"] += titles - request["is_title"]

    def _bury(self, request_id: str, reason: str) -> None:
        """Make a dead letter of a request."""
        text = reason.encode(errors="backslashreplace").decode()
        self._execute(_BURY, id=request_id, reason=text)
        self._changes["dead"] += 1

    # --- Operators ------------------------------------------------------------------------------

    def ids(self, seconds: float) -> RequestIds:
        """Read the tables of requests and dead letters."""
        requests = self._execute("SELECT id FROM requests WHERE run = :run")
        letters = "SELECT id FROM letters WHERE run = :run AND died_at >= :oldest"
        died = self._execute(letters, oldest=self._now - seconds)
        return RequestIds({row["id"] for row in requests}, {row["id"] for row in died})

    def read(self, known: Collection[str], most: int) -> FrontierReport:
        """Read all tables."""
        states = {row["site"]: SiteState(**row) for row in self._execute(_READ_SITES)}
        alive = self._execute("SELECT run, name FROM workers WHERE alive_until > :now")
        workers = Counter(row["run"] for row in alive if not self._locks.is_dead(row["name"]))
        runs = []
        for row in self._execute(_READ_RUNS, most=most):
            report = {**row, "account": {**row}, "workers": workers[row["number"]]}
            runs.append(msgspec.convert(report, RunReport))
        sites = dict.fromkeys((*known, *(run.site for run in runs)))
        found = {site: states.get(site) or SiteState(site=site) for site in sites}
        return FrontierReport(now=self._now, sites=found, runs=runs)

    def letters(self) -> list[DeadLetter]:
        """Return the dead letters of the run."""
        name = RunName(self._common["site"], self._common["name"])
        return [
            DeadLetter(run=name, **{**row, "body": row["body"].decode(errors=RAW)})
            for row in self._execute(_READ_LETTERS)
        ]

    def requeue(self, letter_id: str) -> bool:
        """Queue a dead letter in the pass that is under way, or have it wait for the next one."""
        for statement in _EXPIRE:
            self._execute(statement)
        if self._execute(_REQUEUE, id=letter_id).rowcount == 0:
            return False
        state = self._read_state()
        if state is not None and state["over_at"] is None:
            self._queue_letters(letter_id)
            self._end()
        return True

    def drop_letter(self, letter_id: str) -> bool:
        """Delete a dead letter."""
        return self._execute(_DROP_LETTER, id=letter_id).rowcount > 0

    def drop_run(self) -> bool:
        """Delete the run with all that it has queued."""
        return sum(self._execute(statement, id=None).rowcount for statement in _DROP) > 0

    def _execute(self, statement: str, **parameters: Any) -> sqlite3.Cursor:
        """Run a statement, of which what all steps have in common are parameters, too."""
        return self._database.execute(statement, self._common | parameters)
