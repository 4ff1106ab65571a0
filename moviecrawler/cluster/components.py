"""Scrapyd's own interfaces over the cluster's state, for what was written for Scrapyd and knows nothing of a cluster.

Their calls are synchronous, as Scrapyd's are: one short round trip each.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from scrapyd.interfaces import IJobStorage, ISpiderQueue, ISpiderScheduler
from zope.interface import implementer

from moviecrawler.cluster.eggs import EggStore
from moviecrawler.cluster.jobs import Job, Outcome, check_job
from moviecrawler.cluster.options import NodeOptions
from moviecrawler.cluster.state import state_for

if TYPE_CHECKING:
    from collections.abc import Callable

    from scrapyd.config import Config

    from moviecrawler.cluster.state import Finished

_KNOWN = {"_job", "_version", "settings"}


@implementer(ISpiderQueue)
class RedisSpiderQueue:
    """The pending jobs of one project."""

    def __init__(self, config: Config, project: str) -> None:
        self._state = state_for(NodeOptions.from_config(config))
        self._project = project

    def add(self, name: str, priority: float = 0.0, **spider_args: Any) -> None:
        """Queue a job. Raises ConfigurationError for what may not be in one."""
        job = Job(
            project=self._project,
            spider=name,
            id=spider_args.get("_job") or uuid4().hex,
            version=spider_args.get("_version"),
            settings=spider_args.get("settings", {}),
            arguments={key: value for key, value in spider_args.items() if key not in _KNOWN},
            priority=priority,
        )
        check_job(job)
        self._state.schedule(job)

    def pop(self) -> dict[str, Any] | None:
        """Take the next job out, without a lease; nodes take theirs otherwise."""
        for job in self._state.pending(self._project, most=1):
            if self._state.cancel(job.project, job.id) == "pending":
                return message(job)
        return None

    def list(self) -> list[dict[str, Any]]:
        """Return the pending jobs, next first."""
        return [message(job) for job in self._state.pending(self._project)]

    def count(self) -> int:
        """Return how many there are."""
        return len(self._state.pending(self._project))

    def remove(self, func: Callable[[dict[str, Any]], bool]) -> int:
        """Remove those for which `func` is true; return how many."""
        chosen = [job for job in self._state.pending(self._project) if func(message(job))]
        return sum(self._state.cancel(job.project, job.id) == "pending" for job in chosen)

    def clear(self) -> None:
        """Remove all."""
        self.remove(lambda _: True)


def message(job: Job) -> dict[str, Any]:
    """Return a job as Scrapyd's queues have it."""
    version = {} if job.version is None else {"_version": job.version}
    return {**job.arguments, "name": job.spider, "_job": job.id, "settings": job.settings, **version}


class Queues(Mapping[str, RedisSpiderQueue]):
    """The queue of each project that there is at the moment."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._eggs = EggStore(config)

    def __getitem__(self, project: str) -> RedisSpiderQueue:
        if project not in self._eggs.list_projects():
            raise KeyError(project)
        return RedisSpiderQueue(self._config, project)

    def __iter__(self) -> Iterator[str]:
        return iter(self._eggs.list_projects())

    def __len__(self) -> int:
        return len(self._eggs.list_projects())


@implementer(ISpiderScheduler)
class RedisScheduler:
    """Schedules into the cluster's queue."""

    def __init__(self, config: Config) -> None:
        self._queues = Queues(config)

    def schedule(self, project: str, spider_name: str, priority: float = 0.0, **spider_args: Any) -> None:
        """Queue a job. Raises KeyError for a project that there is not."""
        self._queues[project].add(spider_name, priority=priority, **spider_args)

    def list_projects(self) -> list[str]:
        """Return the projects, by name."""
        return list(self._queues)

    def update_projects(self) -> None:
        """Do nothing: projects are read when they are needed."""


class FinishedJob:
    """A finished job with the attributes that Scrapyd gives one."""

    def __init__(self, finished: Finished) -> None:
        self.project = finished.job.project
        self.spider = finished.job.spider
        self.job = finished.job.id
        self.start_time = local_time(finished.outcome.started_at / 1000)
        self.end_time = local_time(finished.outcome.ended_at / 1000)
        self.args: list[str] = []
        self.env: dict[str, str] = {}


def local_time(seconds: float) -> datetime:
    """Return a time as Scrapyd has them: the node's local one, without saying so."""
    return datetime.fromtimestamp(seconds, UTC).astimezone().replace(tzinfo=None)


@implementer(IJobStorage)
class RedisJobStorage:
    """The finished jobs of all nodes, which the nodes put there themselves."""

    def __init__(self, config: Config) -> None:
        self._state = state_for(NodeOptions.from_config(config))

    def add(self, job: Any) -> None:
        """Keep a job that another launcher than the cluster's has run."""
        ran = Outcome(
            node=self._state.options.node_name,
            started_at=job.start_time.timestamp() * 1000,
            ended_at=job.end_time.timestamp() * 1000,
            reason="finished",
        )
        self._state.record(Job(project=job.project, spider=job.spider, id=job.job), ran)

    def list(self) -> list[FinishedJob]:
        """Return the finished jobs, latest first."""
        return list(self)

    def __len__(self) -> int:
        return self._state.counts().finished

    def __iter__(self) -> Iterator[FinishedJob]:
        for finished in self._state.finished():
            yield FinishedJob(finished)
