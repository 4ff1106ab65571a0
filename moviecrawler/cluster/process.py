"""A spider's process, as its node sees it."""

from __future__ import annotations

import json
import re
import sys
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
    from collections.abc import Mapping
    from pathlib import Path

    from twisted.python.failure import Failure

    from moviecrawler.cluster.state import Taken

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
    """Runs one job. The Deferred `ended` fires when the process has ended and all its output is read."""

    def __init__(
        self,
        taken: Taken,
        egg: Path,
        settings: Mapping[str, str],
        environment: Mapping[str, str],
        *,
        hang_seconds: float,
    ) -> None:
        job = taken.job
        self.key = job.key
        self.pid: int | None = None
        self.ended: Deferred[None] = Deferred()
        self.signal: int | None = None
        """The signal that killed it, if one did."""
        self.exit_code: int | None = None
        self.traceback = ""
        """Where its event loop stood still, if it killed itself for that."""
        self.report = Report()
        """What it has told of its crawl until now."""
        self.last_error = ""
        """The last line that it wrote to standard error."""
        self._start = taken.start
        self._line = self._trace = b""
        self._task = {
            "egg": str(egg),
            "settings": dict(settings),
            "arguments": job.arguments,
            "hang_seconds": hang_seconds,
        }
        # Every user of the machine can read these, so they only tell processes apart.
        self.args = [sys.executable, "-P", RUNNER, "crawl", job.project, job.spider, job.id]
        self._environment = {**environment, DESCRIPTOR: str(_FIGURES)}

    def start(self) -> None:
        """Start it. Raises OSError."""
        descriptors = {_STDIN: "w", _STDOUT: "r", _STDERR: "r", _FIGURES: "r"}
        reactor.spawnProcess(self, sys.executable, args=self.args, env=self._environment, childFDs=descriptors)

    def send(self, signal: str) -> None:
        """Send it a signal, unless it has ended."""
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
        self._transport.writeToChild(_STDIN, json.dumps(self._task).encode() + b"\n")
        journal.info("Started {job} as process {pid}, start {start}", job=self.key, pid=self.pid, start=self._start)

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
            journal.info("{job}: {line}", job=self.key, line=line)
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
                job=self.key,
                pid=self.pid,
            )
            self.traceback = "\n".join(self._log(self._trace))
        how = f"was killed by signal {self.signal}" if self.signal is not None else f"ended with {self.exit_code}"
        journal.info("Process {pid} of {job} {how}", pid=self.pid, job=self.key, how=how)
        self.ended.callback(None)


def _printable(line: str) -> str:
    return re.sub(r"[^\x20-\x7e\xa0-\U0010ffff]", " ", line[:_MAX_LINE_LENGTH])
