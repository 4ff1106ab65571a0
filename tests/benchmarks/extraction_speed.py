"""How long reading an IMDb title page takes, beside the ways in which it is usually read.

usage: python -m tests.benchmarks.extraction_speed [PAGE...]

Reads the pages given, else those of ../shared/pages, else some of the replica's. Prints the median
CPU time of each way over all pages, and how many times longer it is than this project's, measured
in the same run. The baselines find and decode the page's script and read nothing from it.
"""

import json
import statistics
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from bs4 import BeautifulSoup
from parsel import Selector

from moviecrawler.replica.collection import Collection
from moviecrawler.replica.sources import render
from moviecrawler.sites.imdb import pages as imdb
from moviecrawler.sites.imdb.replica import title_page
from tests.benchmarks.harness import figure, table
from tests.shared import PAGES

ROUNDS = 7


def with_parsel(body: bytes) -> object:
    return json.loads(Selector(text=body.decode()).css("script#__NEXT_DATA__::text").get() or "")


def with_beautiful_soup(body: bytes, parser: str) -> object:
    script = BeautifulSoup(body, parser).find("script", id="__NEXT_DATA__")
    return json.loads(script.string or "") if script else None


WAYS: dict[str, Callable[[bytes], object]] = {
    "moviecrawler (whole item)": imdb.title,
    "parsel + json": with_parsel,
    "BeautifulSoup (html.parser) + json": partial(with_beautiful_soup, parser="html.parser"),
    "BeautifulSoup (lxml) + json": partial(with_beautiful_soup, parser="lxml"),
}


def cpu_milliseconds(way: Callable[[bytes], object], body: bytes) -> float:
    started = time.process_time()
    way(body)
    return (time.process_time() - started) * 1000


def main() -> None:
    files = [Path(name) for name in sys.argv[1:]] or sorted(
        (PAGES / "imdb" / "title").glob("*.html")
    )
    read = [file.read_bytes() for file in files] or [
        render("imdb", title_page(title, title.movies["imdb"]), light=False)
        for title in map(Collection(1, 12).title, range(12))
    ]
    bodies = [body for body in read if len(body) > 1_000_000 and b"__NEXT_DATA__" in body]
    if not bodies:
        sys.exit("none of these pages has more than 1 MB and its data in __NEXT_DATA__")
    sizes = [len(body) / 1e6 for body in bodies]
    print(
        f"{len(bodies)} pages of {min(sizes):.1f} to {max(sizes):.1f} MB, {ROUNDS} rounds, CPU time"
    )
    medians = {
        name: statistics.median(
            cpu_milliseconds(way, body) for _ in range(ROUNDS) for body in bodies
        )
        for name, way in WAYS.items()
    }
    ours = next(iter(medians.values()))
    rows = [(name, f"{median:.2f} ms", f"{median / ours:.1f}") for name, median in medians.items()]
    table(("", "median", "times ours"), rows)
    _, parsel, html_parser, lxml = medians.values()
    figure("the whole item, in ms", ours, at_most=1.5)
    figure("parsel and json alone, beside the whole item", parsel / ours, at_least=6)
    figure("BeautifulSoup with html.parser, beside it", html_parser / ours, at_least=50)
    figure("BeautifulSoup with lxml, beside it", lxml / ours, at_least=50)


if __name__ == "__main__":
    main()
