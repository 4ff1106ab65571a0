"""Time and memory of reading IMDb's datasets, beside the same with `csv` and dictionaries.

usage: python -m tests.benchmarks.datasets_speed [TITLES]

The files are the replica's: of so many titles (20,000), and a series for each 50 of them, with four seasons of ten episodes.
Each way runs in a process of its own; the operating system tells its processor time and its peak. Rows a second are those of all
files, so that the time for the real files (180,000,000 rows at the end of 2025) can be estimated. Last comes the whole way into
Postgres, `scrapy crawl imdb -a via=datasets -a list=all`: the crawl's processor time, the server's, and what that takes to COPY the same
rows into the same tables, which no store can be faster than.
"""

from __future__ import annotations

import gzip
import os
import tempfile
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg2

from moviecrawler.database.schema import update_schema
from moviecrawler.replica.collection import Collection
from tests.benchmarks.harness import numbers, run, table, write_datasets
from tests.datasets.served import serving
from tests.services.postgres import PostgresServer, execute, new_database

if TYPE_CHECKING:
    from collections.abc import Callable

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
TABLES = ("people", "genres", "titles", "records", "title_sites", "credits", "record_genres", "scores", "score_history")
"""That a dataset's movies have rows in; none refers to a later one."""
COLUMNS = """
SELECT string_agg(quote_ident(attname), ',' ORDER BY attnum) FROM pg_attribute
WHERE attrelid = %s::regclass AND attnum > 0 AND NOT attisdropped AND attgenerated = ''
"""
WAYS = {
    "ours, 250 titles, all credits": OURS.replace("CHART", "'top', 250"),
    "ours, all movies and series": OURS.replace("CHART", "'all', None"),
    "ours, titles and scores only": OURS_SCORES,
    "csv and dictionaries, all": DICTIONARIES,
}


def into_postgres(folder: Path) -> None:
    """Crawl all movies and series into a Postgres server; print what that took of both, and what COPY of the same rows takes."""
    with PostgresServer() as server, serving(folder) as url, tempfile.TemporaryDirectory() as data:
        stored, copied = new_database(server.url), new_database(server.url)
        settings = {"DATABASE_URL": stored, "IMDB_DATASETS_URL": url, "DATA_DIR": data, "CSV_ENABLED": "0"}
        postmaster = int((server.folder / "postmaster.pid").read_text().split()[0])
        before = _server_seconds(postmaster)
        spent = run("-m", "scrapy", "crawl", "imdb", "-a", "via=datasets", "-a", "list=all", **settings)
        by_crawl = _server_seconds(postmaster) - before
        by_copy = copy_rows(stored, copied, lambda: _server_seconds(postmaster))
        counted = execute(copied, "SELECT (SELECT count(*) FROM records), (SELECT count(*) FROM credits)")
        titles, made = (int(str(number)) for number in counted[0])
    rows = [
        ("the crawl", f"{spent.cpu:.1f} s", f"{spent.peak:.0f} MB", f"{titles / spent.cpu:,.0f}"),
        ("the server", f"{by_crawl:.1f} s", "", f"{titles / by_crawl:,.0f}"),
        ("the server, of COPY", f"{by_copy:.1f} s", "", f"{titles / by_copy:,.0f}"),
    ]
    print()
    table(("into Postgres", "processor", "peak", "titles/s"), rows)
    print(f"{titles:,} titles with {made:,} credits in {spent.wall:.1f} s, of which other programs had a part")


def copy_rows(source: str, target: str, server_seconds: Callable[[], float]) -> float:
    """Copy the rows of a database into the same tables of another, with all indexes and foreign keys; return the server's seconds.

    No store can be faster than that.
    """
    took = 0.0
    with closing(psycopg2.connect(source)) as one, closing(psycopg2.connect(target)) as other:
        update_schema(other)
        with one.cursor() as reading, other, other.cursor() as writing:
            for name in TABLES:
                reading.execute(COLUMNS, (name,))
                ((columns,),) = reading.fetchall()
                writing.execute(f"TRUNCATE {name} CASCADE; ALTER TABLE {name} DISABLE TRIGGER USER")
                with tempfile.TemporaryFile() as rows:
                    reading.copy_expert(f"COPY {name} ({columns}) TO STDOUT", rows)
                    rows.seek(0)
                    began = server_seconds()
                    writing.copy_expert(f"COPY {name} ({columns}) FROM STDIN", rows)
                    took += server_seconds() - began
    return took


def _server_seconds(postmaster: int) -> float:
    """Return the processor time of a Postgres server and of all its processes by now, in seconds."""
    ticks = 0
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(FileNotFoundError, ProcessLookupError):
            parts = path.read_text().rpartition(")")[2].split()
            if int(path.parent.name) == postmaster:  # with those of its processes that have ended
                ticks += sum(map(int, parts[11:15]))
            elif int(parts[1]) == postmaster:
                ticks += sum(map(int, parts[11:13]))
    return ticks / os.sysconf("SC_CLK_TCK")


def main() -> None:
    (titles,) = numbers(20_000, least=(2_000,))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        names = ("basics", "ratings", "crew", "principals", "akas", "episode")
        write_datasets(folder, Collection(1, titles, titles // 50), ["name.basics", *(f"title.{one}" for one in names)])
        lines = 0
        for path in folder.iterdir():
            with gzip.open(path) as file:
                lines += sum(1 for _ in file)
        size = sum(path.stat().st_size for path in folder.iterdir()) / 1e6
        print(f"{titles:,} titles, {lines:,} rows, {size:.0f} MB", flush=True)
        found = {way: run("-c", program, name) for way, program in WAYS.items()}
        base = found["csv and dictionaries, all"].cpu
        rows = [
            (
                *(way, spent.printed.strip(), f"{spent.cpu:.1f} s", f"{spent.peak:.0f} MB"),
                *(f"{spent.cpu / base:.2f}", f"{lines / spent.cpu:,.0f}"),
            )
            for way, spent in found.items()
        ]
        table(("", "printed", "processor", "peak", "time/csv", "rows/s"), rows)
        into_postgres(folder)


if __name__ == "__main__":
    main()
