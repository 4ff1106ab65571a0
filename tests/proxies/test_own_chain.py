"""A site that refuses one proxy after another, with three pools and Tor.

Two workers share what they learn, and one is killed.
"""

import json
import re
import time
from collections import Counter
from pathlib import Path

import pytest
import redis

from moviecrawler.replica.process import ReplicaProcess
from tests.crawling import change, counts
from tests.run_keys import bans_key
from tests.services.forward_proxy import Mode, ProxyFleet
from tests.services.https import HttpsFront
from tests.services.replica import IDS, write_ids
from tests.waiting import wait_for
from tests.workers import Workers

ATTEMPT = re.compile(r"attempt \d/9 GET \S+/title/\S+ via (\w+):c?\d+ → (\d+)")


@pytest.mark.promise("A proxy that a site refuses rests for that site, on all nodes.")
@pytest.mark.parametrize("tor", ["stand-in", pytest.param("network", marks=pytest.mark.tor)])
def test_every_title_is_stored_through_what_is_left_and_all_workers_know_what_is_not(
    tor: str,
    replica: ReplicaProcess,
    front: HttpsFront,
    redis_url: str,
    redis_client: redis.Redis,
    tmp_path: Path,
    request: pytest.FixtureRequest,
) -> None:
    # Each connects to the site from an address of its own, by which the site refuses it.
    with ProxyFleet([Mode.WORK] * 7, network="127.0.1") as fleet:
        *proxies, tunnel = fleet.proxies
        tunnel.takes_all = True
        pools = {"datacenter": proxies[:2], "other": proxies[2:4], "home": proxies[4:]}
        entries = {
            name: {"kind": "datacenter", "urls": [one.url for one in pool]}
            for name, pool in pools.items()
        }
        environment = {
            **front.settings,
            "PROXY_POOLS": json.dumps({**entries, "tor": {"kind": "tor", "sessions": 3}}),
            "PROXY_ORDER": '{"imdb": "datacenter,other,home,tor"}',
            "PROXY_ATTEMPTS": "9",
            "TOR_TUNNEL": f"http://127.0.0.1:{tunnel.port}",
        }
        if tor == "network":
            environment["TOR_TUNNEL"] = f"http://{request.getfixturevalue('tor_network').tunnel}"

        def refuse_when(requests: int, first: int) -> None:
            wait_for(lambda: counts(replica)["requests"] >= requests, detail=lambda: workers.log)
            change(replica, challenged=[one.address for one in proxies[:first]])

        refuse_when(0, 2)
        change(replica, latency=50)
        with Workers(
            "imdb",
            "via=pages",
            write_ids(tmp_path, len(IDS)),
            data=tmp_path,
            replica=replica,
            redis_url=redis_url,
            environment=environment,
            DOWNLOAD_TIMEOUT="30",
            AUTOTHROTTLE_ENABLED="0",
        ) as workers:
            workers.start(2)
            refuse_when(15, 4)
            workers.kill()
            refuse_when(30, 6)
            assert workers.wait() == [0], workers.log
        assert sorted(str(movie.site_id) for movie in workers.movies) == sorted(IDS)

        bans = [json.loads(ban) for ban in redis_client.hvals(bans_key("imdb"))]
        assert [(ban["bans"], ban["reason"]) for ban in bans] == [(1, "202 challenge")] * 6
        assert all(1500 < ban["until"] - time.time() <= 1800 for ban in bans)
        asked = counts(replica)
        # A worker has one request at most under way through a proxy when that is refused.
        assert 6 <= asked["statuses"]["202"] <= 2 * 6

        known = Counter(
            ATTEMPT.findall("".join(path.read_text() for path in tmp_path.glob("worker-*.log")))
        )
        assert known["tor", "202"] == 0
        # What was under way when the worker was killed has no line.
        assert asked["statuses"]["202"] - 9 <= sum(
            n for (_, status), n in known.items() if status == "202"
        )
        assert len(IDS) <= sum(n for (_, status), n in known.items() if status == "200")
        last = workers.logs[workers.ended[-1]].read_text()
        figures = {
            name: int(n)
            for name, n in re.findall(r"'proxy/imdb/(\w+/(?:answered|challenge))': (\d+)", last)
        }
        for (pool, status), number in Counter(ATTEMPT.findall(last)).items():
            robots = len(re.findall(rf"/robots.txt via {pool}:c?\d+ → {status}", last))
            assert (
                figures[f"{pool}/{'answered' if status == '200' else 'challenge'}"]
                == number + robots
            )
