"""Scrapyd's interfaces as views of a snapshot of the cluster, for Scrapyd's own web services.

The web root reads the snapshot in the thread in which a service then answers.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from scrapyd.interfaces import IJobStorage, ISpiderQueue
from scrapyd.poller import QueuePoller
from zope.interface import implementer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from scrapyd.config import Config
    from twisted.internet.defer import Deferred

    from moviecrawler.cluster.node import Node


class Process(NamedTuple):
    """A job that runs or is over, as Scrapyd's services read it."""

    project: str
    spider: str
    job: str
    pid: int | None
    start_time: datetime
    end_time: datetime | None


def local_time(seconds: float) -> datetime:
    """Return a time as Scrapyd shows it: the node's local time, without a time zone."""
    return datetime.fromtimestamp(seconds, UTC).astimezone().replace(tzinfo=None)


class Processes:
    """The cluster's jobs of one state, as Scrapyd's launcher and its job storage list them."""

    def __init__(self, node: Node, state: Literal["running", "finished"]) -> None:
        self._node = node
        self._state = state

    def __len__(self) -> int:
        return len(getattr(self._node.snapshot, self._state))

    def __iter__(self) -> Iterator[Process]:
        return iter(self.values())

    def values(self) -> list[Process]:
        """Return the jobs."""
        found = []
        for status in getattr(self._node.snapshot, self._state):
            job, ended = status.job, local_time(status.outcome.ended_at / 1000) if status.outcome else None
            began = local_time(status.started_at or 0)
            found.append(Process(job.project, job.spider, job.id, status.pid, began, ended))
        return found


@implementer(IJobStorage)
class RedisJobStorage(Processes):
    """The finished jobs, the latest first."""

    def __init__(self, config: Config) -> None:
        super().__init__(config.node, "finished")


@implementer(ISpiderQueue)
class RedisSpiderQueue:
    """The pending jobs of one project. Nodes take the jobs of all projects by priority."""

    def __init__(self, config: Config, project: str) -> None:
        pending = config.node.snapshot.pending
        self._jobs = [status.job for status in pending if status.job.project == project]

    def list(self) -> list[dict[str, Any]]:
        """Return Scrapyd's messages, the next one first."""
        return [
            {"name": job.spider, "_job": job.id, "_version": job.version, "settings": job.settings, **job.arguments}
            for job in self._jobs
        ]

    def count(self) -> int:
        """Return how many jobs are pending."""
        return len(self._jobs)


class RedisPoller(QueuePoller):  # type: ignore[misc]  # Scrapyd has no types
    """Scrapyd's poller over the cluster's queues. Each second it has the launcher exchange news with the cluster."""

    def update_projects(self) -> None:
        """Do nothing: `queues` reads the snapshot."""

    @property
    def queues(self) -> dict[str, RedisSpiderQueue]:
        """The queues of all projects that have a version or a job."""
        snapshot = self.config.node.snapshot
        projects = {*snapshot.projects, *(status.job.project for status in snapshot.jobs)}
        return {project: RedisSpiderQueue(self.config, project) for project in sorted(projects)}

    def poll(self) -> Deferred[None]:
        """Exchange news with the cluster."""
        exchanged: Deferred[None] = self.config.node.launcher.exchange()
        return exchanged
