"""What a job is, what it may contain, and what its end means. Pure."""

from __future__ import annotations

import re
from hashlib import sha256
from typing import Literal

import msgspec

from moviecrawler.cluster.allowed import check_setting
from moviecrawler.cluster.secrets import holds_secret
from moviecrawler.errors import ConfigurationError, MovieCrawlerError

RunEnd = Literal["finished", "cancelled", "died", "recycled", "handed_back"]
"""How a run of a job ended. After all but `finished` and `cancelled` the job is queued again."""

_PLAIN = "letters, digits, dots, hyphens and underscores"
_NAMES = {
    "project": (re.compile(r"\w[\w.-]{0,63}", re.ASCII), f"; use up to 64 {_PLAIN}"),
    "version": (re.compile(r"[\w.+!@/~-]{1,128}", re.ASCII), "; use up to 128 letters, digits and . _ + ! @ / ~ -"),
    "spider": (re.compile(r"[^\W_][^\x00-\x1f\x7f/\\]{0,127}"), ", which no spider is called"),
    "jobid": (re.compile(r"\w[\w.-]{0,127}", re.ASCII), f"; use up to 128 {_PLAIN}"),
}
"""By what is named: the form of the name, and the end of the sentence on a wrong one. Spiders' names become folders, and jobs' ids files."""
_NAME = re.compile(r"[A-Za-z]\w{0,63}", re.ASCII)
_MAX_VALUES = 64
"""Settings, and arguments, of a job."""
_MAX_VALUE_LENGTH = 16 * 1024
"""Characters of a value."""
_MAX_TOTAL_LENGTH = 64 * 1024
"""Characters of all values."""
_MAX_RUN_LENGTH = 64
"""Characters of the name of a crawl in a shared frontier."""
_MAX_PRIORITY = 1e15
"""Above it whole numbers are no longer exact."""
HUNG = "killed, as its event loop stood still"
_NO_FAULT = {"frontier_unreachable", "frontier_gone"}
"""Finish reasons of a crawl that was interrupted from outside: its job is started again."""


class UnknownVersionError(MovieCrawlerError):
    """No such project, or no such version of it."""


class BadEggError(MovieCrawlerError):
    """An egg is damaged, or is no egg; the message says what is wrong."""


class QueueFullError(MovieCrawlerError):
    """The limit of pending jobs is reached."""


class Job(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A job as it was scheduled."""

    project: str
    spider: str
    id: str
    version: str | None = None
    """None for the latest one when it is started."""
    settings: dict[str, str] = {}
    arguments: dict[str, str] = {}
    priority: float = 0.0
    """Higher ones first; among equals, first come, first served."""
    queued_at: float = 0.0
    """Seconds since 1970, by Redis' clock; 0 when no node has taken the job."""
    start: int = 0
    """The number of this start, from 1; 0 when no node has taken the job."""

    @property
    def key(self) -> str:
        """Its key in Redis."""
        return f"{self.project}/{self.id}"

    @property
    def run(self) -> str:
        """The run in the shared frontier: FRONTIER_RUN of its settings, else a run of its own.

        It is the same at each start of the job, so that the job goes on where it was.
        """
        own = self.id if len(self.id) <= _MAX_RUN_LENGTH else sha256(self.id.encode()).hexdigest()
        return self.settings.get("FRONTIER_RUN", own)


class Outcome(msgspec.Struct, kw_only=True, omit_defaults=True):
    """How a job ended. A figure is None when it is unknown."""

    node: str
    """Name and id of the node that ran it last."""
    version: str | None = None
    """The version that it ran; None where it ran none."""
    started_at: float
    """Of its last start. Milliseconds since 1970, by the node's clock, as is `ended_at`."""
    ended_at: float
    reason: str
    """Scrapy's finish reason, or a sentence."""
    items: int | None = None
    errors: int | None = None
    """Lines that were logged as errors."""
    pages: int | None = None
    bytes: int | None = None
    """Of responses, as they were sent."""

    @property
    def seconds(self) -> float:
        """How long its last run took."""
        return (self.ended_at - self.started_at) / 1000


class Report(msgspec.Struct):
    """What a spider's process reports when it ends."""

    reason: str
    items: int
    errors: int
    pages: int
    bytes: int
    shared: bool
    """Whether its requests were in a shared frontier, where what is left of them stays."""


def check_name(what: Literal["project", "version", "spider", "jobid"], name: str) -> None:
    """Raise ConfigurationError for a name that none of these can have."""
    pattern, rest = _NAMES[what]
    if not pattern.fullmatch(name):
        raise ConfigurationError(f"{what} is {name[:80]!r}{rest}")


def check_job(job: Job) -> None:
    """Raise ConfigurationError for the first part of a job that is not allowed."""
    check_name("project", job.project)
    if job.version is not None:
        check_name("version", job.version)
    check_name("spider", job.spider)
    check_name("jobid", job.id)
    if not -_MAX_PRIORITY < job.priority < _MAX_PRIORITY:  # nor is NaN
        raise ConfigurationError(
            f"priority is {job.priority}; use a number between -{_MAX_PRIORITY:g} and {_MAX_PRIORITY:g}"
        )
    for what, values in (("setting", job.settings), ("argument", job.arguments)):
        if len(values) > _MAX_VALUES:
            raise ConfigurationError(f"the job has {len(values)} {what}s; give at most {_MAX_VALUES}")
        for name, value in values.items():
            _check_value(what, name, value)
    if sum(len(value) for values in (job.settings, job.arguments) for value in values.values()) > _MAX_TOTAL_LENGTH:
        raise ConfigurationError(
            f"the job's settings and arguments are longer than {_MAX_TOTAL_LENGTH:,} characters together"
        )
    for name, value in job.settings.items():
        check_setting(name, value)
    if "file" in job.arguments:
        raise ConfigurationError(
            "argument file names a path, and a job may read none of its node; give ids, or push the titles to the site's list of seeds"
        )


def _check_value(what: str, name: str, value: str) -> None:
    if not _NAME.fullmatch(name):
        raise ConfigurationError(f"{what} is called {name[:80]!r}; use up to 64 letters, digits and underscores")
    if len(value) > _MAX_VALUE_LENGTH:
        raise ConfigurationError(f"{what} {name} has {len(value):,} characters; give at most {_MAX_VALUE_LENGTH:,}")
    if "\x00" in value:
        raise ConfigurationError(f"{what} {name} has a NUL character in it")
    if holds_secret(name, value):
        raise ConfigurationError(
            f"{what} {name} holds a secret, and whoever may list jobs can read it; set it in the nodes' environment instead"
        )


def classify_end(
    report: Report | None,
    *,
    signal: int | None,
    exit_code: int | None,
    last_error: str,
    cancelled: bool,
    stopped: bool,
    hung: bool = False,
) -> tuple[RunEnd, str]:
    """Return how a run ended, and why.

    `report` is None when the process wrote none. One of `signal`, which killed it, and `exit_code` is None. `last_error` is the last
    line that it wrote. `stopped`: its node, which is about to end, has stopped it. `hung`: its node has killed it, as its event
    loop stood still.
    """
    if cancelled:
        return "cancelled", "cancelled"
    if report is None:
        if stopped:
            return "handed_back", "its node was stopped"
        if hung:
            return "died", HUNG
        if signal is not None:
            return "died", f"killed by signal {signal}"
        return "finished", f"exit code {exit_code}: {last_error or 'it wrote nothing'}"[:500]
    if stopped and report.reason == "shutdown":
        return "handed_back", "its node was stopped"
    too_large = report.reason == "memusage_exceeded" and report.shared
    if report.reason == "recycled" or too_large:
        # A job that can fetch no page within its limits would be started again for ever.
        return ("recycled" if report.pages else "died"), report.reason
    if report.reason in _NO_FAULT:
        return "died", report.reason
    return "finished", report.reason
