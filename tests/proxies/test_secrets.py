"""The credentials of proxies are nowhere to be seen: not in logs, stats, queues, files, Redis or the process list."""

from __future__ import annotations

import functools
import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import redis

from moviecrawler.replica.process import ReplicaProcess
from tests.crawling import Finished, change, crawl_command, environment, scrapy
from tests.proxies.fleets import write_ids
from tests.services.forward_proxy import Mode, ProxyFleet

MODES = [Mode.WORK, Mode.REJECT, Mode.ECHO, None, Mode.BROKEN, Mode.CORRUPT, Mode.DROP, Mode.WORK]
"""Among them proxies that answer with all that they were sent."""


def command_lines() -> str:
    lines = []
    for process in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            lines.append(process.read_bytes().replace(b"\0", b" ").decode("utf-8", "replace"))
        except OSError:
            continue
    return "\n".join(lines)


def crawl_seen(arguments: list[str], folder: Path, environ: dict[str, str]) -> tuple[Finished, str]:
    """Run a command in an interpreter of its own; return what it left and what the process list showed meanwhile."""
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen([sys.executable, "-m", "scrapy", *arguments], env=environ, cwd=folder, stderr=log)
        seen = ""
        deadline = time.monotonic() + 120
        while process.poll() is None:
            assert time.monotonic() < deadline
            seen += command_lines()
            time.sleep(0.2)
    return Finished(process.returncode, "", (folder / "log").read_text(), folder), seen


def leaks(fleet: ProxyFleet, where: str, text: str) -> list[str]:
    return [f"{secret} in {where}" for secret in fleet.secrets if secret in text]


@pytest.mark.promise("Credentials of proxies are seen nowhere.")
def test_credentials_are_seen_nowhere(
    replica: ReplicaProcess, redis_url: str, redis_client: redis.Redis, tmp_path: Path
) -> None:
    with ProxyFleet(list(MODES)) as fleet:
        change(replica, faults={"500": 0.1, "redirect": 0.1})
        pools = json.dumps({"datacenter": {"kind": "datacenter", "urls": [one.url for one in fleet.proxies]}})
        given = {"PROXY_POOLS": pools, "PROXY_ORDER": "datacenter", "LOG_LEVEL": "DEBUG", "REDIS_URL": redis_url}
        arguments = crawl_command("imdb", write_ids(tmp_path, 12), "via=pages")
        finished, seen = crawl_seen(arguments, tmp_path, environment(tmp_path, replica, **given))
        assert "scrapy crawl imdb" in seen
        assert finished.movies
        assert "via datacenter:3 → 403 refusal" in finished.log
        assert "via datacenter:2 → 407 from the proxy" in finished.log
        found = leaks(fleet, "the process list", seen) + leaks(fleet, "the log", finished.log)
        for path in tmp_path.rglob("*"):
            if path.is_file():
                found += leaks(fleet, path.name, path.read_bytes().decode("latin-1"))
        # What the proxy had echoed was there, and was taken out.
        assert [path for path in (tmp_path / "kept").iterdir() if "[removed]" in path.read_text()]
        assert redis_client.dbsize()
        for key in redis_client.scan_iter():
            value = redis_client.dump(key)  # short strings stand in it as they are; long ones may be packed:
            found += leaks(fleet, repr(key), repr(value) + repr(_content(redis_client, key)))
        for command in (["proxies"], ["proxies", "--json"]):
            shown = scrapy(*command, data=tmp_path, replica=replica, **given)
            assert "datacenter:8" in shown.output
            found += leaks(fleet, str(command), shown.output + shown.log)
    assert found == []


def _content(client: redis.Redis, key: bytes) -> object:
    readers = {
        b"string": client.get,
        b"hash": client.hgetall,
        b"set": client.smembers,
        b"list": functools.partial(client.lrange, start=0, end=-1),
        b"zset": functools.partial(client.zrange, start=0, end=-1),
    }
    read: Callable[[bytes], object] = readers[client.type(key)]  # type: ignore[index,assignment]
    return read(key)
