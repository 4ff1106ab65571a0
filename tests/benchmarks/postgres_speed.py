"""How many movies a second the Postgres store takes, into empty tables and into full ones.

usage: python -m tests.benchmarks.postgres_speed [TITLES] [MOVIES]

TITLES fill the full tables (20,000 unless given; 1,000,000 take some minutes and 5 GB), with 15 credits each. For every 50
of them there is a title of another site that is none of them, as not all titles find their match. Then MOVIES (10,000),
with 15 credits each too, are stored in batches of 500: as new titles; as newer scrapes, whose votes have changed; and as
another site shows them, which are joined to the first. The server is one that is started here, with its default
settings, unless DATABASE_URL names another.
"""

from __future__ import annotations

import random
from contextlib import ExitStack, closing
from datetime import UTC, datetime, timedelta

import psycopg2

from moviecrawler.items import Credit, Movie, Score, Site
from moviecrawler.pipelines.postgres import PostgresStore
from moviecrawler.urls import title_url
from tests.benchmarks.harness import numbers, seconds, table, write_movies
from tests.services.postgres import GIVEN_URL, PostgresServer, execute, new_database

TURN = 1_000
RUNS: tuple[tuple[Site, int], ...] = (("imdb", 0), ("imdb", 1), ("rottentomatoes", 0))
CREDITS = 15
PEOPLE_A_TITLE = 4
"""People that nobody has seen before; the rest of a title's are from others."""
FIRST = 1_000_000
"""The number of the first movie."""
TARGET = 1_000
TARGET_RATIO = 0.7
WORDS = [
    f"{a}{e}{b}{i}{end}" for a in "bdfghlmnprstvw" for e in "aeo" for b in "lmnrst" for i in "iu" for end in ("r", "th")
]
"""About 500 beginnings, as a language has of which titles are made."""
BEGIN = datetime(2026, 1, 1, tzinfo=UTC)

# Without foreign keys' checks and indexes' upkeep a row at a time, which is all that makes filling slow.
FILL = """
SET session_replication_role = replica;
SET synchronous_commit = off;
SET maintenance_work_mem = '512MB';
DROP INDEX records_match_keys;
DROP INDEX credits_person_id;
INSERT INTO titles SELECT n FROM generate_series(1, %(titles)s) n;
-- Of a title's twelve keys half are its own, and half are words that it shares with many.
INSERT INTO records (record_id, title_id, site, site_id, url, imdb_id, title, kind, year, countries, languages,
    list_computed, source, scraped_at, match_keys)
SELECT n, n, 'imdb', 'tt' || (50000000 + n), 'https://www.imdb.com/title/tt' || (50000000 + n) || '/',
    'tt' || (50000000 + n), 'The Lamp of Brewick, Part ' || n, 'movie', 1920 + n %% 100, '{}', '{}', false, 'page',
    '2025-01-01', (SELECT array_agg(CASE WHEN k %% 2 = 0 THEN hashint8extended(n, k)
                                    ELSE hashint8extended((n * 31 + k) %% 200000, 0) END) FROM generate_series(1, 12) k)
FROM generate_series(1, %(titles)s) n;
INSERT INTO scores (record_id, kind, value, count) SELECT n, 'imdb', 1 + n %% 9, n FROM generate_series(1, %(titles)s) n;
INSERT INTO score_history (record_id, kind, since, value, count)
SELECT record_id, kind, '2025-01-01', value, count FROM scores;
INSERT INTO people (site, site_person_id, name, named_at)
SELECT 'imdb', 'nm' || (50000000 + n), 'Person ' || n, '2025-01-01'
FROM generate_series(1, %(titles)s * %(new)s) n;
INSERT INTO credits (record_id, role, position, person_id, name, character)
SELECT n, 'cast', k, 1 + (n::bigint * 7919 + k * 104729) %% (%(titles)s * %(new)s), 'Person ' || n, 'Character ' || k
FROM generate_series(1, %(titles)s) n CROSS JOIN generate_series(1, %(credits)s) k;
CREATE INDEX records_match_keys ON records USING gin (match_keys) WITH (fastupdate = off);
CREATE INDEX credits_person_id ON credits (person_id);
SELECT setval(pg_get_serial_sequence('titles', 'title_id'), %(titles)s);
SELECT setval(pg_get_serial_sequence('records', 'record_id'), %(titles)s);
ANALYZE;
"""


def make_movies(site: Site, first: int, count: int, scrape: int = 0) -> list[Movie]:
    """Return invented movies, the same ones on every site, with more votes for each later `scrape`."""
    chance = random.Random(first)  # noqa: S311 - repeatable
    movies = []
    for number in range(first, first + count):
        people = [number * PEOPLE_A_TITLE + n for n in range(PEOPLE_A_TITLE)]
        people += [chance.randrange(count * PEOPLE_A_TITLE) for _ in range(CREDITS - PEOPLE_A_TITLE)]
        site_id = f"tt{number:07}" if site == "imdb" else f"m/t_{number}"
        movies.append(
            Movie(
                site=site,
                site_id=site_id,
                imdb_id=site_id if site == "imdb" else None,
                url=title_url(site, site_id),
                title=f"{chance.choice(WORDS)} {chance.choice(WORDS)} {number}".title(),
                kind="movie",
                year=chance.randrange(1920, 2026),
                runtime_minutes=90,
                genres=["Drama", "Mystery"],
                plot="A keeper trims the lamp, and something answers from the water. " * 4,
                credits=[
                    Credit(
                        name=f"Somebody {person}",
                        role="director" if place == 0 else "cast",
                        position=max(place, 1),
                        person_id=f"nm{person:07}",
                        character=None if place == 0 else f"Keeper {place}",
                    )
                    for place, person in enumerate(people)
                ],
                scores=[
                    Score(kind="imdb" if site == "imdb" else "tomatometer", value=7.1, count=1000 + scrape),
                    Score(kind="metascore" if site == "imdb" else "popcornmeter", value=66, count=12),
                ],
                scraped_at=BEGIN + timedelta(days=scrape),
            )
        )
    return movies


def fill(url: str, titles: int) -> None:
    """Make the tables, and fill them with titles."""
    with closing(PostgresStore(url)) as store:
        store.open()
        with closing(psycopg2.connect(url)) as connection, connection.cursor() as cursor:
            connection.autocommit = True
            for statement in FILL.split(";\n")[:-1]:
                cursor.execute(statement, {"titles": titles, "new": PEOPLE_A_TITLE, "credits": CREDITS})
        write_movies(store, make_movies("rottentomatoes", 5_000_000, titles // 50))
    execute(url, "VACUUM ANALYZE")
    execute(url, "CHECKPOINT")


def measure(urls: list[str], count: int) -> list[list[float]]:
    """Return how many movies a second each database stores as new ones, again, and as another site's.

    The databases take turns, so that a machine whose speed drifts doesn't favour one.
    """
    rates = []
    with ExitStack() as stack:
        stores = [stack.enter_context(closing(PostgresStore(url))) for url in urls]
        for store in stores:
            store.open()
        for site, scrape in RUNS:
            movies = make_movies(site, FIRST, count, scrape)
            spent = [0.0] * len(stores)
            for first in range(0, count, TURN):
                for number, store in enumerate(stores):
                    spent[number] += write_movies(store, movies[first : first + TURN])
            rates.append([count / taken for taken in spent])
    for url in urls:
        ((joined,),) = execute(
            url, "SELECT count(*) FROM scoreboard WHERE imdb_id IS NOT NULL AND rottentomatoes_id IS NOT NULL"
        )
        assert joined == count, f"{joined} of {count} titles were joined"
    return rates


def main() -> None:
    """Print the table."""
    titles, movies = numbers(20_000, 10_000, least=(50, 500))
    with ExitStack() as stack:
        home = GIVEN_URL or stack.enter_context(PostgresServer()).url
        empty, full = new_database(home), new_database(home)
        (took,) = seconds(lambda: fill(full, titles))
        print(f"filled with {titles:,} titles in {took:.0f} s", flush=True)
        rates = measure([empty, full], movies)
    table(
        ("movies a second", "new", "again", "other site"),
        [
            ("into empty tables", *(f"{empty:,.0f}" for empty, _ in rates)),
            (f"into {titles:,} titles", *(f"{full:,.0f}" for _, full in rates)),
            ("ratio", *(f"{full / empty:.2f}" for empty, full in rates)),
        ],
    )
    if min(map(min, rates)) < TARGET:
        print(f"below {TARGET:,} a second")
    if min(full / empty for empty, full in rates) < TARGET_RATIO:
        print(f"below a ratio of {TARGET_RATIO}")


if __name__ == "__main__":
    main()
