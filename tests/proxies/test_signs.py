"""Every sign by which a site refuses us: recognised, stored nowhere, and known to all nodes for as long as it should be."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
import redis

from moviecrawler.frontier.keys import SiteKeys
from moviecrawler.items import Site
from moviecrawler.proxies.quarantines import bans_key
from moviecrawler.replica.process import ReplicaProcess
from tests.crawling import change, counts, crawl
from tests.proxies.fleets import attempts, write_pools
from tests.services.forward_proxy import Mode, ProxyFleet
from tests.services.replica import COLLECTION

HOUR = 3600


def ids(site: Site, most: int = 6) -> str:
    return "ids=" + ",".join(list(COLLECTION.site_ids(site).values())[:most])


@pytest.mark.promise("When all pools of a site are refused, the site is stopped.")
@pytest.mark.parametrize(
    ("site", "fault", "expected", "hours"),
    [
        ("imdb", "challenge", "202 challenge", 24),
        ("metacritic", "429", "429 rate limit", 1),  # it says 30 seconds, and gets an hour
        ("rottentomatoes", "throttle", "200 unexpected: a page of", 6),
    ],
)
def test_sign_rests_the_proxies_and_then_the_site_for_all_nodes(
    site: Site,
    fault: str,
    expected: str,
    hours: int,
    replica: ReplicaProcess,
    redis_url: str,
    redis_client: redis.Redis,
    tmp_path: Path,
) -> None:
    with ProxyFleet([Mode.WORK] * 4) as fleet:
        change(replica, faults={fault: 1})
        finished = crawl(
            *(site, ids(site), *(["via=pages"] if site == "imdb" else [])),
            data=tmp_path,
            replica=replica,
            REDIS_URL=redis_url,
            PROXY_ORDER="datacenter",
            PROXY_POOLS=write_pools(tmp_path, datacenter=fleet.proxies),
            DOWNLOAD_SLOTS="{}",
            DOWNLOAD_DELAY="0",
        )
    assert finished.code == 1
    assert not finished.movies
    assert set(finished.misses.values()) <= {"blocked"}  # nothing is said of the titles
    lines = attempts(finished)
    assert lines
    assert all(f"→ {expected}" in line for line in lines)
    assert counts(replica, site)["requests"] <= 4 * 4
    samples = list((tmp_path / "kept").iterdir())
    assert samples
    assert all(sample.name.startswith(f"{site}-") and sample.stat().st_size < 20_000 for sample in samples)
    circuit = redis_client.hgetall(SiteKeys(site).circuit)
    assert isinstance(circuit, dict)
    pause = float(circuit[b"until"]) / 1000 - time.time()
    assert hours * HOUR - 60 < pause <= hours * HOUR + 1
    if fault != "throttle":
        bans = [json.loads(one) for one in redis_client.hvals(bans_key(site))]
        assert len(bans) == 4
        left = HOUR if fault == "429" else HOUR / 2
        assert all(left - 60 < one["until"] - time.time() <= left for one in bans)
