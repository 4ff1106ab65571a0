"""`scrapy deadletters`, from the command line, of crawls on a real Redis."""

import json
from pathlib import Path
from typing import Any

import pytest
import redis

from moviecrawler.replica.process import ReplicaProcess
from tests.crawling import Finished, scrapy
from tests.frontier.workers import Workers, keys_of, paused
from tests.services.replica import IDS
from tests.waiting import wait_for

FORGED = '["parse_title","https://example.com/\\u001b[2J",{},"page",0]'


def dead_letters(redis_url: str, data: Path, *arguments: str) -> Finished:
    return scrapy("deadletters", *arguments, "-s", f"REDIS_URL={redis_url}", data=data)


def as_json(redis_url: str, data: Path, *arguments: str) -> dict[str, Any]:
    """Return the dead letters by id."""
    text = dead_letters(redis_url, data, "list", "--json", *arguments)
    assert text.code == 0, text.log
    return {letter["id"]: letter for letter in map(json.loads, text.output.splitlines())}


@pytest.fixture
def seed(replica: ReplicaProcess, redis_url: str, redis_client: redis.Redis, tmp_path: Path) -> str:
    """Return the id of the dead letter of a bad seed.

    There are two more, of a forged request and of what is none.
    """
    redis_client.rpush("imdb:start_urls", "rubbish\x07")
    with Workers(
        "imdb",
        f"ids={IDS[0]}",
        data=tmp_path,
        replica=replica,
        redis_url=redis_url,
        FRONTIER_RUN="default",
    ) as workers:
        with paused(replica):
            workers.start()
            wait_for(lambda: redis_client.zcard("{imdb}:runs"))
            keys = keys_of(redis_client)
            redis_client.hset(
                keys.requests, mapping={"forged": f"2 0 \n{FORGED}", "pickle": b"\x80\x04\x1b[31m"}
            )
        assert workers.wait() == [1], workers.log  # as there are dead letters
        assert len(workers.movies) == 1
    letters = as_json(redis_url, tmp_path)
    assert len(letters) == 3
    return next(one for one in letters if one.startswith("seed-"))


@pytest.mark.promise("Dead letters can be listed, queued again and dropped.")
def test_they_are_listed_with_nothing_that_could_move_a_cursor_and_queued_again_or_dropped_as_named(
    seed: str, redis_url: str, tmp_path: Path
) -> None:
    listed = dead_letters(redis_url, tmp_path)
    assert len(listed.output.splitlines()) == 3
    for part in (
        "forged  imdb (default)  ",
        "https://example.com/\\x1b[2J",
        "damaged, or written by another program",
        "rubbish\\x07",
    ):
        assert part in listed.output
    assert listed.output.replace("\n", "").isprintable()
    shown = dead_letters(redis_url, tmp_path, "show", "forged")
    assert "callback:    parse_title\n" in shown.output
    assert shown.output.replace("\n", "").isprintable()
    letter = as_json(redis_url, tmp_path)["forged"]
    assert letter["url"] == "https://example.com/\x1b[2J"
    assert letter["reason"].startswith("no request of imdb: ")
    assert not as_json(redis_url, tmp_path, "--site", "metacritic")
    assert (
        dead_letters(redis_url, tmp_path, "--run", "other").output == "there are no dead letters\n"
    )
    # Only what is named is queued again or dropped.
    dropped = dead_letters(redis_url, tmp_path, "drop", seed, "missing")
    assert dropped.code == 1
    assert dropped.log.endswith("scrapy deadletters: there is no dead letter missing\n")
    assert dropped.output == f"{seed} is dropped from imdb (default)\n"
    again = dead_letters(redis_url, tmp_path, "requeue", "-s", "LOG_LEVEL=INFO", "forged")
    assert (
        again.output
        == "forged is queued again in imdb (default); start the crawl's command again\n"
    )
    assert list(as_json(redis_url, tmp_path)) == ["pickle"]
    dead_letters(redis_url, tmp_path, "drop", "--all", "--site", "metacritic")
    assert list(as_json(redis_url, tmp_path)) == ["pickle"]
    assert dead_letters(redis_url, tmp_path, "drop", "--all").code == 0
    assert not as_json(redis_url, tmp_path)


@pytest.mark.promise("Dead letters can be listed, queued again and dropped.")
def test_requeued_title_is_crawled_by_the_next_start(
    replica: ReplicaProcess, redis_url: str, redis_client: redis.Redis, tmp_path: Path
) -> None:
    with Workers(
        "imdb",
        f"ids={IDS[0]}",
        data=tmp_path,
        replica=replica,
        redis_url=redis_url,
        FRONTIER_RUN="once",
    ) as workers:
        workers.start()
        assert workers.wait() == [0], workers.log
        keys = keys_of(redis_client)
        body = [
            "parse_title",
            f"{replica.urls['imdb']}/title/{IDS[1]}/",
            {"site_id": IDS[1], "found": None},
            "page",
            0,
        ]
        redis_client.hset(
            keys.dead, "letter", f'{{"reason":"it kills","at":1000}}\n2 5 w\n{json.dumps(body)}'
        )
        redis_client.hincrby(keys.state, "total", 1)
        redis_client.hincrby(keys.state, "failed", 1)
        assert dead_letters(redis_url, tmp_path, "requeue", "letter").code == 0
        workers.start()
        assert workers.wait() == [0], workers.log
        assert sorted(str(movie.site_id) for movie in workers.movies) == sorted(IDS[:2])
    assert not as_json(redis_url, tmp_path)
