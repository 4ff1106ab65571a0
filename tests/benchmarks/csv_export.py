"""What an export of the CSV files costs when all titles have changed, and when one has.

usage: python -m tests.benchmarks.csv_export [TITLES]

TITLES (20,000 unless given), with 15 credits each, are stored; then the files are made three times: with every line made anew, as every
export did once; after one title was stored again; and by a process that is told to end after one more was. The last two are given as ratios of the
first, in processor time and in time by the clock, which the disk has a part in.
"""

from __future__ import annotations

import sqlite3
import tempfile
import time
from contextlib import closing
from pathlib import Path

from moviecrawler.pipelines.csv import CsvStore
from moviecrawler.pipelines.csv_export import export
from tests.benchmarks.harness import numbers, seconds, table, write_movies
from tests.benchmarks.postgres_speed import make_movies


def timed(folder: Path) -> tuple[float, float]:
    """Export, and return the seconds of the processor and by the clock."""
    with closing(sqlite3.connect(folder / "movies.sqlite3", isolation_level=None)) as connection:
        processor, clock = time.process_time(), time.perf_counter()
        export(connection, folder, lambda: None)
        return time.process_time() - processor, time.perf_counter() - clock


def main() -> None:
    """Print the table."""
    (titles,) = numbers(20_000, least=(1,))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        store = CsvStore(folder)
        store.open()
        write_movies(store, make_movies("imdb", 1, titles))
        every = timed(folder)
        write_movies(store, make_movies("imdb", 1, 1, 1))
        one = timed(folder)
        write_movies(store, make_movies("imdb", 1, 1, 2))
        store.hurried = True
        (hurried,) = seconds(store.close)
        size = sum(path.stat().st_size for path in folder.glob("*.csv")) / 1e6
        print(
            f"{titles:,} titles, {size:,.0f} MB of CSV; movies.sqlite3 has {(folder / 'movies.sqlite3').stat().st_size / 1e6:,.0f} MB"
        )
        rows = (("all titles changed", every), ("one title changed", one))
        shown = [(label, f"{processor:.2f} s", f"{clock:.2f} s") for label, (processor, clock) in rows]
        ratio = ("ratio", f"{one[0] / every[0]:.3f}", f"{one[1] / every[1]:.3f}")
        table(("", "processor", "clock"), [*shown, ratio])
        print(f"a store that is told to end closes in {hurried:.2f} s")


if __name__ == "__main__":
    main()
