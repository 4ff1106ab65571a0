"""A site that changes its pages in the middle of a crawl: what is told, and what the stores keep."""

from __future__ import annotations

import json
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from moviecrawler.catalogue.fields import names_of, present
from moviecrawler.items import Movie
from moviecrawler.monitors.file_book import FileBook
from moviecrawler.monitors.redis_book import RedisBook
from moviecrawler.replica.movies import Catalogue
from moviecrawler.replica.process import ReplicaProcess
from tests.crawling import crawl
from tests.monitors.receivers import Webhook
from tests.services.mongo import mongo_movies
from tests.services.postgres import postgres_movies

TITLES = 200
AS_BEFORE = 60
"""Answers of the second crawl before the pages change."""
IDS = "ids=" + ",".join(Catalogue(1, TITLES).imdb_id(index) for index in range(TITLES))
RUNTIME = {"runtime": "length", "duration": "span"}
"""What the pages call it, and what they call it when they have changed."""


@pytest.fixture
def replica() -> Iterator[ReplicaProcess]:
    with ReplicaProcess(titles=TITLES, light=True) as running:
        yield running


def change(replica: ReplicaProcess, names: dict[str, str], after: int = AS_BEFORE) -> None:
    body = json.dumps({"names": names, "after": after}).encode()
    urllib.request.urlopen(f"{replica.urls['imdb']}/__replica__/renames", data=body, timeout=10).close()


def fields(movies: list[Movie]) -> dict[str | None, set[str]]:
    return {movie.site_id: set(names_of(present(movie))) for movie in movies}


def counts_of(movies: list[Movie]) -> dict[str | None, dict[str, int | None]]:
    return {movie.site_id: {score.kind: score.count for score in movie.scores} for movie in movies}


def test_renamed_field_is_an_alarm_stops_the_crawl_and_erases_nothing(
    replica: ReplicaProcess, database_url: str, mongo_url: str, tmp_path: Path
) -> None:
    stores = {"DATABASE_URL": database_url, "MONGO_URL": mongo_url, "FRESHNESS_MARGIN": "0"}
    assert crawl("imdb", IDS, data=tmp_path, replica=replica, **stores).code == 0
    readers: dict[str, Callable[[], list[Movie]]] = {
        "postgres": lambda: postgres_movies(database_url),
        "mongo": lambda: mongo_movies(mongo_url),
    }
    before = {name: fields(read()) for name, read in readers.items()}

    change(replica, RUNTIME)
    with Webhook() as hook:
        again = crawl("imdb", IDS, data=tmp_path, replica=replica, ALARM_WEBHOOK=hook.url, **stores)

    assert again.code == 1
    assert "(coverage_collapsed)" in again.log
    assert again.stat("coverage/pages") < AS_BEFORE + 100
    told = [message["alarm"] for message in hook.messages if message["status"] == "opened"]
    assert told == ["coverage/imdb/runtime_minutes"]
    for name, read in readers.items():
        assert fields(read()) == before[name], name
    lacking = again.stat("coverage/pages") - again.stat("coverage/fields/runtime_minutes")
    book = FileBook(tmp_path)
    assert [alarm.name for alarm in book.open_alarms()] == ["coverage/imdb/runtime_minutes"]
    counted = {day.field: day for day in book.coverage("imdb", "2026-01-01")}
    assert counted["runtime_minutes"].pages - counted["runtime_minutes"].present >= lacking

    # The site takes it back: all is stored again, the alarm ends, and all is as before.
    change(replica, {}, 0)
    with Webhook() as hook:
        settings = {"ALARM_WEBHOOK": hook.url, "ALARM_EVERY": "0.2", **stores}
        deadline = time.monotonic() + 60
        while book.open_alarms():
            assert time.monotonic() < deadline
            assert crawl("imdb", IDS, data=tmp_path, replica=replica, **settings).code == 0
    book.close()
    assert [message["status"] for message in hook.messages] == ["recovered"]
    assert {name: fields(read()) for name, read in readers.items()} == before


def test_crawl_goes_on_when_told_to_and_still_erases_nothing(replica: ReplicaProcess, tmp_path: Path) -> None:
    first = crawl("imdb", IDS, data=tmp_path, replica=replica)
    before = fields(first.movies)
    time.sleep(0.01)
    change(replica, RUNTIME, 0)
    again = crawl("imdb", IDS, data=tmp_path, replica=replica, COVERAGE_STOP="0")
    assert again.code == 0
    assert again.stat("titles/stored") == TITLES
    assert "Alarm: coverage/imdb/runtime_minutes" in again.log
    assert fields(again.movies) == before


def test_blocks_are_an_alarm_of_their_own_and_no_coverage(replica: ReplicaProcess, tmp_path: Path) -> None:
    assert crawl("imdb", IDS, data=tmp_path, replica=replica).code == 0
    body = json.dumps({"challenge": 0.02}).encode()
    urllib.request.urlopen(f"{replica.urls['imdb']}/__replica__/faults", data=body, timeout=10).close()
    with Webhook() as hook:
        again = crawl("imdb", IDS, "via=pages", data=tmp_path, replica=replica, ALARM_WEBHOOK=hook.url)
    assert again.code == 1
    assert [message["alarm"] for message in hook.messages] == ["blocks/imdb"]
    assert 0 < again.stat("coverage/pages") < TITLES
    assert "imdb refused us" in hook.messages[0]["text"]


def test_nodes_that_share_a_redis_share_levels_and_send_one_message(
    replica: ReplicaProcess, redis_url: str, tmp_path: Path
) -> None:
    first, second, third = (tmp_path / name for name in ("first", "second", "third"))
    for folder in (first, second, third):
        folder.mkdir()
    shared = {"REDIS_URL": redis_url, "FRESHNESS_MARGIN": "0"}
    assert crawl("imdb", IDS, data=first, replica=replica, FRONTIER_RUN="one", **shared).code == 0
    change(replica, RUNTIME, 0)
    with Webhook() as hook:
        for folder, run in ((second, "two"), (third, "three")):
            ended = crawl("imdb", IDS, data=folder, replica=replica, FRONTIER_RUN=run, ALARM_WEBHOOK=hook.url, **shared)
            assert ended.code == 1, ended.log
            assert "(coverage_collapsed)" in ended.log
    assert [message["alarm"] for message in hook.messages] == ["coverage/imdb/runtime_minutes"]
    book = RedisBook(redis_url)
    assert [alarm.kind for alarm in book.open_alarms()] == ["coverage"]
    book.close()


def test_obscure_titles_after_famous_ones_are_no_alarm_and_have_a_level_of_their_own(tmp_path: Path) -> None:
    catalogue = Catalogue(1, 4_000)
    unscored = [
        found for found in map(catalogue.movie, range(1_000, 4_000)) if found.metascore is None and found.rating
    ]
    obscure = "ids=" + ",".join(found.imdb_id for found in unscored if 1_000 < (found.rating or (0, 0))[1] < 10_000)
    with ReplicaProcess(titles=4_000, light=True) as replica:
        famous = crawl("imdb", IDS, data=tmp_path, replica=replica)
        assert famous.code == 0
        assert famous.stat("coverage/fields/scores.metascore") > TITLES / 2
        ended = crawl("imdb", obscure, data=tmp_path, replica=replica)
        assert ended.code == 0, ended.log
        assert "Alarm: " not in ended.log
        assert ended.stat("coverage/pages") > TITLES
        assert not ended.stat("coverage/fields/scores.metascore")
        change(replica, RUNTIME)
        renamed = crawl("imdb", obscure, data=tmp_path, replica=replica, FRESHNESS_MARGIN="0")
    assert "(coverage_collapsed)" in renamed.log
    assert renamed.stat("coverage/pages") < AS_BEFORE + 100
    with closing(FileBook(tmp_path)) as book:
        assert [alarm.name for alarm in book.open_alarms()] == ["coverage/imdb/runtime_minutes"]


def test_renamed_votes_are_an_alarm(replica: ReplicaProcess, tmp_path: Path) -> None:
    facts = map(Catalogue(1, TITLES).metacritic, range(TITLES))
    slugs = "ids=" + ",".join(f"movie/{found.slug}" for found in facts if found)
    first = crawl("metacritic", slugs, data=tmp_path, replica=replica)
    assert first.code == 0
    before = counts_of(first.movies)
    assert sum(map(len, before.values())) > TITLES
    change(replica, {"reviewCount": "ballotCount"})
    again = crawl("metacritic", slugs, data=tmp_path, replica=replica, FRESHNESS_MARGIN="0")
    assert counts_of(again.movies) == before
    assert "(coverage_collapsed)" in again.log
    assert again.stat("coverage/pages") < AS_BEFORE + 100
    with closing(FileBook(tmp_path)) as book:
        alarms = {alarm.name for alarm in book.open_alarms()}
    assert alarms
    assert alarms <= {"coverage/metacritic/scores.metascore.count", "coverage/metacritic/scores.metacritic_user.count"}
