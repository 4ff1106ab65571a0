"""Several workers of one crawl, each a process of its own.

A test may stop, kill and replace them.
"""

import asyncio
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
from scrapy.settings import Settings

from moviecrawler.frontier.contract import RunReport
from moviecrawler.frontier.runs import frontier
from moviecrawler.items import Movie, Site
from moviecrawler.replica.process import ReplicaProcess
from tests.accounts import check_queue, check_summary
from tests.processes import FAST, Process, crawl_command, start
from tests.processes import environment as crawl_environment
from tests.run_keys import RunKeys, SiteKeys
from tests.tables import sqlite_movies

QUICK = {
    **FAST,
    "FRONTIER_LEASE": "2",
    "STORE_BATCH_SECONDS": "0.3",
    "LOG_LEVEL": "INFO",
    "LOGSTATS_INTERVAL": "0",
}
"""Settings with which a worker that died is soon replaced. On a busy machine, so is one that is
only slow."""
SURE: dict[str, Any] = {"FRONTIER_LEASE": "60"}
"""For workers of which none dies, where each page is to be asked for once, however busy the machine
is."""
LONGEST = 300.0
"""Seconds that workers may take to end."""


@contextmanager
def paused(replica: ReplicaProcess) -> Iterator[None]:
    """Have the sites answer nothing meanwhile."""
    os.kill(replica._process.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(replica._process.pid, signal.SIGCONT)


def keys_of(client: redis.Redis, site: Site = "imdb") -> RunKeys:
    """Return the keys of the run that was used last."""
    newest: Any = client.zrange(SiteKeys(site).runs, 0, 0, desc=True)
    return RunKeys(SiteKeys(site), newest[0].decode())


def make_run(
    client: redis.Redis, run: str = "default", site: Site = "imdb", ago: float = 60.0, **state: Any
) -> RunKeys:
    """Write the state of a run, as its workers do, that was begun some seconds ago."""
    began = round(1000 * (time.time() - ago))
    keys = RunKeys(SiteKeys(site), run)
    figures: dict[Any, Any] = {
        "arguments": "ids=tt1 (0)",
        "requested": 0,
        "titles": 0,
        "started_at": began,
        **state,
    }
    client.hset(keys.state, mapping=figures)
    client.zadd(keys.site.runs, {run: began})
    return keys


async def read_run(site: Site, redis_url: str, data: Path) -> RunReport | None:
    """Return the run of a site that was begun last, of a Redis or of a folder."""
    settings = Settings({"REDIS_URL": redis_url, "DATA_DIR": str(data)})
    async with frontier(settings) as backend:
        report = await backend.read({}, site)
    return max(report.runs, key=lambda run: run.started_at, default=None)


class Workers:
    """Processes of `scrapy crawl` with the same arguments, which store into one folder.

    Without `redis_url`, their queue is in that folder, too.
    """

    def __init__(
        self,
        spider: str,
        *arguments: str,
        data: Path,
        replica: ReplicaProcess,
        redis_url: str = "",
        environment: dict[str, str] | None = None,
        **settings: str,
    ) -> None:
        self.data = data
        self.running: list[Process] = []
        self.ended: list[Process] = []
        self.logs: dict[Process, Path] = {}
        self._site: Any = spider
        self._redis_url = redis_url
        # It connects with its first command: without Redis, never.
        self._redis: redis.Redis = redis.Redis.from_url(redis_url or "redis://127.0.0.1:1/0")
        options = {**QUICK, "REDIS_URL": redis_url, **settings}
        self._command = crawl_command(spider, *arguments, **options)
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
    def keys(self) -> RunKeys:
        """The keys of their run in Redis: of the one that was used last."""
        return keys_of(self._redis, self._site)

    def count(self, key: str) -> int:
        """Return how many members one of the run's keys in Redis has; 0 while there is no run."""
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

    def report(self) -> RunReport | None:
        """Return the state of their run, in Redis or in their folder; None while there is none."""
        return asyncio.run(read_run(self._site, self._redis_url, self.data))

    def state(self, name: str) -> int:
        """Return a figure of the run's account, or `done`: all outcomes but dead letters."""
        report = self.report()
        if report is None:
            return 0
        if name == "done":
            return report.account.ended - report.account.dead
        return int(getattr(report.account, name))

    def kill(self) -> None:
        """Kill one by chance."""
        process = random.choice(self.running)  # noqa: S311 - a chance is all it takes
        process.kill()
        process.wait()
        self._end(process)

    def wait(self, *, may_lose: bool = False) -> list[int]:
        """Wait until all have ended; return their exit codes.

        Their account must add up, with nothing lost unless a test takes something from the queue.
        """
        codes = []
        deadline = time.monotonic() + LONGEST
        while self.running:
            process = self.running[0]
            codes.append(process.wait(max(0.1, deadline - time.monotonic())))
            if codes[-1] in {0, 1, 3}:
                check_summary(self.logs[process].read_text(), codes[-1])
            self._end(process)
        queue = {"REDIS_URL": self._redis_url, "DATA_DIR": str(self.data)}
        check_queue(queue, may_lose=may_lose)
        return codes

    def end_with(self, *codes: int, may_lose: bool = False) -> None:
        """Wait until all have ended, and check their exit codes."""
        assert self.wait(may_lose=may_lose) == [*codes], self.log

    def _end(self, process: Process) -> None:
        self.running.remove(process)
        self.ended.append(process)

    @property
    def log(self) -> str:
        """What all have logged."""
        return "\n".join(path.read_text() for path in self.logs.values())

    @property
    def movies(self) -> list[Movie]:
        """What they have stored so far."""
        return sqlite_movies(self.data)


WorkersOf = Callable[..., Workers]
"""Makes the workers of a test: on its replica and its Redis, storing into its folder unless `data`
says otherwise."""


def workers_on(replica: ReplicaProcess, redis_url: str, folder: Path) -> WorkersOf:
    """Return what makes the workers of a test."""
    return partial(Workers, data=folder, replica=replica, redis_url=redis_url)


@pytest.fixture
def workers_of(replica: ReplicaProcess, redis_url: str, tmp_path: Path) -> WorkersOf:
    """Return what makes the workers of a test, with Redis."""
    return workers_on(replica, redis_url, tmp_path)


@pytest.fixture(params=["redis", "sqlite"])
def queue_url(request: pytest.FixtureRequest) -> str:
    """Return the URL of an empty Redis, and then none: the queue is a file in DATA_DIR."""
    if request.param == "sqlite":
        return ""
    url: str = request.getfixturevalue("redis_url")
    return url


@pytest.fixture
def workers_of_any(replica: ReplicaProcess, queue_url: str, tmp_path: Path) -> WorkersOf:
    """Return what makes the workers of a test, with Redis and then without."""
    return workers_on(replica, queue_url, tmp_path)
