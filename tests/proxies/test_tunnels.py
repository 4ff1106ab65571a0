"""Sites by https, which proxies tunnel."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from moviecrawler.replica.process import ReplicaProcess
from tests.crawling import Finished
from tests.proxies.fleets import attempts, crawl_imdb, write_pools
from tests.services.forward_proxy import ForwardProxy, Mode, ProxyFleet
from tests.services.https import HttpsFront


def crawl(folder: Path, replica: ReplicaProcess, fleet: ProxyFleet, front: HttpsFront, **settings: str) -> Finished:
    https = {"IMDB_URL": front.url, "DOWNLOAD_VERIFY_CERTIFICATES": "0"}
    return crawl_imdb(folder, replica, fleet, titles=12, **https, **settings)


def test_proxies_that_differ_in_credentials_only_have_connections_of_their_own(
    replica: ReplicaProcess, front: HttpsFront, tmp_path: Path
) -> None:
    with ProxyFleet([Mode.WORK]) as fleet:
        (gateway,) = fleet.proxies
        gateway.others = {"session2": "another-pa55word"}
        second = ForwardProxy("session2", "another-pa55word", "", port=gateway.port)
        pools = write_pools(tmp_path, datacenter=[gateway, second])
        finished = crawl(tmp_path, replica, fleet, front, PROXY_POOLS=pools)
        assert len(finished.movies) == 12
        tunnels = Counter(asked.user for asked in gateway.asked)
        sent = {line.split(" via ")[1].split(" ")[0] for line in attempts(finished)}
    assert sent == {"datacenter:1", "datacenter:2"}
    assert set(tunnels) == {gateway.user, second.user}
    assert tunnels.total() < 13  # tunnels are used again


def test_proxies_that_open_no_tunnel_cost_no_title(replica: ReplicaProcess, front: HttpsFront, tmp_path: Path) -> None:
    failing = {Mode.REJECT: "TunnelError (407)", Mode.ECHO: "TunnelError (403)"}
    with ProxyFleet([*failing, Mode.WORK, Mode.WORK]) as fleet:
        finished = crawl(tmp_path, replica, fleet, front)
        assert len(finished.movies) == 12
        for number, text in enumerate(failing.values(), 1):
            assert f"via datacenter:{number} → {text}\n" in finished.log
            assert f"datacenter:{number} is not used for imdb for 30 minutes ({text})" in finished.log
            assert len(fleet.proxies[number - 1].asked) <= 3
