"""What the benchmarks share: numbers from the command line, programs and what they cost, invented input, and tables."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from moviecrawler.replica.collection import Collection
from moviecrawler.replica.datasets import Dataset

SCRAPY = (sys.executable, "-m", "scrapy")
SCRAPY_REDIS = {
    "SCHEDULER": "scrapy_redis.scheduler.Scheduler",
    "DUPEFILTER_CLASS": "scrapy_redis.dupefilter.RFPDupeFilter",
    "SPIDER_MIDDLEWARES": "{}",
}
"""Settings with which a crawl runs on scrapy-redis' own classes."""


def numbers(*defaults: Any, least: Sequence[float]) -> list[Any]:
    """Return the numbers on the command line, and the defaults of those that are not there. Exits with a sentence at a number below its least."""
    parsed = list(defaults)
    for place, text in enumerate(sys.argv[1 : len(defaults) + 1]):
        with suppress(ValueError):
            parsed[place] = type(defaults[place])(text)
            if parsed[place] >= least[place]:
                continue
        sys.exit(f"argument {place + 1} is {text!r}; give a number from {least[place]:,} on")
    return parsed


@dataclass(frozen=True)
class Spent:
    """What programs that ran together cost."""

    cpu: float
    """Seconds, user and system."""
    wall: float
    """Seconds."""
    peak: float
    """MB, of the largest process."""
    printed: str
    """By the first."""


@dataclass(frozen=True)
class Command:
    """A program with its arguments, to be run in a folder with these environment variables."""

    arguments: Sequence[str]
    folder: Path
    environment: Mapping[str, str]

    def run(self, before: Sequence[str] = SCRAPY) -> Spent:
        """Run it; `before` is what stands for `scrapy`."""
        return run_together([self], before)


def run(*arguments: str, **variables: str) -> Spent:
    """Run Python with arguments, and this project's settings."""
    environment = {**os.environ, "SCRAPY_SETTINGS_MODULE": "moviecrawler.settings", **variables}
    return Command(arguments, Path.cwd(), environment).run([sys.executable])


def run_together(commands: Sequence[Command], before: Sequence[str] = SCRAPY) -> Spent:
    """Run programs at the same time, and return what all of them cost. Exits when one fails."""
    started, cpu, peak = time.monotonic(), 0.0, 0.0
    with ExitStack() as stack:
        files = [[stack.enter_context(tempfile.TemporaryFile("w+")) for _ in range(2)] for _ in commands]
        processes = [
            subprocess.Popen([*before, *one.arguments], cwd=one.folder, env=one.environment, stdout=out, stderr=err)
            for one, (out, err) in zip(commands, files, strict=True)
        ]
        for process, (_, err) in zip(processes, files, strict=True):
            while not (ended := os.wait4(process.pid, os.WNOHANG))[0]:
                peak = max(peak, peak_memory(process.pid))
                time.sleep(0.1)
            process.returncode = os.waitstatus_to_exitcode(ended[1])
            err.seek(0)
            said = err.read()
            if process.returncode or "Traceback" in said:
                sys.exit(f"exit code {process.returncode}: {said}")
            cpu += ended[2].ru_utime + ended[2].ru_stime
        files[0][0].seek(0)
        return Spent(cpu, time.monotonic() - started, peak, files[0][0].read())


def peak_memory(process: int) -> float:
    """Return the most that a process has held, in MB. What `wait4` says of it includes what its parent held when it was started."""
    status = dict(line.split(":", 1) for line in Path(f"/proc/{process}/status").read_text().splitlines())
    return int(status.get("VmHWM", "0").split()[0]) / 1024  # none when it has just ended


def options(settings: Mapping[str, object]) -> list[str]:
    """Return settings as options of Scrapy's commands."""
    return [part for name, value in settings.items() for part in ("-s", f"{name}={value}")]


def seconds(call: Callable[[], object], times: int = 1) -> list[float]:
    """Return the seconds that each of some calls takes, by the clock."""
    taken = []
    for _ in range(times):
        began = time.perf_counter()
        call()
        taken.append(time.perf_counter() - began)
    return taken


def write_datasets(folder: Path, collection: Collection, names: Iterable[str]) -> None:
    """Write IMDb's datasets of those names, such as `title.basics`, as the replica has them."""
    for name in names:
        Dataset(collection, folder, f"{name}.tsv.gz").write()


def table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print rows under their header, the first column to the left, the others to the right."""
    lines = [header, *([str(cell) for cell in row] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for first, *others in lines:
        cells = (cell.rjust(width) for cell, width in zip(others, widths[1:], strict=True))
        print("  ".join([first.ljust(widths[0]), *cells]), flush=True)
