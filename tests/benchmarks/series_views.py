"""How long the views of seasons and episodes take for one series, among very many episodes, beside a look at one row.

usage: python -m tests.benchmarks.series_views [SERIES] [EPISODES]

Of 10,000 series with 100 episodes each, if not told otherwise, it prints milliseconds, and the ratio to reading one title by its id in the same run.
"""

from __future__ import annotations

import statistics
from contextlib import closing
from functools import partial

import psycopg2

from moviecrawler.database.connection import open_database
from tests.benchmarks.harness import numbers, seconds, table
from tests.services.postgres import PostgresServer, new_database

_FILL = """
INSERT INTO titles (title_id, imdb_id, title, kind) SELECT n, 'tt' || lpad(n::text, 8, '0'), 'Series ' || n, 'series' FROM generate_series(1, %(series)s) n;
INSERT INTO imdb_episodes
SELECT 'tt' || 50000000 + n * %(episodes)s + e, 'tt' || lpad(n::text, 8, '0'), 1 + e / 10, 1 + e %% 10, 'Episode ' || e, 2001, 1 + (n + e) %% 90 / 10.0, 5 + e
FROM generate_series(1, %(series)s) n, generate_series(0, %(episodes)s - 1) e;
INSERT INTO titles (title_id, title, kind, series_title_id, season)
SELECT 10000000 + n * 10 + s, 'Season ' || s, 'season', n, s FROM generate_series(1, %(series)s) n, generate_series(1, 10) s;
INSERT INTO records (record_id, title_id, site, site_id, url, title, kind, series_id, season, countries, languages, list_computed, source,
    scraped_at, match_keys)
SELECT title_id, title_id, 'rottentomatoes', 'tv/s' || series_title_id || '/s' || season, 'u', title, kind, 'tv/s' || series_title_id, season,
    '{}', '{}', false, 'page', now(), '{}'
FROM titles WHERE series_title_id IS NOT NULL;
INSERT INTO scores (record_id, kind, value, count) SELECT record_id, 'tomatometer', record_id %% 101, 20 FROM records
"""
_QUERIES = {
    "one title by its id": "SELECT * FROM titles WHERE title_id = %s",
    "season_scores by title": "SELECT * FROM season_scores WHERE series_title_id = %s",
    "season_scores by IMDb id": "SELECT * FROM season_scores WHERE series_imdb_id = 'tt' || lpad((%s)::text, 8, '0')",
    "season_scores by a join": "SELECT v.* FROM titles t JOIN season_scores v ON v.series_title_id = t.title_id WHERE t.title_id = %s",
    "episode_scores by title": "SELECT * FROM episode_scores WHERE series_title_id = %s",
}
_TIMES = 30


def main() -> None:
    """Fill a database, and print a line for each query."""
    series, episodes = numbers(10_000, 100, least=(30, 10))
    with PostgresServer() as server:
        url = new_database(server.url)
        open_database(url).close()
        with closing(psycopg2.connect(url)) as connection:
            with connection, connection.cursor() as cursor:
                cursor.execute(_FILL, {"series": series, "episodes": episodes})
            connection.autocommit = True
            with connection.cursor() as cursor:
                cursor.execute("VACUUM ANALYZE")
                print(f"{series * episodes:,} episodes of {series:,} series")
                medians, counts = {}, {}
                for name, query in _QUERIES.items():
                    each = (partial(cursor.execute, query, (number,)) for number in range(1, series, series // _TIMES))
                    medians[name] = statistics.median(taken for one in each for taken in seconds(one))
                    counts[name] = cursor.rowcount
    base = next(iter(medians.values()))
    rows = [(name, counts[name], f"{took * 1e3:.2f}", f"{took / base:.1f}") for name, took in medians.items()]
    table(("", "rows", "ms", "times one title"), rows)


if __name__ == "__main__":
    main()
