"""What was asked of the replica: counted per site, path, client and second, for tests to read."""

from __future__ import annotations

from collections import Counter

import msgspec


class Counts(msgspec.Struct):
    """The requests to one site, without those for robots.txt and for the replica's own control paths."""

    requests: int = 0
    paths: Counter[str] = msgspec.field(default_factory=Counter)
    """Requests by path and query."""
    clients: Counter[str] = msgspec.field(default_factory=Counter)
    """Requests by address and user agent."""
    seconds: Counter[int] = msgspec.field(default_factory=Counter)
    """Requests by Unix second of arrival."""
    statuses: Counter[int] = msgspec.field(default_factory=Counter)
    """Answers by status; a request that was reset, or that timed out, has none."""
    faults: Counter[str] = msgspec.field(default_factory=Counter)
    robots: int = 0
    """Requests for robots.txt."""
    latest: Counter[str] = msgspec.field(default_factory=Counter)
    """Each client's requests in the latest second."""

    def arrive(self, path: str, client: str, now: float) -> tuple[int, int]:
        """Count a request; return which attempt at its path it is, and which of its client's in this second, from 1."""
        second = int(now)
        if second not in self.seconds:
            self.latest.clear()
        self.requests += 1
        self.paths[path] += 1
        self.clients[client] += 1
        self.seconds[second] += 1
        self.latest[client] += 1
        return self.paths[path], self.latest[client]
