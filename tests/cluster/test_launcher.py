"""What a node makes of its jobs' processes, without an event loop and without a process."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock, call

import pytest
import redis
from scrapyd.config import Config
from scrapyd.interfaces import IJobStorage, IPoller
from twisted.internet.defer import Deferred, maybeDeferred
from twisted.logger import capturedLogs, formatEvent

from moviecrawler.cluster.jobs import Job, Report
from moviecrawler.cluster.launcher import ClusterLauncher
from moviecrawler.cluster.node import Node
from moviecrawler.cluster.options import NodeOptions
from moviecrawler.cluster.poller import RedisPoller
from moviecrawler.cluster.process import SpiderProcess
from moviecrawler.cluster.state import Taken
from moviecrawler.cluster.views import RedisJobStorage
from tests.cluster.nodes import toy_egg

JOB = Job(project="toy", spider="slow", id="a1")


@pytest.fixture
def launcher(tmp_path: Path, redis_url: str, monkeypatch: pytest.MonkeyPatch) -> ClusterLauncher:
    """Return a launcher whose jobs are processes of a test's, and whose event loop is not needed."""
    options = NodeOptions(redis_url=redis_url, eggs_dir=str(tmp_path / "eggs"), logs_dir=str(tmp_path / "logs"))
    config = Config({})
    config.node = Node(config, options)
    monkeypatch.setattr("moviecrawler.cluster.eggs.list_spiders", lambda _: ["slow"])
    config.node.eggs.put(toy_egg(), "toy", "1")
    components = {IJobStorage: RedisJobStorage(config), IPoller: RedisPoller(config)}
    made = ClusterLauncher(config, SimpleNamespace(getComponent=components.get))
    for threads in (made._fetching, made.poller.threads):
        monkeypatch.setattr(threads, "run", maybeDeferred)
    return made


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[tuple[SpiderProcess, Deferred[None]]]:
    """Return the processes that the launcher has started; each ends when its Deferred fires."""
    found: list[tuple[SpiderProcess, Deferred[None]]] = []

    def start(process: SpiderProcess, *_: Any) -> Deferred[None]:
        found.append((process, Deferred()))
        return found[-1][1]

    monkeypatch.setattr(SpiderProcess, "start", start)
    return found


def run(launcher: ClusterLauncher, slot: int) -> Taken:
    """Have a slot run the next job."""
    launcher.beat()
    taken: Taken | None = launcher.state.take(launcher.poller.node_id)
    assert taken is not None
    launcher._spawn_process(taken, slot)
    return taken


def test_node_that_can_start_no_process_gives_no_job_up_and_waits_for_others(
    launcher: ClusterLauncher, monkeypatch: pytest.MonkeyPatch
) -> None:
    fails = Mock(side_effect=BlockingIOError(11, "Resource temporarily unavailable"))
    monkeypatch.setattr(SpiderProcess, "start", fails)
    pause = Mock(side_effect=lambda _: Deferred())
    monkeypatch.setattr("moviecrawler.cluster.launcher.pause", pause)
    launcher.state.schedule(JOB)
    with capturedLogs() as logged:
        starts = [run(launcher, 0).start for _ in range(2)]
    text = "toy/a1 can't be started here: [Errno 11] Resource temporarily unavailable"
    assert list(map(formatEvent, logged)).count(text) == 2
    assert starts == [1, 2]
    assert [status.state for status in launcher.state.snapshot().jobs] == ["pending"]
    assert pause.call_args_list == [call(10.0)] * 2


def test_process_that_writes_nonsense_to_its_node_ends_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    reactor = SimpleNamespace(spawnProcess=Mock(), callLater=Mock())
    monkeypatch.setattr("moviecrawler.cluster.process.reactor", reactor)
    process = SpiderProcess(Taken(JOB, 0.0, 1))
    ended = process.start(Path("toy.egg"), {}, {}, 60.0)
    for data in (b'{"x":' + b"[" * 50_000, b'\n{"stats": {"item_scra', b'ped_count": 2}}\n{"stats": 1}\n\xff\n'):
        process.childDataReceived(3, data)
    process.transport = Mock()
    well: Any = SimpleNamespace(value=SimpleNamespace(signal=None, exitCode=0))
    process.processExited(well)
    process.processEnded(well)
    assert ended.called
    assert (process.report.reason, process.report.figures["items"], process.exit_code) == (None, 2, 0)


def test_job_that_this_node_takes_again_at_once_stays_its_own(
    launcher: ClusterLauncher, monkeypatch: pytest.MonkeyPatch, started: list[tuple[SpiderProcess, Deferred[None]]]
) -> None:
    settle = launcher.state.settle

    def settle_and_be_overtaken(*arguments: Any) -> bool:
        monkeypatch.setattr(launcher.state, "settle", settle)
        known: bool = settle(*arguments)
        run(launcher, 1)
        return known

    monkeypatch.setattr(launcher.state, "settle", settle_and_be_overtaken)
    launcher.state.schedule(JOB)
    run(launcher, 0)
    [(process, ended)] = started
    process.report = Report(reason="recycled", stats={"response_received_count": 1})
    ended.callback(None)
    assert [(slot, one.taken.start) for slot, one in launcher.slots.items()] == [(1, 2)]


def test_figures_of_ended_spiders_stay_in_the_sums_of_their_site(
    launcher: ClusterLauncher, started: list[tuple[SpiderProcess, Deferred[None]]]
) -> None:
    for slot in (0, 1):
        launcher.state.schedule(Job(project="toy", spider="slow", id=f"a{slot}"))
        run(launcher, slot)
    for pages, (process, _) in zip((2, 3), started, strict=True):
        process.report = Report(stats={"pages/read": pages})
    for _, ended in started:
        assert launcher.figures().by_site()["slow"]["moviecrawler_pages", ()] == 5
        ended.callback(None)
    assert launcher.figures().by_site()["slow"]["moviecrawler_pages", ()] == 5


def test_spider_that_ended_while_redis_is_away_is_counted_once(
    launcher: ClusterLauncher, monkeypatch: pytest.MonkeyPatch, started: list[tuple[SpiderProcess, Deferred[None]]]
) -> None:
    waiting: Deferred[None] = Deferred()
    monkeypatch.setattr("moviecrawler.cluster.launcher.pause", lambda _: waiting)
    launcher.state.schedule(JOB)
    run(launcher, 0)
    [(process, ended)] = started
    process.report = Report(stats={"pages/read": 2})
    with monkeypatch.context() as patch:
        patch.setattr(launcher.state, "settle", Mock(side_effect=redis.ConnectionError("refused")))
        ended.callback(None)
        assert launcher.figures().by_site()["slow"]["moviecrawler_pages", ()] == 2
    waiting.callback(None)
    assert launcher.slots == {}
    assert launcher.figures().by_site()["slow"]["moviecrawler_pages", ()] == 2


def test_heartbeats_that_fail_are_logged_once(launcher: ClusterLauncher, monkeypatch: pytest.MonkeyPatch) -> None:
    with capturedLogs() as logged:
        with monkeypatch.context() as patch:
            patch.setattr(launcher.state, "beat", Mock(side_effect=redis.ConnectionError("refused")))
            for _ in range(3):
                launcher.beat()
        launcher.beat()
    assert [formatEvent(event) for event in logged] == [
        "Redis can't be reached: refused; spiders go on, and the node tries again",
        "Redis answers again",
    ]
    assert launcher.state.nodes()[0].name == launcher.options.node_name
