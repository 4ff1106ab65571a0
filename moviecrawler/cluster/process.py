"""A spider's process, as its node sees it."""

from __future__ import annotations

import json
import re
import sys
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import msgspec
from twisted.internet.defer import Deferred
from twisted.internet.error import ProcessExitedAlready
from twisted.internet.protocol import ProcessProtocol
from twisted.logger import Logger

from moviecrawler.cluster.eggs import RUNNER
from moviecrawler.cluster.jobs import Report
from moviecrawler.cluster.secrets import redacted
from moviecrawler.cluster.threads import reactor
from moviecrawler.figures import DESCRIPTOR

if TYPE_CHECKING:
    from pathlib import Path

    from twisted.python.failure import Failure

    from moviecrawler.cluster.state import Egg, Taken

journal = Logger()

_STDIN, _STDOUT, _STDERR, _FIGURES = range(4)
_MAX_FIGURES_BYTES = 64 * 1024
"""Bytes of a line of figures, and of a traceback."""
_MAX_LINE_LENGTH = 2000
_OUTPUT_SECONDS = 5.0
"""Seconds for which a child process of the spider may keep the output open after the spider's end."""
_HANG_MARK = b"Timeout ("
"""How the traceback of `faulthandler` begins, on a line of its own."""


class SpiderProcess(ProcessProtocol):
    """A job in a slot of this node, and its process once that is started."""

    def __init__(self, taken: Taken) -> None:
        self.taken = taken
        self.job = taken.job
        self.started_at = time.time()
        self.egg: Egg | None = None
        """The version that it runs."""
        self.cancels = 0
        """How often its cancellation was requested."""
        self.stopped = False
        """Whether this node has told it to end."""
        self.pid: int | None = None
        """None before it was started, and when it has ended."""
        self.signal: int | None = None
        """The signal that killed it, if one did."""
        self.exit_code: int | None = None
        self.traceback = ""
        """Where its event loop stood still, if it killed itself for that."""
        self.report = Report()
        """What it has told of its crawl until now."""
        self.last_error = ""
        """The last line that it wrote to standard error."""
        self._ended: Deferred[None] = Deferred()
        self._line = self._trace = b""

    def start(
        self, folder: Path, settings: dict[str, str], environment: dict[str, str], hang_seconds: float
    ) -> Deferred[None]:
        """Start it from the folder of an egg; return a Deferred that fires when it has ended and all its output is read.

        Raises OSError.
        """
        job = self.job
        # It goes through a pipe: every user of the machine can read the arguments, so they only tell processes apart.
        task = {"egg": str(folder), "settings": settings, "arguments": job.arguments, "hang_seconds": hang_seconds}
        self._task = json.dumps(task).encode() + b"\n"
        reactor.spawnProcess(
            self,
            sys.executable,
            args=[sys.executable, "-P", RUNNER, "crawl", job.project, job.spider, job.id],
            env={**environment, DESCRIPTOR: str(_FIGURES)},
            childFDs={_STDIN: "w", _STDOUT: "r", _STDERR: "r", _FIGURES: "r"},
        )
        return self._ended

    def send(self, signal: str) -> None:
        """Send it a signal, unless it has not begun or has ended."""
        if self.pid is not None:
            with suppress(ProcessExitedAlready):
                self._transport.signalProcess(signal)

    @property
    def _transport(self) -> Any:
        # Twisted's type for it lacks `writeToChild`.
        return self.transport

    # --- Twisted's interface ------------------------------------------------------------------------------------------

    def connectionMade(self) -> None:
        """Write its task. Its standard input stays open as long as this node lives."""
        self.pid = self._transport.pid
        self._transport.writeToChild(_STDIN, self._task)
        what = {"job": self.job.key, "pid": self.pid, "start": self.taken.start}
        journal.info("Started {job} as process {pid}, start {start}", **what)

    def childDataReceived(self, childFD: int, data: bytes) -> None:
        if childFD == _FIGURES:
            *lines, rest = (self._line + data).split(b"\n")
            self._line = rest[:_MAX_FIGURES_BYTES]
            for line in lines:
                self._take(line)
            return
        lines_written = self._log(data)
        if childFD == _STDERR:
            self.last_error = next((line for line in reversed(lines_written) if line.strip()), self.last_error)

    def _take(self, line: bytes) -> None:
        if line.startswith(b"{"):
            with suppress(msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                self.report.update(line)
        elif self._trace or line.startswith(_HANG_MARK):
            self._trace = (self._trace + line + b"\n")[:_MAX_FIGURES_BYTES]

    def _log(self, output: bytes) -> list[str]:
        """Write what the process wrote to the node's log; return its lines."""
        lines = [redacted(_printable(line)) for line in output.decode(errors="backslashreplace").splitlines()]
        for line in lines:
            journal.info("{job}: {line}", job=self.job.key, line=line)
        return lines

    def processExited(self, reason: Failure) -> None:
        self._closing = reactor.callLater(_OUTPUT_SECONDS, self._transport.loseConnection)

    def processEnded(self, reason: Failure) -> None:
        if self._closing.active():
            self._closing.cancel()
        value: Any = reason.value
        self.signal, self.exit_code = value.signal, value.exitCode
        self._take(self._line)
        if self._trace:
            journal.warn(
                "{job} hangs: its event loop stands still; process {pid} has killed itself, and its traceback follows",
                job=self.job.key,
                pid=self.pid,
            )
            self.traceback = "\n".join(self._log(self._trace))
        how = f"was killed by signal {self.signal}" if self.signal is not None else f"ended with {self.exit_code}"
        journal.info("Process {pid} of {job} {how}", pid=self.pid, job=self.job.key, how=how)
        self.pid = None
        self._ended.callback(None)


def _printable(line: str) -> str:
    return re.sub(r"[^\x20-\x7e\xa0-\U0010ffff]", " ", line[:_MAX_LINE_LENGTH])
