"""`scrapy deadletters`, from the command line, of crawls with Redis and without."""

import json
from pathlib import Path
from typing import Any

import pytest
import redis
from scrapy.settings import Settings

from moviecrawler import settings
from moviecrawler.frontier.contract import Worker
from moviecrawler.frontier.runs import describe_crawl, run_name
from moviecrawler.replica.process import ReplicaProcess
from tests.crawling import Finished, crawl, scrapy
from tests.passes import make_pass
from tests.services.replica import IDS
from tests.waiting import wait_for
from tests.workers import Workers, keys_of, paused

FORGED = '["parse_title","https://example.com/\\u001b[2J",{},"page"]'


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
            wait_for(lambda: workers.count("requests"))
            keys = keys_of(redis_client)
            redis_client.hset(
                keys.requests, mapping={"forged": f"2 0 -\n{FORGED}", "pickle": b"\x80\x04\x1b[31m"}
            )
            redis_client.hincrby(keys.state, "requested", 2)
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
    assert again.output == (
        "forged of imdb (default) waits for the next start with FRONTIER_RUN=default,"
        " which opens the run again for it\n"
    )
    assert list(as_json(redis_url, tmp_path)) == ["pickle"]
    dead_letters(redis_url, tmp_path, "drop", "--all", "--site", "metacritic")
    assert list(as_json(redis_url, tmp_path)) == ["pickle"]
    assert dead_letters(redis_url, tmp_path, "drop", "--all").code == 0
    assert not as_json(redis_url, tmp_path)


@pytest.mark.promise("Dead letters can be listed, queued again and dropped.")
def test_letter_is_requeued_into_a_pass_that_is_under_way(queue_url: str, tmp_path: Path) -> None:
    make_pass(tmp_path, queue_url, {"a": "dead", "b": "dead", "c": ""})
    assert sorted(as_json(queue_url, tmp_path)) == ["a", "b"]
    again = dead_letters(queue_url, tmp_path, "requeue", "a")
    assert again.output == (
        "a of imdb (weekly) joins the pass that is under way;"
        " start the crawl's command to go on with it\n"
    )
    assert list(as_json(queue_url, tmp_path)) == ["b"]
    progress = scrapy("progress", "--json", data=tmp_path, REDIS_URL=queue_url)
    [run] = json.loads(progress.output)["runs"]
    assert (run["total"], run["to_go"], run["requeued"], run["lost"]) == (4, 2, 0, 0)
    dropped = dead_letters(queue_url, tmp_path, "drop", "b")
    assert dropped.output == "b is dropped from imdb (weekly)\n"
    assert as_json(queue_url, tmp_path) == {}


@pytest.mark.promise("Dead letters can be listed, queued again and dropped.")
@pytest.mark.parametrize("name", ["", "once"])
def test_title_that_is_requeued_after_its_pass_is_fetched_by_the_next_start(
    name: str, queue_url: str, replica: ReplicaProcess, tmp_path: Path
) -> None:
    """Beside all that the arguments name; but where FRONTIER_RUN names the run, alone."""
    options = {"REDIS_URL": queue_url, "FRONTIER_RUN": name, "FRONTIER_PATIENCE": "5"}
    values = {name: value for name, value in vars(settings).items() if name.isupper()}
    given = Settings({**values, **replica.settings, **options})
    described = describe_crawl("imdb", given, {"ids": IDS[0]})
    worker = Worker(
        run=run_name("imdb", given, described),
        name="node-1",
        arguments=described,
        is_once=bool(name),
    )
    body = json.dumps(
        [
            "parse_title",
            f"{replica.urls['imdb']}/title/{IDS[1]}/",
            {"site_id": IDS[1], "found": None},
            "page",
        ]
    )
    make_pass(tmp_path, queue_url, {"letter": "dead"}, worker, body)
    again = dead_letters(queue_url, tmp_path, "requeue", "letter")
    expected = "which opens the run again for it" if name else "which fetches it beside all else"
    assert again.output.endswith(f"{expected}\n"), again.output
    assert not as_json(queue_url, tmp_path)
    finished = crawl("imdb", f"ids={IDS[0]}", data=tmp_path, replica=replica, **options)
    assert finished.code == 0 or name, finished.log
    stored = [str(movie.site_id) for movie in finished.movies]
    assert sorted(stored) == sorted([IDS[1]] if name else IDS[:2])
