"""Recurring jobs: every node checks the clock, and one of them queues the job."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

import redis
from twisted.application.service import Service
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.threads import deferToThread
from twisted.logger import Logger, LogLevel

from moviecrawler.clock import utc_text
from moviecrawler.cluster.jobs import UnknownVersionError
from moviecrawler.cluster.threads import pause
from moviecrawler.cluster.webservice import ClusterResource
from moviecrawler.outages import Outages

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from twisted.web.server import Request

    from moviecrawler.cluster.cron import Due, Schedule
    from moviecrawler.cluster.eggs import Egg
    from moviecrawler.cluster.jobs import Job
    from moviecrawler.cluster.node import Node
    from moviecrawler.cluster.state import ClusterState

journal = Logger()

_REMEMBERED_SECONDS = 35 * 24 * 3600
"""Seconds for which Redis remembers the last time of a schedule that was handled."""
_RETRY_SECONDS = 5.0
"""Seconds until a job that could not be queued is tried again."""
_MAX_PAUSE_SECONDS = 30.0
"""Longest time between two checks of the clock."""

_LOGGED = {
    "fired": (LogLevel.info, "queued job {job} of {at}{late}{before}"),
    "busy": (LogLevel.warn, "skipped {at}, as its last job is not over{before}"),
    "passed": (LogLevel.warn, "skipped {at}, which was missed{before}"),
    "full": (LogLevel.error, "the job of {at} has to wait, as too many jobs are pending"),
}
"""How the answers of `fire.lua` are logged. The one that is left out, `done`, says that another node was first."""


class CronScheduler:
    """Queues the jobs that are due, each time once, whatever the number of nodes that do so. Call it in a thread."""

    def __init__(
        self,
        state: ClusterState,
        schedules: Sequence[Schedule],
        find: Callable[[str, str | None], Egg],
        *,
        clock: Callable[[], float] | None = None,
    ) -> None:
        """Create it.

        `find` returns a version of a project, or raises UnknownVersionError. `clock` returns the seconds since 1970, by default
        those of Redis, which are the same for all nodes.
        """
        self._state = state
        self._schedules = schedules
        self._clock = clock or state.now
        self._find = find
        self._errors: dict[str, str] = {}  # by schedule: why its job can't be queued, as it was logged

    def check(self) -> float:
        """Queue what is due; return the seconds until the next check. Raises redis.RedisError."""
        now = self._clock()
        sleep = _MAX_PAUSE_SECONDS
        for schedule, last in zip(self._schedules, self._last_handled(now), strict=True):
            due = schedule.due(last, now)
            if due is not None and not self._handle(schedule, last, due):
                sleep = min(sleep, _RETRY_SECONDS)
            else:
                sleep = min(sleep, schedule.next_tick(now).timestamp() - now)
        return max(sleep, 0.05)

    def _last_handled(self, now: float) -> list[float]:
        """Return the last time of each schedule that was handled; for a new schedule, now."""
        pipe = self._state.client.pipeline(transaction=False)
        for schedule in self._schedules:
            key = self._state.keys.schedule(schedule.name)
            pipe.hsetnx(key, schedule.when, _text(now))
            pipe.expire(key, _REMEMBERED_SECONDS)
            pipe.hget(key, schedule.when)
        return [float(answer) for answer in pipe.execute()[2::3]]

    def _handle(self, schedule: Schedule, last: float, due: Due) -> bool:
        """Queue the job of a schedule, or skip it by the schedule's rule; return False when that has to be tried again."""
        wanted = not (due.late and schedule.missed == "skip")
        job = schedule.job(due.tick)
        if wanted and not self._exists(schedule, job):
            return False
        times = _text(last), _text(due.tick.timestamp())
        outcome = self._state.fire(schedule.name, job, schedule.when, *times, wanted=wanted)
        if outcome in _LOGGED:
            level, text = _LOGGED[outcome]
            late = " late" if due.late else ""
            before = f", and skipped {due.missed} before it" if due.missed else ""
            facts = {"name": schedule.name, "job": job.id, "at": utc_text(due.tick), "late": late, "before": before}
            journal.emit(level, f"Schedule {{name}}: {text}", **facts)
        return outcome != "full"

    def _exists(self, schedule: Schedule, job: Job) -> bool:
        """Return whether the job's spider exists; log once when it does not."""
        try:
            known = self._find(job.project, job.version).spiders
        except UnknownVersionError as error:
            error_text = str(error)
        else:
            error_text = "" if job.spider in known else f"no spider {job.spider!r}; there are {', '.join(known)}"
        if error_text and self._errors.get(schedule.name) != error_text:
            journal.error(
                "Job {job} can't be queued: {error_text}; deploy it, or correct the schedules' file",
                job=job.id,
                error_text=error_text,
            )
        self._errors[schedule.name] = error_text
        return not error_text


class Schedules(Service):
    """Checks the clock until the node is stopped."""

    def __init__(self, node: Node) -> None:
        self._cron = CronScheduler(node.state, node.schedules, node.eggs.find) if node.schedules else None
        self._outages = Outages()
        self._checking: Deferred[None] | None = None
        self._pausing: Deferred[None] | None = None

    def startService(self) -> None:
        super().startService()
        if self._cron is not None:
            self._checking = Deferred.fromCoroutine(self._check_clock(self._cron))

    def stopService(self) -> Deferred[None] | None:
        super().stopService()
        if self._pausing is not None:
            self._pausing.cancel()
        return self._checking

    async def _check_clock(self, cron: CronScheduler) -> None:
        while self.running:
            seconds = _RETRY_SECONDS
            try:
                seconds = await deferToThread(cron.check)
                if self._outages.ends():
                    journal.info("Schedules: Redis answers again")
            except redis.RedisError as error:
                if self._outages.begins():
                    journal.warn("Schedules: nothing is queued until Redis can be asked again: {error}", error=error)
            except Exception:  # noqa: BLE001 - the next times must not be missed, whatever failed
                journal.failure("Schedules:")
            if self.running:
                self._pausing = pause(seconds)
                with suppress(CancelledError):
                    await self._pausing
                self._pausing = None


class ScheduleList(ClusterResource):
    """`schedules.json`: the recurring jobs, the next time of each, and its last job."""

    def render_GET(self, request: Request) -> dict[str, Any]:
        now = self.node.state.now()
        return {"schedules": [self._row(schedule, now) for schedule in self.node.schedules]}

    def _row(self, schedule: Schedule, now: float) -> dict[str, Any]:
        state = self.node.state
        key: Any = state.client.hget(state.keys.schedule(schedule.name), "job")
        last = None
        if key is not None:
            project, _, job = key.decode().partition("/")
            last = {"id": job, "project": project, "status": state.state_of(job, project)}
        return {
            **{name: getattr(schedule, name) for name in ("name", "cron", "timezone", "project", "spider", "missed")},
            "next": schedule.next_tick(now),
            "last_job": last,
        }


def _text(seconds: float) -> str:
    return f"{seconds:.3f}"
