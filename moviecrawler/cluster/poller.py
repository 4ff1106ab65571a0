"""Taking jobs from the cluster's queue when slots of this node are free."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any

import redis
from scrapyd.interfaces import IPoller
from twisted.internet.defer import Deferred, DeferredQueue
from twisted.logger import Logger
from zope.interface import implementer

from moviecrawler.cluster.state import LeaseLostError
from moviecrawler.cluster.threads import Threads
from moviecrawler.cluster.views import Queues
from moviecrawler.errors import Outages

if TYPE_CHECKING:
    from collections.abc import Callable

    from scrapyd.config import Config

    from moviecrawler.cluster.state import Taken

journal = Logger()

_THREADS = 4


@implementer(IPoller)
class RedisPoller:
    """Scrapyd's poller over Redis: `next()` gives a job that is leased to this node, as soon as there is one.

    Scrapyd calls `poll` each second. That asks Redis whether anything has changed, and nothing more while nothing has.
    """

    def __init__(self, config: Config) -> None:
        self.state = config.node.state
        self.node_id = f"{self.state.options.node_name}:{uuid.uuid4().hex[:8]}"
        self.queues = Queues(config.node, with_jobs=True)
        self.threads = Threads("node", _THREADS)
        self.on_change: Callable[[], Any] = lambda: None
        """Sends a heartbeat: a job of this node may be cancelled, or its lease lost."""
        self._slots: DeferredQueue[Taken] = DeferredQueue()
        self._seen: bytes | None = None
        self._is_polling = self._stopped = False
        self._outages = Outages()

    def update_projects(self) -> None:
        """Do nothing: `queues` shows the cluster's projects as they are."""

    def next(self) -> Deferred[Taken]:
        """Return a Deferred that gets the next job for a free slot."""
        self._seen = None
        return self._slots.get()

    def stop(self) -> None:
        """Take no more jobs."""
        self._stopped = True
        self._slots.waiting.clear()

    def poll(self) -> Deferred[None]:
        """Take a job, if a slot is free and anything has changed since the last time."""
        polling: Deferred[None] = Deferred.fromCoroutine(self._poll())
        return polling.addErrback(lambda failure: journal.failure("Taking a job failed", failure))

    async def _poll(self) -> None:
        if self._is_polling or self._stopped:
            return
        self._is_polling = True
        try:
            changed = await self.threads.run(self.state.changed)
            if changed is not None and changed == self._seen:
                return
            self.on_change()
            self._seen = changed
            # One a second, so that nodes share what waits; a job that is taken is a change, so the next one follows soon.
            taken = await self.threads.run(self.state.take, self.node_id) if self._slots.waiting else None
            # A job that comes when the node stops goes back, as no heartbeat names it.
            if taken is not None and self._slots.waiting:
                self._slots.put(taken)
            self._outages.ends()
        except LeaseLostError:
            self._seen = None
        except redis.exceptions.RedisError as error:
            self._seen = None
            if self._outages.begins():
                journal.warn("No job can be taken: {error}; trying again", error=error)
        finally:
            self._is_polling = False
