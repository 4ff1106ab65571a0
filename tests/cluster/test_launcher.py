"""What a node makes of its jobs' processes, without an event loop and without a process."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import msgspec
import pytest
import redis
from scrapyd.config import Config
from scrapyd.environ import Environment
from scrapyd.interfaces import IEggStorage, IEnvironment, IJobStorage, IPoller
from twisted.internet.defer import Deferred, maybeDeferred
from twisted.logger import capturedLogs, formatEvent

from moviecrawler.cluster import keys
from moviecrawler.cluster.eggs import RedisEggStorage
from moviecrawler.cluster.jobs import Job, Report
from moviecrawler.cluster.launcher import ClusterLauncher
from moviecrawler.cluster.node import Node
from moviecrawler.cluster.options import NodeOptions
from moviecrawler.cluster.process import SpiderProcess
from moviecrawler.cluster.views import RedisJobStorage, RedisPoller
from tests.cluster.nodes import toy_egg
from tests.waiting import wait_for

module: Any = sys.modules[ClusterLauncher.__module__]
JOB = Job(project="toy", spider="slow", id="a1")
Started = list[tuple[SpiderProcess, Deferred[None]]]


@pytest.fixture
def launcher(tmp_path: Path, redis_url: str, monkeypatch: pytest.MonkeyPatch) -> ClusterLauncher:
    """Return a launcher whose calls in threads are made at once, and whose later calls are only noted."""
    options = NodeOptions(redis_url=redis_url, eggs_dir=str(tmp_path / "eggs"))
    config = Config({"max_proc": "2", "logs_dir": str(tmp_path / "logs")})
    config.node = Node(config, options)
    monkeypatch.setattr("moviecrawler.cluster.eggs.list_spiders", lambda _: ["slow"])
    eggs = RedisEggStorage(config)
    eggs.put(toy_egg(), "toy", "1")
    components = {IJobStorage: RedisJobStorage(config), IPoller: RedisPoller(config), IEggStorage: eggs}
    components[IEnvironment] = Environment(config)
    made = ClusterLauncher(config, SimpleNamespace(getComponent=components.get))
    monkeypatch.setattr(made, "ask", maybeDeferred)
    monkeypatch.setattr(module, "deferToThread", maybeDeferred)
    return made


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> Started:
    """Return the processes that the launcher has started; each ends when its Deferred fires."""
    found: Started = []

    def start(process: SpiderProcess, *_: Any) -> Deferred[None]:
        found.append((process, Deferred()))
        process.pid = 1
        return found[-1][1]

    monkeypatch.setattr(SpiderProcess, "start", start)
    return found


def run(launcher: ClusterLauncher, slot: int, job: Job = JOB) -> None:
    """Have a slot run a job."""
    launcher.state.schedule(job)
    launcher._get_message(slot)
    launcher.exchange()


def test_node_that_can_start_no_process_gives_no_job_up_and_waits_for_others(
    launcher: ClusterLauncher, monkeypatch: pytest.MonkeyPatch
) -> None:
    fails = Mock(side_effect=BlockingIOError(11, "Resource temporarily unavailable"))
    monkeypatch.setattr(SpiderProcess, "start", fails)
    monkeypatch.setattr(module, "deferLater", pause := Mock(return_value=Deferred()))
    with capturedLogs() as logged:
        run(launcher, 0)
    assert "toy/a1 can't be started here: [Errno 11] Resource temporarily unavailable" in map(formatEvent, logged)
    assert launcher.state.counters()["handed_back"] == 0
    assert pause.call_args.args[1] == 10
    pause.return_value.callback(None)
    assert launcher.state.counters()["handed_back"] == 1


def test_spider_that_ended_while_redis_is_away_is_counted_once_and_the_outage_is_logged_once(
    launcher: ClusterLauncher, monkeypatch: pytest.MonkeyPatch, started: Started
) -> None:
    run(launcher, 0)
    [(process, ended)] = started
    process.report = Report(reason="finished", stats={"pages/read": 2})
    with capturedLogs() as logged:
        with monkeypatch.context() as patch:
            patch.setattr(launcher.state, "record_end", Mock(side_effect=redis.ConnectionError("refused")))
            ended.callback(None)
            launcher.exchange()
            assert launcher.figures().by_site()["slow"]["moviecrawler_pages", ()] == 2
        launcher.exchange()
    assert launcher.slots == {}
    assert launcher.figures().by_site()["slow"]["moviecrawler_pages", ()] == 2
    assert [text for text in map(formatEvent, logged) if text.startswith("Redis")] == [
        "Redis can't be reached: refused; spiders go on, and the node tries again",
        "Redis answers again",
    ]
    assert [status.state for status in launcher.state.snapshot().jobs] == ["finished"]


def test_job_of_a_node_that_dies_is_taken_over_as_soon_as_its_lease_ends(
    launcher: ClusterLauncher, started: Started
) -> None:
    other = msgspec.structs.replace(launcher.info(), id="other:1", name="other")
    launcher.state.schedule(JOB)
    assert launcher.state.beat(other, [], takes=True).taken is not None
    launcher.state.client.zincrby(keys.NODES, -18_500, "other:1")  # of a lease of 20 s, and heartbeats each 6.7 s
    launcher._get_message(0)
    wait_for(lambda: launcher.exchange() and started, 10)
    assert [process.leased.start for process, _ in started] == [2]


def test_idle_node_asks_redis_for_one_text_a_second_and_sends_three_heartbeats_a_lease(
    launcher: ClusterLauncher, monkeypatch: pytest.MonkeyPatch
) -> None:
    launcher._get_message(0)
    for _ in range(2):
        launcher.exchange()
    asked = Mock(wraps=launcher.state)
    monkeypatch.setattr(launcher, "state", asked)
    seconds = SimpleNamespace(now=module.time.monotonic())
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: seconds.now))
    for _ in range(40):  # two leases
        launcher.exchange()
        seconds.now += 1.0
    assert (asked.changed.call_count, asked.beat.call_count) == (40, 5)
