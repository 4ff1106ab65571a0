"""`scrapy progress`, from the command line, of crawls on a real Redis."""

import json
import time
from pathlib import Path
from typing import Any

import pytest
import redis

from moviecrawler.frontier.keys import Keys
from tests.crawling import Finished, scrapy
from tests.frontier.workers import make_run

TITLES = 60


def progress(redis_url: str, data: Path, *arguments: str) -> Finished:
    return scrapy("progress", "-s", f"REDIS_URL={redis_url}", *arguments, data=data)


def figures(redis_url: str, data: Path, *arguments: str) -> list[dict[str, Any]]:
    """Return what `--json` tells of each run."""
    text = progress(redis_url, data, "--json", *arguments)
    assert text.code == 0, text.log
    runs: list[dict[str, Any]] = json.loads(text.output)["runs"]
    return runs


def write_run(client: redis.Redis, done: int, workers: int = 0) -> Keys:
    """Write a run of which so many requests are done, and the rest are queued."""
    over: dict[str, Any] = {"over_at": round(1000 * (time.time() - 30))} if done == TITLES else {}
    keys = make_run(client, total=TITLES, done=done, **over)
    for number in range(TITLES - done):
        client.hset(keys.requests, str(number), "2 0 \n[]")
    for number in range(workers):
        client.zadd(keys.workers, {str(number): 1e15})
    client.zadd(keys.workers, {"killed": 1000 * time.time() - 1})
    return keys


@pytest.mark.promise("scrapy progress says how far all workers are.")
@pytest.mark.parametrize(
    ("done", "workers", "state"),
    [(TITLES, 0, "finished"), (55, 2, "running"), (55, 0, "no worker")],
)
def test_figures_are_those_of_all_workers(
    done: int, workers: int, state: str, redis_url: str, redis_client: redis.Redis, tmp_path: Path
) -> None:
    make_run(redis_client, ago=600, total=9, done=9, over_at=1)  # an earlier run of the same name
    write_run(redis_client, done, workers)
    [run] = figures(redis_url, tmp_path, "--site", "imdb", "--run", "default")
    assert (run["site"], run["run"], run["state"], run["workers"]) == (
        "imdb",
        "default",
        state,
        workers,
    )
    assert (run["total"], run["done"], run["failed"], run["to_go"]) == (
        TITLES,
        done,
        0,
        TITLES - done,
    )
    assert run["per_second"] == pytest.approx(
        done / ((run["ended_at"] or run["now"]) - run["started_at"])
    )
    assert run["seconds_left"] == pytest.approx((TITLES - done) / run["per_second"])
    header, _, row = progress(redis_url, tmp_path).output.splitlines()
    assert header.split("  ")[-1] == "today"
    assert row.startswith("imdb")
    assert f"{done} of {TITLES}" in row
    assert (" 0:00:0" in row) == (state == "running")


def test_spent_budget_and_refusal_are_shown(
    redis_url: str, redis_client: redis.Redis, tmp_path: Path
) -> None:
    keys = write_run(redis_client, done=3)
    redis_client.hset(keys.site.budget, mapping={"used": 3, "day": int(time.time()) // 86_400})
    options = ["-s", f"SITE_BUDGETS={json.dumps({'www.imdb.com': {'per_day': 3}})}"]
    assert not figures(redis_url, tmp_path, "--run", "other")
    assert not figures(redis_url, tmp_path, "--site", "metacritic")
    [run] = figures(redis_url, tmp_path, *options)
    assert (run["state"], run["used_today"], run["budget"]["per_day"]) == ("budget spent", 3, 3)
    assert progress(redis_url, tmp_path, *options).output.endswith("  3 of 3\n")
    until = round(1000 * (time.time() + 3600))
    redis_client.hset(
        keys.site.circuit, mapping={"reason": "go\x1b[2J away", "until": until, "trips": 1}
    )
    [run] = figures(redis_url, tmp_path)
    assert (run["state"], run["refusal"], run["stopped_until"]) == (
        "stopped",
        "go\x1b[2J away",
        until / 1000,
    )
    assert progress(redis_url, tmp_path).output.endswith(" UTC: go\\x1b[2J away\n")


def test_crawls_that_are_over_for_long_are_shown_when_asked_for(
    redis_url: str, redis_client: redis.Redis, tmp_path: Path
) -> None:
    assert progress(redis_url, tmp_path).output.startswith(
        "there is no such crawl on this Redis; --all shows"
    )
    missing = progress(redis_url, tmp_path, "--run", "nope")
    assert missing.code == 1
    assert "there is no run 'nope' on this Redis" in missing.log
    over_at = round(1000 * (time.time() - 7000))
    for number in range(40):
        keys = make_run(
            redis_client,
            f"job{number}",
            "metacritic",
            7200 + number,
            total=5,
            done=5,
            over_at=over_at,
        )
    redis_client.hdel(keys.state, "over_at")
    assert [run["run"] for run in figures(redis_url, tmp_path)] == ["job39"]
    assert [run["run"] for run in figures(redis_url, tmp_path, "--run", "job7")] == ["job7"]
    assert len(figures(redis_url, tmp_path, "--all")) == 40
