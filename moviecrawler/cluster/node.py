"""The object that all parts of a node share: options, the cluster's state, launcher and catalogue."""

from __future__ import annotations

import asyncio
import os
import threading
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, TypeVar

from moviecrawler.cluster.eggs import find_egg
from moviecrawler.cluster.jobs import check_job
from moviecrawler.cluster.state import ClusterState, Snapshot
from moviecrawler.database.short_transactions import ShortTransactions
from moviecrawler.errors import ConfigurationError
from moviecrawler.redis_client import connect

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from scrapyd.config import Config

    from moviecrawler.cluster.jobs import Job
    from moviecrawler.cluster.launcher import ClusterLauncher
    from moviecrawler.cluster.options import NodeOptions

T = TypeVar("T")

_TIMEOUTS = {"socket_connect_timeout": 1.0, "socket_timeout": 2.0}
"""Seconds. They are short, so that a request is answered soon also when Redis can't be reached."""


class Node:
    """This node."""

    launcher: ClusterLauncher

    def __init__(self, config: Config, options: NodeOptions) -> None:
        self.config = config
        self.options = options
        self.name = options.node_name
        self.state = ClusterState(options)
        url = os.environ.get("DATABASE_URL")
        self._database = ShortTransactions(url) if url else None
        self._of_thread = threading.local()

    @property
    def snapshot(self) -> Snapshot:
        """The cluster as this thread read it last."""
        found: Snapshot = getattr(self._of_thread, "snapshot", Snapshot())
        return found

    def refresh(self) -> Snapshot:
        """Read the cluster for this thread. Raises redis.RedisError."""
        self._of_thread.snapshot = self.state.snapshot()
        return self.snapshot

    def schedule(self, job: Job) -> None:
        """Queue a job. Raises ConfigurationError for a job that is refused, and redis.RedisError."""
        check_job(job, self.options.job_settings)
        if job.spider not in find_egg(self.refresh().eggs, job.project, job.version).spiders:
            raise ConfigurationError(f"spider '{job.spider}' not found")
        if not self.state.schedule(job):
            raise ConfigurationError(
                f"job '{job.id}' is pending or running already, with other arguments; leave out jobid"
            )

    @property
    def has_database(self) -> bool:
        """Whether DATABASE_URL is set."""
        return self._database is not None

    @property
    def database(self) -> ShortTransactions:
        """The database of the catalogue. Raises ConfigurationError when DATABASE_URL is not set."""
        if self._database is None:
            raise ConfigurationError(
                "DATABASE_URL is not set in the node's environment, so there are no titles and no catalogue"
            )
        return self._database

    @property
    def has_frontier(self) -> bool:
        """Whether REDIS_URL is set, so that spiders share a frontier."""
        return bool(os.environ.get("REDIS_URL"))

    def ask_frontier(self, ask: Callable[[Any], Awaitable[T]]) -> T:
        """Return what `ask` returns for a client of the frontier's Redis. Raises redis.RedisError and ConfigurationError."""
        url = os.environ.get("REDIS_URL")
        if not url:
            raise ConfigurationError("REDIS_URL is not set in the node's environment, so spiders share no frontier")

        async def asked() -> T:
            async with aclosing(connect(url, **_TIMEOUTS)) as client:
                return await ask(client)

        return asyncio.run(asked())
