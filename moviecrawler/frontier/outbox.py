"""What a worker has to send to Redis: requests to queue, and leases to end once all that came of them is queued."""

from __future__ import annotations

from collections import deque
from itertools import islice, takewhile
from typing import TYPE_CHECKING

import redis.exceptions

if TYPE_CHECKING:
    from moviecrawler.frontier.queue import End, Push, SharedQueue

_MOST = 500
"""At most in one step, so that no other worker waits long."""


class Outbox:
    """Keeps the order: a lease ends only after the requests that were added before its end are queued."""

    def __init__(self, shared: SharedQueue) -> None:
        self._shared = shared
        self._pushes: deque[Push] = deque()
        self._ends: deque[tuple[int, End]] = deque()  # with how many pushes must have gone before
        self._added = self._accepted = 0
        self.filtered = self.above_limit = 0
        """Requests that the run had seen, and titles above its limit."""

    @property
    def pushes(self) -> int:
        """How many requests are still to be queued."""
        return len(self._pushes)

    @property
    def ends(self) -> int:
        """How many leases are still to be ended."""
        return len(self._ends)

    def push(self, push: Push) -> None:
        """Have a request queued."""
        self._pushes.append(push)
        self._added += 1

    def end(self, end: End) -> None:
        """Have a lease ended."""
        self._ends.append((self._added, end))

    async def send(self) -> None:
        """Send everything. Raises redis.RedisError; what was not sent is sent again the next time, which does no harm."""
        try:
            while self._pushes:
                some = list(islice(self._pushes, _MOST))
                filtered, above = await self._shared.push(some)
                self.filtered += filtered
                self.above_limit += above
                self._accepted += len(some)
                for _ in some:
                    self._pushes.popleft()
        except redis.exceptions.OutOfMemoryError:
            await self._send_ends()  # they free memory
            raise
        await self._send_ends()

    async def _send_ends(self) -> None:
        while some := [end for _, end in islice(takewhile(lambda end: end[0] <= self._accepted, self._ends), _MOST)]:
            await self._shared.finish(some)
            for _ in some:
                self._ends.popleft()
