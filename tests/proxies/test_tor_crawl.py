from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from moviecrawler.replica.process import ReplicaProcess
from tests.crawling import counts
from tests.proxies.over_tor import crawl
from tests.proxies.tor_fakes import FakeControl, FakeTunnel
from tests.services.https import NAME, HttpsFront

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.promise("Over Tor each circuit has credentials of its own; when all are refused, new ones are asked for.")
def test_every_request_leaves_over_one_of_the_circuits(
    replica: ReplicaProcess, front: HttpsFront, tmp_path: Path
) -> None:
    with FakeTunnel() as tunnel, FakeControl("hunter2") as control:
        tunnel.hosts = {NAME: "127.0.0.1"}  # this machine itself knows no such name, nor asks for it
        crawled = crawl(
            front,
            tmp_path,
            "list=top",
            "limit=20",
            IMDB_URL=f"https://{NAME}:{front.port}",
            TOR_TUNNEL=f"http://{tunnel.address}",
            TOR_CONTROL=control.address,
            TOR_CONTROL_PASSWORD="hunter2",  # noqa: S106 - of a fake
            PROXY_POOLS='{"tor": {"kind": "tor", "sessions": 4}}',
        )
    assert crawled.code == 0, crawled.log
    assert len(crawled.movies) == 20
    assert counts(replica)["requests"] >= 21
    assert {target for target, _ in tunnel.asked} == {f"{NAME}:{front.port}"}
    # One of them is that of the check at the start.
    assert len({credentials for _, credentials in tunnel.asked}) == 1 + 4
    for secret in ("hunter2", *(credentials.decode().removeprefix("Basic ") for _, credentials in tunnel.asked)):
        assert secret not in crawled.log


def test_crawl_that_tor_cannot_carry_asks_nothing_and_says_why(
    replica: ReplicaProcess, front: HttpsFront, tmp_path: Path
) -> None:
    crawled = crawl(front, tmp_path, "list=top", TOR_TUNNEL="http://127.0.0.1:1")
    assert crawled.code != 0
    assert "TOR_TUNNEL 127.0.0.1:1 did not reach" in crawled.log
    assert "Traceback" not in crawled.log
    assert counts(replica)["requests"] == 0
