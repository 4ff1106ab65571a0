"""`scrapy progress`, from the command line, of crawls with Redis and without."""

import json
import time
from pathlib import Path
from typing import Any

import pytest
import redis

from tests.crawling import Finished, scrapy
from tests.passes import make_pass
from tests.run_keys import RunKeys
from tests.workers import make_run

TITLES = 60


def progress(redis_url: str, data: Path, *arguments: str) -> Finished:
    return scrapy("progress", *arguments, "-s", f"REDIS_URL={redis_url}", data=data)


def figures(redis_url: str, data: Path, *arguments: str) -> list[dict[str, Any]]:
    """Return what `--json` tells of each run."""
    text = progress(redis_url, data, "--json", *arguments)
    assert text.code == 0, text.log
    runs: list[dict[str, Any]] = json.loads(text.output)["runs"]
    return runs


def write_run(client: redis.Redis, done: int, workers: int = 0) -> RunKeys:
    """Write a run of which so many requests are done, and the rest are queued."""
    over: dict[str, Any] = {"over_at": round(1000 * (time.time() - 30))} if done == TITLES else {}
    keys = make_run(client, requested=TITLES, titles=TITLES, stored=done, **over)
    for number in range(TITLES - done):
        client.hset(keys.requests, str(number), "2 0 -\n[]")
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
    assert header.split()[-2:] == ["today", "run"]
    assert row.startswith("imdb")
    assert row.endswith("  default")
    assert f"{done} of {TITLES}" in row
    assert (" 0:00:0" in row) == (state == "running")


@pytest.mark.promise("scrapy progress says how far all workers are.")
def test_account_has_each_outcome_with_redis_and_without(queue_url: str, tmp_path: Path) -> None:
    assert figures(queue_url, tmp_path) == []
    assert list(tmp_path.iterdir()) == []  # to look makes no file
    outcomes = {"a": "stored", "b": "absent", "c": "failed", "d": "dead", "e": "", "f": "read"}
    make_pass(tmp_path, queue_url, outcomes)
    [run] = figures(queue_url, tmp_path)
    expected = {
        "run": "weekly",
        "state": "no worker",
        "total": 7,
        "done": 5,
        "failed": 1,
        "to_go": 1,
        "lost": 0,
        "dead_letters": 1,
        "requeued": 0,
        "workers": 0,
        "ended_at": None,
    }
    assert expected.items() <= run.items()
    assert run["account"] == {
        "requested": 7,
        "titles": 5,
        "stored": 1,
        "absent": 1,
        "fresh": 0,
        "failed": 1,
        "disallowed": 0,
        "dead": 1,
        "read": 2,
        "unread": 0,
        "open": 1,
    }
    [_, _, row] = progress(queue_url, tmp_path).output.splitlines()
    assert row.split()[:2] == ["imdb", "no"]
    assert "5 of 7" in row


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
    assert progress(redis_url, tmp_path, *options).output.endswith("  3 of 3  default\n")
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
    assert progress(redis_url, tmp_path).output.startswith("there is no such crawl; --all shows")
    over_at = round(1000 * (time.time() - 7000))
    for number in range(40):
        keys = make_run(
            redis_client,
            f"job{number}",
            "metacritic",
            7200 + number,
            requested=5,
            stored=5,
            over_at=over_at,
        )
    # A run with something open is listed however old it is, and so is one with a requeued letter.
    redis_client.hdel(keys.state, "over_at")
    letter = '{"reason":"x","at":1}\n2 5 -\n[]'
    redis_client.hset(RunKeys(keys.site, "job3").requeued, "letter", letter)
    assert [run["run"] for run in figures(redis_url, tmp_path)] == ["job39", "job3"]
    assert [run["run"] for run in figures(redis_url, tmp_path, "--run", "job7")] == ["job7"]
    assert len(figures(redis_url, tmp_path, "--all")) == 40
    shown = progress(redis_url, tmp_path).output
    assert "(job3): requeued dead letters that wait for its next start: 1\n" in shown


def test_run_is_dropped_and_its_dead_letters_stay(queue_url: str, tmp_path: Path) -> None:
    make_pass(tmp_path, queue_url, {"a": "stored", "b": "dead", "c": "", "d": ""})
    refused = progress(queue_url, tmp_path, "drop", "--run", "weekly", "--site", "metacritic")
    assert refused.code == 1
    assert "'weekly' of metacritic" in refused.log
    [run] = figures(queue_url, tmp_path)
    assert run["to_go"] == 2
    dropped = progress(queue_url, tmp_path, "drop", "--run", "weekly")
    assert dropped.code == 0, dropped.log
    assert dropped.output == (
        "imdb (weekly) is dropped; requests that were queued: 2; dead letters, which stay: 1\n"
    )
    [left] = figures(queue_url, tmp_path, "--all")
    assert (left["total"], left["to_go"], left["dead_letters"]) == (0, 0, 1)
    letters = scrapy("deadletters", "--json", data=tmp_path, REDIS_URL=queue_url)
    assert json.loads(letters.output)["id"] == "b"
    assert progress(queue_url, tmp_path, "drop", "--run", "weekly").code == 1
    # What was seen is forgotten with the run, and it begins anew.
    make_pass(tmp_path, queue_url, {"a": "stored"})
    [run] = figures(queue_url, tmp_path)
    assert (run["total"], run["done"], run["dead_letters"]) == (2, 2, 1)
