"""All of IMDb in the embedded database, beside the program `imdb-sqlite`.

usage: python -m tests.benchmarks.bulk_speed [TITLES] [CREDITS]

`pip install imdb-sqlite` gets the program. Both read the same generated files, in one run: TITLES
films and series, which have CREDITS directors, writers and members of the cast together, and two
other titles each. Ours are the crawl of everything, with its CSV files, and `scrapy scoreboard`.
They run again over the same files, and over files in which one title of a hundred has another
rating and other characters. Processor time is that of the user and the system. At last, the view
`season_scores` is read.

The hash is one over all rows of the database, but for times: versions that store the same facts of
the same files print the same one.
"""

import gzip
import hashlib
import os
import random
import sqlite3
import tempfile
import time
from contextlib import ExitStack, closing
from pathlib import Path

from moviecrawler.basics.clock import utc_now
from moviecrawler.database.tables import STATE, TABLES
from moviecrawler.items import Movie, Score
from moviecrawler.pipelines.sqlite import SqliteStore
from moviecrawler.pipelines.store import Record
from moviecrawler.sites.ids import title_url
from tests.benchmarks.harness import Command, figure, numbers, ours, run, table
from tests.file_server import FileServer
from tests.stored import opened

FILES = {
    "title.basics": "tconst titleType primaryTitle originalTitle isAdult startYear endYear"
    " runtimeMinutes genres",
    "title.ratings": "tconst averageRating numVotes",
    "title.crew": "tconst directors writers",
    "title.principals": "tconst ordering nconst category job characters",
    "title.akas": "titleId ordering title region language types attributes isOriginalTitle",
    "title.episode": "tconst parentTconst seasonNumber episodeNumber",
    "name.basics": "nconst primaryName birthYear deathYear primaryProfession knownForTitles",
}
WORDS = ["Amber", "Bright", "Copper", "Dark", "Empty", "Frozen", "Golden", "Hollow", "Iron"]
NULL = r"\N"
SEASONS = 12_000


def write_files(folder: Path, titles: int, credit_count: int, *, changed: bool = False) -> None:
    """Write the datasets; `changed`: one title of a hundred has another rating and characters."""
    folder.mkdir()
    people = titles * 5 // 4
    dice = random.Random(1)  # noqa: S311 - no secret
    with ExitStack() as stack:
        files = {
            name: stack.enter_context(gzip.open(folder / f"{name}.tsv.gz", "wt", 1, "utf-8"))
            for name in FILES
        }
        for name, columns in FILES.items():
            files[name].write("\t".join(columns.split()) + "\n")

        def write(name: str, *cells: object) -> None:
            files[name].write("\t".join(map(str, cells)) + "\n")

        for number in range(1, people + 1):
            name = f"{dice.choice(WORDS)} {dice.choice(WORDS)} {number}"
            write("name.basics", f"nm{number:07}", name, 1950, NULL, "actor", NULL)
        for number in range(1, titles + 1):
            site_id = f"tt{number:07}"
            is_other = changed and number % 100 == 0
            kind = dice.choice(["movie", "movie", "movie", "tvMovie", "tvSeries"])
            title = f"{dice.choice(WORDS)} {dice.choice(WORDS)} {dice.randrange(titles)}"
            named = (site_id, kind, title, title, 0, 1900 + dice.randrange(125), NULL)
            write("title.basics", *named, 60 + dice.randrange(90), "Comedy,Drama")
            rating = dice.randrange(10, 100) / 10
            votes = dice.randrange(5, 100_000)
            if number % 3:
                write("title.ratings", site_id, 5.5 if is_other else rating, votes + is_other)
            left = credit_count * number // titles - credit_count * (number - 1) // titles
            chosen = [f"nm{dice.randrange(people) + 1:07}" for _ in range(left)]
            directors = list(dict.fromkeys(chosen[:1]))
            writers = list(dict.fromkeys(chosen[1:3]))
            write("title.crew", site_id, ",".join(directors) or NULL, ",".join(writers) or NULL)
            for ordering, person in enumerate(dict.fromkeys(chosen[3:]), start=1):
                part = dice.choice(WORDS)
                played = f'["{"Another" if is_other else part} {ordering}"]'
                write("title.principals", site_id, ordering, person, "actor", NULL, played)
            for ordering, region in enumerate(("FR", "DE"), start=1):
                other = (site_id, ordering, f"{region} {title}", region)
                write("title.akas", *other, NULL, "imdbDisplay", NULL, 0)
        write("title.episode", "tt99999998", "tt99999999", 1, 1)


def commands(data: Path, url: str) -> dict[str, Command]:
    """Return what is ours; the output of `scoreboard` is a CSV file, too."""
    # A pass within an hour of the one before it would replace nothing.
    variables = {"DATA_DIR": str(data), "IMDB_DATASETS_URL": url, "FRESHNESS_MARGIN": "0"}
    crawl = ("-m", "scrapy", "crawl", "imdb", "-a", "via=datasets", "-a", "list=all")
    return {
        "crawl": ours(*crawl, folder=data.parent, **variables),
        "scoreboard": ours(
            "-m", "scrapy", "scoreboard", "--format", "csv", folder=data.parent, **variables
        ),
    }


def season_seconds(data: Path) -> float:
    """Return how long the view of 12,000 seasons takes, each of ten rated episodes."""
    data.mkdir()
    now = utc_now()
    movies = []
    for series in range(1, SEASONS // 3 + 1):
        for number in range(30):
            site_id = f"tt{series * 100 + number:07}"
            episode = Movie(
                site="imdb",
                site_id=site_id,
                url=title_url("imdb", site_id),
                title=f"Part {number}",
                kind="episode",
                series_id=f"tt9{series:06}",
                series_title=f"Series {series}",
                season=number // 10 + 1,
                episode=number % 10 + 1,
                scores=[Score(kind="imdb", value=8, count=100)],
                scraped_at=now,
            )
            movies.append(Record(episode, b"", 0))
    with opened(SqliteStore(data, with_csv=False)) as store:
        store.write(movies)
    with closing(sqlite3.connect(data / "movies.sqlite3")) as connection:
        began = time.process_time()
        found = connection.execute("SELECT * FROM season_scores").fetchall()
        assert len(found) == SEASONS
        return time.process_time() - began


def hash_of(data: Path) -> str:
    """Return a hash over all rows of a database, but for their times."""
    found = hashlib.blake2b(digest_size=8)
    with closing(sqlite3.connect(data / "movies.sqlite3")) as connection:
        for rows in TABLES:
            columns = [f'"{name}"' for name in rows.columns if rows.type_of(name) != "time"]
            if rows is not STATE:
                query = f"SELECT {', '.join(columns)} FROM {rows.name}"  # noqa: S608
                for row in connection.execute(f"{query} ORDER BY {', '.join(rows.key)}"):
                    found.update(repr(row).encode())
    return found.hexdigest()


def main() -> None:
    titles, credit_count = numbers(20_400, 301_554, least=(1_000, 1_000))
    rows = []
    with tempfile.TemporaryDirectory() as name, FileServer() as server:
        folder = Path(name)
        data = folder / "data"
        write_files(folder / "files", titles, credit_count)
        write_files(folder / "changed", titles, credit_count, changed=True)
        theirs = ("-m", "imdb_sqlite", "--cache-dir", "files", "--db", "theirs.db")
        base = run(Command(theirs, folder, os.environ))
        rows.append(("imdb-sqlite", f"{base.cpu:.1f} s", "", "", f"{base.peak:.0f} MB"))
        first = 0.0
        ratios = {}
        peaks = []
        for label, files in (("first", "files"), ("unchanged", "files"), ("1 %", "changed")):
            for path in (folder / files).iterdir():
                server.files[f"/{path.name}"] = path.read_bytes()
            spent = {part: run(command) for part, command in commands(data, server.url).items()}
            both = sum(each.cpu for each in spent.values())
            first = first or both
            for part, each in spent.items():
                rows.append(
                    (f"{label}: {part}", f"{each.cpu:.1f} s", "", "", f"{each.peak:.0f} MB")
                )
            ratios[label] = (both / base.cpu, both / first)
            peaks += [each.peak for each in spent.values()]
            rows.append(
                (label, f"{both:.1f} s", f"{both / base.cpu:.2f}", f"{both / first:.2f}", "")
            )
            print(f"{label}: hash {hash_of(data)}", flush=True)
        of_seasons = season_seconds(folder / "seasons")
    table(("", "processor", "beside imdb-sqlite", "beside first", "peak"), rows)
    is_large = titles >= 1_000_000
    figure("a crawl and a scoreboard, beside imdb-sqlite", ratios["first"][0], at_most=3)
    figure("most memory, in MB", max(peaks), at_most=700 if is_large else 300)
    figure("over unchanged files, beside the first time", ratios["unchanged"][1], at_most=0.1)
    figure("over files with 1 % of changes, beside it", ratios["1 %"][1], at_most=0.2)
    figure(f"season_scores of {SEASONS:,} seasons, in s", of_seasons, at_most=2)


if __name__ == "__main__":
    main()
