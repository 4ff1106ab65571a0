"""A store that is away is a sentence on the page: never an error, and never a long wait."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from moviecrawler.clock import utc_now
from moviecrawler.extensions.crawl_keys import CrawlKeys
from tests.cluster.nodes import Node, cluster
from tests.dashboard.operated import text_of
from tests.services.postgres import PostgresServer, new_database
from tests.services.redis import RedisServer
from tests.waiting import wait_for

PAGES = ["", "crawls", "nodes", "proxies", "stores", "quality", "titles"]
WITHIN = 12.0
"""Seconds on a machine that does other things, too."""


@pytest.fixture
def redis() -> Iterator[RedisServer]:
    with RedisServer() as server:
        yield server


def get(node: Node, path: str) -> str:
    began = time.monotonic()
    answer = node.request(path)
    assert time.monotonic() - began < WITHIN
    assert answer.code == 200, (path, answer.text)
    return text_of(answer.text)


def test_stores_that_go_and_come_back(tmp_path: Path, redis: RedisServer) -> None:
    with PostgresServer() as postgres:
        url = new_database(postgres.url)
        with cluster(tmp_path, redis.url, 1, REDIS_URL=redis.url, DATABASE_URL=url) as running:
            [node] = running.nodes
            lacking = get(node, "titles")
            assert "The database lacks tables of this version; the next crawl makes them" in lacking
            postgres.stop()
            for path in ("", "quality", "titles"):
                told = get(node, path)
                assert path == "" or "Not all can be shown." in told
            assert "Not all can be shown. The database can't be reached" in get(node, "titles")
            postgres.start()
            wait_for(lambda: "lacks tables" in get(node, "titles"))
            redis.stop()
            for path in PAGES:
                told = get(node, path)
                if path != "titles":
                    assert "Not all can be shown. Redis can't be asked" in told, path
            assert "needs attention: nothing" not in get(node, "")
            assert "attention: a store can't be asked" in get(node, "")
            redis.start()
            wait_for(lambda: "Not all" not in get(node, "crawls"))


def test_node_without_stores_says_what_is_not_set(tmp_path: Path, redis: RedisServer) -> None:
    with cluster(tmp_path, redis.url, 1) as running:
        [node] = running.nodes
        told = {path: get(node, path) for path in PAGES}
        assert "✓ Nothing needs attention." in told[""]
        assert "DATABASE_URL is not set in this node’s environment" in told[""]
        assert "REDIS_URL is not set in this node’s environment" in told["crawls"]
        assert "DATABASE_URL is not set in the node's environment" in told["titles"]
        assert "What a store refuses stands in rejected.jsonl in the DATA_DIR of its node" in told["stores"]
        assert "Neither DATABASE_URL nor REDIS_URL is set" in told["quality"]
        assert "could be read" not in told["quality"]
        assert "Due –" in told[""]


def test_pages_that_could_not_be_read_are_counted_without_a_database(tmp_path: Path, redis: RedisServer) -> None:
    today = utc_now().date()
    for days, number in ((0, 2), (6, 3), (7, 50)):
        redis.client.hset(
            CrawlKeys.unreadable((today - timedelta(days=days)).isoformat()),
            mapping={"imdb/title": number, "metacritic/scores": 1},
        )
    redis.client.hset(CrawlKeys.SAMPLES, "imdb/title", "{}")
    with cluster(tmp_path, redis.url, 1, REDIS_URL=redis.url) as running:
        [node] = running.nodes
        told = get(node, "quality")
        assert "IMDb title 5 – – Kept page Metacritic scores 2 – – –" in told
        redis.client.delete(*redis.client.keys(CrawlKeys.unreadable("*")))
        assert "Every page of the last 7 days that was fetched could be read." in get(node, "quality")
