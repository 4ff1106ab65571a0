"""Where a crawl's processor time goes, by part: transport, decompression, engine, reading, checking, stores, frontier, reporting.

usage: python -m tests.benchmarks.crawl_profile [PAGES] [--light] [--stores redis,postgres,mongo,s3] [--bare] [--functions N]

Crawls PAGES title pages (600 unless given) of realistic size, or of 10 kB with `--light`, into CSV files and the other stores named (all unless
given), `redis` being the shared frontier; or with a bare Scrapy spider that reads nothing. The crawling process looks every few milliseconds at
what its main thread does, and counts the processor time since the last look for the innermost function that belongs to a part. Each other
thread is counted as a whole, by its name. `--functions` also prints so many functions, by what they take themselves with what they call in C.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path
from types import FrameType

PARTS = {
    "moviecrawler.extract": "reading",
    "moviecrawler.spiders": "reading",
    "moviecrawler.items": "reading",
    "moviecrawler.middlewares.compression": "decompression",
    "moviecrawler.middlewares.archive": "stores",
    "moviecrawler.middlewares": "checking",
    "moviecrawler.proxies": "checking",
    "moviecrawler.pipelines.validate": "checking",
    "moviecrawler.pipelines.coverage": "checking",
    "moviecrawler.pipelines": "stores",
    "moviecrawler.database": "stores",
    "moviecrawler.catalogue.stored": "stores",
    "moviecrawler.extensions": "reporting",
    "moviecrawler.monitors": "reporting",
    "moviecrawler.frontier": "frontier",
    "moviecrawler.redis_client": "frontier",
    "redis": "frontier",
    "logging": "reporting",
    "scrapy.statscollectors": "reporting",
    "scrapy.logformatter": "reporting",
    "scrapy.core.downloader.handlers": "transport",
    "scrapy.downloadermiddlewares.httpcompression": "decompression",
    "scrapy.utils.gz": "decompression",
    "scrapy.utils._compression": "decompression",
    "twisted.internet.defer": "engine",
    "twisted.internet.asyncioreactor": "engine",
    "twisted": "transport",
    "selectors": "transport",
    "scrapy": "engine",
    "pydispatch": "engine",
    "asyncio": "engine",
}
"""Part by the longest beginning of a module's name; a module of which none is here belongs to the function that called it."""
INTERVAL = 0.002
"""Seconds of processor time between two looks; the kernel may make it 4 ms."""


class Profile:
    """The main thread's processor time by part and by function, from samples."""

    def __init__(self) -> None:
        self.parts: Counter[str] = Counter()
        self.functions: Counter[str] = Counter()
        self._part_of: dict[str, str | None] = {}
        self._before = time.thread_time()

    def sample(self, _: int, frame: FrameType | None) -> None:
        """Count the time since the last sample; a signal handler, which runs in the main thread."""
        now = time.thread_time()
        spent, self._before = now - self._before, now
        innermost = frame
        while frame is not None and (part := self._part(frame.f_globals.get("__name__", ""))) is None:
            frame = frame.f_back
        name = part if frame is not None else "other"
        self.parts[name or ""] += spent  # type: ignore[assignment]
        if innermost is not None:
            code = innermost.f_code
            self.functions[f"{name}: {innermost.f_globals.get('__name__')}.{code.co_qualname}"] += spent  # type: ignore[assignment]

    def _part(self, module: str) -> str | None:
        if module not in self._part_of:
            names = module.split(".")
            beginnings = (".".join(names[:count]) for count in range(len(names), 0, -1))
            self._part_of[module] = next((PARTS[name] for name in beginnings if name in PARTS), None)
        return self._part_of[module]


def inside(report: Path, arguments: list[str]) -> None:
    """Run Scrapy in this process with a profile of it, which goes into a file."""
    from scrapy.cmdline import execute  # noqa: PLC0415 - the profiled process alone needs it

    threads: Counter[str] = Counter()
    run = threading.Thread.run

    def run_counted(thread: threading.Thread) -> None:
        try:
            run(thread)
        finally:
            threads[f"thread {thread.name.rstrip('0123456789-_')}"] += time.thread_time()  # type: ignore[assignment]

    threading.Thread.run = run_counted  # type: ignore[method-assign, assignment]
    profile = Profile()
    signal.signal(signal.SIGPROF, profile.sample)
    signal.setitimer(signal.ITIMER_PROF, INTERVAL, INTERVAL)
    try:
        execute(["scrapy", *arguments])
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        figures = {"parts": profile.parts + threads, "functions": profile.functions}
        report.write_text(json.dumps(figures), encoding="utf-8")


def main() -> None:
    """Crawl few and many pages, and print the difference a page."""
    if sys.argv[1:2] == ["--inside"]:
        inside(Path(sys.argv[2]), sys.argv[3:])
        return
    from tests.benchmarks.stores_speed import FEW, Bench  # noqa: PLC0415 - the profiled process runs elsewhere, without these modules

    parser = argparse.ArgumentParser()
    parser.add_argument("pages", type=int, nargs="?", default=600)
    parser.add_argument("--light", action="store_true")
    parser.add_argument("--bare", action="store_true")
    parser.add_argument("--stores", default="redis,postgres,mongo,s3")
    parser.add_argument("--functions", type=int, default=0)
    given = parser.parse_args()
    if given.pages <= FEW:
        parser.error(f"PAGES is {given.pages}; give more than {FEW}, which are crawled beside them")
    with tempfile.TemporaryDirectory() as name, Bench(Path(name), given.pages, light=given.light) as bench:

        def profiled(pages: int) -> tuple[Counter[str], Counter[str]]:
            report = Path(name) / "report"
            command = bench.bare(pages) if given.bare else bench.ours(pages, frozenset(given.stores.split(",")))
            command.run([sys.executable, __file__, "--inside", str(report)])
            figures = json.loads(report.read_text())
            return Counter(figures["parts"]), Counter(figures["functions"])

        few, many = profiled(FEW), profiled(given.pages)
    for number, (before, after) in enumerate(zip(few, many, strict=True)):
        after.subtract(before)
        total = sum(after.values())
        for label, seconds in after.most_common(given.functions if number else None):
            milliseconds = seconds / (given.pages - FEW) * 1000
            if seconds / total > 0.001:
                print(f"{milliseconds:8.3f} ms {seconds / total:7.1%}  {label}")
        print(f"{total / (given.pages - FEW) * 1000:8.3f} ms          a page\n")


if __name__ == "__main__":
    main()
