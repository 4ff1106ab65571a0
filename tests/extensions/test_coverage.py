"""A site that changes its pages in the middle of a crawl: what is told, and what the stores keep."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
import redis

from moviecrawler.extensions.crawl_keys import CrawlKeys
from moviecrawler.extensions.failed_pages import read_sample
from moviecrawler.items import Movie
from moviecrawler.monitors.alarm_store import open_alarm_store
from moviecrawler.monitors.places import GONE_AFTER_PAGES
from moviecrawler.replica.movies import Catalogue
from moviecrawler.replica.process import ReplicaProcess
from tests.crawling import change, crawl
from tests.monitors.receivers import Webhook
from tests.services.mongo import mongo_movies
from tests.services.postgres import postgres_movies

TITLES = 80
AS_BEFORE = 20
"""Answers of the second crawl before the pages change."""
CATALOGUE = Catalogue(1, TITLES)
IDS = "ids=" + ",".join(CATALOGUE.imdb_id(index) for index in range(TITLES))
ASKED_AS_SITES_ARE = json.dumps({"127.0.0.1": {"delay": 0.02, "concurrency": 2}})
"""Most requests that the crawl has taken up wait in the downloader."""
IN_FLIGHT = 6
"""Pages that are being fetched and read when a crawl stops, at most; they are stored."""
RATING = {"aggregateRating": "meanOfVotes"}
"""What the pages call IMDb's rating, and what they call it when they have changed."""


@pytest.fixture(scope="module")
def running_replica() -> Iterator[ReplicaProcess]:
    with ReplicaProcess(titles=TITLES, light=True) as running:
        yield running


def rename(replica: ReplicaProcess, names: dict[str, str], after: int = AS_BEFORE) -> None:
    change(replica, renames=names, rename_after=after)


def scores(movies: list[Movie]) -> dict[str | None, list[tuple[str, float, int | None]]]:
    return {movie.site_id: sorted((score.kind, score.value, score.count) for score in movie.scores) for movie in movies}


def alarms(folder: Path) -> list[str]:
    with closing(open_alarm_store({"DATA_DIR": folder})) as store:
        return [alarm.name for alarm in store.open_alarms()]


def test_renamed_score_is_an_alarm_within_50_pages_and_loses_nothing(
    replica: ReplicaProcess, database_url: str, mongo_url: str, tmp_path: Path
) -> None:
    stores = {"DATABASE_URL": database_url, "MONGO_URL": mongo_url, "FRESHNESS_MARGIN": "0"}
    first = crawl("imdb", IDS, data=tmp_path, replica=replica, **stores)
    assert first.code == 0
    readers: dict[str, Callable[[], list[Movie]]] = {
        "csv": lambda: first.movies,
        "postgres": lambda: postgres_movies(database_url),
        "mongo": lambda: mongo_movies(mongo_url),
    }
    before = {name: scores(read()) for name, read in readers.items()}

    rename(replica, RATING)
    with Webhook() as hook:
        again = crawl("imdb", IDS, data=tmp_path, replica=replica, ALARM_WEBHOOK=hook.url, **stores)
    assert again.code == 0, again.log
    assert again.stat("titles/stored") == TITLES
    (told,) = [message for message in hook.messages if message["status"] == "opened"]
    assert told["alarm"] == "coverage/imdb/scores.imdb"
    assert "such as tt" in told["text"]
    silent = again.stat("coverage/silent/scores.imdb")
    assert again.stat("coverage/partial") >= silent >= TITLES - AS_BEFORE - 1
    assert f"{silent:,} silent of scores.imdb, such as tt" in again.log
    assert {name: scores(read()) for name, read in readers.items()} == before
    with closing(open_alarm_store({"DATA_DIR": tmp_path})) as store:
        assert store.examples("imdb")["scores.imdb"].site_id in before["csv"]
        assert sum(day.silent for day in store.coverage("imdb", "2026-01-01") if day.field == "scores.imdb") == silent

    # The site takes it back: all is stored again, the alarm ends, and all is as before.
    rename(replica, {}, 0)
    with Webhook() as hook:
        settings = {"ALARM_WEBHOOK": hook.url, "ALARM_EVERY": "0.2", **stores}
        deadline = time.monotonic() + 60
        while alarms(tmp_path):
            assert time.monotonic() < deadline
            assert crawl("imdb", IDS, data=tmp_path, replica=replica, **settings).code == 0
    assert [message["status"] for message in hook.messages] == ["recovered"]
    assert {name: scores(read()) for name, read in readers.items()} == before


@pytest.mark.parametrize(
    ("names", "why"),
    [
        ({**RATING, '"metacritic"': '"critics"'}, "30 title pages in a row are silent of every score, such as tt"),
        (
            {"titleText": "nameOfTheTitle", "og:title": "og:name", "<title>": "<name>", '"name"': '"called"'},
            "30 title pages in a row can't be read, such as tt",
        ),
    ],
    ids=["all scores", "identity"],
)
def test_crawl_stops_when_all_scores_or_identity_are_gone_and_says_how_to_go_on(
    replica: ReplicaProcess, tmp_path: Path, names: dict[str, str], why: str
) -> None:
    rename(replica, names, after=10)
    ended = crawl("imdb", IDS, data=tmp_path, replica=replica, DOWNLOAD_SLOTS=ASKED_AS_SITES_ARE)
    assert ended.code == 1
    assert "(pages_changed)" in ended.log
    assert why in ended.log
    assert "COVERAGE_STOP=0" in ended.log
    read = ended.stat("coverage/pages") + ended.stat("titles/failed")
    assert read <= 10 + GONE_AFTER_PAGES + IN_FLIGHT
    # What was not asked for is neither failed nor blocked: the same command asks for it.
    assert f"{TITLES - read} titles of this crawl were not done" in ended.log
    on = crawl("imdb", IDS, data=tmp_path, replica=replica, COVERAGE_STOP="0", FRESHNESS_MARGIN="0")
    assert "(finished)" in on.log
    kind = "coverage/imdb/scores" if "score" in why else "extraction_errors/imdb"
    assert kind in alarms(tmp_path)


def test_titles_that_a_stopping_crawl_has_not_asked_for_stay_in_the_shared_queue(
    replica: ReplicaProcess, redis_url: str, tmp_path: Path
) -> None:
    rename(replica, {**RATING, '"metacritic"': '"critics"'}, after=10)
    shared = {"REDIS_URL": redis_url, "DOWNLOAD_SLOTS": ASKED_AS_SITES_ARE}
    stopped = crawl("imdb", IDS, data=tmp_path, replica=replica, **shared)
    assert "(pages_changed)" in stopped.log
    assert len(stopped.movies) <= 10 + GONE_AFTER_PAGES + IN_FLIGHT
    rename(replica, {}, 0)
    on = crawl("imdb", IDS, data=tmp_path, replica=replica, REDIS_URL=redis_url)
    assert on.code == 0, on.log
    assert len(on.movies) == TITLES


def test_blocks_are_an_alarm_of_their_own_and_a_receiver_that_is_away_holds_nothing_up(
    replica: ReplicaProcess, tmp_path: Path
) -> None:
    with Webhook() as hook:
        away = hook.url
    assert crawl("imdb", IDS, data=tmp_path, replica=replica).code == 0
    change(replica, faults={"challenge": 0.05})
    with Webhook() as hook:
        receivers = {"ALARM_WEBHOOK": hook.url, "SPIDERMON_DISCORD_WEBHOOK_URL": away}
        again = crawl("imdb", IDS, "via=pages", data=tmp_path, replica=replica, **receivers)
    assert again.code == 1
    assert {message["alarm"] for message in hook.messages} == {"blocks/imdb"}
    assert "SendDiscordMessage could not notify people (ConnectionError)" in again.log
    assert "s3cret-token" not in again.log.replace(hook.url, "").replace(away, "")
    assert 0 < again.stat("coverage/pages") < TITLES
    assert "imdb refused us" in hook.messages[0]["text"]


def test_nodes_that_share_a_redis_know_the_same_places_send_one_message_and_keep_a_page(
    replica: ReplicaProcess, redis_url: str, redis_client: redis.Redis, tmp_path: Path
) -> None:
    shared = {"REDIS_URL": redis_url, "FRESHNESS_MARGIN": "0"}
    assert crawl("imdb", IDS, data=tmp_path / "one", replica=replica, FRONTIER_RUN="one", **shared).code == 0
    rename(replica, RATING, 0)
    with Webhook() as hook:
        for run in ("two", "three"):
            given = {"FRONTIER_RUN": run, "ALARM_WEBHOOK": hook.url, **shared}
            ended = crawl("imdb", IDS, data=tmp_path / run, replica=replica, **given)
            assert ended.code == 0, ended.log
    assert [message["alarm"] for message in hook.messages] == ["coverage/imdb/scores.imdb"]
    with closing(open_alarm_store({"REDIS_URL": redis_url})) as store:
        assert [alarm.kind for alarm in store.open_alarms()] == ["coverage"]
    kept: dict[bytes, bytes] = redis_client.hgetall(CrawlKeys.SAMPLES)  # type: ignore[assignment]  # without decode_responses
    sample, page = read_sample(kept[b"imdb/silent scores.imdb"])
    assert sample.reason.startswith("silent of ")
    assert "scores.imdb" in sample.reason
    assert b"meanOfVotes" in page
