"""Time and memory of importing IMDb's episodes, beside the same by `csv`, dictionaries and an INSERT a row.

usage: python -m tests.benchmarks.episodes_speed [EPISODES]

The files are made for this: of so many episodes (1,000,000) with a rating for each tenth, and a film for each two of them. The import is
`scrapy catalogue import episodes`, in a process of its own with a Postgres of its own; then again with the same files, and with files of
which a hundredth has changed. The other way is run on a hundredth of the episodes, and its time multiplied.
"""

from __future__ import annotations

import gzip
import tempfile
from contextlib import ExitStack
from pathlib import Path

from moviecrawler.replica.datasets import TABLES
from tests.benchmarks.harness import numbers, run
from tests.services.postgres import PostgresServer, execute

PER_SERIES = 50
ROW_BY_ROW = """
import csv, gzip, os, sys
import psycopg2
def rows(name):
    with gzip.open(f"{sys.argv[1]}/{name}.tsv.gz", "rt", newline="", encoding="utf-8") as file:
        yield from csv.DictReader(file, delimiter="\\t", quoting=csv.QUOTE_NONE)
def value(text):
    return None if text == "\\\\N" else text
titles = {row["tconst"]: row for row in rows("title.basics")}
ratings = {row["tconst"]: row for row in rows("title.ratings")}
connection = psycopg2.connect(os.environ["DATABASE_URL"])
with connection, connection.cursor() as cursor:
    for row in rows("title.episode"):
        title, rating = titles.get(row["tconst"], {}), ratings.get(row["tconst"], {})
        cursor.execute("INSERT INTO imdb_episodes VALUES (%s, %s, %s, %s, %s, %s, %s, %s)", (
            row["tconst"], row["parentTconst"], value(row["seasonNumber"]), value(row["episodeNumber"]),
            title.get("primaryTitle"), value(title.get("startYear", "\\\\N")), rating.get("averageRating"), rating.get("numVotes")))
"""


def make_files(folder: Path, episodes: int, changed: int = 0) -> None:
    """Make the three files; every 100th rating is another one for another `changed`."""
    with ExitStack() as stack:
        basics, ratings, places = (
            stack.enter_context(gzip.open(folder / f"title.{name}.tsv.gz", "wt", 1, encoding="utf-8", newline=""))
            for name in ("basics", "ratings", "episode")
        )
        for name, file in (("basics", basics), ("ratings", ratings), ("episode", places)):
            file.write(f"{TABLES[f'title.{name}.tsv.gz'].columns}\n")
        for number in range(episodes):
            site_id, (series, place) = f"tt{10_000_000 + number}", divmod(number, PER_SERIES)
            name = f"Episode {number} of it"
            basics.write(f"{site_id}\ttvEpisode\t{name}\t{name}\t0\t{1950 + series % 70}\t\\N\t45\tDrama\n")
            if number % 2:
                basics.write(f"tt{40_000_000 + number}\tmovie\t{name}\t{name}\t0\t2001\t\\N\t90\tDrama\n")
            if number % 10 == 0:
                votes = 100 + (changed if number % 100 == 0 else 0)
                ratings.write(f"{site_id}\t{1 + number % 90 / 10:.1f}\t{votes}\n")
            places.write(f"{site_id}\ttt{9_000_000 + series}\t{1 + place // 10}\t{1 + place % 10}\n")


def main() -> None:
    """Measure, and print."""
    (episodes,) = numbers(1_000_000, least=(1_000,))
    with tempfile.TemporaryDirectory() as place, PostgresServer() as server:
        folder = Path(place)
        variables = {"DATABASE_URL": server.url, "DATA_DIR": str(folder / "data")}
        command = ["-m", "scrapy", "catalogue", "import", "episodes", "--from", place]
        make_files(folder, episodes)
        for what, changed in (("first", 0), ("the same files", 0), ("a hundredth changed", 7)):
            if changed:
                make_files(folder, episodes, changed)
            spent = run(*command, **variables)
            print(
                f"{what}: {episodes / spent.wall:,.0f} a second; {spent.wall:.1f} s, {spent.cpu:.1f} s of it here, {spent.peak:.0f} MB"
            )
            if what == "first":
                speed = episodes / spent.wall
        ((stored,),) = execute(server.url, "SELECT count(*) FROM imdb_episodes")
        assert stored == episodes, stored
        execute(server.url, "TRUNCATE imdb_episodes")
        make_files(folder, episodes // 100)
        spent = run("-c", ROW_BY_ROW, place, **variables)
        other = episodes // 100 / spent.wall
        print(f"csv, dictionaries, a row at a time, on a hundredth: {other:,.0f} a second, {spent.peak:.0f} MB")
        print(f"ratio of speeds: {speed / other:.1f}")


if __name__ == "__main__":
    main()
