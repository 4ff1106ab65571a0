"""IMDb's datasets and the catalogue at full size: time and memory of reading, import and claims, beside plain ways of doing the same.

usage: python -m tests.benchmarks.catalogue_speed [TITLES]

The files are the replica's: of so many titles, and a series for each 50 of them. Each way of reading them, and the import, which is
the command itself, runs in a process of its own, whose processor time and peak of memory the operating system tells. Rows a second
are those of all files, so that the time for the real files (180,000,000 rows at the end of 2025) can be estimated. Claims are of 100
titles, of TITLES on each of three sites; the plain way reads all due titles in order and takes the first.
"""

from __future__ import annotations

import gzip
import statistics
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

from scrapy.settings import Settings

from moviecrawler.catalogue import claims
from moviecrawler.catalogue.store import open_catalogue, paused
from moviecrawler.clock import utc_now
from moviecrawler.database.connection import Database
from moviecrawler.replica.collection import Collection
from tests.benchmarks.harness import numbers, run, seconds, table, write_datasets
from tests.services.postgres import PostgresServer, execute, new_database

BATCH = 100
PLAIN_CLAIM = """
UPDATE title_sites SET claimed_until = now() + interval '2 hours'
WHERE site = 'metacritic' AND title_id IN (
    SELECT s.title_id FROM titles t JOIN title_sites s USING (title_id)
    WHERE s.site = 'metacritic' AND s.next_due <= now() AND (s.claimed_until IS NULL OR s.claimed_until <= now())
    ORDER BY s.last_success NULLS FIRST, t.popularity DESC LIMIT 100)
"""
PLAIN_IMPORT = """
import csv, gzip, sys
import psycopg2
connection = psycopg2.connect(sys.argv[3])
with gzip.open(sys.argv[2], "rt", newline="") as file:
    votes = {row["tconst"]: int(row["numVotes"]) for row in csv.DictReader(file, delimiter="\\t", quoting=csv.QUOTE_NONE)}
with gzip.open(sys.argv[1], "rt", newline="") as file, connection, connection.cursor() as cursor:
    for number, row in enumerate(csv.DictReader(file, delimiter="\\t", quoting=csv.QUOTE_NONE)):
        if number == int(sys.argv[4]):
            break
        cursor.execute("INSERT INTO titles (imdb_id, title, year, popularity) VALUES (%s, %s, %s, %s) RETURNING title_id",
                       (row["tconst"], row["primaryTitle"], int(row["startYear"]), votes.get(row["tconst"], 0) % 100))
        title_id = cursor.fetchone()[0]
        for site in ("imdb", "metacritic", "rottentomatoes"):
            cursor.execute("INSERT INTO title_sites (title_id, site) VALUES (%s, %s)", (title_id, site))
"""

OURS = """
import sys
from pathlib import Path
from moviecrawler.datasets.tables import Tables
from moviecrawler.datasets.titles import dataset_names, read_titles
folder = Path(sys.argv[1])
files = {name: folder / f"{name}.tsv.gz" for name in dataset_names("basics,ratings,crew,principals,names,akas,episode")}
with Tables(files, folder) as tables:
    tables.want([])
    tables.want_chart(CHART)
    print(sum(len(movie.credits) for movie in read_titles(tables)))
"""
OURS_SCORES = """
import sys
from pathlib import Path
from moviecrawler.datasets.tables import Tables
folder = Path(sys.argv[1])
files = {name: folder / f"{name}.tsv.gz" for name in ("title.basics", "title.ratings")}
with Tables(files, folder) as tables:
    print(sum(1 for row in tables.titles({"movie", "series"}, 0)))
"""
DICTIONARIES = """
import csv, gzip, json, sys
from collections import defaultdict
def rows(name):
    with gzip.open(f"{sys.argv[1]}/{name}.tsv.gz", "rt", newline="", encoding="utf-8") as file:
        yield from csv.DictReader(file, delimiter="\\t", quoting=csv.QUOTE_NONE)
names = {row["nconst"]: row["primaryName"] for row in rows("name.basics")}
ratings = {row["tconst"]: row for row in rows("title.ratings")}
crew = {row["tconst"]: row for row in rows("title.crew")}
people, akas = defaultdict(list), defaultdict(list)
for row in rows("title.principals"):
    people[row["tconst"]].append(row)
for row in rows("title.akas"):
    akas[row["titleId"]].append(row)
credits = 0
for row in rows("title.basics"):
    if row["titleType"] in {"movie", "tvSeries", "tvMovie", "tvMiniSeries"}:
        made = crew.get(row["tconst"], {"directors": "", "writers": ""})
        title = {**row, **ratings.get(row["tconst"], {}), "akas": akas[row["tconst"]]}
        title["credits"] = [names.get(who) for part in ("directors", "writers") for who in made[part].split(",") if who in names]
        title["credits"] += [(names.get(p["nconst"]), json.loads(p["characters"].replace("\\\\N", "[]"))) for p in people[row["tconst"]]
                             if p["category"] in {"actor", "actress", "self"}]
        credits += len(title["credits"])
print(credits)
"""
WAYS = {
    "ours, 250 titles, all credits": OURS.replace("CHART", "'top', 250"),
    "ours, all movies and series": OURS.replace("CHART", "'all', None"),
    "ours, titles and scores only": OURS_SCORES,
    "csv and dictionaries, all": DICTIONARIES,
}


def claim(database: Database, site: Any, worker: str = "w") -> list[int]:
    found = claims.claim(database, site, BATCH, worker=worker, lease=timedelta(hours=2), now=utc_now())
    return [each.title_id for each in found]


def read_datasets(folder: Path, titles: int) -> None:
    """Print what reading all datasets takes, beside the same with `csv` and dictionaries."""
    names = ("basics", "ratings", "crew", "principals", "akas", "episode")
    write_datasets(folder, Collection(1, titles, titles // 50), ["name.basics", *(f"title.{one}" for one in names)])
    lines = 0
    for path in folder.iterdir():
        with gzip.open(path) as file:
            lines += sum(1 for _ in file)
    size = sum(path.stat().st_size for path in folder.iterdir()) / 1e6
    print(f"{titles:,} titles, {lines:,} rows, {size:.0f} MB", flush=True)
    found = {way: run("-c", program, str(folder)) for way, program in WAYS.items()}
    base = found["csv and dictionaries, all"].cpu
    rows = [
        (
            *(way, spent.printed.strip(), f"{spent.cpu:.1f} s", f"{spent.peak:.0f} MB"),
            *(f"{spent.cpu / base:.2f}", f"{lines / spent.cpu:,.0f}"),
        )
        for way, spent in found.items()
    ]
    table(("", "printed", "processor", "peak", "time/csv", "rows/s"), rows)


def main() -> None:
    (titles,) = numbers(20_000, least=(2_000,))
    with tempfile.TemporaryDirectory() as folder, PostgresServer() as server:
        read_datasets(Path(folder), titles)
        url = new_database(server.url)
        command = ("-m", "scrapy", "catalogue", "import", "imdb", "--from", folder)
        variables = {"DATABASE_URL": url, "DATA_DIR": folder}
        first = run(*command, **variables)
        ((known,),) = execute(url, "SELECT count(*) FROM titles")
        print(f"import of {known:,} titles: {first.wall:.1f} s, {first.cpu:.1f} s of processor, {first.peak:.0f} MB")
        print(f"the same again, unchanged: {run(*command, **variables).wall:.1f} s")
        few = min(titles, 20_000)
        files = [str(Path(folder) / name) for name in ("title.basics.tsv.gz", "title.ratings.tsv.gz")]
        other = new_database(server.url)
        paused(open_catalogue(Settings({"DATABASE_URL": other})), "imdb", utc_now())  # makes the tables
        plain = run("-c", PLAIN_IMPORT, *files, other, str(few))
        print(
            f"row by row, {few:,} titles: {plain.wall:.1f} s, {plain.peak:.0f} MB;"
            f" a title takes {plain.wall / few / (first.wall / int(str(known))):.1f} times as long"
        )

        # As if all ids were known, and half of Metacritic's titles had been fetched.
        for site, prefix in (("metacritic", "movie/"), ("rottentomatoes", "m/")):
            execute(
                url,
                "UPDATE title_sites SET site_id = %s || title_id, id_source = 'joined' WHERE site = %s",
                prefix,
                site,
            )
        execute(
            url,
            "UPDATE title_sites SET last_success = now() - interval '91 days', state = 'ok', next_due = now()"
            " - (title_id %% 1000) * interval '1 hour' WHERE site = 'metacritic' AND title_id %% 2 = 0",
        )
        execute(url, "VACUUM ANALYZE title_sites")
        with closing(open_catalogue(Settings({"DATABASE_URL": url}))) as store:
            for site in ("imdb", "metacritic", "rottentomatoes"):
                taken = seconds(lambda site=site: claim(store, site), 10)  # type: ignore[misc]
                median = statistics.median(taken)
                print(f"claiming {BATCH} on {site}: {1e3 * median:.1f} ms (the slowest of 10: {1e3 * max(taken):.1f})")
        plain_median = statistics.median(seconds(lambda: execute(url, PLAIN_CLAIM), 3))
        print(f"the plain way: {1e3 * plain_median:.0f} ms, {plain_median / median:.0f} times as long")

        def work(number: int) -> list[int]:
            with closing(open_catalogue(Settings({"DATABASE_URL": url}))) as own:
                return [title for _ in range(20) for title in claim(own, "rottentomatoes", f"w{number}")]

        started = time.perf_counter()
        with ThreadPoolExecutor(8) as pool:
            got = [title for each in pool.map(work, range(8)) for title in each]
        took = time.perf_counter() - started
        print(f"8 claimers at once: {len(got):,} titles in {took:.1f} s, {len(got) - len(set(got))} of them twice")


if __name__ == "__main__":
    main()
