"""What a node makes of its jobs' processes, without an event loop and without a process."""

from __future__ import annotations

import io
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock, call

import pytest
from twisted.internet.defer import Deferred, maybeDeferred
from twisted.logger import capturedLogs, formatEvent

from moviecrawler.cluster.eggs import EggStore
from moviecrawler.cluster.jobs import Job, Report
from moviecrawler.cluster.launcher import ClusterLauncher, _HeldJob
from moviecrawler.cluster.options import NodeOptions
from tests.cluster.nodes import toy_egg

JOB = Job(project="toy", spider="slow", id="a1")


@pytest.fixture
def launcher(tmp_path: Path, redis_url: str, monkeypatch: pytest.MonkeyPatch) -> ClusterLauncher:
    """Return a launcher whose jobs are processes of a test's, and whose event loop is not needed."""
    options = NodeOptions(
        redis_url=redis_url, eggs_dir=str(tmp_path / "eggs"), logs_dir=str(tmp_path / "logs"), max_deaths=0
    )
    eggs = EggStore(options)
    monkeypatch.setattr("moviecrawler.cluster.eggs.list_spiders", lambda _: ["slow"])
    eggs.put(io.BytesIO(toy_egg()), "toy", "1")
    made = ClusterLauncher(options, eggs)
    for threads in (made._fetching, made.poller.threads):
        monkeypatch.setattr(threads, "run", maybeDeferred)
    monkeypatch.setattr(made, "_beat_soon", lambda: None)
    return made


def test_slow_start_that_fails_by_itself_is_no_hang(launcher: ClusterLauncher, monkeypatch: pytest.MonkeyPatch) -> None:
    ended: Deferred[None] = Deferred()
    signals: list[object] = []
    process = SimpleNamespace(
        start=lambda: None,
        send=signals.append,
        ended=ended,
        heartbeats=0,
        pid=1,
        report=None,
        signal=None,
        exit_code=1,
        last_error="no such table",
        work=None,
    )
    monkeypatch.setattr("moviecrawler.cluster.launcher.SpiderProcess", lambda *_, **__: process)
    held = _HeldJob(job=JOB, started_at=0.0)
    launcher._held[held.job.key] = held
    ends: list[object] = []
    Deferred.fromCoroutine(launcher._crawl(held)).addCallback(ends.append)
    for _ in range(20):  # more looks than a spider at work may be silent for
        launcher._check_hangs()
    ended.callback(None)
    assert ends == [("finished", "exit code 1: no such table")]
    for _ in range(200):  # while Redis is away, say, the job is still this node's
        launcher._check_hangs()
    assert (held.hung, signals) == (False, [])


def test_node_that_can_start_no_process_gives_no_job_up(
    launcher: ClusterLauncher, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full() -> None:
        raise BlockingIOError(11, "Resource temporarily unavailable")

    monkeypatch.setattr("moviecrawler.cluster.launcher.SpiderProcess", lambda *_, **__: SimpleNamespace(start=full))
    pause = Mock(return_value=Deferred())
    monkeypatch.setattr("moviecrawler.cluster.launcher.pause", pause)
    state, node = launcher.state, launcher.poller.node
    state.schedule(JOB)
    for start in (1, 2):
        state.beat(launcher.info(), [])
        job = state.take(node)
        assert job is not None
        assert job.start == start
        with capturedLogs() as logged:
            launcher._occupy(job, 0)
        assert "toy/a1 can't be started here: [Errno 11] Resource temporarily unavailable" in map(formatEvent, logged)
        assert state.counts() == (1, 0, 0)
    assert pause.call_args_list == [call(2), call(4)]  # others may do better


def test_job_that_this_node_takes_again_at_once_stays_its_own(
    launcher: ClusterLauncher, monkeypatch: pytest.MonkeyPatch
) -> None:
    recycled = Report(reason="recycled", items=1, errors=0, pages=1, bytes=1, shared=True)
    processes = [
        SimpleNamespace(
            start=lambda: None, ended=Deferred(), heartbeats=1, pid=None, report=recycled, signal=None, exit_code=0,
            last_error="", work=None,
        )
        for _ in range(2)
    ]  # fmt: skip
    started = iter(processes)
    monkeypatch.setattr("moviecrawler.cluster.launcher.SpiderProcess", lambda *_, **__: next(started))
    state, node, settle = launcher.state, launcher.poller.node, launcher.state.settle

    def occupy() -> None:
        job = state.take(node)
        assert job is not None
        launcher._occupy(job, 0)

    def settle_and_be_overtaken(*arguments: Any) -> bool:
        monkeypatch.setattr(state, "settle", settle)
        known = settle(*arguments)
        occupy()
        return known

    monkeypatch.setattr(state, "settle", settle_and_be_overtaken)
    state.schedule(JOB)
    state.beat(launcher.info(), [])
    occupy()
    processes[0].ended.callback(None)
    assert [held.job.start for held in launcher._held.values()] == [2]
