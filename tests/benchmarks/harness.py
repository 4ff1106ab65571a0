"""What the benchmarks share: numbers from the command line, programs and what they cost, servers, invented input, and tables."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import boto3

from moviecrawler.replica.collection import Collection
from moviecrawler.replica.datasets import Dataset
from tests.services.mongo import MongoServer
from tests.services.postgres import PostgresServer, new_database
from tests.services.redis import RedisServer
from tests.services.s3 import CREDENTIALS, S3Server

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


# --- Programs ---------------------------------------------------------------------------------------------------------


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
    started = time.monotonic()
    with ExitStack() as stack:
        outputs, errors = (
            [stack.enter_context(tempfile.TemporaryFile("w+")) for _ in commands] for _ in ("output", "errors")
        )
        processes = [
            subprocess.Popen(
                [*before, *one.arguments], cwd=one.folder, env=one.environment, stdout=output, stderr=error
            )
            for one, output, error in zip(commands, outputs, errors, strict=True)
        ]
        cpu = peak = 0.0
        for process, error in zip(processes, errors, strict=True):
            while not (ended := os.wait4(process.pid, os.WNOHANG))[0]:
                peak = max(peak, peak_memory(process.pid))
                time.sleep(0.1)
            _, status, usage = ended
            process.returncode = os.waitstatus_to_exitcode(status)
            error.seek(0)
            said = error.read()
            if process.returncode or "Traceback" in said:
                sys.exit(f"exit code {process.returncode}: {said}")
            cpu += usage.ru_utime + usage.ru_stime
        outputs[0].seek(0)
        return Spent(cpu, time.monotonic() - started, peak, outputs[0].read())


def peak_memory(process: int) -> float:
    """Return the most that a process has held, in MB. What `wait4` says of it includes what its parent held when it was started."""
    status = dict(line.split(":", 1) for line in Path(f"/proc/{process}/status").read_text().splitlines())
    return int(status.get("VmHWM", "0").split()[0]) / 1024  # none when it has just ended


def options(settings: Mapping[str, object]) -> list[str]:
    """Return settings as options of Scrapy's commands."""
    return [part for name, value in settings.items() for part in ("-s", f"{name}={value}")]


def unhindered(at_once: int) -> dict[str, str]:
    """Return the settings of a crawl of the replica that nothing holds back, with so many requests at a time."""
    return {
        "CONCURRENT_REQUESTS": str(at_once),
        "CONCURRENT_REQUESTS_PER_DOMAIN": str(at_once),  # so many connections are kept open, too
        "DOWNLOAD_SLOTS": json.dumps({"127.0.0.1": {"delay": 0.0, "concurrency": at_once}}),
        "SITE_BUDGETS": json.dumps({"127.0.0.1": {"per_day": 1_000_000}}),
        "LOG_LEVEL": "WARNING",
    }


def seconds(call: Callable[[], object], times: int = 1) -> list[float]:
    """Return the seconds that each of some calls takes, by the clock."""
    taken = []
    for _ in range(times):
        began = time.perf_counter()
        call()
        taken.append(time.perf_counter() - began)
    return taken


# --- Servers ----------------------------------------------------------------------------------------------------------


class Services:
    """Postgres, MongoDB, an S3 endpoint and Redis, while the `with` block runs."""

    def __init__(self) -> None:
        self.postgres, self.mongo, self.s3, self.redis = PostgresServer(), MongoServer(), S3Server(), RedisServer()
        self._running = ExitStack()

    def __enter__(self) -> Self:
        os.environ.update(CREDENTIALS)
        for server in (self.postgres, self.mongo, self.s3, self.redis):
            self._running.enter_context(server)
        return self

    def __exit__(self, *_: object) -> None:
        self._running.close()

    def settings(self) -> dict[str, str]:
        """Return the settings of stores and a frontier that hold nothing yet: Redis is emptied."""
        mark = uuid.uuid4().hex
        with closing(boto3.session.Session().client("s3", endpoint_url=self.s3.url)) as client:
            client.create_bucket(Bucket=f"b-{mark}")
        self.redis.client.flushall()
        return {
            "DATABASE_URL": new_database(self.postgres.url),
            "MONGO_URL": f"{self.mongo.url}/b_{mark}",
            "S3_ENDPOINT_URL": self.s3.url,
            "S3_BUCKET": f"b-{mark}",
            "REDIS_URL": self.redis.url,
            **CREDENTIALS,
        }


# --- Input ------------------------------------------------------------------------------------------------------------


def write_ids(folder: Path, titles: int, of: int | None = None) -> Path:
    """Return a file with the IMDb ids of the first titles of a replica that has `of` titles, or as many."""
    file = folder / f"ids-{titles}"
    file.write_text("\n".join(Collection(1, of or titles).imdb_ids[:titles]))
    return file


def write_datasets(folder: Path, collection: Collection, names: Iterable[str]) -> None:
    """Write IMDb's datasets of those names, such as `title.basics`, as the replica has them."""
    for name in names:
        Dataset(collection, folder, f"{name}.tsv.gz").write()


# --- Tables -----------------------------------------------------------------------------------------------------------


def table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print rows under their header, the first column to the left, the others to the right."""
    lines = [header, *([str(cell) for cell in row] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for first, *others in lines:
        cells = (cell.rjust(width) for cell, width in zip(others, widths[1:], strict=True))
        print("  ".join([first.ljust(widths[0]), *cells]), flush=True)


def spread(values: Sequence[float], bases: Sequence[float]) -> str:
    """Return the ratios of values to those of a baseline, round by round: their median, with the range."""
    ratios = [value / base for value, base in zip(values, bases, strict=True)]
    return f"{statistics.median(ratios):.2f} ({min(ratios):.2f}–{max(ratios):.2f})"
