"""Crawls through three pools of which some are refused, and what the next crawl knows of that."""

import json
from pathlib import Path
from typing import Any

import pytest
import redis

from moviecrawler.replica.process import ReplicaProcess
from tests.crawling import Finished, change, crawl, scrapy
from tests.services.forward_proxy import Mode, ProxyFleet
from tests.services.replica import IDS, write_ids

POOLS = ("near", "far", "home")
TITLES = 12
WORK = [Mode.WORK]


class Crawls:
    """Crawls of one folder through a fleet of two proxies in each pool."""

    def __init__(
        self, fleet: ProxyFleet, folder: Path, replica: ReplicaProcess, redis_url: str
    ) -> None:
        self.fleet = fleet
        self.folder = folder
        urls = [proxy.url for proxy in fleet.proxies]
        pools = {
            name: {"kind": "datacenter", "urls": urls[2 * number : 2 * number + 2]}
            for number, name in enumerate(POOLS)
        }
        self._settings: dict[str, Any] = {
            "data": folder,
            "replica": replica,
            "PROXY_POOLS": json.dumps(pools),
            "PROXY_ORDER": ",".join(POOLS),
            "REDIS_URL": redis_url,
            "LOG_LEVEL": "DEBUG",
            "FRONTIER_PATIENCE": "1",
        }
        self.said = ""
        """What all commands have written."""

    def crawl(self, *arguments: str) -> Finished:
        options = {name: value for name, value in self._settings.items() if name != "PROXY_POOLS"}
        # Not on the command line, which everybody can see.
        pools = self.folder / "pools.json"
        pools.write_text(self._settings["PROXY_POOLS"])
        finished = crawl("imdb", "via=pages", *arguments, **options, PROXY_POOLS=str(pools))
        pools.unlink()
        self.said += finished.log + finished.output
        return finished

    def run(self, *command: str) -> str:
        finished = scrapy(*command, **self._settings)
        self.said += finished.log + finished.output
        return finished.output

    def asked(self) -> list[int]:
        """Return how many requests each proxy has got."""
        return [len(proxy.asked) for proxy in self.fleet.proxies]


@pytest.fixture(params=["sqlite", "redis"])
def redis_url_or_none(request: pytest.FixtureRequest) -> str:
    """Return the URL of an empty Redis, and none."""
    return str(request.getfixturevalue("redis_url")) if request.param == "redis" else ""


@pytest.mark.promise("A proxy that a site refuses rests for that site, on all nodes.")
@pytest.mark.promise("Credentials of proxies are seen nowhere.")
@pytest.mark.parametrize(
    ("modes", "quarantined", "ends"),
    [
        ([Mode.ECHO, *WORK * 5], 1, "stored"),
        ([Mode.ECHO, Mode.REJECT, *WORK * 4], 2, "stored"),
        ([Mode.DROP, Mode.BROKEN, Mode.ECHO, None, Mode.CUT, Mode.WORK], 4, "stored"),
        ([Mode.ECHO] * 6, 6, "refused"),
        ([Mode.REJECT, None, Mode.DROP, Mode.BROKEN, Mode.CUT, Mode.DROP], 2, "unreachable"),
    ],
    ids=["one proxy refused", "one pool", "all but one fail", "all refused", "all fail alike"],
)
def test_what_proxies_suffer_is_known_to_the_next_crawl_and_costs_no_title(
    modes: list[Mode | None],
    quarantined: int,
    ends: str,
    redis_url_or_none: str,
    redis_client: redis.Redis,
    replica: ReplicaProcess,
    tmp_path: Path,
) -> None:
    change(replica, latency=20)
    with ProxyFleet(modes) as fleet:
        crawls = Crawls(fleet, tmp_path, replica, redis_url_or_none)
        first = crawls.crawl(write_ids(tmp_path, TITLES))
        assert first.misses == {}
        assert "failed" not in first.summary.titles
        if ends == "stored":
            assert (first.code, len(first.movies)) == (0, TITLES)
            assert "is blocking us" not in first.log
            assert "can't be reached" not in first.log
        else:
            assert (first.code, first.movies) == (1, [])
            told = "imdb is blocking us" if ends == "refused" else "imdb can't be reached"
            assert told in first.log
        rows = [json.loads(line) for line in crawls.run("proxies", "--json").splitlines()]
        resting = {row["proxy"] for row in rows if row["state"] == "quarantined"}
        assert len(resting) >= quarantined

        before = crawls.asked()
        later = crawls.crawl(f"ids={IDS[TITLES]},{IDS[TITLES + 1]}")
        names = [f"{pool}:{number}" for pool in POOLS for number in (1, 2)]
        for name, old, new in zip(names, before, crawls.asked(), strict=True):
            assert new == old or name not in resting
        assert later.code == (0 if ends == "stored" else 1)
        assert later.misses == {}

        crawls.run("deadletters")
        crawls.run("progress", "--json")
        assert secrets_seen(crawls, redis_client) == []


def secrets_seen(crawls: Crawls, client: redis.Redis) -> list[str]:
    """Return which credentials are where they must not be."""
    seen = {"logs": crawls.said}
    for path in crawls.folder.rglob("*"):
        if path.is_file():
            seen[path.name] = path.read_bytes().decode("latin-1")
    client.config_set("rdbcompression", "no")  # else long texts are packed
    for key in client.scan_iter():
        seen[key.decode(errors="replace")] = repr(client.dump(key))
    assert ("queue.sqlite3" in seen) != ("{imdb}:proxies" in seen)
    return [
        f"{secret} in {where}"
        for where, text in seen.items()
        for secret in crawls.fleet.secrets
        if secret in text
    ]
