"""`scrapy proxies`."""

import json
import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from moviecrawler.replica.process import ReplicaProcess
from tests.crawling import Finished, change, scrapy
from tests.proxies.fleets import crawl_imdb, write_pools
from tests.services.forward_proxy import Mode, ProxyFleet


@pytest.fixture
def fleet() -> Iterator[ProxyFleet]:
    with ProxyFleet([Mode.WORK, Mode.WORK, None, Mode.REJECT, Mode.ECHO, Mode.DROP]) as running:
        yield running


def proxies(*arguments: str, folder: Path, fleet: ProxyFleet, redis: str = "") -> Finished:
    pools = write_pools(folder, datacenter=fleet.proxies)
    return scrapy(
        "proxies",
        "-s",
        "DOWNLOAD_TIMEOUT=4",
        *arguments,
        data=folder,
        PROXY_POOLS=pools,
        REDIS_URL=redis,
    )


def test_table_shows_quarantines_and_clear_ends_them(
    replica: ReplicaProcess, fleet: ProxyFleet, redis_url: str, tmp_path: Path
) -> None:
    change(replica, clients={fleet.proxies[0].address: "challenge"})
    crawl_imdb(tmp_path, replica, fleet, REDIS_URL=redis_url)
    shared = partial(proxies, folder=tmp_path, fleet=fleet, redis=redis_url)

    def rows() -> list[dict[str, Any]]:
        return [json.loads(line) for line in shared("--json").output.splitlines()]

    table = shared()
    assert table.code == 0
    lines = {line.split()[0]: line for line in table.output.splitlines()}
    assert {*lines} - {"─" * 12} == {"proxy", *(f"datacenter:{n}" for n in range(1, 7))}
    assert re.search(
        r"datacenter  http://\*\*\*@127.0.0.1:\d+ +imdb "
        r"+quarantined for (30|29) min, ban 1 in a row: 202 challenge$",
        lines["datacenter:1"],
    )
    assert re.search(r"– +usable$", lines["datacenter:2"])
    assert re.search(
        "for (30|29) min, ban 1 in a row: DownloadConnectionRefusedError", lines["datacenter:3"]
    )

    expected = {
        "proxy": "datacenter:1",
        "site": "imdb",
        "state": "quarantined",
        "bans": 1,
        "reason": "202 challenge",
    }
    assert rows()[0].items() >= expected.items()
    assert (
        rows()[1].items()
        >= {"site": None, "state": "usable", "until": None, "bans": 0, "reason": None}.items()
    )

    unknown = shared("clear", "datacenter:99")
    assert unknown.code == 2
    assert "there is no proxy datacenter:99" in unknown.log
    assert (
        shared("clear", "-s", "LOG_LEVEL=INFO", "datacenter:1").output
        == "datacenter:1 may be used for imdb again\n"
    )
    states = {row["proxy"]: row["state"] for row in rows()}
    assert (states["datacenter:1"], states["datacenter:3"]) == ("usable", "quarantined")
    assert "datacenter:3 may be used for imdb again" in shared("clear").output
