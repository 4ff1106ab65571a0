"""A run in the queue's file, within one step of the SQLite backend."""

from __future__ import annotations

import uuid
from collections import Counter
from hashlib import blake2b
from typing import TYPE_CHECKING

from moviecrawler.frontier.contract import (
    ARGUMENTS,
    DAY_SECONDS,
    DAYS_DEAD,
    DAYS_UNUSED,
    DELIVERIES_ALONE,
    DIED_SECONDS,
    OFF_SITE,
    OUTCOMES,
    TITLE_OUTCOMES,
    Account,
    Delivery,
    RequestIds,
    expired_remark,
    loss_remark,
    other_arguments,
)
from moviecrawler.frontier.sqlite_sites import SiteRow

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Collection, Sequence

    from moviecrawler.frontier.contract import End, Push, RunName, Worker
    from moviecrawler.politeness.budgets import SiteReply

_FIGURES = ("requested", "titles", *OUTCOMES)
LIFETIMES = {
    "unused": DAYS_UNUSED * DAY_SECONDS,
    "kept": DAYS_DEAD * DAY_SECONDS,
    "circuit": 14 * DAY_SECONDS,
}
"""Seconds: of a run without use, of a letter, and of a refusal after its pause."""
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
    run, site, name, arguments, started_at, used_at, queued, leased, requested, titles, dead
)
SELECT
    :run, :site, :name, :arguments, :now, :now,
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
RETURNING *
"""
_QUEUE = """
INSERT OR IGNORE INTO requests (run, id, level, is_title, body)
SELECT :run, :id, :level, :is_title, :body
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
    deliveries = max(0, deliveries - :undelivered)
WHERE run = :run AND id = :id
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
_REQUEUED = """
SELECT *
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


def expire(database: sqlite3.Connection, now: float) -> None:
    """Delete what nobody has used for long."""
    for statement in _EXPIRE:
        database.execute(statement, {"now": now, **LIFETIMES})


def account_of(state: sqlite3.Row) -> Account:
    """Return the account in a row of `runs`, in which all is null when there is none."""
    figures = {figure: state[figure] or 0 for figure in (*_FIGURES, "queued", "leased")}
    return Account(open=figures.pop("queued") + figures.pop("leased"), **figures)


class Run:
    """A run within one step. `end` writes what the step has added to the account."""

    def __init__(
        self, database: sqlite3.Connection, name: RunName, now: float, remarks: list[str]
    ) -> None:
        """Read the state. What the log should say is added to `remarks`."""
        digest = blake2b(f"{name.site}\0{name.name}".encode(), digest_size=6).digest()
        self._database = database
        self.now = now
        self.name = name
        self._remarks = remarks
        self._common = {
            "run": int.from_bytes(digest, "big"),
            "site": name.site,
            "name": name.name,
            "now": now,
        }
        self._changes: Counter[str] = Counter()
        self.state = self._read_state()

    def end(self) -> sqlite3.Row:
        """Write what the step has changed; return the new state."""
        changes = {figure: self._changes[figure] for figure in _FIGURES}
        state: sqlite3.Row = self._execute(_END_STEP, **changes).fetchone()
        return state

    # --- Passes ---------------------------------------------------------------------------------

    def open(self, worker: Worker, requested_at: float) -> float | None:
        """Join the run, or begin the next pass; return when a joined one was over."""
        state = self.state
        if state is None:
            any_request = "SELECT 1 FROM requests WHERE run = :run LIMIT 1"
            if self._execute(any_request).fetchone():
                self.restore(worker)
            else:
                self._begin(worker, counts_letters=False)
            return None
        if state["expired_open"] is not None:
            if state["expired_open"] > 0:
                self._remarks.append(expired_remark(self.name.name, state["expired_open"]))
            self._begin(worker, counts_letters=False)
            return None
        if state["arguments"] != worker.arguments:
            raise other_arguments(worker, state["arguments"])
        over_at: float | None = state["over_at"]
        if over_at is None or (worker.is_once and self._queue_letters()):
            return None
        if account_of(state).lost or (over_at < requested_at and not worker.is_once):
            self._begin(worker, counts_letters=False)
            return None
        return over_at

    def restore(self, worker: Worker) -> None:
        """Make a state that was lost: what the arguments name is queued again, and none is seen."""
        self._remarks.append(loss_remark(self.name.name))
        self._begin(worker, counts_letters=True)

    def drop(self) -> bool:
        """Delete the run with all that it has queued; return whether it was there."""
        return sum(self._execute(statement, id=None).rowcount for statement in _DROP) > 0

    def drop_letter(self, letter_id: str) -> bool:
        """Delete a dead letter; return whether it was there."""
        return self._execute(_DROP_LETTER, id=letter_id).rowcount > 0

    def site(self) -> SiteRow:
        """Return the row of the run's site."""
        return SiteRow.read(self._database, self.name.site)

    def _begin(self, worker: Worker, *, counts_letters: bool) -> None:
        """Write a new state, and queue the arguments and the letters that wait.

        A new pass does not count the dead letters that there are; after a loss, they are counted,
        so that no failure is hidden.
        """
        count = "UPDATE letters SET is_counted = :is_counted WHERE run = :run"
        self._execute(count, is_counted=counts_letters)
        self._execute(_BEGIN, arguments=worker.arguments)
        self._queue(f"{ARGUMENTS}{uuid.uuid4().hex}", OFF_SITE, b"", is_title=False)
        self._queue_letters()
        self.state = self._read_state()

    def _read_state(self) -> sqlite3.Row | None:
        row: sqlite3.Row | None = self._execute("SELECT * FROM runs WHERE run = :run").fetchone()
        return row

    # --- Queueing -------------------------------------------------------------------------------

    def push(self, worker: Worker, pushes: Sequence[Push]) -> int:
        """Queue requests; return how many were dropped, as they are open or were seen."""
        dropped = 0
        for push in pushes:
            is_limited = worker.limit is not None and push.title != ""
            title = {"title": push.title, "limit": worker.limit}
            if is_limited and self._execute(_IS_BEYOND_LIMIT, **title).fetchone():
                continue
            is_queued = self._queue(
                push.id,
                push.level,
                push.body.encode(),
                is_title=push.title != "",
                is_repeatable=push.is_repeatable,
            )
            if not push.is_repeatable:
                self._execute("INSERT OR IGNORE INTO seen VALUES (:run, :id)", id=push.id)
            if not is_queued:
                dropped += 1
            elif is_limited:
                self._execute(_COUNT_FOR_LIMIT, **title)
        return dropped

    def requeue(self, letter_id: str) -> bool:
        """Queue a dead letter in the pass that is under way, or have it wait for the next one."""
        if self._execute(_REQUEUE, id=letter_id).rowcount == 0:
            return False
        if self.state is not None and self.state["over_at"] is None:
            self._queue_letters(letter_id)
            self.end()
        return True

    def _queue(
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
            "id": request_id,
            "level": level,
            "body": body,
            "is_title": is_title,
            "is_repeatable": is_repeatable,
        }
        if self._execute(_QUEUE, **request).rowcount == 0:
            return False
        self._changes["requested"] += 1
        if is_title:
            self._changes["titles"] += 1
        return True

    def _queue_letters(self, letter_id: str | None = None) -> bool:
        """Queue the dead letters that were requeued, or one of them; return whether there were any.

        One that the pass counts as dead is dead no more; any other is a request more.
        """
        letters = self._execute(_REQUEUED, id=letter_id).fetchall()
        for letter in letters:
            is_title = bool(letter["is_title"])
            body = letter["body"]
            is_queued = self._queue(letter["id"], letter["level"], body, is_title=is_title)
            if is_queued and letter["is_counted"]:
                self._changes.update({"dead": -1, "requested": -1, "titles": -1 if is_title else 0})
        self._execute(_DROP_REQUEUED, id=letter_id)
        return letters != []

    # --- Leasing --------------------------------------------------------------------------------

    def renew(self, worker: Worker, ids: Collection[str]) -> None:
        """Note that a worker lives, and renew leases of it."""
        until = self.now + worker.lease_seconds
        for request_id in ids:
            self._execute(_RENEW, until=until, id=request_id, worker=worker.name)
        alive = "INSERT OR REPLACE INTO workers VALUES (:run, :worker, :until)"
        self._execute(alive, worker=worker.name, until=until)
        self._execute("DELETE FROM workers WHERE run = :run AND alive_until <= :now")

    def workers(self) -> list[str]:
        """Return the workers that were heard of in time."""
        alive = "SELECT name FROM workers WHERE run = :run AND alive_until > :now"
        return [row["name"] for row in self._execute(alive)]

    def remove_worker(self, worker: str) -> None:
        """Note that a worker has ended, and with it its leases."""
        self._execute(_END_LEASES_OF, worker=worker)
        self._execute("DELETE FROM workers WHERE run = :run AND name = :worker", worker=worker)

    def end_leases(self, worker: Worker) -> list[str]:
        """Queue again what dead workers held; return what they have died of too often."""
        ended = "SELECT id, deliveries FROM requests WHERE run = :run AND lease_until <= :now"
        new_dead_letters = []
        for row in self._execute(ended).fetchall():
            times = row["deliveries"]
            if times < worker.deliveries or row["id"].startswith(ARGUMENTS):
                self._put_back(row["id"])
                continue
            reason = f"handed out {times} times, each time to a worker that died before it was done"
            self._bury(row["id"], reason)
            new_dead_letters.append(row["id"])
        return new_dead_letters

    def ids(self) -> RequestIds:
        """Return the ids of open requests, and of letters that died lately."""
        requests = self._execute("SELECT id FROM requests WHERE run = :run")
        letters = "SELECT id FROM letters WHERE run = :run AND died_at >= :oldest"
        died = self._execute(letters, oldest=self.now - DIED_SECONDS)
        return RequestIds({row["id"] for row in requests}, {row["id"] for row in died})

    def lease(self, worker: Worker, want: int, site: SiteReply, *, is_idle: bool) -> list[Delivery]:
        """Lease the next requests to a worker. `is_idle` says that it holds none."""
        most = min(want, 1) if site.half_open else want
        until = self.now + worker.lease_seconds
        deliveries: list[Delivery] = []
        for row in self._execute(_NEXT_REQUESTS, want=most).fetchall():
            is_arguments = row["id"].startswith(ARGUMENTS)
            may_be_deadly = row["deliveries"] >= DELIVERIES_ALONE and not is_arguments
            is_blocked = site.blocked > 0 and row["level"] > OFF_SITE
            if is_blocked or (may_be_deadly and (deliveries or not is_idle)):
                break
            self._execute(_LEASE, worker=worker.name, until=until, number=row["number"])
            number = row["deliveries"] + 1
            deliveries.append(Delivery(id=row["id"], number=number, body=row["body"]))
            if may_be_deadly:
                break
        return deliveries

    # --- Ends of leases -------------------------------------------------------------------------

    def finish(self, ends: Sequence[End]) -> None:
        """End leases, and count what became of their requests."""
        for end in ends:
            if end.kind == "done":
                self._end_done(end)
            elif self._execute(_IS_LAST_DELIVERY, id=end.id, number=end.number).fetchone():
                if end.kind == "dead":
                    self._bury(end.id, end.reason)
                else:
                    self._put_back(end.id, undelivered=1, is_last=end.kind == "last")

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

    def _put_back(self, request_id: str, *, undelivered: int = 0, is_last: bool = False) -> None:
        """Queue a request again, before the others of its level or after them."""
        self._execute(_PUT_BACK, id=request_id, undelivered=undelivered, is_last=is_last)

    def _bury(self, request_id: str, reason: str) -> None:
        """Make a dead letter of a request."""
        text = reason.encode(errors="backslashreplace").decode()
        self._execute(_BURY, id=request_id, reason=text)
        self._changes["dead"] += 1

    def _execute(self, statement: str, **parameters: object) -> sqlite3.Cursor:
        """Run a statement, of which `run`, `site`, `name` and `now` are parameters, too."""
        return self._database.execute(statement, self._common | parameters)
