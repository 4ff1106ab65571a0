"""Several workers of one crawl, each a process of its own, that a test may stop, kill and replace."""

import os
import random
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Self

import pytest
import redis

from moviecrawler.frontier.keys import Keys, SiteKeys
from moviecrawler.items import Movie, Site
from moviecrawler.replica.process import ReplicaProcess
from tests.crawling import FAST
from tests.crawling import environment as crawl_environment
from tests.processes import Process, start
from tests.tables import read_movies

QUICK = {
    **FAST,
    "FRONTIER_LEASE": "2",
    "STORE_BATCH_SECONDS": "0.3",
    "LOG_LEVEL": "INFO",
    "LOGSTATS_INTERVAL": "0",
}
"""Settings with which a worker that died is soon replaced. On a busy machine, so is one that is
only slow."""
SURE: dict[str, Any] = {"FRONTIER_LEASE": "60", "DOWNLOAD_TIMEOUT": "60"}
"""For workers of which none dies, where each page is to be asked for once, however busy the machine
is."""
LONGEST = 120.0
"""Seconds that workers may take to end."""


@contextmanager
def paused(replica: ReplicaProcess) -> Iterator[None]:
    """Have the sites answer nothing meanwhile."""
    os.kill(replica._process.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(replica._process.pid, signal.SIGCONT)


def keys_of(client: redis.Redis, site: Site = "imdb") -> Keys:
    """Return the keys of the run that a worker has joined last."""
    newest: Any = client.zrange(SiteKeys(site).runs, 0, 0, desc=True)
    name, _, number = newest[0].decode().rpartition(":")
    return Keys(SiteKeys(site), name, number)


def make_run(
    client: redis.Redis, run: str = "default", site: Site = "imdb", ago: float = 60.0, **state: Any
) -> Keys:
    """Write the state of a run, as its workers do, that was begun some seconds ago."""
    began = round(1000 * (time.time() - ago))
    keys = Keys(SiteKeys(site), run, str(began))
    figures: dict[Any, Any] = {
        "arguments": "ids=tt1 (0)",
        "total": 0,
        "done": 0,
        "failed": 0,
        **state,
    }
    client.hset(keys.state, mapping=figures)
    client.zadd(keys.site.runs, {f"{run}:{began}": began})
    client.set(keys.site.latest(run), began)
    return keys


class Workers:
    """Processes of `scrapy crawl` with the same arguments, which store into one folder."""

    def __init__(
        self,
        spider: str,
        *arguments: str,
        data: Path,
        replica: ReplicaProcess,
        redis_url: str,
        environment: dict[str, str] | None = None,
        **settings: str,
    ) -> None:
        self.data = data
        self.running: list[Process] = []
        self.ended: list[Process] = []
        self.logs: dict[Process, Path] = {}
        self._site: Any = spider
        self._redis: redis.Redis = redis.Redis.from_url(redis_url)
        self._command = [
            "crawl",
            spider,
            *(part for argument in arguments for part in ("-a", argument)),
        ]
        options = {**QUICK, "REDIS_URL": redis_url, **settings}
        self._command += [
            part for name, value in options.items() for part in ("-s", f"{name}={value}")
        ]
        self._environment = {**crawl_environment(data, replica), **(environment or {})}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for process in self.running:
            process.kill()
            process.wait()
        self._redis.close()

    def start(self, count: int = 1, environment: dict[str, str] | None = None) -> None:
        """Start so many more."""
        for number in range(len(self.logs), len(self.logs) + count):
            path = self.data / f"worker-{number}.log"
            command = [*self._command, "-s", f"FRONTIER_NODE=node{number}"]
            with path.open("wb") as log:
                process = start(
                    command,
                    env={**self._environment, **(environment or {})},
                    cwd=self.data,
                    stderr=log,
                )
            self.running.append(process)
            self.logs[process] = path

    @property
    def keys(self) -> Keys:
        """The keys of their run: of the latest that a worker has joined."""
        return keys_of(self._redis, self._site)

    def count(self, key: str) -> int:
        """Return how many members one of the run's keys has; 0 while there is no run."""
        try:
            keys = self.keys
        except IndexError:
            return 0
        count = {
            "requests": self._redis.hlen,
            "dead": self._redis.hlen,
            "titles": self._redis.scard,
        }
        return int(count.get(key, self._redis.zcard)(getattr(keys, key)))

    def holders(self) -> set[bytes]:
        """Return the workers that hold a request, or did so until it was queued again."""
        values: Any = self._redis.hvals(self.keys.requests) if self.count("leases") else []
        return {value.split(b"\n")[0].split(b" ")[2] for value in values} - {b""}

    def state(self, name: str) -> int:
        """Return a figure of the run."""
        return int(self._redis.hget(self.keys.state, name) or 0)

    def kill(self) -> None:
        """Kill one by chance."""
        process = random.choice(self.running)  # noqa: S311 - a chance is all it takes
        process.kill()
        process.wait()
        self._end(process)

    def wait(self) -> list[int]:
        """Wait until all have ended; return their exit codes."""
        codes = []
        deadline = time.monotonic() + LONGEST
        while self.running:
            process = self.running[0]
            codes.append(process.wait(max(0.1, deadline - time.monotonic())))
            self._end(process)
        return codes

    def _end(self, process: Process) -> None:
        self.running.remove(process)
        self.ended.append(process)

    @property
    def log(self) -> str:
        """What all have logged."""
        return "\n".join(path.read_text() for path in self.logs.values())

    @property
    def movies(self) -> list[Movie]:
        """What they stored."""
        path = self.data / "movies.csv"
        return list(read_movies(path)) if path.exists() else []


WorkersOf = Callable[..., Workers]
"""Makes the workers of a test: on its replica and its Redis, storing into its folder unless `data`
says otherwise."""


def workers_on(replica: ReplicaProcess, redis_url: str, folder: Path) -> WorkersOf:
    """Return what makes the workers of a test."""
    return partial(Workers, data=folder, replica=replica, redis_url=redis_url)


@pytest.fixture
def workers_of(replica: ReplicaProcess, redis_url: str, tmp_path: Path) -> WorkersOf:
    return workers_on(replica, redis_url, tmp_path)
