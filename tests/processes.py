"""Commands in processes of their own that don't pay for the start.

Each is forked from one that has imported everything. What such a process has of its own: memory,
environment, working directory, output, signals, a process id and an exit code. What it has not: an
interpreter that started for it, and so no use for PYTHONPATH, nor a command line that `ps` shows.
Tests of these, and of the start itself, use `subprocess`.
"""

import atexit
import faulthandler
import logging
import multiprocessing
import os
import runpy
import signal
import subprocess
import sys
import traceback
from collections.abc import Callable
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import IO, Self

from moviecrawler.replica.process import ReplicaProcess

CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(["tests.processes", "tests.preloaded"])
FAST = {"RETRY_BACKOFF": "0.02", "DOWNLOAD_TIMEOUT": "60"}
"""Settings with which failing takes no time, unless a site says nothing at all: a page that a busy
machine sends late must not fail."""


class ForkedCommand(ForkServerProcess):
    """`scrapy` or another program, in a process that is used like `subprocess.Popen`."""

    def __init__(
        self,
        arguments: list[str],
        *,
        env: dict[str, str],
        cwd: Path,
        stdout: IO[bytes] | int = subprocess.DEVNULL,
        stderr: IO[bytes] | int = subprocess.DEVNULL,
        program: str = "scrapy",
        fork_jobs: Callable[[], bool] | None = None,
    ) -> None:
        """Take files that have a name, or DEVNULL; and how a node forks its jobs, if it does."""
        outputs = [
            Path(os.devnull if isinstance(file, int) else file.name) for file in (stdout, stderr)
        ]
        super().__init__(
            target=_run, args=([program, *arguments], env, cwd, fork_jobs, *outputs), daemon=True
        )
        self.args = arguments
        self.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.wait()

    @property
    def pid(self) -> int:
        """Its process id."""
        return self.ident or 0

    @property
    def returncode(self) -> int | None:
        """As `subprocess` has it: None while it runs, negative for a signal."""
        return self.exitcode

    def poll(self) -> int | None:
        """Return the exit code, or None while it runs."""
        return self.exitcode

    def wait(self, timeout: float | None = None) -> int:
        """Wait until it has ended; return its exit code. Raises subprocess.TimeoutExpired."""
        self.join(timeout)
        if self.exitcode is None:
            raise subprocess.TimeoutExpired("scrapy", timeout or 0)
        return self.exitcode

    def send_signal(self, number: int) -> None:
        """Send a signal, unless it has ended."""
        if self.exitcode is None:
            os.kill(self.pid, number)


Process = ForkedCommand | subprocess.Popen[bytes]


def start(
    arguments: list[str],
    *,
    env: dict[str, str],
    cwd: Path,
    stdout: IO[bytes] | int = subprocess.DEVNULL,
    stderr: IO[bytes] | int = subprocess.DEVNULL,
) -> Process:
    """Start `scrapy` with arguments: forked, or in an interpreter of its own.

    The latter is used where the environment has something for it.
    """
    if any(name.startswith("PYTHON") for name in env):
        command = [sys.executable, "-m", "scrapy", *arguments]
        return subprocess.Popen(command, env=env, cwd=cwd, stdout=stdout, stderr=stderr)
    return ForkedCommand(arguments, env=env, cwd=cwd, stdout=stdout, stderr=stderr)


def environment(data: Path, replica: ReplicaProcess | None, **settings: str) -> dict[str, str]:
    """Return the environment of a command that stores into `data` and asks `replica`."""
    kept = {
        name: os.environ[name]
        for name in ("PATH", "HOME", "LANG", "TMPDIR", "VIRTUAL_ENV")
        if name in os.environ
    }
    own = {"SCRAPY_SETTINGS_MODULE": "moviecrawler.settings", "DATA_DIR": str(data)}
    return {**kept, **(replica.settings if replica else {}), **own, **settings}


def crawl_command(spider: str, *arguments: str, **settings: str) -> list[str]:
    """Return the arguments with which `scrapy` runs a spider; its own are NAME=VALUE."""
    given = [part for argument in arguments for part in ("-a", argument)]
    options = [
        part for name, value in {**FAST, **settings}.items() for part in ("-s", f"{name}={value}")
    ]
    return ["crawl", spider, *given, *options]


def _run(
    arguments: list[str],
    env: dict[str, str],
    cwd: Path,
    fork_jobs: Callable[[], bool] | None,
    *outputs: Path,
) -> None:
    """Become `scrapy`, `moviecrawler` or `scrapyd` with arguments, or a job of the last one."""
    # A shell without job control has its children ignore it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number, path in enumerate(outputs, 1):
        output = os.open(path, os.O_WRONLY | os.O_APPEND)
        os.dup2(output, number)
        os.close(output)
    os.environ.clear()
    os.environ.update(env)
    os.chdir(cwd)
    # The process that starts this one has no need of these.
    from scrapy.cmdline import execute  # noqa: PLC0415
    from scrapyd.__main__ import main  # noqa: PLC0415

    from moviecrawler.__main__ import main as moviecrawler  # noqa: PLC0415

    is_job = fork_jobs is not None and fork_jobs()
    # What they were opened for may have been a file, and now it is a pipe.
    sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", encoding="utf-8", buffering=1, closefd=False)  # noqa: SIM115
    # A crash in native code tells its stack in the log.
    faulthandler.enable(sys.stderr)
    try:
        if is_job:
            runpy.run_path(sys.argv[0], run_name="__main__")
            return
        sys.path.insert(0, str(cwd))
        sys.argv = arguments
        {"moviecrawler": moviecrawler, "scrapy": execute, "scrapyd": main}[arguments[0]]()
    except Exception:  # noqa: BLE001 - told as an interpreter does, and not as multiprocessing does
        traceback.print_exc()
        sys.exit(1)
    finally:
        logging.shutdown()
        atexit._run_exitfuncs()
