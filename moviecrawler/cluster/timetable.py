"""Recurring jobs as their file describes them, and which of their times are due; opens nothing but that file."""

from __future__ import annotations

import hashlib
import re
import tomllib
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import takewhile
from typing import TYPE_CHECKING, Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import msgspec
from cronsim import CronSim, CronSimError

from moviecrawler.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MOST_SCHEDULES = 1_000
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,47}")
"""With a time after it, it becomes a job's id and the name of a run, of which neither may be longer than 64."""
_FIELDS = 5
"""Of a cron expression. cronsim also knows one with seconds, for which the cluster is no place."""
Value = str | int | float


class _Entry(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A table `[schedules.NAME]` of the file."""

    cron: str
    spider: str
    project: str | None = None
    timezone: str | None = None
    arguments: dict[str, Value] = {}
    settings: dict[str, Value] = {}
    priority: float = 0.0
    version: str | None = None
    missed: Literal["once", "skip"] = "once"
    grace: float = 60.0
    enabled: bool = True


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The file's top level."""

    schedules: dict[str, dict[str, object]]
    project: str = "moviecrawler"
    timezone: str = "UTC"


@dataclass(frozen=True, slots=True, kw_only=True)
class Due:
    """What a look at the clock found."""

    tick: datetime
    """The latest time that has passed, UTC."""
    missed: int
    """How many times before that one passed without a firing."""
    late: bool
    """Whether `tick` itself is past its grace."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """A job that recurs."""

    name: str
    cron: str
    """minute hour day-of-month month day-of-week, as Debian's cron reads it."""
    timezone: ZoneInfo
    """In which `cron` is meant. A time that a change of the clocks leaves out comes right after it; one that it repeats comes once."""
    project: str
    spider: str
    version: str | None
    """The egg's; None for the latest when the job starts."""
    priority: float
    arguments: dict[str, str] = field(default_factory=dict)
    settings: dict[str, str] = field(default_factory=dict)
    missed: Literal["once", "skip"]
    """What becomes of times at which no node was there: one job for all of them, as soon as there is one, or none."""
    grace: float
    """Seconds after its time within which a job counts as on time."""

    @property
    def when(self) -> str:
        """A digest of the times: what was fired by other times says nothing about these."""
        return hashlib.blake2b(f"{self.cron} {self.timezone.key}".encode(), digest_size=8).hexdigest()

    def ticks(self, after: float) -> Iterator[datetime]:
        """Yield the times after a moment (seconds since 1970), UTC, without end."""
        for tick in CronSim(self.cron, datetime.fromtimestamp(after, self.timezone)):
            moment = tick.astimezone(UTC)
            # In the hour that a change of the clocks repeats, cronsim answers with the first of the two.
            if moment.timestamp() > after:
                after = moment.timestamp()
                yield moment
        raise ConfigurationError(
            f"schedules.{self.name}: cron is {self.cron!r}, which never comes; give a date that exists"
        )

    def next_tick(self, after: float) -> datetime:
        """Return the first time after a moment (seconds since 1970), UTC."""
        return next(self.ticks(after))

    def due(self, last: float, now: float) -> Due | None:
        """Return what is due at `now` when all times up to `last` are dealt with; None when nothing is."""
        # Of the 35 days that are remembered, at the most.
        passed = list(takewhile(lambda tick: tick.timestamp() <= now, self.ticks(last)))
        if not passed:
            return None
        late = now - passed[-1].timestamp() > self.grace
        return Due(tick=passed[-1], missed=len(passed) - 1, late=late)


def read_schedules(path: Path) -> list[Schedule]:
    """Return what a file of schedules holds, without those that are not enabled.

    Raises ConfigurationError for the first thing in it that can't be right, with the schedule's name, the value and what
    would be.
    """
    try:
        decoded = tomllib.loads(path.read_text("utf-8"))
        file = msgspec.convert(decoded, _File)
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"the schedules' file {str(path)!r} can't be read: {error}") from None
    except (tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
        raise ConfigurationError(f"the schedules' file {str(path)!r} is wrong: {error}") from None
    if len(file.schedules) > MOST_SCHEDULES:
        raise ConfigurationError(f"{path} holds {len(file.schedules)} schedules; {MOST_SCHEDULES} is the most")
    try:
        schedules = [_schedule(name, entry, file) for name, entry in file.schedules.items()]
    except ConfigurationError as error:
        raise ConfigurationError(f"{path}: {error}") from None
    return [schedule for schedule in schedules if schedule is not None]


def _schedule(name: str, table: object, file: _File) -> Schedule | None:
    where = f"schedules.{name}"
    if not _NAME.fullmatch(name):
        raise ConfigurationError(f"{where}: the name is {name!r}; use up to 48 letters, digits, _ and -")
    try:
        entry = msgspec.convert(table, _Entry)
    except msgspec.ValidationError as error:
        raise ConfigurationError(f"{where}: {error}") from None
    if len(entry.cron.split()) != _FIELDS:
        raise ConfigurationError(f"{where}: cron is {entry.cron!r}; give five fields, such as '15 3 * * *'")
    try:
        CronSim(entry.cron, datetime.now(UTC))
    except CronSimError as error:
        raise ConfigurationError(
            f"{where}: cron is {entry.cron!r}: {error}; '15 3 * * *' would be each day at 3:15"
        ) from None
    zone = entry.timezone or file.timezone
    try:
        timezone = ZoneInfo(zone)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ConfigurationError(f"{where}: timezone is {zone!r}; give a name such as 'Europe/Berlin'") from None
    if not 0 < entry.grace < float("inf"):
        raise ConfigurationError(f"{where}: grace is {entry.grace!r}; give a number of seconds above 0")
    schedule = Schedule(
        name=name,
        cron=entry.cron,
        timezone=timezone,
        project=entry.project or file.project,
        spider=entry.spider,
        version=entry.version,
        priority=entry.priority,
        arguments={key: str(value) for key, value in entry.arguments.items()},
        settings={key: str(value) for key, value in entry.settings.items()},
        missed=entry.missed,
        grace=entry.grace,
    )
    schedule.next_tick(datetime.now(UTC).timestamp())
    return schedule if entry.enabled else None
