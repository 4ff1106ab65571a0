"""`scrapy deadletters`, from the command line, of crawls on a real Redis."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import redis
from scrapy import Request

from moviecrawler.frontier.dupefilter import fingerprint
from moviecrawler.frontier.keys import Keys
from moviecrawler.replica.process import ReplicaProcess
from tests.crawling import Finished, scrapy
from tests.frontier.workers import Workers
from tests.services.replica import IDS

KEYS = Keys("imdb", "default")
FORGED = (
    "200"
    + "0" * 32
    + '[1,"https://example.com/\\u001b[2J","imdb","parse_title","title_failed",{},"page",0,0,0,0,null,null]'
)


def dead_letters(redis_url: str, data: Path, *arguments: str) -> Finished:
    return scrapy("deadletters", *arguments, "-s", f"REDIS_URL={redis_url}", data=data)


def as_json(redis_url: str, data: Path, *arguments: str) -> dict[str, Any]:
    """Return the dead letters by id."""
    text = dead_letters(redis_url, data, "list", "--json", *arguments)
    assert text.code == 0, text.log
    return {letter["id"]: letter for letter in map(json.loads, text.output.splitlines())}


@pytest.fixture
def set_aside(replica: ReplicaProcess, redis_url: str, redis_client: redis.Redis, tmp_path: Path) -> list[str]:
    """Return the ids of three dead letters of a crawl: of a forged request, of what is none, and of a bad seed."""
    redis_client.rpush(KEYS.requests(2), FORGED, b"\x80\x04pickle\x1b[31m")
    redis_client.rpush("imdb:start_urls", "rubbish\x07")
    with Workers("imdb", f"ids={IDS[0]}", data=tmp_path, replica=replica, redis_url=redis_url) as workers:
        workers.start()
        assert workers.wait() == [0], workers.log
        assert len(workers.movies) == 1
    letters = as_json(redis_url, tmp_path)
    assert len(letters) == 3
    return sorted(letters)


def test_they_are_listed_with_nothing_that_could_move_a_cursor_and_queued_again_or_dropped_as_named(
    set_aside: list[str], redis_url: str, tmp_path: Path
) -> None:
    listed = dead_letters(redis_url, tmp_path)
    assert len(listed.output.splitlines()) == 3
    assert f"{'0' * 32}  imdb (default)  " in listed.output
    assert "https://example.com/\\x1b[2J" in listed.output
    assert "not an entry of this queue" in listed.output
    assert "seed rubbish\\x07" in listed.output
    assert listed.output.replace("\n", "").isprintable()
    shown = dead_letters(redis_url, tmp_path, "show", "0" * 32)
    assert "callback:    parse_title\n" in shown.output
    assert "deliveries:  01\n" in shown.output
    assert shown.output.replace("\n", "").isprintable()
    letter = as_json(redis_url, tmp_path)["0" * 32]
    assert letter["request"]["url"] == "https://example.com/\x1b[2J"
    assert "example.com" in letter["reason"]
    assert not as_json(redis_url, tmp_path, "--site", "metacritic")
    assert not as_json(redis_url, tmp_path, "--run", "other")
    assert dead_letters(redis_url, tmp_path, "--run", "other").output == "there are no dead letters\n"
    # Only what is named is queued again or dropped, and only if it can be.
    missing, forged = "1" * 32, "0" * 32
    dropped = dead_letters(redis_url, tmp_path, "drop", set_aside[1], missing)
    assert dropped.code == 1
    assert dropped.log.endswith(f"scrapy deadletters: there is no dead letter {missing}\n")
    assert dropped.output == f"{set_aside[1]} is dropped from imdb (default)\n"
    again = dead_letters(redis_url, tmp_path, "requeue", "--all")
    assert again.code == 1
    assert again.output == f"{forged} is queued again in imdb (default)\n"
    assert again.log.count("can't be queued again: ") == 1
    [left] = as_json(redis_url, tmp_path)
    assert left not in {forged, set_aside[1]}
    dead_letters(redis_url, tmp_path, "drop", "--all", "--site", "metacritic")
    assert list(as_json(redis_url, tmp_path)) == [left]
    assert dead_letters(redis_url, tmp_path, "drop", "--all").code == 0
    assert not as_json(redis_url, tmp_path)


def test_requeued_title_is_crawled(
    replica: ReplicaProcess, redis_url: str, redis_client: redis.Redis, tmp_path: Path
) -> None:
    titles = IDS[1:3]
    with Workers("imdb", f"ids={titles[0]}", data=tmp_path, replica=replica, redis_url=redis_url) as workers:
        workers.start()
        assert workers.wait() == [0], workers.log
        request = Request(f"{replica.urls['imdb']}/title/{titles[1]}/", meta={"site": "imdb"})
        letter = fingerprint(request)
        payload = [1, request.url, "imdb", "parse_title", "title_failed", {"site_id": titles[1], "found": None}]
        payload += ["page", 0, 0, 0, 0, None, None]
        redis_client.hset(
            KEYS.dead_letters, letter, f'{{"reason":"it kills","at":1000}}\n203{letter}{json.dumps(payload)}'
        )
        redis_client.hincrby(KEYS.state, "total", 1)
        redis_client.hincrby(KEYS.state, "failed", 1)
        assert dead_letters(redis_url, tmp_path, "requeue", letter).code == 0
        workers.start()
        assert workers.wait() == [0], workers.log
        assert sorted(str(movie.site_id) for movie in workers.movies) == sorted(titles)
    assert not as_json(redis_url, tmp_path)
