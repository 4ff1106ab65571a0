"""What an export of the CSV files costs when all titles have changed, and when one has.

usage: python tests/benchmarks/csv_export.py [TITLES]

TITLES (20,000 unless given), with 15 credits each, are stored; then the files are made three times: with every line made anew, as every
export did once; after one title was stored again; and by a process that is told to end after one more was. The last two are given as ratios of the
first, in processor time and in time by the clock, which the disk has a part in.
"""

from __future__ import annotations

import sqlite3
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path

from moviecrawler.pipelines.csv import CsvStore
from moviecrawler.pipelines.csv_export import export
from moviecrawler.pipelines.store import Record
from tests.benchmarks.postgres_speed import make_movies
from tests.pipelines.runs import record_of

BATCH = 500


def records(count: int, scrape: int) -> list[Record]:
    """Return movies as the store takes them."""
    return [record_of(movie) for movie in make_movies("imdb", 1, count, scrape)]


def timed(folder: Path) -> tuple[float, float]:
    """Export, and return the seconds of the processor and by the clock."""
    with closing(sqlite3.connect(folder / "movies.sqlite3", isolation_level=None)) as connection:
        processor, clock = time.process_time(), time.perf_counter()
        export(connection, folder, lambda: None)
        return time.process_time() - processor, time.perf_counter() - clock


def close_seconds(folder: Path, scrape: int) -> float:
    """Store one title again, and return the seconds that a store takes to close which is told to hurry."""
    store = CsvStore(folder)
    store.open()
    store.write(records(1, scrape))
    store.hurried = True
    began = time.perf_counter()
    store.close()
    return time.perf_counter() - began


def main() -> None:
    """Print the table."""
    titles = int(sys.argv[1]) if len(sys.argv) > 1 else 20_000
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        store = CsvStore(folder)
        store.open()
        movies = records(titles, 0)
        for first in range(0, titles, BATCH):
            store.write(movies[first : first + BATCH])
        every = timed(folder)
        store.write(records(1, 1))
        one = timed(folder)
        store.close()
        hurried = close_seconds(folder, 2)
        size = sum(path.stat().st_size for path in folder.glob("*.csv")) / 1e6
        print(
            f"{titles:,} titles, {size:,.0f} MB of CSV; movies.sqlite3 has {(folder / 'movies.sqlite3').stat().st_size / 1e6:,.0f} MB"
        )
        print(f"{'':32}{'processor':>12}{'clock':>12}")
        print(f"{'all titles changed':32}{every[0]:11.2f}s{every[1]:11.2f}s")
        print(f"{'one title changed':32}{one[0]:11.2f}s{one[1]:11.2f}s")
        print(f"{'ratio':32}{one[0] / every[0]:12.3f}{one[1] / every[1]:12.3f}")
        print(f"a store that is told to end closes in {hurried:.2f} s")


if __name__ == "__main__":
    main()
