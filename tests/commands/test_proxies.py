"""`scrapy proxies`."""

import json
import re
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest
import redis
from scrapy.settings import Settings

from moviecrawler.basics.clock import utc_text
from moviecrawler.proxies.pools import Ban
from moviecrawler.proxies.site_pools import SitePools
from moviecrawler.replica.process import ReplicaProcess
from tests.crawling import Finished, change, crawl, scrapy
from tests.run_keys import bans_key
from tests.services.forward_proxy import Mode, ProxyFleet
from tests.services.replica import write_ids


@pytest.fixture
def fleet() -> Iterator[ProxyFleet]:
    """Return proxies that work, fail and are gone."""
    with ProxyFleet([Mode.WORK, Mode.WORK, None, Mode.REJECT, Mode.ECHO, Mode.DROP]) as running:
        yield running


def proxies(*arguments: str, folder: Path, fleet: ProxyFleet, redis_url: str = "") -> Finished:
    return scrapy(
        "proxies",
        "-s",
        "DOWNLOAD_TIMEOUT=4",
        *arguments,
        data=folder,
        REDIS_URL=redis_url,
        PROXY_POOLS=fleet.settings(folder)["PROXY_POOLS"],
    )


def test_table_shows_quarantines_and_clear_ends_them(
    queue_url: str, replica: ReplicaProcess, fleet: ProxyFleet, tmp_path: Path
) -> None:
    change(replica, challenged=[fleet.proxies[0].address])
    crawl(
        "imdb",
        write_ids(tmp_path, 20),
        "via=pages",
        data=tmp_path,
        replica=replica,
        REDIS_URL=queue_url,
        **fleet.settings(tmp_path),
    )
    shared = partial(proxies, folder=tmp_path, fleet=fleet, redis_url=queue_url)

    def rows() -> list[dict[str, Any]]:
        return [json.loads(line) for line in shared("--json").output.splitlines()]

    table = shared()
    assert table.code == 0
    assert "http://***@127.0.0.1:" in table.output
    names = {line.split()[0] for line in table.output.splitlines()}
    assert names - {"─" * 12} == {"proxy", *(f"datacenter:{n}" for n in range(1, 7))}
    expected = {
        "proxy": "datacenter:1",
        "site": "imdb",
        "state": "quarantined",
        "bans": 1,
        "reason": "202 challenge",
    }
    assert rows()[0].items() >= expected.items()
    unused = {"site": None, "state": "usable", "until": None, "bans": 0, "reason": None}
    assert rows()[1].items() >= unused.items()
    assert rows()[2]["reason"] == "DownloadConnectionRefusedError"
    assert (
        shared("clear", "-s", "LOG_LEVEL=INFO", "datacenter:1").output
        == "datacenter:1 may be used for imdb again\n"
    )
    states = {row["proxy"]: row["state"] for row in rows()}
    assert (states["datacenter:1"], states["datacenter:3"]) == ("usable", "quarantined")
    assert "datacenter:3 may be used for imdb again" in shared("clear").output


def test_each_site_has_its_row_with_what_happened_until_when_and_how_often(
    redis_url: str, redis_client: redis.Redis, tmp_path: Path
) -> None:
    now = time.time()
    session = {"kind": "residential", "urls": ["http://me-{session}:p@gate.example:7"]}
    pools = {
        "datacenter": {"kind": "datacenter", "urls": ["http://proxy.example:1"]},
        "home": {**session, "sessions": 1},
    }
    pools_text = json.dumps(pools)
    site_pools = SitePools.from_settings(Settings({"PROXY_POOLS": pools_text}))
    key = site_pools.pools["datacenter"].members["datacenter:1"].key or ""
    for site, ban in {
        "imdb": Ban(now + 1000, 3, "403 refusal"),
        "metacritic": Ban(now - 1000, 1, "429 rate limit"),
        "rottentomatoes": Ban(now - 5, 2, "202 challenge"),
    }.items():
        redis_client.hset(bans_key(site), key, msgspec.json.encode(ban))
    redis_client.hset(bans_key("imdb"), "of-another-version", b'{"until": 1}')
    redis_client.hset(bans_key("imdb"), "elsewhere", msgspec.json.encode(Ban(now + 9, 1, "407")))
    shown = partial(
        scrapy,
        "proxies",
        data=tmp_path,
        PROXY_POOLS=pools_text,
        PROXY_ORDER='{"imdb": "datacenter,home", "metacritic": "datacenter"}',
    )
    finished = shown(REDIS_URL=redis_url)
    rows = [re.split(" {2,}", line) for line in finished.output.splitlines()[2:]]
    assert [(row[0], *row[3:]) for row in rows] == [
        ("datacenter:1", "imdb", "quarantined", utc_text(now + 1000), "3", "403 refusal"),
        ("datacenter:1", "metacritic", "usable", utc_text(now - 1000), "1", "429 rate limit"),
        ("datacenter:1", "rottentomatoes", "usable", utc_text(now - 5), "2", "202 challenge"),
        ("home:1", "imdb", "–", "–", "–", "–"),
        ("elsewhere", "imdb", "quarantined", utc_text(now + 9), "1", "407"),
    ]
    assert finished.log.count("of-another-version") == 1
    alone = [line.split() for line in shown(REDIS_URL="").output.splitlines()[2:]]
    assert [line[3:] for line in alone] == [
        ["imdb", "usable", "–", "–", "–"],
        ["metacritic", "usable", "–", "–", "–"],
        ["imdb", "–", "–", "–", "–"],
    ]
    assert not list(tmp_path.glob("queue*"))
