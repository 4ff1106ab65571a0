"""What a node reports, and what it does with its jobs, without a process and a Redis."""

import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import AsyncMock, Mock

import pytest
import redis
from twisted.internet.defer import succeed
from twisted.logger import capturedLogs

from moviecrawler.basics.errors import ConfigurationError
from moviecrawler.cluster.jobs import Job, Report
from moviecrawler.cluster.launcher import ClusterLauncher
from moviecrawler.cluster.options import NodeOptions
from moviecrawler.cluster.state import Beat, JobStatus

AWAY = redis.exceptions.ConnectionError("no redis://u:hunter2@h")


class Launcher(ClusterLauncher):
    """A launcher of two slots, whose calls of Redis are answered by `redis`."""

    def __init__(self, folder: Path) -> None:
        folders: Any = {"logs_dir": str(folder / "logs"), "eggs_dir": str(folder / "eggs")}
        options = NodeOptions(redis_url="", node_name="node1", max_proc=2, **folders)
        self.redis = Mock()
        self.redis.version.return_value = b"1"
        self.redis.eviction_fault.return_value = ""
        self.answer()
        node = SimpleNamespace(options=options, state=self.redis)
        super().__init__(SimpleNamespace(node=node), Mock())
        self._run = AsyncMock()  # type: ignore[method-assign]
        self._polling = Mock()
        self._stopped = succeed(self._polling)

    async def call(  # type: ignore[override]
        self, function: Any, *arguments: Any, **options: Any
    ) -> Any:
        return function(*arguments, **options)

    def answer(self, next_end: float = 60.0, **given: Any) -> None:
        """Answer heartbeats so."""
        usual = {"stop": {}, "cancels": {}, "dead": {}, "clock_ahead": 0.0}
        self.redis.beat.return_value = Beat(next_end=next_end, **{**usual, **given})

    async def exchange(self, **changed: Any) -> int:
        """Look at the cluster, and return how many heartbeats that took."""
        for name, value in changed.items():
            setattr(self, name, value)
        before = self.redis.beat.call_count
        await self._exchange()
        return int(self.redis.beat.call_count - before)

    def add(self, id_: str, **given: Any) -> Any:
        """Add a job that runs."""
        leased = leased_job(id_)
        process = Mock(leased=leased, job=leased.job, report=Report(), end=None, pid=None)
        process.configure_mock(**given)
        self.jobs.append(process)
        return process


def leased_job(id_: str) -> JobStatus:
    job = Job(project="toy", spider="quick", id=id_)
    return JobStatus(job=job, state="running", queue_member=id_, version="3")


@pytest.fixture
def launcher(tmp_path: Path) -> Launcher:
    """Return a node's launcher."""
    return Launcher(tmp_path)


async def test_a_heartbeat_is_sent_when_there_is_news_and_when_it_is_due(
    launcher: Launcher,
) -> None:
    async def is_sent_once(**changed: Any) -> bool:
        return (await launcher.exchange(**changed), await launcher.exchange()) == (1, 0)

    assert await is_sent_once()  # the first one
    assert launcher.unready_reasons == []
    assert await is_sent_once(_next_beat=0.0)
    launcher.redis.version.return_value = b"2"
    assert await is_sent_once()  # there may be a job
    launcher.fitness.note_failure("toy/a could not be run here")
    assert await is_sent_once()
    launcher.redis.version.return_value = None  # others have deleted it
    assert await launcher.exchange() == await launcher.exchange() == 1
    launcher.redis.version.return_value = b"3"
    assert await is_sent_once(draining=True)
    launcher.redis.version.return_value = b"4"
    assert await launcher.exchange() == 0  # it takes no job, and runs none
    launcher.add("a")
    launcher.redis.version.return_value = b"5"
    assert await is_sent_once()  # the job may be cancelled
    launcher.redis.version.side_effect = AWAY
    with capturedLogs() as logs:
        assert await launcher.exchange() == await launcher.exchange() == 0
    assert [log["why"] for log in logs] == ["Redis can't be reached: no redis://***@h"]
    launcher.redis.version.side_effect = None
    assert await is_sent_once()


@pytest.mark.parametrize(("next_end", "seconds"), [(60.0, 20 / 3), (5.0, 5.0)])
async def test_the_next_heartbeat_is_due_before_its_lease_or_another_nodes_ends(
    launcher: Launcher, next_end: float, seconds: float
) -> None:
    launcher.answer(next_end=next_end)
    await launcher.exchange()
    left = launcher._next_beat - time.monotonic()
    assert seconds - 0.5 - 0.2 < left <= seconds - 0.5


async def test_jobs_are_stopped_cancelled_and_taken_as_the_reply_says(launcher: Launcher) -> None:
    stopped, cancelled, other = map(launcher.add, "abc")
    reply: dict[str, Any] = {"stop": {"a": True}, "cancels": {"b": "TERM"}, "dead": {"node2": True}}
    launcher.answer(**reply, taken=leased_job("d"))
    with capturedLogs() as logs:
        await launcher.exchange()
    assert [log["node"] for log in logs if "node" in log] == ["node2"]
    stopped.stop.assert_called_once_with()
    cancelled.cancel.assert_called_once_with("TERM")
    assert launcher.redis.beat.call_args.args[1] == ["a", "b", "c"]
    assert not launcher.redis.beat.call_args.kwargs["takes"]
    assert [process.job.id for process in launcher.jobs] == ["a", "b", "c", "d"]
    stopped.report.stopped = True
    cancelled.report.cancelled = "TERM"
    await launcher.exchange(_next_beat=0.0, draining=True)  # is told so again
    assert (stopped.stop.call_count, cancelled.cancel.call_count) == (1, 1)
    launcher.answer(**{**reply, "cancels": {"b": "KILL"}})
    await launcher.exchange(_next_beat=0.0)
    cancelled.cancel.assert_called_with("KILL")
    assert not other.stop.called
    assert not other.cancel.called
    assert len(launcher.jobs) == 4, "a node that drains takes none"


async def test_a_job_is_taken_into_a_free_slot_and_its_end_frees_it(launcher: Launcher) -> None:
    for id_, takes in (("a", True), ("b", True), ("c", False)):
        await launcher.exchange(_next_beat=0.0)
        assert launcher.redis.beat.call_args.kwargs["takes"] == takes
        launcher.add(id_)
    outcome = Report(exit_code=0).outcome("finished", "finished")
    for process, is_ours in zip(list(launcher.jobs), (True, False, True), strict=True):
        process.end = ("finished", outcome)
        launcher.redis.record_end.return_value = is_ours
        with capturedLogs() as logs:
            await launcher.exchange()
        assert [log["job"] for log in logs] == ([] if is_ours else [process.job.key])
        told = launcher.redis.record_end.call_args.args
        assert told == (launcher.node_id, process.leased, "finished", outcome)
    assert launcher.jobs == []


async def test_what_a_node_reports_of_the_jobs_that_run(launcher: Launcher) -> None:
    launcher.add("a")
    launcher.add("b", pid=2**30, report=Report(unreachable={"imdb": "no answer"}))
    launcher.add("c", pid=2**30 + 1)
    info = launcher.info()
    assert info.processes == {"toy/b": (2**30, "3"), "toy/c": (2**30 + 1, "3")}
    assert info.unreachable == {"imdb": "no answer"}
    assert (info.name, info.slots, info.spiders_memory) == ("node1", 2, 0)
    assert info.memory > 2**20


@pytest.mark.parametrize(
    ("crawled", "told", "how", "reason", "exit_code"),
    [
        (ConfigurationError("no such setting"), {}, "finished", "no such setting", 2),
        (AWAY, {}, "handed_back", "Redis can't be reached: no redis://***@h", None),
        (OSError("full"), {}, "node_failed", "its node can't start it: full", None),
        (("node_failed", "disk is full"), {"exit_code": 1}, "node_failed", "disk is full", 1),
        (("handed_back", "stopped"), {"stopped": True}, "handed_back", "stopped", None),
        (("finished", "finished"), {"exit_code": 0}, "finished", "finished", 0),
    ],
)
async def test_a_node_that_can_not_run_a_job_says_so_and_takes_none_for_a_while(
    launcher: Launcher,
    crawled: Any,
    told: dict[str, Any],
    how: str,
    reason: str,
    exit_code: int | None,
) -> None:
    process = launcher.add("a", report=Report(**told))
    launcher._crawl = AsyncMock(side_effect=[crawled])  # type: ignore[method-assign]
    await ClusterLauncher._run(launcher, process)
    assert process.end[0] == how
    assert (process.end[1].reason, process.end[1].exit_code) == (reason, exit_code)
    is_nodes = how == "node_failed" or crawled is AWAY
    expected = [f"a job could not be run here: toy/a, {reason}"] if is_nodes else []
    assert list(launcher.fitness.faults.values()) == expected


async def test_why_a_node_takes_no_jobs(launcher: Launcher) -> None:
    assert launcher.unready_reasons == ["Redis has not replied yet"]
    await launcher.exchange()
    launcher.last_beat_at -= launcher.options.lease_seconds
    assert launcher.unready_reasons == ["Redis accepts no heartbeat"]
    launcher.last_beat_at += 1
    assert launcher.unready_reasons == []
    launcher.fitness.note_clock(-3600)
    assert ["behind" in reason for reason in launcher.unready_reasons] == [True]
    launcher.draining = True
    assert launcher.unready_reasons == ["the node is draining"]


@pytest.mark.parametrize("error", [None, AWAY])
async def test_a_node_that_is_stopped_stops_its_jobs_and_leaves(
    launcher: Launcher, error: Exception | None
) -> None:
    jobs = list(map(launcher.add, "ab"))
    jobs[-1].stop.side_effect = launcher.jobs.clear
    launcher.redis.leave.side_effect = error
    with capturedLogs() as logs:
        assert launcher.stopService().called
    assert [job.stop.call_count for job in jobs] == [1, 1]
    launcher.redis.leave.assert_called_once_with(launcher.node_id)
    assert len([log for log in logs if "as lost" in log["log_format"]]) == (error is not None)
    assert launcher.draining
