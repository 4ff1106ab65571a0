"""What a crawl tells the dashboard: how its stores do, and the pages that it could not read."""

from __future__ import annotations

import json
import time
from pathlib import Path

import redis

from moviecrawler.extensions.crawl_keys import CrawlKeys
from moviecrawler.extensions.failed_pages import read_sample
from moviecrawler.extensions.store_stats import ProcessFigures, read_figures
from moviecrawler.replica.process import ReplicaProcess
from tests.crawling import change, crawl
from tests.services.replica import IDS

TITLES = 12
TWELVE = ",".join(IDS[:TITLES])


def figures(client: redis.Redis) -> list[ProcessFigures]:
    """Return those of processes that have ended."""
    kept: list[bytes] = client.lrange(CrawlKeys.ENDED, 0, -1)  # type: ignore[assignment]  # without decode_responses
    return [one for text in kept if (one := read_figures(text)) is not None]


def test_crawl_tells_how_its_stores_did(
    replica: ReplicaProcess, redis_url: str, redis_client: redis.Redis, tmp_path: Path
) -> None:
    old = json.dumps({"site": "imdb", "run": "x", "node": "n", "at": 1, "ended": True, "stores": {}})
    redis_client.hset(CrawlKeys.STORES, mapping={"long ago": old, "of another version": "{}"})
    redis_client.lpush(CrawlKeys.ENDED, *["{}"] * 30)
    before = time.time()
    done = crawl("imdb", f"ids={TWELVE}", data=tmp_path, replica=replica, REDIS_URL=redis_url, FRONTIER_NODE="here")
    assert done.code == 0, done.log
    [told] = figures(redis_client)
    assert (told.site, told.run, told.node, told.ended) == ("imdb", "default", "here", True)
    assert before < told.at <= time.time()
    store = told.stores["csv"]
    assert (store.durable, store.rejected, store.retries, store.held) == (TITLES, 0, 0, 0)
    assert store.latency is not None
    assert store.room >= 500
    assert 0 < redis_client.ttl(CrawlKeys.ENDED) <= 86_400
    assert redis_client.llen(CrawlKeys.ENDED) == 20
    assert redis_client.hlen(CrawlKeys.STORES) == 0
    assert redis_client.hlen(CrawlKeys.SAMPLES) == 0


def test_page_that_could_not_be_read_is_kept_as_it_came(
    replica: ReplicaProcess, redis_url: str, redis_client: redis.Redis, tmp_path: Path
) -> None:
    change(replica, renames={"titleText": "nameOfTheTitle"})
    done = crawl("imdb", f"ids={TWELVE}", data=tmp_path, replica=replica, REDIS_URL=redis_url)
    failed = {site_id for site_id, outcome in done.misses.items() if outcome == "failed"}
    assert failed, done.log
    kept: dict[bytes, bytes] = redis_client.hgetall(CrawlKeys.SAMPLES)  # type: ignore[assignment]  # without decode_responses
    assert kept
    for name, text in kept.items():
        sample, page = read_sample(text)
        assert name.decode() == f"imdb/{sample.field}"
        assert sample.site_id in failed
        assert sample.reason.startswith(f"{sample.field}: ")
        assert sample.size == len(page)
        assert b"nameOfTheTitle" in page
    assert 0 < redis_client.ttl(CrawlKeys.SAMPLES) <= 7 * 86_400
    [key] = redis_client.keys(CrawlKeys.unreadable("*"))
    counted: dict[bytes, bytes] = redis_client.hgetall(key)  # type: ignore[assignment]  # as above
    assert set(counted) == set(kept)
    assert sum(map(int, counted.values())) == done.stat("titles/failed") == len(failed)
    assert 0 < redis_client.ttl(key) <= 8 * 86_400
