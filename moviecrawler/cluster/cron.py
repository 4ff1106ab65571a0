"""Recurring jobs as their file describes them, and which of their times are due."""

from __future__ import annotations

import hashlib
import re
import tomllib
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import takewhile
from typing import TYPE_CHECKING, Any, Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import msgspec
from cronsim import CronSim, CronSimError

from moviecrawler.cluster.jobs import Job, check_job
from moviecrawler.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,47}")
"""With a time added, it becomes a job's id and the name of a run. Neither may be longer than 64 characters."""
_FIELDS = 5
"""Fields of a cron expression. cronsim also reads expressions with seconds; the cluster does not."""


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The file's top level. Schedules are checked one by one, so that an error names its schedule."""

    schedules: dict[str, dict[str, Any]]
    project: str = "moviecrawler"
    timezone: str = "UTC"


@dataclass(frozen=True, slots=True, kw_only=True)
class Due:
    """A time at which a schedule is due."""

    tick: datetime
    """The latest time that has passed, UTC."""
    missed: int
    """Number of earlier times that passed without a job."""
    late: bool
    """Whether `tick` itself is past its grace."""


class Schedule(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A job that recurs: a table `[schedules.NAME]` of the file."""

    name: str
    cron: str
    """minute hour day-of-month month day-of-week, as Debian's cron reads it."""
    timezone: str
    """The time zone of `cron`. A time that a clock change skips comes right after the change; one that it repeats comes once."""
    project: str
    spider: str
    version: str | None = None
    """The egg's; None for the latest when the job starts."""
    priority: float = 0.0
    arguments: dict[str, str | int | float] = {}
    settings: dict[str, str | int | float] = {}
    missed: Literal["once", "skip"] = "once"
    """For times when no node was up: `once` queues one job for all of them, as soon as a node is up; `skip` queues none."""
    grace: float = 60.0
    """Seconds after its time within which a job counts as on time."""
    enabled: bool = True

    def check(self) -> None:
        """Raise ConfigurationError for the first thing that is wrong."""
        if not _NAME.fullmatch(self.name):
            raise ConfigurationError(f"the name is {self.name!r}; use up to 48 letters, digits, _ and -")
        if len(self.cron.split()) != _FIELDS:
            raise ConfigurationError(f"cron is {self.cron!r}; give five fields, such as '15 3 * * *'")
        try:
            CronSim(self.cron, datetime.now(UTC))
        except CronSimError as error:
            raise ConfigurationError(
                f"cron is {self.cron!r}: {error}; '15 3 * * *' would be each day at 3:15"
            ) from None
        try:
            ZoneInfo(self.timezone)
        except (ZoneInfoNotFoundError, ValueError, OSError):
            raise ConfigurationError(f"timezone is {self.timezone!r}; give a name such as 'Europe/Berlin'") from None
        if not 0 < self.grace < float("inf"):
            raise ConfigurationError(f"grace is {self.grace!r}; give a number of seconds above 0")
        check_job(self.job(self.next_tick(datetime.now(UTC).timestamp())))

    @property
    def when(self) -> str:
        """A digest of cron expression and time zone. When these change, the schedule begins anew."""
        return hashlib.blake2b(f"{self.cron} {self.timezone}".encode(), digest_size=8).hexdigest()

    def ticks(self, after: float) -> Iterator[datetime]:
        """Yield the times after a moment (seconds since 1970), UTC, without end."""
        for tick in CronSim(self.cron, datetime.fromtimestamp(after, ZoneInfo(self.timezone))):
            moment = tick.astimezone(UTC)
            # In the hour that a change of the clocks repeats, cronsim answers with the first of the two.
            if moment.timestamp() > after:
                after = moment.timestamp()
                yield moment
        raise ConfigurationError(f"cron is {self.cron!r}, which never comes; give a date that exists")

    def next_tick(self, after: float) -> datetime:
        """Return the first time after a moment (seconds since 1970), UTC."""
        return next(self.ticks(after))

    def due(self, last: float, now: float) -> Due | None:
        """Return what is due at `now` when all times up to `last` are dealt with; None when nothing is."""
        # They are at most those of 35 days, as Redis forgets older ones.
        passed = list(takewhile(lambda tick: tick.timestamp() <= now, self.ticks(last)))
        if not passed:
            return None
        late = now - passed[-1].timestamp() > self.grace
        return Due(tick=passed[-1], missed=len(passed) - 1, late=late)

    def job(self, tick: datetime) -> Job:
        """Return the job of one time, which its id names."""
        return Job(
            project=self.project,
            spider=self.spider,
            id=f"{self.name}-{tick:%Y%m%dT%H%MZ}",
            version=self.version,
            settings={name: str(value) for name, value in self.settings.items()},
            arguments={name: str(value) for name, value in self.arguments.items()},
            priority=self.priority,
        )


def read_schedules(path: Path) -> list[Schedule]:
    """Return what a file of schedules holds, without those that are not enabled.

    Raises ConfigurationError for the first thing that is wrong, with the schedule's name, the value and what to write instead.
    """
    try:
        file = msgspec.convert(tomllib.loads(path.read_text("utf-8")), _File)
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"the schedules' file {str(path)!r} can't be read: {error}") from None
    except (tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
        raise ConfigurationError(f"the schedules' file {str(path)!r} is wrong: {error}") from None
    found = []
    for name, table in file.schedules.items():
        given = {"project": file.project, "timezone": file.timezone, **table, "name": name}
        try:
            schedule = msgspec.convert(given, Schedule)
            schedule.check()
        except (msgspec.ValidationError, ConfigurationError) as error:
            raise ConfigurationError(f"{path}: schedules.{name}: {error}") from None
        if schedule.enabled:
            found.append(schedule)
    return found
