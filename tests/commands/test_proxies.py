"""`scrapy proxies`."""

from __future__ import annotations

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
    return scrapy(*("proxies", "-s", "DOWNLOAD_TIMEOUT=4", *arguments), data=folder, PROXY_POOLS=pools, REDIS_URL=redis)


def test_table_shows_how_sites_take_each_exit_and_clear_ends_quarantines(
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
    assert re.search(r"datacenter  imdb +1 +0% +1 +0 +- +quarantined for 30 min: 202 challenge", lines["datacenter:1"])
    assert re.search(r"datacenter  imdb +\d+ +100% +0 +0 +0\.\d\d s +well", lines["datacenter:2"])
    assert "quarantined for 30 min: connection refused" in lines["datacenter:3"]
    assert set(lines) == {"proxy", *(f"datacenter:{n}" for n in range(1, 7))}

    expected = {"exit": "datacenter:1", "site": "imdb", "state": "quarantined", "strikes": 1, "reason": "202 challenge"}
    assert rows()[0].items() >= expected.items()

    assert shared("clear", "datacenter:1").output == "datacenter:1 may be used for imdb again\n"
    states = {row["exit"]: row["state"] for row in rows()}
    assert (states["datacenter:1"], states["datacenter:3"]) == ("well", "quarantined")
    assert "datacenter:3 may be used for imdb again" in shared("clear").output


def test_check_asks_once_from_every_exit(replica: ReplicaProcess, fleet: ProxyFleet, tmp_path: Path) -> None:
    change(replica, clients={fleet.proxies[1].address: "challenge"})
    url = replica.urls["imdb"] + "/chart/top/"
    checked = proxies("check", url, folder=tmp_path, fleet=fleet)
    assert checked.code == 1  # as not all get an answer
    text = {line.split()[0]: line.split(" s  ")[1] for line in checked.output.splitlines()}
    assert text == {
        "datacenter:1": "answered",
        "datacenter:2": "challenge (x-amzn-waf-action: challenge)",
        "datacenter:3": "the proxy is not there",
        "datacenter:4": "407 from the proxy",
        "datacenter:5": "refusal (status 403)",
        "datacenter:6": "no answer",
    }
    assert [target for *_, target in fleet.proxies[0].asked].count(url) == 1
    one = proxies("check", url, "datacenter:1", "--json", folder=tmp_path, fleet=fleet)
    assert one.code == 0
    assert json.loads(one.output)["status"] == 200


def test_check_obeys_robots_txt(replica: ReplicaProcess, fleet: ProxyFleet, tmp_path: Path) -> None:
    change(replica, robots="live")
    url = replica.urls["imdb"] + "/chart/top/"
    checked = proxies("check", url, folder=tmp_path, fleet=fleet)
    assert checked.code == 1
    assert "does not allow" in checked.log
    assert not any(target == url for one in fleet.proxies for *_, target in one.asked)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["nonsense"], "give nothing, `clear`, or `check` and a URL"),
        (["check"], "give nothing, `clear`, or `check` and a URL"),
        (["check", "imdb.com"], "give nothing, `clear`, or `check` and a URL"),
        (["clear", "datacenter:99"], "there is no proxy datacenter:99"),
        (["clear"], "REDIS_URL is not set"),
    ],
)
def test_mistake_is_one_sentence(arguments: list[str], expected: str, fleet: ProxyFleet, tmp_path: Path) -> None:
    finished = proxies(*arguments, folder=tmp_path, fleet=fleet)
    assert finished.code == 2
    assert expected in finished.log.strip().splitlines()[-1]


def test_redis_that_is_away_is_one_sentence(fleet: ProxyFleet, tmp_path: Path) -> None:
    finished = proxies(folder=tmp_path, fleet=fleet, redis="redis://:s3cret@127.0.0.1:1/0")
    assert finished.code == 1
    assert "Redis at REDIS_URL can't be asked" in finished.log
    assert "s3cret" not in finished.log
    assert "Traceback" not in finished.log
