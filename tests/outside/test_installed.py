"""A site that another distribution brings, while that is installed.

`test_not_installed.py` runs this, and reads afterwards what is left in `DATA` and `DATABASE_URL`.
"""

import csv
import json
import os
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import pytest

from moviecrawler.items import Movie
from moviecrawler.replica.collection import Collection
from moviecrawler.replica.process import ReplicaProcess
from moviecrawler.sites import SITES
from tests.crawling import Finished, change, counts, crawl, reset, scrapy
from tests.metric_files import read, value
from tests.page_texts import text_of
from tests.services.mongo import mongo_movies
from tests.services.nodes import cluster, project_egg
from tests.services.postgres import postgres_movies
from tests.services.replica import ForkedReplica
from tests.services.s3 import CREDENTIALS, S3Server, objects, s3_client, s3_movies
from tests.stored import board_of, browse, in_order
from tests.tables import sqlite_movies

SITE = "filmograph"
DATA = Path(os.environ["OUTSIDE_DATA"])
DATABASE_URL = os.environ["OUTSIDE_DATABASE_URL"]
COLLECTION = Collection(1, 30, 6)
OF_CRAWLS = {"scraped_at", "fetch", "unknown_fields"}
"""Fields that say how a title was read, and not what its page says."""
ITEMS = COLLECTION.every(SITE)
WHOLE = {site_id: movie for site_id, movie in ITEMS.items() if movie.kind != "season"}
FILMS = [site_id for site_id, movie in ITEMS.items() if movie.kind == "movie"]
SHOWS = [site_id for site_id, movie in ITEMS.items() if movie.kind == "series"]
SEASONS = {
    str(season.site_id): season
    for index in COLLECTION.series.ids[SITE]
    for season in COLLECTION.series.title(index).listed[SITE]
}


@dataclass(frozen=True)
class World:
    """What was crawled, and where it is stored."""

    replica: ReplicaProcess
    mongo_url: str
    s3: dict[str, str]
    films: Finished
    """The crawl of the site's films."""


@pytest.fixture(scope="module")
def filled(mongo_server: str, own_s3: S3Server) -> Iterator[World]:
    """Return crawls of three sites into SQLite and Postgres, and of the fourth into all stores."""
    database = {"DATABASE_URL": DATABASE_URL}
    mongo_url = urlunsplit(urlsplit(mongo_server)._replace(path=f"/test_{uuid.uuid4().hex}"))
    os.environ.update(CREDENTIALS)
    s3 = {"S3_BUCKET": f"test-{uuid.uuid4().hex}", "S3_ENDPOINT_URL": own_s3.url, **CREDENTIALS}
    s3_client(own_s3.url).create_bucket(Bucket=s3["S3_BUCKET"])
    with ForkedReplica(titles=30, series=6, light=True) as replica:
        for site, name in (("imdb", "top"), ("metacritic", "new"), ("metacritic", "tv-new")):
            finished = crawl(site, f"list={name}", data=DATA, replica=replica, **database)
            assert finished.code == 0, finished.log
        every = {**database, "MONGO_URL": mongo_url, **s3, "METRICS_FOLDER": str(DATA)}
        for name in ("shows", "films"):
            command = ["crawl", SITE, "-a", f"list={name}"]
            finished = scrapy(*command, data=DATA, replica=replica, **every)
            assert finished.code == 0, finished.log
        for key, content in objects(own_s3.url, s3["S3_BUCKET"], "raw/").items():
            path = DATA / "archive" / key
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        yield World(replica, mongo_url, s3, finished)


@pytest.fixture
def four(filled: World) -> ReplicaProcess:
    """Return a replica of four sites."""
    reset(filled.replica)
    return filled.replica


def assert_as_the_items(movies: list[Movie]) -> None:
    """Compare all that is stored of the site with the items that its pages were made of."""
    found = {str(movie.site_id): in_order(movie) for movie in movies if movie.site == SITE}
    assert found.keys() == {*WHOLE, *SEASONS}
    for site_id, movie in found.items():
        item = in_order({**WHOLE, **SEASONS}[site_id])
        for field in fields(Movie):
            if field.name not in OF_CRAWLS:
                assert getattr(movie, field.name) == getattr(item, field.name), (site_id, field)


@pytest.mark.promise("A site of another distribution is crawled, stored and shown like the others.")
def test_every_store_holds_it_and_a_replay_gives_it_again(filled: World, tmp_path: Path) -> None:
    assert_as_the_items(sqlite_movies(DATA))
    assert_as_the_items(postgres_movies(DATABASE_URL))
    assert_as_the_items(mongo_movies(filled.mongo_url))
    assert_as_the_items(s3_movies(filled.s3["S3_ENDPOINT_URL"], filled.s3["S3_BUCKET"]))
    assert len([movie for movie in filled.films.movies if movie.site == SITE]) == len(WHOLE) + len(
        SEASONS
    ), "movies.csv"
    bucket = f"s3://{filled.s3['S3_BUCKET']}"
    again = scrapy("replay", bucket, data=tmp_path, replica=filled.replica, **filled.s3)
    assert again.code == 0, again.log
    assert_as_the_items(sqlite_movies(tmp_path))


def test_a_crawl_over_redis_stores_the_same(
    redis_url: str, four: ReplicaProcess, tmp_path: Path
) -> None:
    ids = f"ids={','.join(SHOWS)}"
    finished = crawl(SITE, "list=films", ids, data=tmp_path, replica=four, REDIS_URL=redis_url)
    assert finished.code == 0, finished.log
    assert_as_the_items(sqlite_movies(tmp_path))


@pytest.mark.promise("A site of another distribution is crawled, stored and shown like the others.")
def test_its_titles_are_those_of_the_other_sites_on_the_scoreboard(filled: World) -> None:
    assert filled.films.code == 0
    expected = {
        (COLLECTION.ids["imdb"][index], site_id, COLLECTION.ids["metacritic"].get(index))
        for index, site_id in COLLECTION.ids[SITE].items()
    }
    for board in (board_of(DATA), board_of(DATABASE_URL)):
        films = [row for row in board if row.kind == "movie" and row.site_ids[SITE]]
        ids = {
            (row.site_ids["imdb"], row.site_ids[SITE], row.site_ids["metacritic"]) for row in films
        }
        assert ids == expected
    shown = scrapy("scoreboard", "--format", "csv", data=DATA)
    rows = {row["filmograph_id"]: row for row in csv.DictReader(shown.output.splitlines())}
    for site_id in FILMS:
        stars = ITEMS[site_id].score("filmograph_stars")
        assert rows[site_id]["filmograph_stars"] == (f"{stars.value:g}" if stars else "")
    seasons = board_of(DATA, "season")
    assert {row.site_ids[SITE] for row in seasons} >= SEASONS.keys()
    assert any(row.site_ids[SITE] and row.site_ids["metacritic"] for row in seasons)


def test_a_site_as_newsite_writes_it_is_crawled(four: ReplicaProcess, tmp_path: Path) -> None:
    finished = crawl("plainsite", data=tmp_path, replica=four)
    assert finished.code == 0, finished.log
    items = COLLECTION.every("plainsite")
    assert finished.summary.missing == "none"
    assert {movie.site_id for movie in finished.movies} == items.keys()
    for movie in finished.movies:
        item = items[str(movie.site_id)]
        assert (movie.title, movie.year, movie.runtime_minutes, movie.scores) == (
            item.title,
            item.year,
            item.runtime_minutes,
            item.scores,
        )


@pytest.mark.usefixtures("filled")
def test_datasette_and_a_crawls_figures_show_it() -> None:
    answer = browse(DATA, f"/movies/scoreboard.json?filmograph_id={FILMS[0]}&_shape=array")
    (row,) = json.loads(answer)
    stars = ITEMS[FILMS[0]].score("filmograph_stars")
    assert row["filmograph_stars"] == (stars and stars.value)
    assert "Filmograph approval" in browse(DATA, "/movies/score_kinds.json?_shape=array")
    assert value(read(DATA, SITE), "moviecrawler_titles", outcome="stored") == len(WHOLE)


def test_its_budget_robots_txt_and_refusals_go_by_the_gate(
    four: ReplicaProcess, tmp_path: Path
) -> None:
    def run(*arguments: str, **settings: str) -> Finished:
        folder = tmp_path / uuid.uuid4().hex
        return crawl(SITE, *arguments, data=folder, replica=four, **settings)

    budget = run("list=films", SITE_BUDGETS='{"filmograph": {"per_day": 5}}')
    assert (budget.code, counts(four, SITE)["requests"]) == (3, 5)
    change(four, robots="live")
    robots = run(f"ids={FILMS[0]},{SHOWS[0]}")
    assert (robots.code, robots.misses) == (1, {SHOWS[0]: "disallowed"})
    reset(four)
    change(four, faults={"challenge": 1})
    refused = run(f"ids={','.join(FILMS)}")
    assert (refused.code, refused.summary.reason) == (1, "site_stopped")
    assert counts(four, SITE)["requests"] < len(FILMS)


@pytest.mark.promise("A site of another distribution is crawled, stored and shown like the others.")
def test_the_catalogue_has_it_fetched_when_it_is_due(
    four: ReplicaProcess, tmp_path: Path, database_url: str
) -> None:
    def run(*command: str) -> Finished:
        finished = scrapy(*command, data=tmp_path, replica=four, DATABASE_URL=database_url)
        assert finished.code == 0, finished.log
        return finished

    row = ["imdb_id,title,kind,year,popularity,filmograph_id"]
    for index in (0, 1):
        movie = COLLECTION.title(index).movies["imdb"]
        site_id = COLLECTION.ids[SITE][index]
        row.append(f"{movie.imdb_id},{movie.title},movie,{movie.year},50,{site_id}")
    (tmp_path / "titles.csv").write_text("\n".join(row))
    run("catalogue", "import", "csv", "--from", "titles.csv")
    assert FILMS[0] in run("catalogue", "due", SITE).output
    run("crawl", SITE, "-a", "lane=due")
    stored = {movie.site_id for movie in postgres_movies(database_url)}
    assert stored >= {COLLECTION.ids[SITE][0], COLLECTION.ids[SITE][1]}
    assert (
        "Filmograph" in run("catalogue", "status").output
        or SITE in run("catalogue", "status").output
    )


@pytest.mark.promise("A site of another distribution is crawled, stored and shown like the others.")
def test_a_cluster_on_whose_nodes_it_is_installed_runs_and_shows_it(
    filled: World, redis_url: str, tmp_path: Path
) -> None:
    options = {
        **filled.replica.settings,
        "REDIS_URL": redis_url,
        "DATABASE_URL": DATABASE_URL,
        "DATA_DIR": str(tmp_path / "data"),
        "PYTHONPATH": os.environ["PYTHONPATH"],
    }
    with cluster(tmp_path, redis_url, 1, **options) as running:
        node = running.nodes[0]
        deployed = node.deploy(project_egg(), "moviecrawler", "v1").json
        assert deployed["spiders"] == len(SITES), deployed
        job = node.schedule(SITE, "moviecrawler", ids=f"{FILMS[0]},{SHOWS[0]}")
        (done,) = node.wait_for_end(job)
        assert (done["reason"], done["result"]) == ("finished", "ok")
        overview = node.get("").text
        assert "Filmograph" in overview
        metrics = node.get("metrics").text
        assert f'moviecrawler_titles_total{{outcome="stored",site="{SITE}"}} 2' in metrics
        name = COLLECTION.title(0).movies[SITE].title
        found = node.get("titles", q=name).text
        assert "Filmograph stars" in found
        title_id = found.split('href="/titles/')[1].split('"')[0]
        page = text_of(node.get(f"titles/{title_id}").text)
        assert "Filmograph approval" in page
