"""The queries that the documents show run on the embedded database and on Postgres.

Datasette shows the former as it is.
"""

import json
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from urllib.parse import urlsplit

import pytest

import moviecrawler.database
from moviecrawler.basics.clock import utc_now
from moviecrawler.database.sqlite import tables_in_memory
from moviecrawler.items import Score
from moviecrawler.pipelines.datasette import metadata_of, queries, query_name
from moviecrawler.pipelines.sqlite import SqliteStore
from moviecrawler.sites import SCOREBOARD_KINDS, SCORES
from tests.crawling import crawl
from tests.invented_series import IMDB, METACRITIC, RATED, TOMATOES
from tests.runs import make_movie, record_of
from tests.services.postgres import execute, new_database
from tests.services.replica import ForkedReplica
from tests.stored import browse, opened

NOW = utc_now()
README = Path(moviecrawler.database.__path__[0], "README.md").read_text("utf-8")
QUERIES = queries()
BEST = make_movie(
    5, scores=[Score(kind=kind, value=SCORES[kind].scale, count=2) for kind in SCOREBOARD_KINDS]
)
ONLY_USERS = make_movie(6, scores=[Score(kind="imdb", value=9.9, count=2_000)])
ODD = make_movie(
    4, scores=[Score(kind="imdb", value=9, count=2_000), Score(kind="metascore", value=20)]
)
MOVIES = [
    IMDB,
    TOMATOES,
    METACRITIC,
    *RATED,
    *(make_movie(number, genres=["Drama"]) for number in range(3)),
    ODD,
    BEST,
    ONLY_USERS,
]


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a DATA_DIR with the movies."""
    shelf = tmp_path_factory.mktemp("data")
    with opened(SqliteStore(shelf)) as store:
        store.write([record_of(replace(movie, scraped_at=NOW)) for movie in MOVIES])
    return shelf


@pytest.fixture(scope="module")
def three_sites(
    postgres_server: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Path, str]]:
    """Yield a DATA_DIR and the URL of a database with what crawls of three sites have stored."""
    folder = tmp_path_factory.mktemp("crawled")
    url = new_database(postgres_server)
    with ForkedReplica(titles=12, series=3, light=True) as replica:
        for spider, *lists in (
            ("imdb", "via=pages", "list=top", "list=toptv"),
            ("metacritic", "limit=8", "list=sitemap", "list=sitemap-series"),
            ("rottentomatoes", "limit=8", "list=sitemap", "list=sitemap-series"),
        ):
            for name in lists[1:]:
                ended = crawl(
                    spider, lists[0], name, data=folder, replica=replica, DATABASE_URL=url
                )
                assert ended.code == 0, ended.log
    yield folder, url
    execute(postgres_server, f"DROP DATABASE {urlsplit(url).path[1:]} WITH (FORCE)")


EXAMPLES = {
    "tt0111161": "SELECT imdb_id FROM scoreboard WHERE scores_known = 5",
    "Salt Harbour": "SELECT series_title FROM season_scores WHERE season = 1",
    "Odile Farrow": "SELECT name FROM credits WHERE role = 'director'",
}
"""What of the crawls takes the place of the examples in the documents."""


@pytest.mark.promise("The ten queries of the documents find the same in both databases.")
def test_the_queries_find_the_same_in_both_databases(three_sites: tuple[Path, str]) -> None:
    folder, url = three_sites
    assert len(QUERIES) == 10
    with closing(sqlite3.connect(folder / "movies.sqlite3")) as connection:
        examples = {
            example: connection.execute(of_crawls).fetchone()[0].replace("'", "''")
            for example, of_crawls in EXAMPLES.items()
        }
        for name, documented in QUERIES.items():
            query = re.sub("|".join(examples), lambda found: examples[found[0]], documented)
            rows = connection.execute(query).fetchall()
            assert rows, name
            in_both = [sorted(map(_plain, found), key=str) for found in (rows, execute(url, query))]
            assert in_both[0] == in_both[1], name


def _plain(row: tuple[object, ...]) -> tuple[object, ...]:
    """Return a row with values that do not depend on the database."""
    return tuple(
        float(cell)
        if isinstance(cell, int | float | Decimal)
        else datetime.fromisoformat(cell)
        if isinstance(cell, str) and re.match(r"\d{4}-\d\d-\d\dT", cell)
        else cell
        for cell in row
    )


@pytest.mark.parametrize(
    ("asked", "title"),
    [
        ("title__contains=lamp&_sort=title", make_movie(0).title),
        ("imdb_id=tt0000002", make_movie(2).title),
        ("year=2001&kind=movie&_sort_desc=overall", BEST.title),
    ],
    ids=["search a title by name", "a title by its IMDb id", "the best of a year"],
)
def test_datasette_finds(asked: str, title: str, shelf: Path) -> None:
    assert (
        json.loads(browse(shelf, f"/movies/scoreboard.json?{asked}&_shape=array"))[0]["title"]
        == title
    )


def test_datasette_says_what_every_table_and_column_is(shelf: Path) -> None:
    metadata = json.loads((shelf / "metadata.json").read_text("utf-8"))
    tables = metadata["databases"]["movies"]["tables"]
    with closing(sqlite3.connect(shelf / "movies.sqlite3")) as connection:
        names = [
            name
            for (name,) in connection.execute(
                "SELECT name FROM sqlite_schema WHERE type <> 'index'"
            )
        ]
        for name in names:
            if not name.startswith("title_search"):
                columns = [row[1] for row in connection.execute(f"PRAGMA table_info({name})")]
                assert all(tables[name]["columns"][column] for column in columns), name
    page = browse(shelf, "/movies/scoreboard")
    assert "One row per title with all sites" in page
    assert "Tomatometer (critics)." in page
    assert "facet-results" in page


def test_datasette_leads_from_a_title_to_all_that_is_said_of_it(shelf: Path) -> None:
    """It finds titles by their people, whatever the accents, and shows each table."""
    found = json.loads(browse(shelf, "/movies/scoreboard.json?_search=ODÍLE+farrow&_shape=array"))
    assert len(found) > 3
    board = browse(shelf, "/movies/scoreboard?imdb_id=tt0000002")
    (link,) = set(re.findall('href="(/movies/titles/[0-9]+)"', board))
    title_id = link.rpartition("/")[2]
    assert f"/movies/records?title_id={title_id}" in browse(shelf, link)
    (record,) = json.loads(browse(shelf, f"/movies/records.json?title_id={title_id}&_shape=array"))
    page = browse(shelf, f"/movies/records/{record['record_id']}")
    for table in ("scores", "credits", "offers", "score_history"):
        assert f"/movies/{table}?record_id={record['record_id']}" in page
    tables = json.loads((shelf / "metadata.json").read_text())["databases"]["movies"]["tables"]
    browse(shelf, *(f"/movies/{name}" for name, table in tables.items() if "allow" not in table))


@pytest.mark.parametrize("name", QUERIES)
def test_each_query_is_one_of_datasettes_and_of_the_document(name: str, shelf: Path) -> None:
    assert f"-- {name}\n{QUERIES[name]};" in README
    values = "imdb_id=tt0000002&series=Salt+Harbour&since=2026-03-01&name=Odile+Farrow"
    assert json.loads(browse(shelf, f"/movies/{query_name(name)}.json?{values}&_shape=array"))


def test_datasette_sorts_the_scoreboard_where_there_are_few_titles(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with closing(tables_in_memory().connection) as connection:
        for most, column in ((0, "imdb_votes"), (-1, None)):
            monkeypatch.setattr("moviecrawler.pipelines.datasette._MOST_SORTED", most)
            tables = json.loads(metadata_of(connection))["databases"]["movies"]["tables"]
            assert tables["scoreboard"].get("sort_desc") == column
