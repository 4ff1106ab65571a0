"""Time and memory of joining IMDb's title.basics and title.ratings, beside doing it with dictionaries of rows.

usage: python tests/benchmarks/datasets_speed.py [TITLES]

The replica makes the two files. Each way runs in a process of its own; the operating system tells its time and its peak.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from moviecrawler.replica.datasets import Dataset
from moviecrawler.replica.movies import Catalogue

OURS = """
import sys
from moviecrawler.extract.datasets import gunzip, movies
with open(sys.argv[1], "rb") as basics, open(sys.argv[2], "rb") as ratings:
    print(sum(1 for movie in movies(gunzip(basics), gunzip(ratings))))
"""
TOP = """
import sys
from moviecrawler.extract.datasets import gunzip, top_250
with open(sys.argv[1], "rb") as basics, open(sys.argv[2], "rb") as ratings:
    print(len(top_250(gunzip(basics), gunzip(ratings))))
"""
DICTIONARIES = """
import csv, gzip, sys
with gzip.open(sys.argv[2], "rt", newline="") as file:
    ratings = {row["tconst"]: row for row in csv.DictReader(file, delimiter="\\t", quoting=csv.QUOTE_NONE)}
with gzip.open(sys.argv[1], "rt", newline="") as file:
    titles = [{**row, **ratings.get(row["tconst"], {})} for row in csv.DictReader(file, delimiter="\\t", quoting=csv.QUOTE_NONE)]
print(len(titles))
"""


def measure(program: str, *files: Path) -> tuple[int, float, float]:
    """Return what a program printed, its wall time in seconds and its peak memory in MB."""
    started = time.monotonic()
    process = subprocess.Popen([sys.executable, "-c", program, *map(str, files)], stdout=subprocess.PIPE)
    assert process.stdout is not None
    printed = int(process.stdout.read())
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return printed, time.monotonic() - started, usage.ru_maxrss / 1024


def main() -> None:
    titles = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    with tempfile.TemporaryDirectory() as folder:
        files = []
        for name in ("title.basics.tsv.gz", "title.ratings.tsv.gz"):
            dataset = Dataset(Catalogue(1, titles), name)
            path = Path(folder) / name
            with path.open("wb") as file:
                file.writelines(dataset.read(0, dataset.size))
            files.append(path)
            print(f"{path.name}: {path.stat().st_size / 1e6:.1f} MB", flush=True)
        ways = {
            "moviecrawler, all titles": OURS,
            "moviecrawler, Top 250": TOP,
            "csv.DictReader, in memory": DICTIONARIES,
        }
        print(f"\n{'':28} {'rows':>10} {'time':>9} {'peak':>10} {'time/ours':>10}")
        first = 0.0
        for way, program in ways.items():
            rows, seconds, peak = measure(program, *files)
            first = first or seconds
            print(f"{way:28} {rows:10,} {seconds:7.1f} s {peak:7.0f} MB {seconds / first:10.2f}", flush=True)


if __name__ == "__main__":
    main()
