"""Processor time of a command from its start to its end, beside Scrapy's own.

usage: python -m tests.benchmarks.start_speed [ROUNDS] [--instructions]

Prints two ratios, from the medians of runs that take turns. A crawl of one title into CSV files is
compared with `scrapy runspider` of a five-line spider that fetches the same page. The help of a
command is compared with `scrapy version` in a folder without a project. The modules must be
compiled: run it once before, and without PYTHONDONTWRITEBYTECODE.
"""

import statistics
import tempfile
from pathlib import Path

from moviecrawler.replica.collection import Collection
from moviecrawler.replica.process import ReplicaProcess
from tests.benchmarks.harness import PROCESSOR, bare, figure, numbers, ours, run

FIVE_LINES = """
import scrapy
class Five(scrapy.Spider):
    name, start_urls = "five", ["{url}"]
    def parse(self, response):
        yield {{"title": response.css("title::text").get()}}
"""


def main() -> None:
    (rounds,) = numbers(7, least=(1,))
    with tempfile.TemporaryDirectory() as name, ReplicaProcess(titles=10) as replica:
        folder = Path(name)
        first = Collection(1, 10).imdb_ids[0]
        url = f"{replica.settings['IMDB_URL']}/title/{first}/"
        (folder / "five.py").write_text(FIVE_LINES.format(url=url), encoding="utf-8")
        variables = {**replica.settings, "DATA_DIR": str(folder / "data")}
        ways = {
            "scrapy runspider five.py": bare("runspider", "five.py", folder=folder),
            "scrapy crawl imdb -a ids=…": ours(
                "-m",
                "scrapy",
                "crawl",
                "imdb",
                "-a",
                f"ids={first}",
                folder=folder,
                **variables,
            ),
            "scrapy version": bare("version", folder=folder),
            "scrapy progress --help": ours(
                "-m", "scrapy", "progress", "--help", folder=folder, **variables
            ),
        }
        taken: dict[str, list[float]] = {way: [] for way in ways}
        for _ in range(rounds):
            for way, command in ways.items():
                taken[way].append(run(command).cpu)
    medians = {way: statistics.median(values) for way, values in taken.items()}
    for way, values in taken.items():
        print(f"{way:28} {medians[way]:.2f} {PROCESSOR} ({min(values):.2f} to {max(values):.2f})")
    crawl = medians["scrapy crawl imdb -a ids=…"] / medians["scrapy runspider five.py"]
    figure("a crawl of one title, beside a bare spider", crawl, at_most=1.5)
    help_ = medians["scrapy progress --help"] / medians["scrapy version"]
    figure("the help of a command, beside scrapy version", help_, at_most=1.2)


if __name__ == "__main__":
    main()
