"""`scrapy progress`, from the command line, of crawls on a real Redis."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import redis

from moviecrawler.frontier.keys import Keys
from tests.crawling import LONGEST, environment, scrapy
from tests.frontier.workers import keys_of, make_run
from tests.processes import printed

TITLES = 60
MORE = 5


def figures(redis_url: str, data: Path, *arguments: str) -> list[dict[str, Any]]:
    """Return what `--json` tells of each run."""
    text = scrapy("progress", "--json", "-s", f"REDIS_URL={redis_url}", *arguments, data=data)
    assert text.code == 0, text.log
    runs: list[dict[str, Any]] = json.loads(text.output)["runs"]
    return runs


@pytest.fixture
def crawled(redis_url: str, redis_client: redis.Redis) -> str:
    """Return the URL of a Redis that holds what workers write that have crawled all titles."""
    write_run(redis_client, done=TITLES)
    return redis_url


def write_run(client: redis.Redis, done: int) -> Keys:
    """Write a run of which so many requests are done, and the rest are queued."""
    over: dict[str, Any] = {"over_at": round(1000 * (time.time() - 30)), "seeded": 1} if done == TITLES else {}
    keys = make_run(client, total=TITLES, done=done, **over)
    for number in range(TITLES - done):
        client.hset(keys.requests, str(number), "2 0 \n[]")
    return keys


def begin(client: redis.Redis) -> None:
    """Let it look as if a worker were at work and had found something to do."""
    keys = keys_of(client)
    client.zadd(keys.workers, {"third": 1e15})
    client.hset(keys.requests, mapping=dict.fromkeys(map(str, range(MORE)), "2 0 \n[]"))
    client.hincrby(keys.state, "total", MORE)
    client.hdel(keys.state, "over_at")


def end(client: redis.Redis) -> None:
    """Let it look as if that worker had done it and were gone."""
    keys = keys_of(client)
    client.delete(keys.requests, keys.workers)
    client.hincrby(keys.state, "done", MORE)
    client.hset(keys.state, "over_at", round(1000 * time.time()))


def watch(url: str, data: Path, stdout: int, reading: int, until: bytes, then: Callable[[], None]) -> str:
    """Return what `scrapy progress` prints to `stdout`, of which `reading` is the other end; do `then` after `until`."""
    command = [sys.executable, "-m", "scrapy", "progress", "-s", f"REDIS_URL={url}", "-s", "LOGSTATS_INTERVAL=0.2"]
    with subprocess.Popen(command, env=environment(data, None, TERM="xterm", COLUMNS="160"), stdout=stdout) as process:
        os.close(stdout)
        too_late = threading.Timer(LONGEST, process.kill)
        too_late.start()
        seen, done = b"", False
        for chunk in printed(reading):
            seen += chunk
            if until in seen and not done:
                then()
                done = True
        too_late.cancel()
        assert process.wait() == 0, seen
    return seen.decode()


@pytest.mark.promise("scrapy progress says how far all workers are.")
def test_json_holds_what_all_nodes_have_done(crawled: str, redis_client: redis.Redis, tmp_path: Path) -> None:
    [after] = figures(crawled, tmp_path)
    assert (after["site"], after["run"], after["state"]) == ("imdb", "default", "finished")
    assert (after["total"], after["done"], after["failed"], after["to_go"]) == (TITLES, TITLES, 0, 0)
    assert (after["workers"], after["seconds_left"]) == (0, 0)
    assert after["per_second"] == pytest.approx(TITLES / (after["ended_at"] - after["started_at"]), rel=0.01)
    assert after["stopped_until"] is None
    begin(redis_client)
    [during] = figures(crawled, tmp_path, "--site", "imdb", "--run", "default")
    assert (during["state"], during["workers"], during["to_go"]) == ("running", 1, MORE)
    assert during["per_second"] == pytest.approx(TITLES / (during["now"] - during["started_at"]))
    assert during["seconds_left"] == pytest.approx(MORE / during["per_second"])
    assert not figures(crawled, tmp_path, "--run", "other")
    assert not figures(crawled, tmp_path, "--site", "metacritic")


def test_lines_follow_the_crawl_to_its_end(crawled: str, redis_client: redis.Redis, tmp_path: Path) -> None:
    begin(redis_client)
    reading, writing = os.pipe()
    text = watch(crawled, tmp_path, writing, reading, b" left", lambda: end(redis_client)).splitlines()
    assert text[0].startswith(f"imdb (default) running: {TITLES} of {TITLES + MORE} requests done, {MORE} to go, ")
    finished = max(number for number, line in enumerate(text) if line.startswith("imdb"))
    assert text[finished].startswith(f"imdb (default) finished: {TITLES + MORE} of {TITLES + MORE} requests done, ")


def test_terminal_shows_bars_until_the_end(crawled: str, redis_client: redis.Redis, tmp_path: Path) -> None:
    begin(redis_client)
    ours, theirs = os.openpty()
    termios.tcsetwinsize(theirs, (40, 160))
    text = watch(crawled, tmp_path, theirs, ours, b" left", lambda: end(redis_client))
    assert "imdb (default) running:  92%|██████████████████▍ | 60/65, 5 to go, workers: 1, " in text
    assert "imdb (default) finished: 100%|████████████████████| 65/65, 0 to go, workers: 0, " in text


def test_spent_budget_is_shown(redis_url: str, redis_client: redis.Redis, tmp_path: Path) -> None:
    keys = write_run(redis_client, done=3)
    redis_client.hset(keys.site.budget, mapping={"used": 3, "day": int(time.time()) // 86_400})
    options = ["-s", f"SITE_BUDGETS={json.dumps({'www.imdb.com': {'per_day': 3}})}"]
    [run] = figures(redis_url, tmp_path, *options)
    assert (run["state"], run["used_today"], run["budget"]["per_day"]) == ("budget spent", 3, 3)
    assert run["to_go"] == TITLES - 3
    text = scrapy("progress", "--once", "-s", f"REDIS_URL={redis_url}", *options, data=tmp_path)
    assert text.output.startswith("imdb (default) budget spent: 3 of 60 requests done")
    assert ", 3 of 3 requests of the day" in text.output
    assert figures(redis_url, tmp_path)[0]["state"] == "no worker"


def test_refusal_of_a_site_is_shown_with_its_end(redis_url: str, redis_client: redis.Redis, tmp_path: Path) -> None:
    keys = write_run(redis_client, done=3)
    until = round(1000 * (time.time() + 3600))
    redis_client.hset(keys.site.circuit, mapping={"reason": "go\x1b[2J away", "until": until, "trips": 1})
    [run] = figures(redis_url, tmp_path)
    assert (run["state"], run["refusal"]) == ("stopped", "go\x1b[2J away")
    assert run["stopped_until"] == until / 1000
    text = scrapy("progress", "--once", "-s", f"REDIS_URL={redis_url}", data=tmp_path)
    assert " UTC: go\\x1b[2J away\n" in text.output


@pytest.mark.parametrize(
    ("arguments", "code", "expected"),
    [
        (["progress"], 2, "REDIS_URL is not set"),
        (["progress", "-s", "REDIS_URL=localhost:6379"], 2, "REDIS_URL is no Redis URL"),
        (["progress", "-s", "REDIS_URL=redis://127.0.0.1:1/0", "now"], 2, "takes no argument 'now'"),
        (["progress", "-s", "REDIS_URL=redis://me:s3cret@127.0.0.1:1/0"], 1, "Redis at REDIS_URL can't be asked: "),
        (["deadletters"], 2, "REDIS_URL is not set"),
        (["deadletters", "-s", "REDIS_URL=redis://127.0.0.1:1/0", "eat"], 2, "'eat' is none of list, show"),
        (["deadletters", "-s", "REDIS_URL=redis://127.0.0.1:1/0", "drop"], 2, "drop takes the ids of dead letters"),
        (["deadletters", "-s", "REDIS_URL=redis://127.0.0.1:1/0", "drop", "1", "--all"], 2, "drop takes the ids"),
        (["deadletters", "-s", "REDIS_URL=redis://me:s3cret@127.0.0.1:1/0"], 1, "Redis at REDIS_URL can't be asked: "),
    ],
)
def test_what_is_wrong_is_one_sentence(arguments: list[str], code: int, expected: str, tmp_path: Path) -> None:
    finished = scrapy(*arguments, data=tmp_path)
    assert finished.code == code
    assert expected in finished.log.strip().splitlines()[-1]
    assert "s3cret" not in finished.log
    assert "Traceback" not in finished.log


def test_crawls_that_are_over_for_long_are_shown_when_asked_for(
    redis_url: str, redis_client: redis.Redis, tmp_path: Path
) -> None:
    text = scrapy("progress", "--once", "-s", f"REDIS_URL={redis_url}", data=tmp_path)
    assert text.output == "there is no such crawl on this Redis; --all shows those that are over\n"
    missing = scrapy("progress", "--once", "--run", "nope", "-s", f"REDIS_URL={redis_url}", data=tmp_path)
    assert missing.code == 1
    assert "there is no run 'nope' on this Redis" in missing.log
    over_at = round(1000 * (time.time() - 7000))
    for number in range(40):
        keys = make_run(redis_client, f"job{number}", "metacritic", 7200 + number, total=5, done=5, over_at=over_at)
    redis_client.hdel(keys.state, "over_at")
    assert [run["run"] for run in figures(redis_url, tmp_path)] == ["job39"]
    assert figures(redis_url, tmp_path, "--site", "imdb") == []
    assert [run["run"] for run in figures(redis_url, tmp_path, "--run", "job7")] == ["job7"]
    assert len(figures(redis_url, tmp_path, "--all")) == 40
