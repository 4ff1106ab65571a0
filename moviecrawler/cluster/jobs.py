"""Jobs: what they may contain, and how they end. Pure."""

from __future__ import annotations

import re
from contextlib import suppress
from typing import Any, Literal

import msgspec

from moviecrawler import options
from moviecrawler.basics.credentials import holds_secret
from moviecrawler.basics.errors import ConfigurationError

RunEnd = Literal["finished", "cancelled", "died", "recycled", "handed_back"]
"""How a process of a job ended. Unless it is `finished` or `cancelled`, the job is queued again."""
JobSettings = Literal["allowed", "any"]

SCRAPY_JOB_SETTINGS = (
    "AUTOTHROTTLE_ENABLED",
    "AUTOTHROTTLE_TARGET_CONCURRENCY",
    "CLOSESPIDER_ERRORCOUNT",
    "CLOSESPIDER_ITEMCOUNT",
    "CLOSESPIDER_PAGECOUNT",
    "CLOSESPIDER_TIMEOUT",
    "CONCURRENT_REQUESTS",
    "CONCURRENT_REQUESTS_PER_DOMAIN",
    "DOWNLOAD_DELAY",
    "DOWNLOAD_TIMEOUT",
    "LOG_LEVEL",
    "LOGSTATS_INTERVAL",
    "MEMUSAGE_LIMIT_MB",
    "RETRY_TIMES",
)
"""Scrapy's own settings that a job may make.

None of them names a class, a path or a URL, or switches off what protects the sites (robots.txt,
budgets, user agent) or the machine (sizes, certificates). The crawl checks the values when it
starts.
"""
JOB_SETTINGS = frozenset({*SCRAPY_JOB_SETTINGS, *options.JOB_SETTINGS})
"""The names of all settings that a job may make."""

_PLAIN = "letters, digits, dots, hyphens and underscores"
_NAMES = {
    "project": (re.compile(r"\w[\w.-]{0,63}", re.ASCII), f"; use up to 64 {_PLAIN}"),
    "version": (
        re.compile(r"[\w.+!@/~-]{1,128}", re.ASCII),
        "; use up to 128 letters, digits and . _ + ! @ / ~ -",
    ),
    "spider": (re.compile(r"[^\W_][^\x00-\x1f\x7f/\\]{0,127}"), ", which no spider is called"),
    "jobid": (re.compile(r"\w[\w.-]{0,63}", re.ASCII), f"; use up to 64 {_PLAIN}"),
}
"""The form of each kind of name, and the end of the error for a wrong one. Spiders' names become
folders, and jobs' ids files."""
_VALUE_NAME = re.compile(r"[A-Za-z]\w{0,63}", re.ASCII)
_MAX_BYTES = 64 * 1024
"""Bytes of a job as JSON."""
_MAX_PRIORITY = 1e9
_MAX_SUMMARY = 20
"""Lines of a summary that are kept."""
_HANG = re.compile(r"^Timeout \(\d", re.MULTILINE)
"""The begin of the traceback that `faulthandler` writes before it kills a process that hangs."""
_FIGURES = {
    "items": ("item_scraped_count",),
    "errors": ("log_count/ERROR", "log_count/CRITICAL"),
    "pages": ("response_received_count",),
    "bytes": ("downloader/response_bytes",),
}
"""The stats whose sum is a figure of an `Outcome`."""


class Job(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A job as it was scheduled."""

    project: str
    spider: str
    id: str
    version: str | None = None
    """The version to run; None for the latest one at the start."""
    settings: dict[str, str] = {}
    arguments: dict[str, str] = {}
    priority: float = 0.0
    """Jobs with a higher priority start first; among equals, those that were scheduled first."""

    @property
    def key(self) -> str:
        """The job's key in Redis."""
        return f"{self.project}/{self.id}"


class Outcome(msgspec.Struct, kw_only=True, omit_defaults=True):
    """How a job ended. A figure is None when it is unknown."""

    ended_at: float = 0.0
    """Seconds since 1970, by Redis' clock. The scripts set both."""
    seconds: float = 0.0
    """Seconds from the last start to the end."""
    reason: str
    """Scrapy's finish reason, or a sentence."""
    version: str | None = None
    """The version that was run; None when there was none to run."""
    exit_code: int | None = None
    """0: everything is done. 1: something is not. 2: wrong usage. 3: the rest is queued, in order.
    None when the process was killed."""
    items: int | None = None
    errors: int | None = None
    """Lines that were logged as errors."""
    pages: int | None = None
    bytes: int | None = None
    """Bytes of responses as they were sent."""
    summary: list[str] = []
    """The lines in which the spider sums up what it has done."""


class Report(msgspec.Struct):
    """What a node knows of a job's process: first what the process reports, then how it ended."""

    reason: str | None = None
    """Scrapy's finish reason; None before the end."""
    stats: dict[str, float] = {}
    summary: list[str] = []
    cancelled: str = ""
    """The signal with which the job was cancelled; empty when it was not."""
    stopped: bool = False
    """Whether the node has stopped the process."""
    signal: int | None = None
    """The signal that killed the process, if one did."""
    exit_code: int | None = None
    errors: str = ""
    """The end of what the process wrote to standard error."""

    def update(self, line: bytes) -> None:
        """Take over a line of JSON that the process wrote; ignore a line that is something else.

        Each line replaces the values that it has.
        """
        with suppress(msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            report = msgspec.json.decode(line, type=Report)
            self.reason = report.reason or self.reason
            self.stats = {**self.stats, **report.stats}
            self.summary = [text[:500] for text in report.summary[:_MAX_SUMMARY]] or self.summary

    def outcome(self, reason: str, version: str | None) -> Outcome:
        """Return how the job ended. Its figures are unknown when no stats were reported."""
        sums = _FIGURES if self.stats else {}
        found: Any = {
            figure: int(sum(self.stats.get(stat, 0) for stat in stats))
            for figure, stats in sums.items()
        }
        return Outcome(
            reason=reason, version=version, exit_code=self.exit_code, summary=self.summary, **found
        )

    def classify(self) -> tuple[RunEnd, str]:
        """Return how a process that is over has ended, and why."""
        if self.cancelled:
            return "cancelled", "cancelled"
        if self.stopped and self.reason in {None, "shutdown"}:
            return "handed_back", "its node was stopped"
        if self.reason is None:
            if _HANG.search(self.errors):
                return "died", "killed, as its event loop did not run for too long"
            if self.signal is not None:
                return "died", f"killed by signal {self.signal}"
            last_line = self.errors.strip().rpartition("\n")[2] or "it wrote nothing"
            return "finished", f"exit code {self.exit_code}: {last_line}"[:500]
        has_queue = any(name.startswith("frontier/") for name in self.stats)
        if self.reason == "recycled" or (self.reason == "memusage_exceeded" and has_queue):
            # A job that can fetch no page within its limits would be started again for ever.
            has_fetched = bool(self.stats.get("response_received_count"))
            return "recycled" if has_fetched else "died", self.reason
        # A crawl that could not reach the frontier failed for a reason outside of it: its job is
        # started again.
        return ("died" if self.reason == "frontier_unreachable" else "finished"), self.reason


def check_name(what: Literal["project", "version", "spider", "jobid"], name: str) -> None:
    """Raise ConfigurationError for a name of the wrong form."""
    pattern, rest = _NAMES[what]
    if not pattern.fullmatch(name):
        raise ConfigurationError(f"{what} is {name[:80]!r}{rest}")


def check_job(job: Job, job_settings: JobSettings = "allowed") -> None:
    """Raise ConfigurationError for the first part of a job that is not allowed.

    With `job_settings` "any" a job may make any setting, and so run any program on the nodes.
    """
    check_name("project", job.project)
    if job.version is not None:
        check_name("version", job.version)
    check_name("spider", job.spider)
    check_name("jobid", job.id)
    if not -_MAX_PRIORITY <= job.priority <= _MAX_PRIORITY:  # NaN is refused too
        raise ConfigurationError(f"priority is {job.priority}; use a number between -1e9 and 1e9")
    for what, values in (("setting", job.settings), ("argument", job.arguments)):
        for name, value in values.items():
            if not _VALUE_NAME.fullmatch(name):
                raise ConfigurationError(
                    f"{what} is called {name[:80]!r}; use up to 64 letters, digits and underscores"
                )
            if "\x00" in value:
                raise ConfigurationError(f"{what} {name} has a NUL character in it")
            if holds_secret(name, value):
                raise ConfigurationError(
                    f"{what} {name} holds a secret, and whoever may list jobs can read it; "
                    "set it in the nodes' environment instead"
                )
    if len(msgspec.json.encode(job)) > _MAX_BYTES:
        raise ConfigurationError(
            f"the job's settings and arguments are longer than {_MAX_BYTES:,} bytes together"
        )
    if job_settings == "any":
        return
    for name in job.settings:
        if name not in JOB_SETTINGS:
            raise ConfigurationError(
                f"setting {name} can't be made by a job; make it in the project's settings.py "
                "and deploy that, or in the nodes' environment. "
                "SETTINGS.md says which a job can make"
            )
    if "file" in job.arguments:
        raise ConfigurationError(
            "argument file names a path, and a job may read none of its node; "
            "give ids, or push the titles to the site's list of seeds"
        )
