"""Time and memory of reading IMDb's datasets, beside the same with `csv` and dictionaries, and other ways of joining them.

usage: python tests/benchmarks/datasets_speed.py [TITLES]

The files are made for this: of so many titles (100,000), with eight people and five other titles each, as the real ones have on
average. Each way runs in a process of its own; the operating system tells its processor time and its peak. Rows a second are those of
all files, so that the time for the real files (180,000,000 rows at the end of 2025) can be estimated. Last comes the whole way into
Postgres, `scrapy crawl imdb -a via=datasets -a list=all`: the crawl's processor time, and the server's.
"""

from __future__ import annotations

import gzip
import os
import random
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from multiprocessing import get_context
from pathlib import Path

from tests.datasets.served import serving
from tests.services.postgres import PostgresServer, execute

BEGIN = """
import sys
from pathlib import Path
from moviecrawler.datasets.joining import dataset_names, read_chart, read_titles
from moviecrawler.extract.datasets import Damage
folder = Path(sys.argv[1])
words = "basics,ratings,crew,principals,names,akas,episode"
files = {name: folder / f"{name}.tsv.gz" for name in dataset_names(words)}
"""
OURS_250 = (
    BEGIN
    + """
ids, _ = read_chart(files, "top", 250, Damage())
print(sum(len(movie.credits) for movie in read_titles(files, ids, Damage())))
"""
)
OURS_ALL = (
    BEGIN
    + """
ids, _ = read_chart(files, "all", None, Damage())
print(sum(len(movie.credits) for movie in read_titles(files, ids, Damage())))
"""
)
OURS_SCORES = """
import sys
from moviecrawler.extract.datasets import gunzip, movies
with open(f"{sys.argv[1]}/title.basics.tsv.gz", "rb") as basics, open(f"{sys.argv[1]}/title.ratings.tsv.gz", "rb") as ratings:
    print(sum(1 for movie in movies(gunzip(basics), gunzip(ratings))))
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
        made = crew[row["tconst"]]
        title = {**row, **ratings.get(row["tconst"], {}), "akas": akas[row["tconst"]]}
        title["credits"] = [names.get(who) for part in ("directors", "writers") for who in made[part].split(",") if who != "\\\\N"]
        title["credits"] += [(names.get(p["nconst"]), json.loads(p["characters"])) for p in people[row["tconst"]]
                             if p["category"] in {"actor", "actress", "self"}]
        credits += len(title["credits"])
print(credits)
"""
POLARS = """
import sys
import polars as pl
def table(name):
    return pl.scan_csv(f"{sys.argv[1]}/{name}.tsv.gz", separator="\\t", quote_char=None, null_values="\\\\N", infer_schema=False)
wanted = table("title.basics").filter(pl.col("titleType").is_in(["movie", "tvSeries", "tvMovie", "tvMiniSeries"])).select("tconst")
names = table("name.basics").select("nconst", "primaryName")
cast = table("title.principals").filter(pl.col("category").is_in(["actor", "actress", "self"])).select("tconst", "nconst")
crew = pl.concat([table("title.crew").select("tconst", pl.col(part).str.split(",").alias("nconst")).explode("nconst").drop_nulls()
                  for part in ("directors", "writers")])
found = pl.concat([cast, crew]).join(wanted, on="tconst", how="semi").join(names, on="nconst", how="left")
akas = table("title.akas").join(wanted, left_on="titleId", right_on="tconst", how="semi").select(pl.len()).collect()
print(found.select(pl.len()).collect().item())
"""


def make_files(folder: Path, titles: int) -> int:
    """Make the seven files, and return how many rows they have."""
    luck = random.Random(1)  # noqa: S311 - the same files each time
    people = [f"nm{number:07}" for number in range(titles)]
    kinds = (
        "movie",
        "tvEpisode",
        "tvEpisode",
        "tvEpisode",
        "short",
        "tvSeries",
        "video",
        "tvEpisode",
        "tvEpisode",
        "tvEpisode",
    )
    lines: dict[str, list[str]] = {
        "title.basics": ["tconst|titleType|primaryTitle|originalTitle|isAdult|startYear|endYear|runtimeMinutes|genres"],
        "title.ratings": ["tconst|averageRating|numVotes"],
        "title.crew": ["tconst|directors|writers"],
        "title.principals": ["tconst|ordering|nconst|category|job|characters"],
        "title.akas": ["titleId|ordering|title|region|language|types|attributes|isOriginalTitle"],
        "title.episode": ["tconst|parentTconst|seasonNumber|episodeNumber"],
        "name.basics": ["nconst|primaryName|birthYear|deathYear|primaryProfession|knownForTitles"],
    }
    for number in range(titles):
        site_id, kind = f"tt{number:07}", kinds[number % 10]
        lines["title.basics"].append(
            rf"{site_id}|{kind}|Title {number}|Title {number}|0|{1950 + number % 70}|\N|90|Drama"
        )
        if number % 7 == 0:
            lines["title.ratings"].append(f"{site_id}|{luck.randint(10, 99) / 10}|{luck.randint(5, 900_000)}")
        cast = luck.sample(people, 8)
        lines["title.crew"].append(f"{site_id}|{cast[6]}|{cast[7]}")
        lines["title.principals"] += [
            rf'{site_id}|{place}|{who}|{("actor", "actress")[place % 2]}|\N|["Character {place}"]'
            for place, who in enumerate(cast[:6], 1)
        ]
        lines["title.principals"] += [rf"{site_id}|7|{cast[6]}|director|\N|\N", rf"{site_id}|8|{cast[7]}|writer|\N|\N"]
        lines["title.akas"] += [
            rf"{site_id}|{place}|Titel {number}|{place:02}|\N|imdbDisplay|\N|0" for place in range(1, 6)
        ]
        if kind == "tvEpisode":
            lines["title.episode"].append(f"{site_id}|tt{number // 10 * 10 + 5:07}|1|{number % 10}")
    lines["name.basics"] += [rf"{who}|Name of {who}|1960|\N|actor|\N" for who in people]
    for name, rows in lines.items():
        text = "".join(f"{row}\n" for row in rows).replace("|", "\t")
        (folder / f"{name}.tsv.gz").write_bytes(gzip.compress(text.encode(), 6))
    return sum(map(len, lines.values()))


def measure(program: str, folder: Path) -> tuple[str, float, float]:
    """Return what a program printed last, its processor time in seconds and its peak memory in MB."""
    process = subprocess.Popen(
        [sys.executable, "-c", program, str(folder)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    assert process.stdout is not None
    printed = process.stdout.read().decode().strip().rpartition("\n")[2]
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return printed or "not installed", usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def into_postgres(folder: Path, base: float) -> None:
    """Crawl all movies and series into a Postgres server, and print what that took of the crawl and of the server."""
    with PostgresServer() as server, serving(folder) as url, tempfile.TemporaryDirectory() as data:
        settings = {"DATABASE_URL": server.url, "IMDB_DATASETS_URL": url, "DATA_DIR": data, "CSV_ENABLED": "0"}
        command = [sys.executable, "-m", "scrapy", "crawl", "imdb", "-a", "via=datasets", "-a", "list=all"]
        postmaster = int((server.folder / "postmaster.pid").read_text().split()[0])
        before, began = _server_seconds(postmaster), time.perf_counter()
        process = subprocess.Popen(
            command,
            env={**os.environ, **settings, "SCRAPY_SETTINGS_MODULE": "moviecrawler.settings"},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        took = time.perf_counter() - began
        titles = int(str(execute(server.url, "SELECT count(*) FROM records")[0][0]))
        ((made,),) = execute(server.url, "SELECT count(*) FROM credits")
        both = {
            "into Postgres, the crawl": (usage.ru_utime + usage.ru_stime, f"{usage.ru_maxrss / 1024:6.0f} MB"),
            "into Postgres, the server": (_server_seconds(postmaster) - before, "         "),
        }
    for way, (seconds, peak) in both.items():
        print(f"{way:30} {made:>10} {seconds:8.1f} s {peak} {seconds / base:9.2f} {titles / seconds:6,.0f} titles/s")
    print(f"{titles:,} titles in {took:.1f} s, of which other programs had a part")


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
    titles = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        # In a process of its own, as the peak of whoever starts others counts as theirs.
        with ProcessPoolExecutor(1, get_context("spawn")) as pool:
            rows = pool.submit(make_files, folder, titles).result()
        print(
            f"{titles:,} titles, {rows:,} rows, {sum(p.stat().st_size for p in folder.iterdir()) / 1e6:.0f} MB",
            flush=True,
        )
        ways = {
            "ours, 250 titles, all credits": OURS_250,
            "ours, all movies and series": OURS_ALL,
            "ours, titles and scores only": OURS_SCORES,
            "csv and dictionaries, all": DICTIONARIES,
            "polars, credits alone": POLARS,
        }
        print(f"\n{'':30} {'printed':>10} {'processor':>10} {'peak':>9} {'time/csv':>9} {'rows/s':>12}")
        found = {way: measure(program, folder) for way, program in ways.items()}
        base = found["csv and dictionaries, all"][1]
        for way, (printed, seconds, peak) in found.items():
            speed = rows / seconds if seconds else 0
            print(
                f"{way:30} {printed:>10} {seconds:8.1f} s {peak:6.0f} MB {seconds / base:9.2f} {speed:12,.0f}",
                flush=True,
            )

        into_postgres(folder, base)


if __name__ == "__main__":
    main()
