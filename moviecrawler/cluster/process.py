"""A spider's process, as its node sees it."""

from __future__ import annotations

import json
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from twisted.internet import reactor as _reactor
from twisted.internet.defer import Deferred
from twisted.internet.error import ProcessExitedAlready
from twisted.internet.protocol import ProcessProtocol
from twisted.logger import Logger

from moviecrawler.cluster.environment import RUNNER, spider_environment
from moviecrawler.cluster.jobs import Report
from moviecrawler.cluster.secrets import redacted
from moviecrawler.figures import DESCRIPTOR

if TYPE_CHECKING:
    from pathlib import Path

    from twisted.python.failure import Failure

    from moviecrawler.cluster.jobs import Outcome, RunEnd
    from moviecrawler.cluster.state import Egg, LeasedJob

journal = Logger()

reactor: Any = _reactor
"""It is typed as Any, since Twisted types it as a module."""
_STDIN, _STDOUT, _STDERR, _FIGURES = range(4)
_MAX_FIGURES_BYTES = 64 * 1024
"""Bytes of a line of figures."""
_MAX_ERRORS_LENGTH = 16 * 1024
_OUTPUT_SECONDS = 5.0
"""Seconds for which a child process of the spider may keep the output open after the spider's end."""
STOP_SECONDS = 25.0
"""Seconds that spiders may take to end when their node is stopped; then they are killed."""
_CANCEL_SECONDS = 45.0
"""Seconds that the spider of a cancelled job may take to end; stores alone may take 30. Then it is killed."""
_HANG_SECONDS = 60.0
"""Seconds for which a spider's event loop may hang; then the spider kills itself, and its job is started again."""


class SpiderProcess(ProcessProtocol):
    """A job in a slot of this node, and its process once that is started."""

    transport: Any
    """Twisted's type for it lacks `writeToChild`."""

    def __init__(self, leased: LeasedJob) -> None:
        self.leased = leased
        self.job = leased.job
        self.egg: Egg | None = None
        """The version that the process runs."""
        self.cancelled = ""
        """The signal with which the job was cancelled; empty when it was not."""
        self.stopped = False
        """Whether this node has stopped the process."""
        self.pid: int | None = None
        """The process' id; None before the start and after the end."""
        self.signal: int | None = None
        """The signal that killed the process, if one did."""
        self.exit_code: int | None = None
        self.report = Report()
        """What the process has reported of its crawl."""
        self.errors = ""
        """The end of what the process wrote to standard error."""
        self.end: tuple[RunEnd, Outcome] | None = None
        """How the job ended; None until it has."""
        self.pause_seconds = 0.0
        """Seconds for which the slot takes no other job after that."""
        self._ended: Deferred[None] = Deferred()
        self._line = b""

    def start(self, folder: Path, settings: dict[str, str]) -> Deferred[None]:
        """Start the process from an egg's folder; the Deferred fires when all its output is read. Raises OSError."""
        job = self.job
        # The task goes through a pipe, as every user of the machine can read a command line.
        task = {"egg": str(folder), "settings": settings, "arguments": job.arguments, "hang_seconds": _HANG_SECONDS}
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
        self.stopped = True
        self._end("TERM", STOP_SECONDS)

    def cancel(self, signal: str) -> None:
        """End the process, as its job was cancelled."""
        self.cancelled = signal
        self._end(signal, _CANCEL_SECONDS)

    def _end(self, signal: str, seconds: float) -> None:
        self.send(signal)
        reactor.callLater(seconds, self.send, "KILL")

    # --- Twisted's interface ------------------------------------------------------------------------------------------

    def connectionMade(self) -> None:
        """Write the task. Standard input stays open as long as the node lives."""
        self.pid = self.transport.pid
        self.transport.writeToChild(_STDIN, self._task)
        what = {"job": self.job.key, "pid": self.pid, "start": self.leased.start}
        journal.info("Started {job} as process {pid}, start {start}", **what)

    def childDataReceived(self, childFD: int, data: bytes) -> None:
        if childFD == _FIGURES:
            *lines, rest = (self._line + data).split(b"\n")
            self._line = rest[:_MAX_FIGURES_BYTES]
            for line in lines:
                self.report.update(line)
            return
        text = redacted(data.decode(errors="backslashreplace"))
        journal.info("{job}: {text}", job=self.job.key, text=text.rstrip())
        if childFD == _STDERR:
            self.errors = (self.errors + text)[-_MAX_ERRORS_LENGTH:]

    def processExited(self, reason: Failure) -> None:
        reactor.callLater(_OUTPUT_SECONDS, self.transport.loseConnection)

    def processEnded(self, reason: Failure) -> None:
        value: Any = reason.value
        self.signal, self.exit_code = value.signal, value.exitCode
        self.pid = None
        self._ended.callback(None)
