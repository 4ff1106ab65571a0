"""CPU time of a whole crawl per page, beside a bare Scrapy spider that fetches the same pages and reads nothing.

usage: python tests/benchmarks/crawl_speed.py [PAGES] [ROUNDS]

The replica serves IMDb title pages of realistic size in a process of its own. Each crawl runs in a process of its own too,
whose CPU time the operating system counts; start-up is taken out by crawling few and many pages and dividing the
difference. The two take turns, so that a machine whose speed drifts doesn't favour one.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from moviecrawler.replica.movies import Catalogue
from moviecrawler.replica.process import ReplicaProcess

FEW = 20
BARE_SPIDER = """
import scrapy, sys

class Bare(scrapy.Spider):
    name = "bare"
    async def start(self):
        for line in open(self.file):
            yield scrapy.Request(f"{self.home}/title/{line.strip()}/")
    def parse(self, response):
        pass
"""


def cpu_seconds(command: list[str], environment: dict[str, str]) -> float:
    """Return the CPU time of a command, user and system."""
    process = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE)
    assert process.stderr is not None
    errors = process.stderr.read().decode()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(f"{command} failed: {errors}")
    return usage.ru_utime + usage.ru_stime


def bare(folder: Path, ids: Path, home: str) -> float:
    spider = folder / "bare.py"
    spider.write_text(BARE_SPIDER)
    options = ["-a", f"file={ids}", "-a", f"home={home}", "-s", "LOG_LEVEL=WARNING"]
    # In a folder of its own, so that it runs with Scrapy's own settings.
    environment = {name: value for name, value in os.environ.items() if name != "SCRAPY_SETTINGS_MODULE"}
    command = [sys.executable, "-m", "scrapy", "runspider", str(spider), *options]
    return cpu_seconds(["env", "-C", str(folder), *command], environment)


def ours(folder: Path, ids: Path, home: str) -> float:
    environment = {
        **os.environ,
        "SCRAPY_SETTINGS_MODULE": "moviecrawler.settings",
        "IMDB_URL": home,
        "DATA_DIR": tempfile.mkdtemp(dir=folder),
        "LOG_LEVEL": "WARNING",
    }
    return cpu_seconds([sys.executable, "-m", "scrapy", "crawl", "imdb", "-a", f"file={ids}"], environment)


def main() -> None:
    many = int(sys.argv[1]) if len(sys.argv) > 1 else 420
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 5
    with tempfile.TemporaryDirectory() as name, ReplicaProcess(titles=many) as replica:
        folder = Path(name)
        titles = [Catalogue(1, many).movie(index).imdb_id for index in range(many)]
        (folder / "few").write_text("\n".join(titles[:FEW]))
        (folder / "many").write_text("\n".join(titles))
        home = replica.settings["IMDB_URL"]
        costs: dict[str, list[float]] = {"bare": [], "ours": []}
        for number in range(rounds):
            for label, crawl in (("bare", bare), ("ours", ours)):
                spent = crawl(folder, folder / "many", home) - crawl(folder, folder / "few", home)
                costs[label].append(spent / (many - FEW) * 1000)
            print(
                f"round {number + 1}: bare {costs['bare'][-1]:.2f} ms, ours {costs['ours'][-1]:.2f} ms a page",
                flush=True,
            )
    ratios = [ours_ / bare_ for ours_, bare_ in zip(costs["ours"], costs["bare"], strict=True)]
    print(f"\n{'':44} {'median':>10}")
    print(f"{'bare Scrapy, reads nothing':44} {statistics.median(costs['bare']):7.2f} ms")
    print(f"{'moviecrawler, to CSV':44} {statistics.median(costs['ours']):7.2f} ms")
    print(f"{'ratio, round by round':44} {statistics.median(ratios):7.2f}")


if __name__ == "__main__":
    main()
