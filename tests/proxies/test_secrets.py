"""The credentials of proxies are nowhere to be seen.

They are not in logs, stats, queues, files, Redis or the process list.
"""

import json
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest
import redis

from moviecrawler.replica.process import ReplicaProcess
from tests.crawling import LONGEST, change, scrapy
from tests.processes import crawl_command, environment
from tests.services.forward_proxy import Mode, ProxyFleet
from tests.services.replica import write_ids

MODES = [
    Mode.WORK,
    Mode.REJECT,
    Mode.ECHO,
    None,
    Mode.BROKEN,
    Mode.CORRUPT,
    Mode.DROP,
    Mode.REDIRECT,
    Mode.PAGE,
    Mode.WORK,
]
"""Among them proxies that answer with all that they were sent."""


def crawl_seen(arguments: list[str], folder: Path, environ: dict[str, str]) -> str:
    """Run a command in an interpreter of its own; return what the process list showed meanwhile."""
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "scrapy", *arguments], env=environ, cwd=folder, stderr=log
        )
        seen = ""
        deadline = time.monotonic() + LONGEST
        while process.poll() is None:
            assert time.monotonic() < deadline
            for line in Path("/proc").glob("[0-9]*/cmdline"):
                with suppress(OSError):
                    seen += line.read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
            time.sleep(0.2)
    return seen


@pytest.mark.promise("Credentials of proxies are seen nowhere.")
def test_credentials_are_seen_nowhere(
    replica: ReplicaProcess, redis_url: str, redis_client: redis.Redis, tmp_path: Path
) -> None:
    with ProxyFleet(MODES) as fleet:
        change(replica, faults={"500": 0.1, "redirect": 0.1})
        fleet.proxies[2].takes_all = True  # as a gateway that has sessions
        home = {
            "kind": "residential",
            "urls": [fleet.proxies[2].url.replace("//", "//{session}")],
            "sessions": 1,
        }
        every = {"kind": "datacenter", "urls": [one.url for one in fleet.proxies]}
        pools = json.dumps({"home": home, "datacenter": every})
        given = {
            "PROXY_POOLS": pools,
            "PROXY_ORDER": "home,datacenter",
            "LOG_LEVEL": "DEBUG",
            "REDIS_URL": redis_url,
        }
        arguments = crawl_command("imdb", write_ids(tmp_path, 12), "via=pages")
        seen = {
            "processes": crawl_seen(arguments, tmp_path, environment(tmp_path, replica, **given))
        }
        assert "scrapy crawl imdb" in seen["processes"]
        for path in tmp_path.rglob("*"):
            if path.is_file():
                seen[path.name] = path.read_bytes().decode("latin-1")
        assert "via datacenter:3 → 403 refusal" in (log := (tmp_path / "log").read_text())
        assert "via datacenter:2 → 407 from the proxy" in log
        assert seen["movies.csv"].count("\n") > 1
        assert "Redirecting (302) to <GET http://127.0.0.1:" in log
        # What the proxies had echoed was there, and was taken out.
        kept = {
            path.name.split("-")[1]
            for path in (tmp_path / "kept").iterdir()
            if "*** *** ***" in path.read_text()
        }
        assert kept == {"refusal", "unreadable"}
        redis_client.config_set("rdbcompression", "no")  # else long texts are packed
        for key in redis_client.scan_iter():
            seen[key.decode()] = repr(redis_client.dump(key))
        assert "403 refusal" in seen["{imdb}:proxies"]
        for form in ([], ["--json"]):
            shown = scrapy("proxies", *form, data=tmp_path, replica=None, **given)
            assert "datacenter:8" in shown.output
            seen[f"scrapy proxies {form}"] = shown.output + shown.log
    assert [
        f"{secret} in {where}"
        for where, text in seen.items()
        for secret in fleet.secrets
        if secret in text
    ] == []
