"""What a worker has to send to the frontier, in order."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from moviecrawler.basics.errors import FrontierFullError

if TYPE_CHECKING:
    from moviecrawler.frontier.contract import Backend, End, Push, Worker

_MAX_SENT = 500
"""Requests that one step queues, at most, so that no other worker waits long."""


class _WaitingEnd(NamedTuple):
    """The end of a lease, which waits for what came of its request."""

    pushes_before: int
    """How many pushes were added before it; all of them must be queued first."""
    end: End


class Outbox:
    """Requests and ends of leases that a worker has to send.

    A lease ends only after the requests that were added before it are queued.
    """

    def __init__(self, backend: Backend, worker: Worker) -> None:
        self._backend = backend
        self._worker = worker
        self._added = 0
        self.pushes: list[Push] = []
        self.ends: list[_WaitingEnd] = []
        self.dropped = 0
        """Requests that were open, or that the pass had seen already."""

    def __bool__(self) -> bool:
        return bool(self.pushes or self.ends)

    def push(self, push: Push) -> None:
        """Add a request to queue."""
        self.pushes.append(push)
        self._added += 1

    def end(self, end: End) -> None:
        """Add a lease to end."""
        self.ends.append(_WaitingEnd(self._added, end))

    async def send(self) -> None:
        """Send everything.

        Raises FrontierError. The next call then sends the rest; sending twice does no harm.
        """
        failure = None
        try:
            while pushes := self.pushes[:_MAX_SENT]:
                self.dropped += await self._backend.push(self._worker, pushes)
                del self.pushes[: len(pushes)]
        except FrontierFullError as error:
            failure = error  # ends make room
        queued = self._added - len(self.pushes)
        ends = [waiting.end for waiting in self.ends if waiting.pushes_before <= queued]
        if ends:
            await self._backend.finish(self._worker, ends)
            del self.ends[: len(ends)]
        if failure is not None:
            raise failure
