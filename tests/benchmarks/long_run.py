"""What one worker holds while it crawls many pages into four stores, with its requests in Redis.

usage: python -m tests.benchmarks.long_run [PAGES] [MINUTES]

PAGES (200,000 unless given) are light: what could pile up is one entry a page, whatever its size. Memory, open files and threads of
the worker are looked at every second, and their means over each tenth of the pages are printed, then the ratio of the last tenth to
the second, and what is left in Redis. After MINUTES (60 unless given) the crawl is ended as Ctrl-C does, and what was done by then is
reported. Takes half an hour on two quiet cores.
"""

from __future__ import annotations

import signal
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import redis

from moviecrawler.frontier.keys import Keys
from moviecrawler.replica.process import ReplicaProcess
from tests.benchmarks.harness import SCRAPY, Services, numbers, options, table, unhindered, write_ids
from tests.crawling import environment
from tests.services.postgres import execute

CONCURRENT = 32
TENTHS = 10


@dataclass(frozen=True)
class Sample:
    """What the worker held at one moment."""

    pages: int
    """That were done by then."""
    memory: float
    """MB, resident."""
    files: int
    threads: int


def sample(process: int, pages: int) -> Sample:
    """Look at a process."""
    status = dict(line.split(":\t", 1) for line in Path(f"/proc/{process}/status").read_text().splitlines())
    files = len(list(Path(f"/proc/{process}/fd").iterdir()))
    return Sample(pages, int(status["VmRSS"].split()[0]) / 1024, files, int(status["Threads"]))


def pages_done(client: redis.Redis) -> int:
    """Return how many requests of the crawl are over."""
    return int(client.hget(Keys("imdb", "default").state, "done") or 0)


def main() -> None:
    """Crawl, and print what was seen."""
    pages, minutes = numbers(200_000, 60.0, least=(1_000, 0.1))
    with (
        tempfile.TemporaryDirectory() as name,
        ReplicaProcess(titles=pages, light=True) as replica,
        Services() as services,
    ):
        folder = Path(name)
        given = services.settings()
        settings = unhindered(CONCURRENT) | {"SITE_BUDGETS": "{}", "LOG_LEVEL": "INFO"}
        command = [*SCRAPY, "crawl", "imdb", "-a", f"file={write_ids(folder, pages)}", *options(settings)]
        client = services.redis.client
        samples: list[Sample] = []
        began, is_in_time = time.monotonic(), True
        with (folder / "log").open("w") as log:
            process = subprocess.Popen(
                command, env=environment(folder / "data", replica, **given), cwd=folder, stderr=log, stdout=log
            )
            while process.poll() is None:
                time.sleep(1)
                if is_in_time and time.monotonic() - began > minutes * 60:
                    is_in_time = False
                    process.send_signal(signal.SIGINT)
                try:
                    samples.append(sample(process.pid, pages_done(client)))
                except (FileNotFoundError, KeyError):
                    break  # it has just ended
            code = process.wait()
        seconds = time.monotonic() - began
        if code and is_in_time:
            sys.exit(f"exit code {code}:\n{(folder / 'log').read_text()[-3000:]}")
        ((stored,),) = execute(given["DATABASE_URL"], "SELECT count(*) FROM records")
        done = pages_done(client)
        print(f"{done:,} of {pages:,} pages in {seconds:,.0f} s; {stored:,} titles in Postgres")
        report(samples, done)
        held = client.info("memory")["used_memory_dataset"] / 1e6
        print(f"left in Redis: {client.dbsize()} keys, {held:.1f} MB")


def report(samples: list[Sample], pages: int) -> None:
    """Print the means of each tenth, and how the last one compares with the second."""
    memory, rows = [], []
    for tenth in range(TENTHS):
        within = [one for one in samples if pages * tenth <= one.pages * TENTHS < pages * (tenth + 1)] or samples[-1:]
        memory.append(statistics.mean(one.memory for one in within))
        files, threads = max(one.files for one in within), max(one.threads for one in within)
        rows.append((tenth + 1, f"{memory[-1]:.0f} MB", files, threads))
    table(("tenth", "memory", "files", "threads"), rows)
    print(f"last tenth to second: {memory[-1] / memory[1]:.2f} (at most 1.1)")


if __name__ == "__main__":
    main()
