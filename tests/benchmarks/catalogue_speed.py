"""IMDb's datasets and the catalogue at full size: time and memory of reading, import, claims and status.

usage: python -m tests.benchmarks.catalogue_speed [TITLES]

The import, which is the command itself, runs in a process of its own, whose processor time and peak of memory the operating system
tells, as does the reading of all datasets: those of the replica, of 2,000 titles. Claims are of 25 titles, of TITLES on
each of three sites.
"""

from __future__ import annotations

import gzip
import statistics
import tempfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

from scrapy.settings import Settings

from moviecrawler.catalogue import claims
from moviecrawler.catalogue.figures import figures
from moviecrawler.catalogue.store import open_catalogue
from moviecrawler.clock import utc_now
from moviecrawler.replica.collection import Collection
from tests.benchmarks.harness import numbers, run, seconds, write_datasets
from tests.services.postgres import PostgresServer, execute, new_database

BATCH = 25
SITES: Any = ("imdb", "metacritic", "rottentomatoes")
OURS = """
import sys
from contextlib import closing
from pathlib import Path
from moviecrawler.datasets.tables import Tables
from moviecrawler.datasets.titles import dataset_names, read_titles
folder = Path(sys.argv[1])
files = {name: folder / f"{name}.tsv.gz" for name in dataset_names("basics,ratings,crew,principals,names,akas,episode")}
with closing(Tables(files, folder)) as tables:
    tables.want_chart("all", None)
    print(sum(len(movie.credits) for movie in read_titles(tables)))
"""


def read_datasets(folder: Path, titles: int) -> None:
    """Print what reading all datasets of the replica takes."""
    names = ("basics", "ratings", "crew", "principals", "akas", "episode")
    write_datasets(folder, Collection(1, titles, titles // 50), ["name.basics", *(f"title.{one}" for one in names)])
    spent = run("-c", OURS, str(folder))
    print(
        f"reading {titles:,} titles with {int(spent.printed):,} credits: {spent.cpu:.1f} s of processor, {spent.peak:.0f} MB"
    )


def write_titles(folder: Path, titles: int) -> None:
    """Write invented films for the import."""
    header = b"tconst\ttitleType\tprimaryTitle\toriginalTitle\tisAdult\tstartYear\tendYear\truntimeMinutes\tgenres\n"
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


def make_due(url: str) -> None:
    """Have all ids be known, and half of Metacritic's titles be fetched."""
    for site, prefix in (("metacritic", "movie/"), ("rottentomatoes", "m/")):
        execute(
            url, "UPDATE title_sites SET site_id = %s || title_id, id_source = 'joined' WHERE site = %s", prefix, site
        )
    execute(
        url,
        "UPDATE title_sites SET last_success = now() - interval '91 days', state = 'ok', next_due = now()"
        " - (title_id %% 1000) * interval '1 hour' WHERE site = 'metacritic' AND title_id %% 2 = 0",
    )
    execute(url, "VACUUM ANALYZE title_sites")


def main() -> None:
    (titles,) = numbers(20_000, least=(1_000,))
    with tempfile.TemporaryDirectory() as folder, PostgresServer() as server:
        read_datasets(Path(folder), 2_000)
        write_titles(Path(folder), titles)
        url = new_database(server.url)
        command = ("-m", "scrapy", "catalogue", "import", "imdb", "--from", folder)
        for what, more in (("import", ()), ("unchanged", ()), ("another selection", ("--min-votes", "1"))):
            spent = run(*command, *more, DATABASE_URL=url, DATA_DIR=folder)
            print(
                f"{what}: {spent.wall:.1f} s, {spent.cpu:.1f} s of processor, {spent.peak:.0f} MB; {spent.printed.splitlines()[0]}"
            )
        make_due(url)

        def claim(site: Any, worker: str = "w", times: int = 1) -> list[int]:
            terms: Any = {"worker": worker, "lease": timedelta(hours=2), "now": utc_now()}
            with closing(open_catalogue(Settings({"DATABASE_URL": url}))) as own:
                found = [each for _ in range(times) for each in claims.claim(own, site, BATCH, **terms)]
            return [each.title_id for each in found]

        with closing(open_catalogue(Settings({"DATABASE_URL": url}))) as store:
            for site in SITES:
                terms: Any = {"worker": "w", "lease": timedelta(hours=2), "now": utc_now()}
                taken = seconds(lambda site=site, terms=terms: claims.claim(store, site, BATCH, **terms), 10)  # type: ignore[misc]
                print(
                    f"claiming {BATCH} on {site}: {1e3 * statistics.median(taken):.1f} ms, {1e3 * max(taken):.1f} at most"
                )
            print(f"status: {statistics.median(seconds(lambda: figures(store, utc_now()), 3)):.2f} s")
        with ThreadPoolExecutor(8) as pool:
            got = [
                title for each in pool.map(lambda n: claim("rottentomatoes", f"w{n}", 20), range(8)) for title in each
            ]
        print(f"8 claimers at once: {len(got):,} titles, {len(got) - len(set(got))} of them twice")


if __name__ == "__main__":
    main()
