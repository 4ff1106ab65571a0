"""What the benchmarks share: numbers from the command line, the cost of programs, and tables."""

import json
import math
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

from scrapy.settings import BaseSettings

PROJECT = Path(__file__).parents[2]
INSTRUCTIONS = "--instructions"
COUNTS_INSTRUCTIONS = INSTRUCTIONS in sys.argv
"""Whether programs run under Debian's `valgrind`, and their cost is counted in instructions."""
FIGURE = "  "
MISSED = "MISSED"
"""How the line of a figure begins, and how it ends when its goal is missed."""
_COUNTER = ("valgrind", "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null")
PROCESSOR = "10⁹ instructions" if COUNTS_INSTRUCTIONS else "s of processor time"
_COUNTED = re.compile(r"I +refs: +([0-9,]+)")


class ScrapyRedis:
    """An add-on with which the crawl of a movie spider runs on scrapy-redis' own classes."""

    def update_settings(self, settings: BaseSettings) -> None:
        settings.set("SCHEDULER", "scrapy_redis.scheduler.Scheduler", priority="addon")
        dupe_filter = "scrapy_redis.dupefilter.RFPDupeFilter"
        settings.set("DUPEFILTER_CLASS", dupe_filter, priority="addon")


class ScrapyAlone:
    """An add-on with which the crawl of a movie spider runs on Scrapy's own classes."""

    def update_settings(self, settings: BaseSettings) -> None:
        settings.set("SCHEDULER", "scrapy.core.scheduler.Scheduler", priority="addon")
        settings.set("DUPEFILTER_CLASS", "scrapy.dupefilters.RFPDupeFilter", priority="addon")


def with_add_on(add_on: type) -> dict[str, str]:
    """Return settings with which a crawl has an add-on."""
    path = f"tests.benchmarks.harness.{add_on.__name__}"
    return {"ADDONS": json.dumps({path: 1}), "SPIDER_MIDDLEWARES": "{}"}


def numbers(*defaults: int, least: Sequence[int]) -> list[int]:
    """Return the numbers on the command line, then the defaults of those that are not there.

    Exits with a sentence at one that is too small.
    """
    given = [text for text in sys.argv[1:] if not text.startswith("--")][: len(defaults)]
    for place, text in enumerate(given):
        if not text.isdecimal() or int(text) < least[place]:
            sys.exit(f"argument {place + 1} is {text!r}; give a number from {least[place]:,} on")
    return [*map(int, given), *defaults[len(given) :]]


class Spent(NamedTuple):
    """What programs that ran together cost.

    Seconds of processor and clock, MB of the largest, and what the first printed. With
    `--instructions`, 10⁹ instructions stand for the seconds of processor.
    """

    cpu: float
    wall: float
    peak: float
    printed: str


class Command(NamedTuple):
    """Arguments of Python, to be run in a folder with these environment variables."""

    arguments: Sequence[str]
    folder: Path
    environment: Mapping[str, str]
    code: int = 0
    """The exit code with which it must end."""


def ours(*arguments: str, folder: Path | None = None, **variables: str) -> Command:
    """Return Python with arguments, and this project's settings."""
    named = {"SCRAPY_SETTINGS_MODULE": "moviecrawler.settings", "PYTHONPATH": str(PROJECT)}
    environment = os.environ | named | variables
    return Command(arguments, folder or Path.cwd(), environment)


def bare(*arguments: str, folder: Path) -> Command:
    """Return Scrapy with arguments, outside any project."""
    environment = {
        name: value for name, value in os.environ.items() if name != "SCRAPY_SETTINGS_MODULE"
    }
    return Command(["-m", "scrapy", *arguments], folder, environment)


def run(*commands: Command) -> Spent:
    """Run commands at the same time, and return what all of them cost. Exits when one fails."""
    started = time.monotonic()
    cpu = 0.0
    peak = 0.0
    with ExitStack() as stack:
        files = [
            [stack.enter_context(tempfile.TemporaryFile("w+")) for _ in range(2)] for _ in commands
        ]
        counts = [Path(stack.enter_context(tempfile.NamedTemporaryFile()).name) for _ in commands]
        processes = [
            subprocess.Popen(
                [*_counter(count), sys.executable, *one.arguments],
                cwd=one.folder,
                env={**one.environment, "PYTHONHASHSEED": "0"},
                stdout=out,
                stderr=err,
            )
            for one, (out, err), count in zip(commands, files, counts, strict=True)
        ]
        for one, process, (_, err), count in zip(commands, processes, files, counts, strict=True):
            while not (ended := os.wait4(process.pid, os.WNOHANG))[0]:
                peak = max(peak, peak_memory(process.pid))
                time.sleep(0.1)
            process.returncode = os.waitstatus_to_exitcode(ended[1])
            err.seek(0)
            said = err.read()
            if process.returncode != one.code or "Traceback" in said:
                sys.exit(f"exit code {process.returncode}: {said}")
            if COUNTS_INSTRUCTIONS:
                cpu += _instructions(count) / 1e9
            else:
                cpu += ended[2].ru_utime + ended[2].ru_stime
        files[0][0].seek(0)
        return Spent(cpu, time.monotonic() - started, peak, files[0][0].read())


def _counter(file: Path) -> list[str]:
    return [*_COUNTER, f"--log-file={file}"] if COUNTS_INSTRUCTIONS else []


def _instructions(file: Path) -> int:
    found = _COUNTED.search(file.read_text())
    return int(found[1].replace(",", "")) if found else 0


def peak_memory(process: int) -> float:
    """Return the most that a process has held, in MB.

    What `wait4` says of it includes what its parent held when it was started.
    """
    status = dict(
        line.split(":", 1) for line in Path(f"/proc/{process}/status").read_text().splitlines()
    )
    return int(status.get("VmHWM", "0").split()[0]) / 1024  # none when it has just ended


def options(settings: Mapping[str, object]) -> list[str]:
    """Return settings as options of Scrapy's commands."""
    return [part for name, value in settings.items() for part in ("-s", f"{name}={value}")]


def seconds(call: Callable[[], object], times: int) -> list[float]:
    """Return the seconds that each of some calls takes, by the clock."""
    taken = []
    for _ in range(times):
        began = time.perf_counter()
        call()
        taken.append(time.perf_counter() - began)
    return taken


def figure(
    what: str, value: float, *, at_most: float = math.inf, at_least: float = -math.inf
) -> None:
    """Print a figure beside its goal, on a line that `python -m tests.benchmarks` gathers."""
    goal = f"at least {at_least:g}" if at_most == math.inf else f"at most {at_most:g}"
    missed = "" if at_least <= value <= at_most else f" {MISSED}"
    print(f"{FIGURE}{what:70} {value:8.3g}  goal: {goal}{missed}", flush=True)


def table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print rows under their header, the first column to the left, the others to the right."""
    lines = [header, *([str(cell) for cell in row] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for first, *others in lines:
        cells = (cell.rjust(width) for cell, width in zip(others, widths[1:], strict=True))
        print("  ".join([first.ljust(widths[0]), *cells]), flush=True)
