"""A spider's process as its node sees it: environment, settings, output, log and memory."""

from __future__ import annotations

import json
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from twisted.internet import reactor as _reactor
from twisted.internet.defer import Deferred
from twisted.internet.error import ProcessExitedAlready
from twisted.internet.protocol import ProcessProtocol
from twisted.logger import Logger

from moviecrawler.basics.credentials import redacted
from moviecrawler.cluster.figures import DESCRIPTOR
from moviecrawler.cluster.jobs import Report

if TYPE_CHECKING:
    from collections.abc import Mapping

    from twisted.python.failure import Failure

    from moviecrawler.cluster.figures import Totals
    from moviecrawler.cluster.jobs import Job, Outcome, RunEnd
    from moviecrawler.cluster.options import NodeOptions
    from moviecrawler.cluster.state import JobStatus

journal = Logger()

reactor: Any = _reactor
"""Twisted types it by interfaces, whose methods have no `self`."""
RUNNER = str(Path(__file__).with_name("runner.py"))
"""The program of spiders' processes."""
_MEMORY_CHECK_SECONDS = "5"
"""Seconds between two checks of a spider's memory: within Scrapy's 60 it can grow by gigabytes."""
_NODE_ONLY = ("SCRAPYD_", "SCRAPY_SETTINGS_MODULE", "SCRAPY_PROJECT", "NOTIFY_SOCKET")
"""Prefixes of variables that spiders don't get: the node's passwords, and those that would replace
the egg's settings."""
POLL_SECONDS = 1.0
"""Seconds between two looks of a node whether the cluster has changed."""
_STDIN = 0
_STDOUT = 1
_STDERR = 2
_FIGURES = 3
_MAX_FIGURES_BYTES = 64 * 1024
"""Bytes of a line of figures."""
_MAX_ERRORS_LENGTH = 16 * 1024
_OUTPUT_SECONDS = 5.0
"""Seconds for which a child process of the spider may keep the output open after the spider's
end."""
STOP_SECONDS = 25.0
"""Seconds that spiders may take to end when their node is stopped; then they are killed."""
_CANCEL_SECONDS = 45.0
"""Seconds that the spider of a cancelled job may take to end; stores alone may take 30. Then it is
killed."""
_HANG_SECONDS = 60.0
"""Seconds for which a spider's event loop may hang; then the spider kills itself, and its job is
started again."""


class SpiderProcess(ProcessProtocol):
    """A job in a slot of this node, and its process once that is started."""

    transport: Any
    """Twisted types it by such an interface, too."""

    def __init__(self, leased: JobStatus, totals: Totals) -> None:
        self.leased = leased
        self.job = leased.job
        self._totals = totals
        self.pid: int | None = None
        """The process' id; None before the start and after the end."""
        self.report = Report()
        self.end: tuple[RunEnd, Outcome] | None = None
        """How the job ended; None until it has."""
        self._ended: Deferred[None] = Deferred()
        self._line = b""

    def start(self, folder: Path, settings: dict[str, str]) -> Deferred[None]:
        """Start the process from an egg's folder; the Deferred fires when all its output is read.

        Raises OSError.
        """
        job = self.job
        # The task goes through a pipe, as every user of the machine can read a command line.
        task = {
            "egg": str(folder),
            "settings": settings,
            "arguments": job.arguments,
            "hang_seconds": _HANG_SECONDS,
        }
        self._task = json.dumps(task).encode() + b"\n"
        reactor.spawnProcess(
            self,
            sys.executable,
            args=[sys.executable, "-P", RUNNER, "crawl", job.project, job.spider, job.id],
            env={**spider_environment(), DESCRIPTOR: str(_FIGURES)},
            childFDs={_STDIN: "w", _STDOUT: "r", _STDERR: "r", _FIGURES: "r"},
        )
        return self._ended

    def send(self, signal: str) -> None:
        """Send the process a signal if it runs."""
        if self.pid is not None:
            with suppress(ProcessExitedAlready):
                self.transport.signalProcess(signal)

    def stop(self) -> None:
        """Stop the process, as its job goes to another node."""
        self.report.stopped = True
        self._end("TERM", STOP_SECONDS)

    def cancel(self, signal: str) -> None:
        """End the process, as its job was cancelled."""
        self.report.cancelled = signal
        self._end(signal, _CANCEL_SECONDS)

    def _end(self, signal: str, seconds: float) -> None:
        self.send(signal)
        reactor.callLater(seconds, self.send, "KILL")

    def connectionMade(self) -> None:
        """Write the task. Standard input stays open as long as the node lives."""
        self.pid = self.transport.pid
        self.transport.writeToChild(_STDIN, self._task)
        journal.info(
            "Started {process.job.key} as process {process.pid}, start {process.leased.starts}",
            process=self,
        )

    def childDataReceived(self, childFD: int, data: bytes) -> None:
        if childFD == _FIGURES:
            *lines, rest = (self._line + data).split(b"\n")
            self._line = rest[:_MAX_FIGURES_BYTES]
            for line in lines:
                self.report.update(line)
            # Here, and not when metrics are read: a job that has ended would be counted twice.
            self._totals.update(self, self.job.spider, self.report.stats)
            return
        text = redacted(data.decode(errors="backslashreplace"))
        journal.info("{job}: {text}", job=self.job.key, text=text.rstrip())
        if childFD == _STDERR:
            self.report.errors = (self.report.errors + text)[-_MAX_ERRORS_LENGTH:]

    def processExited(self, reason: Failure) -> None:
        reactor.callLater(_OUTPUT_SECONDS, self.transport.loseConnection)

    def processEnded(self, reason: Failure) -> None:
        value: Any = reason.value  # Twisted types it as any exception
        self.report.signal = value.signal
        self.report.exit_code = value.exitCode
        self.pid = None
        self._ended.callback(None)


# --- What a process is given, and what it leaves behind -------------------------------------------


def spider_environment(environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return the node's environment without the node's own variables.

    The stores' URLs stay, as spiders need them.
    """
    kept = {name: value for name, value in environ.items() if not name.startswith(_NODE_ONLY)}
    return kept | {"PYTHONIOENCODING": "UTF-8"}


def spider_settings(
    options: NodeOptions, leased: JobStatus, scrapyd_settings: Mapping[str, str]
) -> dict[str, str]:
    """Return a job's settings with those of its node and of Scrapyd."""
    job = leased.job
    settings = {"FRONTIER_NODE": options.node_name}
    if "FRONTIER_RUN" not in job.settings:
        # Each start of a job continues the run of its arguments; a job that is queued after that
        # run finished begins a new one.
        settings["FRONTIER_ASKED_AT"] = f"{leased.queued_at:.3f}"
    settings |= {
        "MEMUSAGE_ENABLED": "1",
        "MEMUSAGE_CHECK_INTERVAL_SECONDS": _MEMORY_CHECK_SECONDS,
        **job.settings,
    }
    limit = options.memory_limit_mb
    own_limit = job.settings.get("MEMUSAGE_LIMIT_MB", "0")
    # A limit that is not a number is passed on, and Scrapy reports it when the crawl starts.
    if limit and own_limit.isdecimal() and not 0 < int(own_limit) <= limit:
        settings["MEMUSAGE_LIMIT_MB"] = str(limit)
    return {**settings, **scrapyd_settings}


def log_url(job: Job) -> str:
    """Return the path of a job's log in the URL of any node."""
    return quote(f"/logs/{job.project}/{job.spider}/{job.id}.log")


def read_end(path: Path, size: int) -> str:
    """Return the last whole lines of a file, up to `size` bytes. Raises OSError."""
    with path.open("rb") as file:
        length = file.seek(0, os.SEEK_END)
        file.seek(max(0, length - size))
        content = file.read(size)
    return (content if length <= size else content.partition(b"\n")[2]).decode(errors="replace")


def last_lines(log: Path, errors: str) -> str:
    """Append what a process wrote to standard error to its job's log, and return it.

    When it wrote nothing, return the log's end.
    """
    with suppress(OSError):
        if not errors.strip():
            return redacted(read_end(log, 4096))
        with log.open("a", encoding="utf-8") as file:
            file.write(errors)
    return errors


def memory_of(pid: int | None = None) -> int:
    """Return the bytes of memory that a process uses, by default this one.

    Return 0 where the system has no /proc.
    """
    try:
        pages = Path(f"/proc/{pid or 'self'}/statm").read_text("ascii").split()[1]
    except OSError:
        return 0
    return int(pages) * os.sysconf("SC_PAGE_SIZE")
