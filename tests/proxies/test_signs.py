"""Every sign by which a site refuses us.

It is recognised, stored nowhere, and known to all nodes for as long as it should be.
"""

import re
import time
from pathlib import Path
from typing import Any

import pytest
import redis

from moviecrawler.items import Site
from moviecrawler.proxies.quarantines import decode_bans
from moviecrawler.replica.process import ReplicaProcess
from tests.crawling import change, counts, crawl
from tests.run_keys import SiteKeys, bans_key
from tests.services.forward_proxy import Mode, ProxyFleet
from tests.services.replica import COLLECTION


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
    ids = ",".join(list(COLLECTION.ids[site].values())[:6])
    change(replica, faults={fault: 1})
    with ProxyFleet([Mode.WORK] * 4) as fleet:
        finished = crawl(
            site,
            f"ids={ids}",
            *(["via=pages"] if site == "imdb" else []),
            data=tmp_path,
            replica=replica,
            REDIS_URL=redis_url,
            **fleet.settings(tmp_path),
            DOWNLOAD_SLOTS="{}",
            DOWNLOAD_DELAY="0",
        )
    assert (finished.code, finished.movies) == (1, [])
    assert set(finished.misses.values()) <= {"blocked"}  # nothing is said of the titles
    ended = re.findall(
        r"INFO: attempt \S+ GET \S+/(?:title|movie|m)/\S+ via \S+ → (.*)", finished.log
    )
    assert {one.startswith(expected) for one in ended} == {True}
    assert counts(replica, site)["requests"] <= 4 * 4
    assert {path.name.startswith(f"{site}-") for path in (tmp_path / "kept").iterdir()} == {True}
    circuit: Any = redis_client.hgetall(SiteKeys(site).circuit)
    assert hours * 3600 - 60 < float(circuit[b"until"]) / 1000 - time.time() <= hours * 3600 + 1
    if fault != "throttle":
        bans: Any = redis_client.hgetall(bans_key(site))
        left = 3600 if fault == "429" else 1800
        assert [
            left - 60 < ban.until - time.time() <= left
            for ban in decode_bans({key.decode(): ban for key, ban in bans.items()}).values()
        ] == [True] * 4
