"""IMDb's datasets and the catalogue at full size: reading, import, what is due, and status.

usage: python -m tests.benchmarks.catalogue_speed [TITLES]

Time and memory are measured. The import, which is the command itself, runs in a process of its own,
whose processor time and peak of memory the operating system tells, as does the reading of all
datasets: those of the replica, of 2,000 titles. A batch of what is due has 32 titles, of TITLES on
each of three sites, while 64 others are open. The program fails when feeding one takes longer than
0.1 s, or more memory the more of them were fed.
"""

import gzip
import statistics
import tempfile
import time
import tracemalloc
from contextlib import closing
from pathlib import Path
from typing import Any

from scrapy.settings import Settings

from moviecrawler.basics.clock import utc_now
from moviecrawler.catalogue.due import select_due
from moviecrawler.catalogue.figures import figures
from moviecrawler.catalogue.store import open_catalogue
from moviecrawler.database.connection import Database
from moviecrawler.replica.collection import Collection
from moviecrawler.replica.datasets import Dataset
from tests.benchmarks.harness import figure, numbers, ours, run, seconds
from tests.services.postgres import PostgresServer, execute, new_database

BATCH = 32
OPEN = 64
LONGEST = 0.1
"""Seconds."""
MOST_GROWTH = 1_000_000
"""Bytes."""
SITES: Any = ("imdb", "metacritic", "rottentomatoes")
HALF_FETCHED = """
UPDATE title_sites
SET last_success = now() - interval '91 days', state = 'ok',
    next_due = now() - (title_id %% 1000) * interval '1 hour'
WHERE site = 'metacritic' AND title_id %% 2 = 0
"""
READ = """
import sys
from contextlib import closing
from pathlib import Path
from moviecrawler.datasets.tables import Tables
from moviecrawler.datasets.titles import dataset_names
from tests.dataset_files import movies_of
folder = Path(sys.argv[1])
names = dataset_names("basics,ratings,crew,principals,names,akas,episode")
files = {name: folder / f"{name}.tsv.gz" for name in names}
with closing(Tables(files, folder)) as tables:
    tables.want_all(None)
    print(sum(len(movie.credits) for movie in movies_of(tables)))
"""


def read_datasets(folder: Path, titles: int) -> None:
    """Print what reading all datasets of the replica takes."""
    collection = Collection(1, titles, titles // 50)
    for name in ("basics", "ratings", "crew", "principals", "akas", "episode"):
        Dataset(collection, folder, f"title.{name}.tsv.gz").write()
    Dataset(collection, folder, "name.basics.tsv.gz").write()
    spent = run(ours("-c", READ, str(folder)))
    print(
        f"reading {titles:,} titles with {int(spent.printed):,} credits: "
        f"{spent.cpu:.1f} s of processor, {spent.peak:.0f} MB"
    )


def write_titles(folder: Path, titles: int) -> None:
    """Write invented films for the import."""
    header = (
        b"tconst\ttitleType\tprimaryTitle\toriginalTitle\tisAdult\tstartYear\tendYear"
        b"\truntimeMinutes\tgenres\n"
    )
    row = b"tt%07d\tmovie\tThe Lamp of %d\tLys %d\t0\t%d\t\\N\t%d\tDrama\n"
    with (
        gzip.open(folder / "title.basics.tsv.gz", "wb", 1) as basics,
        gzip.open(folder / "title.ratings.tsv.gz", "wb", 1) as ratings,
    ):
        basics.write(header)
        ratings.write(b"tconst\taverageRating\tnumVotes\n")
        for n in range(1, titles + 1):
            basics.write(row % (n, n, n, 1900 + n % 125, 60 + n % 90))
            if n % 4 == 0:
                ratings.write(b"tt%07d\t7.%d\t%d\n" % (n, n % 10, 5 + 3_000_000 // n))


def feed_batches(store: Database, site: Any) -> None:
    """Feed a hundred batches, one after the other, and print how long each takes."""
    tracemalloc.start()
    spans = []
    peaks = []
    open_titles: list[int] = []
    for _ in range(100):
        tracemalloc.reset_peak()
        began = time.perf_counter()
        found = select_due(store, site, BATCH, open_titles=open_titles[-OPEN:], now=utc_now())
        spans.append(time.perf_counter() - began)
        peaks.append(tracemalloc.get_traced_memory()[1])
        open_titles = [*open_titles[-OPEN:], *(each.title_id for each in found)]
        assert len(found) == BATCH
    tracemalloc.stop()
    print(f"a batch of {BATCH} on {site}: {1e3 * max(spans):.1f} ms at most")
    growth = max(peaks[50:]) - max(peaks[:50])
    figure(f"a batch of {BATCH} on {site}, in s", statistics.median(spans), at_most=LONGEST)
    figure("memory that later batches take more, in bytes", growth, at_most=MOST_GROWTH)


def main() -> None:
    (titles,) = numbers(20_000, least=(1_000,))
    with tempfile.TemporaryDirectory() as folder, PostgresServer() as server:
        read_datasets(Path(folder), 2_000)
        write_titles(Path(folder), titles)
        url = new_database(server.url)
        command = ("-m", "scrapy", "catalogue", "import", "imdb", "--from", folder)
        for what, more in (
            ("import", ()),
            ("unchanged", ()),
            ("another selection", ("--min-votes", "1")),
        ):
            spent = run(ours(*command, *more, DATABASE_URL=url, DATA_DIR=folder))
            print(
                f"{what}: {spent.wall:.1f} s, {spent.cpu:.1f} s of processor, "
                f"{spent.peak:.0f} MB; {spent.printed.splitlines()[0]}"
            )
        execute(
            url,
            "UPDATE title_sites SET site_id = 'movie/' || title_id, id_source = 'joined' "
            "WHERE site <> 'imdb'",
        )
        execute(url, HALF_FETCHED)
        execute(url, "VACUUM ANALYZE title_sites")
        with closing(open_catalogue(Settings({"DATABASE_URL": url}))) as store:
            for site in SITES:
                feed_batches(store, site)
            print(
                f"status: {statistics.median(seconds(lambda: figures(store, utc_now()), 3)):.2f} s"
            )


if __name__ == "__main__":
    main()
