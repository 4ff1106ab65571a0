"""Taking jobs from the queue when slots are free, as soon as one is queued."""

from __future__ import annotations

import threading
import time
import uuid
from typing import TYPE_CHECKING, Any

import redis
from twisted.internet.defer import Deferred, DeferredQueue
from twisted.logger import Logger

from moviecrawler.cluster.state import LeaseLostError, connect
from moviecrawler.cluster.threads import Threads, reactor
from moviecrawler.outages import Outages

if TYPE_CHECKING:
    from collections.abc import Callable

    from moviecrawler.cluster.jobs import Job
    from moviecrawler.cluster.state import ClusterState

journal = Logger()

_THREADS = 4
_CHECK_SECONDS = 10
"""Seconds without a message after which the connection is checked."""
_RECONNECT_SECONDS = 0.5
"""Seconds until a lost connection is tried again."""
_MESSAGE_SECONDS = 1.0
"""Longest time until the listening thread notices that it has to end."""


class Poller:
    """Takes the next jobs of the cluster's queue for this node.

    `next()` gives a `Job` that is leased to the node. It waits while the queue is empty or Redis is away.
    """

    def __init__(self, state: ClusterState, beat: Callable[[], Any]) -> None:
        """Create it. `beat` has a heartbeat sent soon: the node has lost its lease, or one of its jobs is cancelled."""
        self.state = state
        self.node = f"{state.options.node_name}:{uuid.uuid4().hex[:8]}"
        self.threads = Threads("node", _THREADS)
        self._beat = beat
        self._jobs: DeferredQueue[Job] = DeferredQueue()
        self._pulling = self._again = self._stopped = False
        self._outages = Outages()
        self._listener: threading.Thread | None = None

    def next(self) -> Deferred[Job]:
        """Return a Deferred that gets the next job for a free slot."""
        job = self._jobs.get()
        self.poll()
        return job

    def poll(self) -> None:
        """Check the queue, if a slot is free."""
        if self._pulling:
            self._again = True
        elif self._jobs.waiting and self._listener is not None:
            self._pulling = True
            pulling = Deferred.fromCoroutine(self._pull())
            pulling.addErrback(lambda failure: journal.failure("Taking a job failed", failure))

    # --- Life ---------------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Start taking jobs, now that the node has a lease."""
        if self._listener is None:
            self._listener = threading.Thread(target=self._listen, name="events", daemon=True)
            self._listener.start()
        self.poll()

    def stop(self) -> None:
        """Stop taking jobs."""
        self._stopped = True
        self._jobs.waiting.clear()

    async def _pull(self) -> None:
        try:
            while self._jobs.waiting:
                self._again = False
                job = await self.threads.run(self.state.take, self.node)
                self._outages.ends()
                if job is not None and self._jobs.waiting:
                    self._jobs.put(job)
                elif not self._again:
                    # A job that arrived when no slot was free goes back to the queue, as the node's heartbeats do not name it.
                    return
        except LeaseLostError:
            self._beat()
        except redis.exceptions.RedisError as error:
            if self._outages.begins():
                journal.warn("No job can be taken: {error}; trying again", error=error)
        finally:
            self._pulling = False

    # --- Events, in a separate thread -----------------------------------------------------------------------------

    def _listen(self) -> None:
        client = connect(self.state.options, health_check_interval=_CHECK_SECONDS)
        while not self._stopped:
            try:
                with client.pubsub(ignore_subscribe_messages=True) as events:
                    events.subscribe(self.state.keys.events)
                    # Earlier events are lost, so check the queue once.
                    reactor.callFromThread(self.poll)
                    while not self._stopped:
                        message = events.get_message(timeout=_MESSAGE_SECONDS)
                        if message is not None:
                            reactor.callFromThread(self._on_event, message["data"].decode(errors="replace"))
            except redis.exceptions.RedisError:
                time.sleep(_RECONNECT_SECONDS)
        client.close()

    def _on_event(self, event: str) -> None:
        if event == "wake":
            self.poll()
        elif event.startswith(f"cancel\n{self.node}\n"):
            self._beat()
