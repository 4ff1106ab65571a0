"""Whole crawls through proxies that work, and through some that don't."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pymongo import MongoClient

from moviecrawler.replica.process import ReplicaProcess
from tests.crawling import Finished, crawl
from tests.services.forward_proxy import Mode, ProxyFleet
from tests.services.https import HttpsFront
from tests.services.replica import write_ids


def crawl_pages(
    folder: Path, replica: ReplicaProcess, fleet: ProxyFleet, titles: str, **settings: str
) -> Finished:
    """Crawl title pages of IMDb through all proxies of a fleet."""
    given = {**fleet.settings(folder), **settings}
    return crawl("imdb", titles, "via=pages", data=folder, replica=replica, **given)


@pytest.mark.promise("Proxies that fail cost no title.")
@pytest.mark.parametrize(
    "failing",
    [  # failures of three proxies in a row would count as the site's
        {Mode.DROP: "DownloadFailedError", Mode.REJECT: "407 from the proxy"},
        {Mode.CORRUPT: "200 damaged", Mode.CUT: "ResponseDataLossError"},
        {Mode.STALL: "DownloadTimeoutError", Mode.BROKEN: "502"},
        {Mode.REJECT: "TunnelError (407)", Mode.ECHO: "TunnelError (403)"},
    ],
)
def test_proxies_that_fail_cost_no_title(
    failing: dict[Mode | None, str], replica: ReplicaProcess, front: HttpsFront, tmp_path: Path
) -> None:
    is_https = "TunnelError (407)" in failing.values()
    settings = {"IMDB_URL": front.url, "DOWNLOAD_VERIFY_CERTIFICATES": "0"} if is_https else {}
    if Mode.STALL in failing:
        settings["DOWNLOAD_TIMEOUT"] = "3"
    with ProxyFleet([*failing, *[Mode.WORK] * 3]) as fleet:
        finished = crawl_pages(tmp_path, replica, fleet, write_ids(tmp_path, 30), **settings)
        assert (finished.code, len(finished.movies)) == (0, 30)
        for number, text in enumerate(failing.values(), 1):
            assert f"via datacenter:{number} → {text}\n" in finished.log
            assert (
                f"datacenter:{number} is not used for imdb for 30 minutes ({text})" in finished.log
            )
            assert len(fleet.proxies[number - 1].asked) <= 3  # robots.txt among them


@pytest.mark.promise("The user agent says what this is, and how to reach the operator.")
def test_proxies_get_our_user_agent_and_a_title_that_is_missing_is_an_answer(
    replica: ReplicaProcess, tmp_path: Path, mongo_url: str
) -> None:
    titles = write_ids(tmp_path, 10, "tt0000001")
    with ProxyFleet([Mode.WORK]) as fleet:
        finished = crawl_pages(tmp_path, replica, fleet, titles, MONGO_URL=mongo_url)
        heads = [asked.head for asked in fleet.proxies[0].asked]
    assert all(b"User-Agent: moviecrawler/" in head and b"Cookie" not in head for head in heads)
    assert (finished.code, finished.misses) == (0, {"tt0000001": "absent"})
    assert "via datacenter:1 → 404\n" in finished.log
    assert "not used" not in finished.log
    # Bytes are counted as they cross the wire.
    assert finished.stat("proxy/imdb/datacenter/bytes_out") == pytest.approx(
        sum(map(len, heads)), rel=0.2
    )
    # Scrapy's own count, of compressed bodies.
    received = finished.stat("downloader/response_bytes")
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
        gateway.takes_all = True
        fleet.proxies.append(replace(gateway, password=gateway.user))
        https = {"IMDB_URL": front.url, "DOWNLOAD_VERIFY_CERTIFICATES": "0"}
        finished = crawl_pages(tmp_path, replica, fleet, write_ids(tmp_path, 12), **https)
        assert len(finished.movies) == 12
    tunnels = [asked.password for asked in gateway.asked]
    assert set(tunnels) == {gateway.password, gateway.user}
    assert len(tunnels) < 13  # they are used again
