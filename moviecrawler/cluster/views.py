"""What Scrapyd's own web services read: its interfaces as views of a snapshot of the cluster.

The web root reads a snapshot in the thread in which a service then answers, if the cluster has changed since the last one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from scrapyd.interfaces import IEggStorage, IJobStorage, ISpiderQueue
from zope.interface import implementer

if TYPE_CHECKING:
    from scrapyd.config import Config

    from moviecrawler.cluster.node import Node
    from moviecrawler.cluster.state import JobStatus


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


def _process(status: JobStatus) -> Process:
    ended = None if status.outcome is None else local_time(status.outcome.ended_at / 1000)
    job = status.job
    return Process(job.project, job.spider, job.id, status.pid, local_time(status.started_at or 0), ended)


class Processes:
    """The launcher's `processes`: what runs on all nodes."""

    def __init__(self, node: Node) -> None:
        self._node = node

    def __len__(self) -> int:
        return len(self._node.snapshot.running)

    def values(self) -> list[Process]:
        """Return them."""
        return [_process(status) for status in self._node.snapshot.running]


@implementer(ISpiderQueue)
class RedisSpiderQueue:
    """The jobs of one project that wait. The poller takes those of all projects by their priority."""

    def __init__(self, config: Config, project: str) -> None:
        self._node: Node = config.node
        self._project = project

    def list(self) -> list[dict[str, Any]]:
        """Return Scrapyd's messages, the next one first."""
        return [
            {"name": job.spider, "_job": job.id, "_version": job.version, "settings": job.settings, **job.arguments}
            for job in (status.job for status in self._node.snapshot.pending)
            if job.project == self._project
        ]

    def count(self) -> int:
        """Return how many jobs wait."""
        return sum(status.job.project == self._project for status in self._node.snapshot.pending)


class Queues(Mapping[str, RedisSpiderQueue]):
    """The queues by project: of all that have a version and, if asked for, of all that have jobs."""

    def __init__(self, node: Node, *, with_jobs: bool) -> None:
        self._node = node
        self._with_jobs = with_jobs

    def _projects(self) -> list[str]:
        snapshot = self._node.snapshot
        jobs = snapshot.jobs if self._with_jobs else []
        return sorted({*snapshot.projects, *(status.job.project for status in jobs)})

    def __getitem__(self, project: str) -> RedisSpiderQueue:
        if project not in self._projects():
            raise KeyError(project)
        return RedisSpiderQueue(self._node.config, project)

    def __iter__(self) -> Iterator[str]:
        return iter(self._projects())

    def __len__(self) -> int:
        return len(self._projects())


@implementer(IJobStorage)
class RedisJobStorage:
    """The jobs that are over, the latest first."""

    def __init__(self, config: Config) -> None:
        self._node: Node = config.node

    def list(self) -> list[Process]:
        """Return them."""
        return [_process(status) for status in self._node.snapshot.finished]

    def __len__(self) -> int:
        return len(self._node.snapshot.finished)

    def __iter__(self) -> Iterator[Process]:
        return iter(self.list())


@implementer(IEggStorage)
class RedisEggStorage:
    """The versions of projects. Eggs are put, read and deleted by `EggStore`, with checks that this interface has no room for."""

    def __init__(self, config: Config) -> None:
        self._node: Node = config.node

    def list(self, project: str) -> list[str]:
        """Return a project's versions, the one that was deployed last at the end."""
        return [egg.version for egg in self._node.snapshot.eggs if egg.project == project]

    def list_projects(self) -> list[str]:  # type: ignore[valid-type]  # `list` is a method here
        """Return the projects."""
        return self._node.snapshot.projects
