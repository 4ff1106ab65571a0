"""Whole crawls through proxies that work, and through some that don't."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pymongo import MongoClient

from moviecrawler.replica.process import ReplicaProcess
from tests.crawling import change
from tests.proxies.fleets import attempts, crawl_imdb, write_ids, write_pools
from tests.services.forward_proxy import WATCHED, ForwardProxy, Mode, ProxyFleet
from tests.services.https import HttpsFront


@pytest.mark.parametrize("titles", [200, pytest.param(1000, marks=pytest.mark.long)])
def test_many_titles_through_twelve_proxies_of_which_seven_fail(tmp_path: Path, titles: int) -> None:
    modes = [Mode.WORK] * 4 + [None, None, Mode.STALL] + [Mode.WORK] * 5
    with ReplicaProcess(titles=titles, light=True) as replica, ProxyFleet(modes) as fleet:
        banned, stalling, healthy = fleet.proxies[:4], fleet.proxies[6], fleet.proxies[7:]
        for late in banned[2:]:
            late.watched_from = titles // 20
        change(replica, clients=dict.fromkeys([*(one.address for one in banned[:2]), WATCHED], "challenge"))
        finished = crawl_imdb(tmp_path, replica, fleet, argument=write_ids(tmp_path, titles, of=titles))
        assert finished.code == 0
        assert len(finished.movies) == titles
        assert finished.misses == {}
        # Requests that a proxy got after the answer by which it was found to be banned, or to stall.
        wasted = max(0, len(stalling.asked) - 2)
        for one in banned:
            learnt = next(when for when, status in one.answered if status != 200)
            wasted += sum(asked.when > learnt for asked in one.asked)
        assert wasted <= 20  # however many titles there are
        shares = [len(one.asked) for one in healthy]
        assert max(shares) <= 1.2 * min(shares)
        assert sum(len(one.asked) for one in banned[:2]) <= 4
        assert finished.stat("proxy/imdb/datacenter/answered") == titles + 1  # and robots.txt
    assert not any("challenge" in path.read_text() for path in tmp_path.glob("*.csv"))


def test_every_attempt_is_one_line_and_history_says_how_a_title_failed(replica: ReplicaProcess, tmp_path: Path) -> None:
    with ProxyFleet([Mode.WORK] * 5) as fleet:
        change(replica, faults={"500": 1})
        finished = crawl_imdb(tmp_path, replica, fleet, titles=1)
    lines = attempts(finished)
    assert [line[:3] for line in lines] == ["1/3", "2/3", "3/3"]
    proxies = [re.search(r"via (datacenter:\d) → 500$", line) for line in lines]
    assert len({found[1] for found in proxies if found}) == 3
    assert list(finished.misses.values()) == ["failed"]
    history = "; ".join(f"{found[1]} → 500" for found in proxies if found)
    assert f"AttemptsFailedError: {history}" in finished.log
    assert finished.stat("proxy/imdb/datacenter/error") == 3
    assert "not used" not in finished.log  # a broken server is not the proxies' fault


@pytest.mark.promise("Proxies that fail cost no title.")
@pytest.mark.parametrize(
    "failing",
    [  # failures of three proxies in a row would count as the site's
        {Mode.DROP: "DownloadFailedError", Mode.REJECT: "407 from the proxy"},
        {Mode.CORRUPT: "200 damaged", Mode.CUT: "ResponseDataLossError"},
        {Mode.BROKEN: "502"},
        {Mode.REJECT: "TunnelError (407)", Mode.ECHO: "TunnelError (403)"},
    ],
)
def test_proxies_that_fail_cost_no_title(
    failing: dict[Mode | None, str], replica: ReplicaProcess, front: HttpsFront, tmp_path: Path
) -> None:
    is_https = "TunnelError (407)" in failing.values()
    https = {"IMDB_URL": front.url, "DOWNLOAD_VERIFY_CERTIFICATES": "0"} if is_https else {}
    with ProxyFleet([*failing, *[Mode.WORK] * 3]) as fleet:
        finished = crawl_imdb(tmp_path, replica, fleet, titles=60, **https)
        assert finished.code == 0
        assert len(finished.movies) == 60
        for number, text in enumerate(failing.values(), 1):
            assert f"via datacenter:{number} → {text}\n" in finished.log
            assert f"datacenter:{number} is not used for imdb for 30 minutes ({text})" in finished.log
            assert len(fleet.proxies[number - 1].asked) <= 3  # robots.txt among them


@pytest.mark.promise("The user agent says what this is, and how to reach the operator.")
def test_proxies_get_our_user_agent_and_a_title_that_is_missing_is_an_answer(
    replica: ReplicaProcess, tmp_path: Path, mongo_url: str
) -> None:
    argument = write_ids(tmp_path, 10)
    with (tmp_path / "ids").open("a") as ids:
        ids.write("\ntt0000001")
    with ProxyFleet([Mode.WORK]) as fleet:
        finished = crawl_imdb(tmp_path, replica, fleet, argument=argument, MONGO_URL=mongo_url)
        heads = [asked.head for asked in fleet.proxies[0].asked]
        sent = sum(map(len, heads))
        assert all(b"User-Agent: moviecrawler/" in head and b"Cookie" not in head for head in heads)
    assert finished.code == 0
    assert finished.misses == {"tt0000001": "absent"}
    assert "attempt 1/3 GET" in finished.log
    assert "via datacenter:1 → 404\n" in finished.log
    assert "not used" not in finished.log
    # Bytes are counted as they cross the wire.
    assert finished.stat("proxy/imdb/datacenter/bytes_out") == pytest.approx(sent, rel=0.2)
    received = finished.stat("downloader/response_bytes")  # Scrapy's own count, of compressed bodies
    assert finished.stat("proxy/imdb/datacenter/bytes_in") == pytest.approx(received, rel=0.02)
    # What is stored names the pool that a page came through.
    with MongoClient[dict[str, Any]](mongo_url) as client:
        stored = list(client.get_default_database()["movies"].find())
    assert [movie["fetch"]["pool"] for movie in stored] == ["datacenter"] * 10


def test_proxies_that_differ_in_credentials_only_have_connections_of_their_own(
    replica: ReplicaProcess, front: HttpsFront, tmp_path: Path
) -> None:
    with ProxyFleet([Mode.WORK]) as fleet:
        (gateway,) = fleet.proxies
        gateway.others = {"session2": "another-pa55word"}
        second = ForwardProxy("session2", "another-pa55word", "", port=gateway.port)
        pools = write_pools(tmp_path, datacenter=[gateway, second])
        https = {"IMDB_URL": front.url, "DOWNLOAD_VERIFY_CERTIFICATES": "0"}
        finished = crawl_imdb(tmp_path, replica, fleet, titles=12, PROXY_POOLS=pools, **https)
        assert len(finished.movies) == 12
        tunnels = Counter(asked.user for asked in gateway.asked)
        sent = {line.split(" via ")[1].split(" ")[0] for line in attempts(finished)}
    assert sent == {"datacenter:1", "datacenter:2"}
    assert set(tunnels) == {gateway.user, second.user}
    assert tunnels.total() < 13  # tunnels are used again
