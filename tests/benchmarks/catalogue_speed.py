"""IMDb's datasets and the catalogue at full size: reading, import, claims and status.

usage: python -m tests.benchmarks.catalogue_speed [TITLES]

Time and memory are measured. The import, which is the command itself, runs in a process of its own,
whose processor time and peak of memory the operating system tells, as does the reading of all
datasets: those of the replica, of 2,000 titles. Claims are of 25 titles, of TITLES on each of three
sites.
"""

import gzip
import statistics
import tempfile
from contextlib import closing
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

from scrapy.settings import Settings

from moviecrawler.catalogue import claims
from moviecrawler.catalogue.figures import figures
from moviecrawler.catalogue.store import open_catalogue
from moviecrawler.clock import utc_now
from moviecrawler.replica.collection import Collection
from moviecrawler.replica.datasets import Dataset
from tests.benchmarks.harness import numbers, ours, run, seconds
from tests.services.postgres import PostgresServer, execute, new_database

BATCH = 25
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
from moviecrawler.datasets.titles import dataset_names, read_titles
folder = Path(sys.argv[1])
names = dataset_names("basics,ratings,crew,principals,names,akas,episode")
files = {name: folder / f"{name}.tsv.gz" for name in names}
with closing(Tables(files, folder)) as tables:
    tables.want_all(None)
    print(sum(len(movie.credits) for movie in read_titles(tables)))
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
            terms: Any = {"worker": "w", "lease": timedelta(hours=2), "now": utc_now()}
            for site in SITES:
                spans = seconds(partial(claims.claim, store, site, BATCH, **terms), 10)
                print(
                    f"claiming {BATCH} on {site}: {1e3 * statistics.median(spans):.1f} ms, "
                    f"{1e3 * max(spans):.1f} at most"
                )
            print(
                f"status: {statistics.median(seconds(lambda: figures(store, utc_now()), 3)):.2f} s"
            )


if __name__ == "__main__":
    main()
