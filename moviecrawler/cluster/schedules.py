"""Recurring jobs: every node looks at the clock, and one of them queues the job."""

from __future__ import annotations

from collections import Counter
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec
import redis
from scrapyd.interfaces import IEggStorage
from twisted.application.service import Service
from twisted.internet.threads import deferToThread
from twisted.logger import Logger

from moviecrawler.cluster.jobs import Job, UnknownVersionError, check_job
from moviecrawler.cluster.options import NodeOptions
from moviecrawler.cluster.state import state_for
from moviecrawler.cluster.threads import reactor
from moviecrawler.cluster.timetable import read_schedules
from moviecrawler.cluster.webservice import ClusterResource
from moviecrawler.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime

    from scrapyd.config import Config
    from twisted.internet.defer import Deferred
    from twisted.web.server import Request

    from moviecrawler.cluster.eggs import Egg
    from moviecrawler.cluster.state import ClusterState
    from moviecrawler.cluster.timetable import Due, Schedule
    from moviecrawler.cluster.website import Root

journal = Logger()

_KEPT = 35 * 24 * 3600
"""Seconds for which it is remembered up to when a schedule's times are dealt with."""
_AGAIN = 5.0
"""Seconds until what was not possible is tried again."""
_LONGEST_SLEEP = 30.0
"""Seconds between two looks at the clock."""

Outcome = Literal["fired", "passed", "busy", "full", "done"]
"""What `fire.lua` returns."""


class Timekeeper:
    """Fires what is due. Any number of them may do so at once: each time is dealt with once. Call it from a thread."""

    def __init__(
        self,
        state: ClusterState,
        schedules: Sequence[Schedule],
        find: Callable[[str, str | None], Egg],
        *,
        clock: Callable[[], float] | None = None,
    ) -> None:
        """Take what recurs.

        `find` returns what is known of a version of a project, or raises UnknownVersionError; `clock` the seconds since 1970, by
        default those of Redis, which are the same for all nodes.
        """
        self.counts: Counter[str] = Counter()
        """How many times were dealt with here, by `Outcome`."""
        self._state = state
        self._schedules = schedules
        self._clock = clock or state.now
        self._find = find
        self._troubles: dict[str, str] = {}  # why a schedule's job can't be queued, as the log has it
        folder = files(__package__)
        common, put, fire = (folder.joinpath(f"{name}.lua").read_text("utf-8") for name in ("common", "put", "fire"))
        self._fire = state.client.register_script(f"{common}\nlocal function put()\n{put}\nend\n{fire}")

    def look(self) -> float:
        """Fire what is due; return the seconds until the next look. Raises redis.RedisError."""
        now = self._clock()
        sleep = _LONGEST_SLEEP
        for schedule, last in zip(self._schedules, self._dealt_with(now), strict=True):
            due = schedule.due(last, now)
            if due is not None and not self._deal_with(schedule, last, due):
                sleep = min(sleep, _AGAIN)
            else:
                sleep = min(sleep, schedule.next_tick(now).timestamp() - now)
        return max(sleep, 0.05)

    def _dealt_with(self, now: float) -> list[float]:
        """Return up to when each schedule's times are dealt with; for one that is new, that is now."""
        pipe = self._state.client.pipeline(transaction=False)
        for schedule in self._schedules:
            key = self._state.keys.schedule(schedule.name)
            pipe.hsetnx(key, schedule.when, _text(now))
            pipe.expire(key, _KEPT)
            pipe.hget(key, schedule.when)
        return [float(answer) for answer in pipe.execute()[2::3]]

    def _deal_with(self, schedule: Schedule, last: float, due: Due) -> bool:
        """Queue the job of a schedule, or pass it over by its rule; return False when that has to be tried again."""
        wanted = not (due.late and schedule.missed == "skip")
        job = job_of(schedule, due.tick)
        if wanted and not self._exists(schedule, job):
            return False
        outcome = self._settle(schedule, job, last, due.tick.timestamp(), wanted=wanted)
        self.counts[outcome] += 1
        told = {"name": schedule.name, "at": f"{due.tick:%Y-%m-%d %H:%M} UTC", "besides": _besides(due)}
        match outcome:
            case "fired":
                journal.info("Schedule {name}: queued job {job} of {at}{besides}", job=job.id, **told)
            case "busy":
                journal.warn("Schedule {name}: passed over {at}, as its last job is not over{besides}", **told)
            case "passed":
                journal.warn("Schedule {name}: passed over {at}, which was missed{besides}", **told)
            case "full":
                journal.error("Schedule {name}: the job of {at} has to wait, as too many jobs are pending", **told)
        return outcome != "full"

    def _settle(self, schedule: Schedule, job: Job, last: float, tick: float, *, wanted: bool) -> Outcome:
        state = self._state
        answer: bytes = self._fire(
            keys=[*state.keys.of_scripts, state.keys.schedule(schedule.name)],
            args=[
                *(job.key, msgspec.json.encode(job), -job.priority, state.options.max_pending, state.keys.events, 1),
                *(schedule.when, _text(last), _text(tick), int(wanted)),
            ],
        )
        return answer.decode()  # type: ignore[return-value]

    def _exists(self, schedule: Schedule, job: Job) -> bool:
        """Return whether there is such a spider; that there is none is told once."""
        try:
            known = self._find(job.project, job.version).spiders
        except UnknownVersionError as error:
            trouble = str(error)
        else:
            trouble = "" if job.spider in known else f"no spider {job.spider!r}; there are {', '.join(known)}"
        if trouble and self._troubles.get(schedule.name) != trouble:
            journal.error(
                "Job {job} can't be queued: {trouble}; deploy it, or correct the schedules' file",
                job=job.id,
                trouble=trouble,
            )
        self._troubles[schedule.name] = trouble
        return not trouble


def job_of(schedule: Schedule, tick: datetime) -> Job:
    """Return the job of one time of a schedule; its id says which."""
    return Job(
        project=schedule.project,
        spider=schedule.spider,
        id=f"{schedule.name}-{tick:%Y%m%dT%H%MZ}",
        version=schedule.version,
        settings=schedule.settings,
        arguments=schedule.arguments,
        priority=schedule.priority,
    )


def load(path: Path) -> list[Schedule]:
    """Return the schedules of a file whose jobs a cluster takes. Raises ConfigurationError."""
    schedules = read_schedules(path)
    for schedule in schedules:
        try:
            check_job(job_of(schedule, schedule.next_tick(0)))
        except ConfigurationError as error:
            raise ConfigurationError(f"{path}: schedules.{schedule.name}: {error}") from None
    return schedules


class Schedules(Service):
    """The node's part in that: reads `schedules_file` at the start, and looks at the clock until it is stopped."""

    def __init__(self, config: Config, app: Any) -> None:
        """Read the file. Raises ConfigurationError."""
        options = NodeOptions.from_config(config)
        schedules = load(Path(options.schedules_file)) if options.schedules_file else []
        find = app.getComponent(IEggStorage).find
        self._timekeeper = Timekeeper(state_for(options), schedules, find) if schedules else None
        self._call: Any = None
        self._looking: Deferred[Any] | None = None
        self._away = False

    def startService(self) -> None:  # noqa: N802 - Twisted's name
        """Begin to look."""
        super().startService()
        if self._timekeeper is not None:
            self._sleep(0)

    def stopService(self) -> Deferred[Any] | None:  # noqa: N802 - Twisted's name
        """Look no more; wait for a look that has begun."""
        super().stopService()
        if self._call is not None:
            self._call.cancel()
            self._call = None
        return self._looking

    def _sleep(self, seconds: float) -> None:
        self._call = reactor.callLater(seconds, self._look)

    def _look(self) -> None:
        self._call = None
        assert self._timekeeper is not None  # noqa: S101 - else nothing looks
        self._looking = deferToThread(self._timekeeper.look)
        self._looking.addCallbacks(self._looked, self._failed)
        self._looking.addCallback(self._go_on)

    def _looked(self, sleep: float) -> float:
        if self._away:
            journal.info("Schedules: Redis answers again")
            self._away = False
        return sleep

    def _failed(self, failure: Any) -> float:
        if not failure.check(redis.RedisError):
            journal.failure("Schedules:", failure=failure)
        elif not self._away:
            journal.warn(
                "Schedules: Redis can't be asked, so nothing is queued until it can: {error}",
                error=failure.getErrorMessage(),
            )
            self._away = True
        return _AGAIN

    def _go_on(self, sleep: float) -> None:
        self._looking = None
        if self.running:
            self._sleep(sleep)


class ScheduleList(ClusterResource):
    """`schedules.json`: what recurs, when it comes next, and its last job."""

    def __init__(self, root: Root) -> None:
        super().__init__(root)
        path = root.options.schedules_file
        self._schedules = load(Path(path)) if path else []

    def render_GET(self, request: Request) -> dict[str, Any]:  # noqa: ARG002, N802 - Twisted's name and arguments
        """Answer with all of this node's file."""
        now = self.root.state.now()
        return {"schedules": [self._told(schedule, now) for schedule in self._schedules]}

    def _told(self, schedule: Schedule, now: float) -> dict[str, Any]:
        state = self.root.state
        key: Any = state.client.hget(state.keys.schedule(schedule.name), "job")
        last = None
        if key is not None:
            project, _, job = key.decode().partition("/")
            last = {"id": job, "project": project, "status": state.where(job, project)}
        return {
            **{name: getattr(schedule, name) for name in ("name", "cron", "project", "spider", "missed")},
            "timezone": schedule.timezone.key,
            "next": schedule.next_tick(now),
            "last_job": last,
        }


def _text(seconds: float) -> str:
    return f"{seconds:.3f}"


def _besides(due: Due) -> str:
    late = " late" if due.late else ""
    return f"{late}, and passed over {due.missed} before it" if due.missed else late
