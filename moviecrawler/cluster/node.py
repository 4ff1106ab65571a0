"""What the web services of a node work with."""

from __future__ import annotations

import asyncio
import os
import time
from contextlib import aclosing
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from moviecrawler.cluster.cron import read_schedules
from moviecrawler.cluster.jobs import check_job
from moviecrawler.errors import ConfigurationError
from moviecrawler.frontier.report import read_current_runs, read_runs
from moviecrawler.redis_client import connect, redis_parameters

if TYPE_CHECKING:
    from moviecrawler.cluster.eggs import EggStore
    from moviecrawler.cluster.jobs import Job
    from moviecrawler.cluster.launcher import ClusterLauncher
    from moviecrawler.cluster.options import NodeOptions
    from moviecrawler.cluster.state import ClusterState


class Node:
    """This node: its options, its part of the cluster's state, and what runs its jobs."""

    def __init__(self, options: NodeOptions, state: ClusterState, eggs: EggStore, launcher: ClusterLauncher) -> None:
        """Take its parts, and read `schedules_file`. Raises ConfigurationError."""
        self.options = options
        self.schedules = read_schedules(Path(options.schedules_file)) if options.schedules_file else []
        self.name = options.node_name
        self.state = state
        self.eggs = eggs
        self.launcher = launcher

    def schedule(self, job: Job) -> None:
        """Queue a job whose spider there is.

        Raises ConfigurationError for what may not be in a job, UnknownVersionError, QueueFullError and redis.RedisError.
        """
        check_job(job)
        if job.spider not in self.eggs.find(job.project, job.version).spiders:
            raise ConfigurationError(f"spider '{job.spider}' not found")
        if not self.state.schedule(job):
            raise ConfigurationError(
                f"job '{job.id}' is pending or running already, with other arguments; leave out jobid"
            )

    def log_url(self, job: Job) -> str:
        """Return where any node gives a job's log."""
        return quote(f"/logs/{job.project}/{job.spider}/{job.id}.log")

    def why_not_ready(self) -> str | None:
        """Return why this node takes no jobs; None when it does."""
        if self.launcher.draining:
            return "the node is draining"
        beaten_at = self.launcher.beaten_at
        if beaten_at is None or time.monotonic() - beaten_at > self.options.lease_seconds:
            return "Redis can't be reached"
        return None

    def runs(self) -> list[dict[str, Any]]:
        """Return the frontier's runs. Raises ConfigurationError without one, and redis.RedisError."""
        url = os.environ.get("REDIS_URL")
        if not url:
            raise ConfigurationError("REDIS_URL is not set in the node's environment, so spiders share no frontier")
        return _read_runs(url)

    def current_runs(self) -> list[dict[str, Any]]:
        """Return the runs that are not over, or only just; none when spiders share no frontier. Raises redis.RedisError."""
        url = os.environ.get("REDIS_URL")
        return _read_runs(url, current=True) if url else []


def _read_runs(url: str, *, current: bool = False) -> list[dict[str, Any]]:
    """Return the frontier's runs as plain data, or the `current` ones only. Raises redis.RedisError."""

    async def read() -> list[dict[str, Any]]:
        async with aclosing(connect(url, **redis_parameters(os.environ))) as client:
            runs = (await read_current_runs(client)).runs if current else await read_runs(client)
            return [{**asdict(run), "to_go": run.to_go} for run in runs]

    return asyncio.run(read())
