"""What a node makes of its jobs' processes, without an event loop and without a process."""

from __future__ import annotations

import io
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock, call

import pytest
import redis
from twisted.internet.defer import Deferred, maybeDeferred
from twisted.internet.task import Clock
from twisted.logger import capturedLogs, formatEvent

from moviecrawler.cluster.eggs import EggStore
from moviecrawler.cluster.jobs import Job, Report
from moviecrawler.cluster.launcher import ClusterLauncher
from moviecrawler.cluster.options import NodeOptions
from moviecrawler.cluster.process import SpiderProcess
from moviecrawler.cluster.state import ClusterState
from tests.cluster.nodes import toy_egg

JOB = Job(project="toy", spider="slow", id="a1")


@pytest.fixture
def launcher(tmp_path: Path, redis_url: str, monkeypatch: pytest.MonkeyPatch) -> ClusterLauncher:
    """Return a launcher whose jobs are processes of a test's, and whose event loop is not needed."""
    options = NodeOptions(
        redis_url=redis_url, eggs_dir=str(tmp_path / "eggs"), logs_dir=str(tmp_path / "logs"), max_deaths=0
    )
    state = ClusterState(options)
    eggs = EggStore(state)
    monkeypatch.setattr("moviecrawler.cluster.eggs.list_spiders", lambda _: ["slow"])
    eggs.put(io.BytesIO(toy_egg()), "toy", "1")
    made = ClusterLauncher(state, eggs)
    for threads in (made._fetching, made.poller.threads):
        monkeypatch.setattr(threads, "run", maybeDeferred)
    monkeypatch.setattr(made, "_beat_soon", lambda: None)
    return made


def ended_process(ended: Deferred[None], **facts: Any) -> Any:
    """Return a process that ends when a Deferred fires, as the launcher sees it."""
    usual = {"pid": 1, "report": None, "signal": None, "exit_code": 1, "traceback": "", "last_error": ""}
    return SimpleNamespace(start=lambda: None, ended=ended, **{**usual, **facts})


def take_job(launcher: ClusterLauncher) -> Job:
    launcher.state.beat(launcher.info(), [])
    job = launcher.state.take(launcher.poller.node)
    assert job is not None
    return job


def test_node_that_can_start_no_process_gives_no_job_up(
    launcher: ClusterLauncher, monkeypatch: pytest.MonkeyPatch
) -> None:
    process = SimpleNamespace(start=Mock(side_effect=BlockingIOError(11, "Resource temporarily unavailable")))
    monkeypatch.setattr("moviecrawler.cluster.launcher.SpiderProcess", lambda *_, **__: process)
    pauses: list[Deferred[None]] = [Deferred(), Deferred()]
    pause = Mock(side_effect=pauses)
    monkeypatch.setattr("moviecrawler.cluster.launcher.pause", pause)
    launcher.state.schedule(JOB)
    starts = []

    async def take() -> Job:
        job = take_job(launcher)
        starts.append(job.start)
        return job

    monkeypatch.setattr(launcher.poller, "next", take)
    with capturedLogs() as logged:
        Deferred.fromCoroutine(launcher._fill_slot())
        pauses[0].callback(None)
    text = "toy/a1 can't be started here: [Errno 11] Resource temporarily unavailable"
    assert list(map(formatEvent, logged)).count(text) == 2
    assert starts == [1, 2]
    assert launcher.state.counts() == (1, 0, 0)
    assert pause.call_args_list == [call(2), call(4)]  # others may do better


def test_process_that_writes_nonsense_to_its_node_ends_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    reactor = SimpleNamespace(spawnProcess=Mock(), callLater=Mock())
    monkeypatch.setattr("moviecrawler.cluster.process.reactor", reactor)
    process = SpiderProcess(JOB, Path("toy.egg"), {}, {}, hang_seconds=60)
    process.start()
    process.childDataReceived(3, b'{"x":' + b"[" * 50_000)
    process.transport = Mock()
    well: Any = SimpleNamespace(value=SimpleNamespace(signal=None, exitCode=0))
    process.processExited(well)
    process.processEnded(well)
    assert process.ended.called
    assert (process.report, process.exit_code) == (None, 0)


def test_job_that_this_node_takes_again_at_once_stays_its_own(
    launcher: ClusterLauncher, monkeypatch: pytest.MonkeyPatch
) -> None:
    recycled = Report(reason="recycled", items=1, errors=0, pages=1, bytes=1, shared=True)
    processes = [ended_process(Deferred(), pid=None, report=recycled, exit_code=0) for _ in range(2)]
    started = iter(processes)
    monkeypatch.setattr("moviecrawler.cluster.launcher.SpiderProcess", lambda *_, **__: next(started))
    settle = launcher.state.settle

    def run() -> None:
        Deferred.fromCoroutine(launcher._run(take_job(launcher)))

    def settle_and_be_overtaken(*arguments: Any) -> bool:
        monkeypatch.setattr(launcher.state, "settle", settle)
        known = settle(*arguments)
        run()
        return known

    monkeypatch.setattr(launcher.state, "settle", settle_and_be_overtaken)
    launcher.state.schedule(JOB)
    run()
    processes[0].ended.callback(None)
    assert [held.job.start for held in launcher._held.values()] == [2]


def test_heartbeats_that_fail_are_retried_once_a_second_and_logged_once(
    launcher: ClusterLauncher, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock()
    monkeypatch.setattr("moviecrawler.cluster.launcher.reactor", clock)
    monkeypatch.setattr(launcher.poller, "start", lambda: None)  # a thread, which would go on
    with capturedLogs() as logged:
        with monkeypatch.context() as patch:
            patch.setattr(launcher.state, "beat", Mock(side_effect=redis.ConnectionError("refused")))
            for _ in range(3):
                launcher.beat()
            clock.advance(1)
            assert len(clock.getDelayedCalls()) == 1
        clock.advance(1)
    assert [formatEvent(event) for event in logged] == [
        "Redis can't be reached: refused; spiders go on, and the node tries again",
        "Redis answers again",
    ]
    assert launcher.state.nodes()[0].name == launcher.options.node_name
