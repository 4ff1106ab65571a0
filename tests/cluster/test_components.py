"""Scrapyd's interfaces: what holds for its own components holds for the cluster's."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from scrapyd.config import Config
from scrapyd.interfaces import IJobStorage, IPoller, ISpiderQueue, ISpiderScheduler
from scrapyd.jobstorage import MemoryJobStorage, SqliteJobStorage
from scrapyd.spiderqueue import SqliteSpiderQueue
from zope.interface.verify import verifyObject

from moviecrawler.cluster.components import RedisJobStorage, RedisScheduler, RedisSpiderQueue
from moviecrawler.cluster.poller import RedisPoller
from moviecrawler.errors import ConfigurationError


@pytest.fixture
def config(redis_url: str, monkeypatch: pytest.MonkeyPatch) -> Config:
    monkeypatch.setenv("SCRAPYD_REDIS_URL", redis_url)
    return Config({"dbs_dir": ":memory:", "finished_to_keep": "3"})


@pytest.fixture(params=[SqliteSpiderQueue, RedisSpiderQueue])
def queue(request: pytest.FixtureRequest, config: Config) -> Iterator[Any]:
    made = request.param(config, "toy")
    assert verifyObject(ISpiderQueue, made)
    yield made
    if isinstance(made, SqliteSpiderQueue):
        made.q.conn.close()


def add(queue: Any, name: str, priority: float = 0.0, **arguments: str) -> None:
    queue.add(name, priority=priority, _job=f"job-{name}", settings={"RETRY_TIMES": "1"}, **arguments)


def test_queue_gives_messages_back_by_priority(queue: Any) -> None:
    for name, priority in (("low", -1.0), ("high", 2.5), ("middle", 0.0)):
        add(queue, name, priority, ids="tt1", _version="7")
    assert queue.count() == 3
    names = ["high", "middle", "low"]
    assert [message["name"] for message in queue.list()] == names
    first = {"name": "high", "_job": "job-high", "settings": {"RETRY_TIMES": "1"}, "ids": "tt1", "_version": "7"}
    assert queue.list()[0] == first
    assert queue.pop() == first
    assert [queue.pop()["name"] for _ in range(2)] == names[1:]
    assert queue.pop() is None


def test_queue_removes_what_is_chosen(queue: Any) -> None:
    for name in ("a", "b", "c"):
        add(queue, name)
    assert queue.remove(lambda message: message["name"] in {"a", "c", "z"}) == 2
    assert [message["name"] for message in queue.list()] == ["b"]
    queue.clear()
    assert queue.count() == 0


@pytest.mark.parametrize("make", [MemoryJobStorage, SqliteJobStorage, RedisJobStorage])
def test_finished_jobs_are_told_latest_first(make: Any, config: Config) -> None:
    storage = make(config)
    assert verifyObject(IJobStorage, storage)
    begun = datetime(2026, 1, 2, 3, 4, 5)  # noqa: DTZ001 - as Scrapyd has it
    for number in (1, 2):
        storage.add(
            SimpleNamespace(
                project="toy",
                spider="quick",
                job=f"job{number}",
                start_time=begun,
                end_time=begun + timedelta(minutes=number),
            )
        )
    assert len(storage) == 2
    assert [job.job for job in storage] == [job.job for job in storage.list()] == ["job2", "job1"]
    latest = next(iter(storage))
    assert (latest.project, latest.spider) == ("toy", "quick")
    assert (latest.start_time, latest.end_time) == (begun, begun + timedelta(minutes=2))
    if isinstance(storage, SqliteJobStorage):
        storage.jobs.conn.close()


def test_queue_refuses_what_no_job_may_hold(config: Config) -> None:
    with pytest.raises(ConfigurationError, match="jobid is"):
        RedisSpiderQueue(config, "toy").add("quick", _job="../../x")


def test_scheduler_and_poller_know_no_project_that_was_not_deployed(config: Config) -> None:
    scheduler, poller = RedisScheduler(config), RedisPoller(config)
    assert verifyObject(ISpiderScheduler, scheduler)
    assert verifyObject(IPoller, poller)
    assert scheduler.list_projects() == list(poller.queues) == []
    with pytest.raises(KeyError):
        scheduler.schedule("toy", "quick")
