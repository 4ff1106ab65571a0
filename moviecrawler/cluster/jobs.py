"""Jobs: what they may contain, and how they end. Pure."""

from __future__ import annotations

import errno
import re
from contextlib import suppress
from typing import Literal, get_args

import msgspec

from moviecrawler import options
from moviecrawler.basics.credentials import holds_secret
from moviecrawler.basics.errors import ConfigurationError

RunEnd = Literal["finished", "cancelled", "died", "recycled", "handed_back", "node_failed"]
"""How a process of a job ended. Unless it is `finished` or `cancelled`, the job is queued again."""
Result = Literal["ok", "unfinished", "failed", "usage", "died", "gave_up", "cancelled"]
"""How jobs are counted: one that is over by its result, and one whose process died as `died`.

- `ok`: all that was requested is done (exit code 0).
- `unfinished`: the rest is queued and in order, as when the day's budget is spent (3). The next job
  with these arguments goes on.
- `failed`: something is not done (1, or none).
- `usage`: an argument or a setting is wrong (2), or the job was not allowed.
- `gave_up`: it died at each start.
"""
RESULTS: tuple[Result, ...] = get_args(Result)
WRONG_USAGE = 2
"""The exit code of a crawl, and of a job that is refused before its crawl."""
_RESULTS_BY_EXIT_CODE: dict[int | None, Result] = {
    0: "ok",
    WRONG_USAGE: "usage",
    3: "unfinished",
}
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
"""Scrapy's own settings that a job may set.

None of them names a class, a path or a URL, or switches off what protects the sites (robots.txt,
budgets, user agent) or the machine (sizes, certificates). The crawl checks the values when it
starts.
"""
JOB_SETTINGS = frozenset({*SCRAPY_JOB_SETTINGS, *options.JOB_SETTINGS})
"""The names of all settings that a job may set."""

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
"""The beginning of the traceback that `faulthandler` writes before it kills what hangs."""
_MAX_REASON = 500
"""Characters of a reason."""
_ERRNO = re.compile(r"\[Errno (?P<number>\d+)\]|disk is full")
"""A system error, as Python or SQLite words it."""
_SYSTEM_ERRORS = {
    errno.EACCES,
    errno.EDQUOT,
    errno.EIO,
    errno.EMFILE,
    errno.ENFILE,
    errno.ENOMEM,
    errno.ENOSPC,
    errno.ENOTDIR,
    errno.EPERM,
    errno.EROFS,
}
"""Errors of the node's own disk, memory and limits, which another node may not have."""


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
    """How a job ended, with the figures of all its starts. A figure is None when it is unknown."""

    ended_at: float = 0.0
    """Seconds since 1970, by Redis' clock. The scripts set both."""
    seconds: float = 0.0
    """Seconds for which it ran."""
    result: Result = "failed"
    """It follows from the exit code where it is not given."""
    reason: str
    """Scrapy's finish reason, with the sentence of what ended the crawl early; or a sentence."""
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

    def __post_init__(self) -> None:
        if self.result == "failed":
            self.result = _RESULTS_BY_EXIT_CODE.get(self.exit_code, "failed")


class Report(msgspec.Struct):
    """What a node has on a job's process: first what the process reports, then how it ended."""

    reason: str | None = None
    """Scrapy's finish reason, once the engine has stopped; None before that."""
    closing: str | None = None
    """The finish reason of a crawl that has closed: an engine that never started does not stop."""
    cause: str = ""
    """The sentence of what ended the crawl early; empty when nothing did."""
    stats: dict[str, float] = {}
    unreachable: dict[str, str] | None = None
    """Why it can't reach a site, by the site; None when it has not reported yet."""
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
        """Apply a line of JSON that the process wrote; ignore other lines.

        Each line replaces the values that it has.
        """
        with suppress(msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            report = msgspec.json.decode(line, type=Report)
            self.reason = report.reason or self.reason
            self.closing = report.closing or self.closing
            self.cause = report.cause or self.cause
            self.stats = {**self.stats, **report.stats}
            if report.unreachable is not None:
                self.unreachable = report.unreachable
            self.summary = [text[:500] for text in report.summary[:_MAX_SUMMARY]] or self.summary

    def outcome(self, how: RunEnd, reason: str) -> Outcome:
        """Return how the job ended. Its figures are unknown when no stats were reported."""
        return Outcome(
            result="cancelled" if how == "cancelled" else "failed",
            reason=reason,
            exit_code=self.exit_code,
            items=self._sum("item_scraped_count"),
            errors=self._sum("log_count/ERROR", "log_count/CRITICAL"),
            pages=self._sum("response_received_count"),
            bytes=self._sum("downloader/response_bytes"),
            summary=self.summary,
        )

    def _sum(self, *stats: str) -> int | None:
        return int(sum(self.stats.get(stat, 0) for stat in stats)) if self.stats else None

    def classify(self) -> tuple[RunEnd, str]:
        """Return how a process that is over has ended, and why."""
        if self.cancelled:
            return "cancelled", "cancelled"
        if self.stopped and self.reason in {None, "shutdown"}:
            return "handed_back", "its node was stopped"
        if self.reason is None and _HANG.search(self.errors):
            return "died", "killed: event loop blocked for too long"
        if self.reason is None and self.signal is not None:
            return "died", f"killed by signal {self.signal}"
        reason = self.reason or self.closing
        sentence = self._sentence(reason)
        if reason == "clock_wrong" or self._is_nodes_fault(sentence):
            return "node_failed", sentence
        has_queue = any(name.startswith("frontier/") for name in self.stats)
        if reason == "recycled" or (reason == "memusage_exceeded" and has_queue):
            # A job that can fetch no page within its limits would be started again for ever.
            return "recycled" if self._has_fetched else "died", sentence
        # A crawl that could not reach the frontier failed for a reason outside of it: its job is
        # started again.
        return ("died" if reason == "frontier_unreachable" else "finished"), sentence

    @property
    def _has_fetched(self) -> bool:
        return bool(self.stats.get("response_received_count"))

    def _sentence(self, reason: str | None) -> str:
        """Return what ended the crawl: the error's own sentence where there is one."""
        if reason is None:
            last_line = self.errors.strip().rpartition("\n")[2] or "it wrote nothing"
            sentence = f"exit code {self.exit_code}: {last_line}"
        elif self.cause and reason != "finished":
            sentence = f"{reason}: {self.cause}"
        else:
            sentence = reason
        return sentence[:_MAX_REASON]

    def _is_nodes_fault(self, sentence: str) -> bool:
        """Return whether the machine ended a crawl before its first page, as a full disk does."""
        match = _ERRNO.search(sentence)
        is_systems = match is not None and int(match["number"] or errno.ENOSPC) in _SYSTEM_ERRORS
        return is_systems and not self._has_fetched and self.exit_code not in {0, 2, 3}


def check_name(what: Literal["project", "version", "spider", "jobid"], name: str) -> None:
    """Raise ConfigurationError for a name of the wrong form."""
    pattern, rest = _NAMES[what]
    if not pattern.fullmatch(name):
        raise ConfigurationError(f"{what} is {name[:80]!r}{rest}")


def check_job(job: Job, job_settings: JobSettings = "allowed") -> None:
    """Raise ConfigurationError for the first part of a job that is not allowed.

    With `job_settings` "any" a job may set any setting, and so run any program on the nodes.
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
                f"setting {name} cannot be set by a job; set it in the project's settings.py "
                "and deploy that, or in the nodes' environment. "
                "moviecrawler/SETTINGS.md lists those that a job can set"
            )
    if "file" in job.arguments:
        raise ConfigurationError(
            "argument file names a path, and a job may read none of its node; "
            "give ids, or push the titles to the site's list of seeds"
        )
