"""The pages' queries at some size.

Each finds its rows by an index, and gives what a plain query gives.
"""

import re
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from urllib.parse import urlsplit

import psycopg2
import pytest

from moviecrawler.dashboard import search
from moviecrawler.dashboard.search import Search, similar
from moviecrawler.dashboard.search import search as search_titles
from moviecrawler.database.connection import Database
from moviecrawler.database.short_transactions import ShortTransactions
from moviecrawler.sites import BY_AUTHORITY
from tests.services.postgres import execute, new_database

TITLES = 6000
WORDS = (
    "the a of silent lost harbor kingdom night river garden winter stone letters mountain glass "
    "crimson summer distant shadow orchard seventh broken paper golden"
)
SMALL = {"people"}
"""Tables that may be read from end to end."""
ANY = {"query": None, "text": None, "kind": None, "site": None, "sort": None}
PAGE = {**ANY, "most": 50, "first": 0, "limit": 50}
HARBOR = {**PAGE, "query": "'harbor':*", "text": "harbor"}
QUERIES = {
    "search": (search._SEARCH, HARBOR),
    "search of a kind with a record of a site, by a score": (
        search._SEARCH,
        {**HARBOR, "kind": "movie", "site": "imdb", "sort": "metascore"},
    ),
    "popular": (search._SEARCH, PAGE),
    "seasons": (search._SEASONS, {"id": 10, "seasons": 200}),
    "episodes": (search._EPISODES, {"id": 10, "episodes": 5000}),
    "series of titles": (search._SERIES_OF, {"ids": list(range(100, 160))}),
    "by IMDb id": (search._BY_ID, {"id": "tt0000077"}),
    **{
        name: (
            query,
            {"id": 10, "sites": list(BY_AUTHORITY), "cast": 40, "history": 100, "offers": 40},
        )
        for name, query in search._TITLE_QUERIES.items()
    },
}


@pytest.fixture(scope="module")
def url(postgres_server: str) -> Iterator[str]:
    """Return the URL of a database that is large enough for its plans."""
    made = new_database(postgres_server)
    with closing(Database(made)) as database:
        database.open()
    with closing(psycopg2.connect(made)) as connection:
        connection.autocommit = True
        with connection.cursor() as cursor:
            script = Path(__file__).with_name("many_titles.sql").read_text("utf-8")
            cursor.execute(script, {"titles": TITLES, "words": WORDS})
            cursor.execute("VACUUM ANALYZE")
    yield made
    execute(postgres_server, f"DROP DATABASE {urlsplit(made).path[1:]} WITH (FORCE)")


@pytest.mark.parametrize("name", QUERIES)
def test_query_is_answered_by_indexes(url: str, name: str) -> None:
    query, arguments = QUERIES[name]
    with closing(psycopg2.connect(url)) as connection, connection.cursor() as cursor:
        # So small a database is read from end to end in no time; what is asked here is whether
        # there is another way.
        cursor.execute("SET enable_seqscan = off")
        cursor.execute("EXPLAIN " + query, arguments)
        plan = "\n".join(row[0] for row in cursor.fetchall())
    assert set(re.findall(r"Seq Scan on (\w+)", plan)) <= SMALL, plan
    assert "Index" in plan or "Bitmap" in plan


def test_similar_titles_are_found_by_indexes(url: str) -> None:
    execute(url, """UPDATE records SET keywords = '["lighthouse"]' WHERE record_id IN (10, 20)""")
    found = similar(ShortTransactions(url), 10, 5)
    assert [(row.title_id, row.shared) for row in found] == [(20, ["keyword: lighthouse"])]
    with closing(psycopg2.connect(url)) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT similar_titles(10)")
        cursor.execute(
            "SELECT relid::regclass::text, pg_stat_get_xact_numscans(relid)"
            " FROM pg_stat_user_tables"
        )
        assert {name for name, scans in cursor.fetchall() if scans} <= SMALL


def test_search_finds_what_a_plain_query_finds(url: str) -> None:
    database = ShortTransactions(url)
    for text in ("silent harbor", "the lost kin", "Crimson 7"):
        words = text.lower().split()
        found = search_titles(database, Search(text), 0, 5000)
        expected = {
            title_id
            for title_id, title in execute(url, "SELECT title_id, lower(title) FROM titles")
            if all(word in str(title).split() for word in words[:-1])
            and any(part.startswith(words[-1]) for part in str(title).split())
        }
        assert {row.title_id for row in found} == expected
        assert found, text
        first = [row.title for row in found].index(
            next(row.title for row in found if str(row.title).lower() != text)
        )
        ranks = [row.popularity for row in found[first:]]
        assert ranks == sorted(ranks, reverse=True)


def test_most_popular_and_exact_titles_come_first_among_any_number_of_matches(url: str) -> None:
    database = ShortTransactions(url)
    [[best]] = execute(url, "SELECT max(popularity) FROM titles WHERE title ~* '\\mthe'")
    found = search_titles(database, Search("the"), 0, 5000)
    assert found[0].popularity == best
    assert len(found) >= search.MAX_RANKED
    execute(
        url, "INSERT INTO titles (title_id, title, popularity) VALUES (%s, 'The', 0)", TITLES + 1
    )
    assert search_titles(database, Search("THE"), 0, 10)[0].title_id == TITLES + 1


def test_titles_are_filtered_sorted_by_a_score_and_counted(url: str) -> None:
    database = ShortTransactions(url)
    execute(url, "UPDATE titles SET kind = 'series' WHERE title_id = 30")
    wanted = Search("harbor", site="imdb", sort="imdb")
    found = search_titles(database, wanted, 0, 5000)
    rated = [row.scores["imdb"] for row in found]
    assert rated == sorted(rated, reverse=True)
    assert {row.matches for row in found} == {len(found)}
    [[count]] = execute(
        url,
        "SELECT count(*) FROM titles JOIN records USING (title_id)"
        " WHERE titles.title ~* '\\mharbor' AND titles.kind = 'movie'",
    )
    movies = search_titles(database, wanted._replace(kind="movie"), 0, 10)
    assert (len(movies), movies[0].matches) == (10, count)
    assert [row.title_id for row in search_titles(database, Search(kind="series"), 0, 10)] == [30]
    assert search_titles(database, Search(site="metacritic"), 0, 10) == []
