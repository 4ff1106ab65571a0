"""What was asked of the replica: counted per site, path, client and second, for tests to read."""

from __future__ import annotations

from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(slots=True)
class Counts:
    """The requests to one site, without those for robots.txt and for the replica's own control paths."""

    paths: Counter[str] = field(default_factory=Counter)
    """Requests by path and query."""
    clients: Counter[str] = field(default_factory=Counter)
    """Requests by address and user agent."""
    seconds: Counter[int] = field(default_factory=Counter)
    """Requests by Unix second of arrival."""
    statuses: Counter[int] = field(default_factory=Counter)
    """Answers by status; a request that was reset, or that timed out, has none."""
    faults: Counter[str] = field(default_factory=Counter)
    robots: int = 0
    """Requests for robots.txt."""
    in_flight: int = 0
    max_in_flight: int = 0
    _latest: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Each client's latest second, and its requests in that second."""

    def arrive(self, path: str, client: str, now: float) -> tuple[int, int]:
        """Count a request; return which attempt at its path it is, and which of its client's in this second, from 1."""
        second = int(now)
        self.paths[path] += 1
        self.clients[client] += 1
        self.seconds[second] += 1
        latest, so_far = self._latest.get(client, (second, 0))
        in_second = so_far + 1 if latest == second else 1
        self._latest[client] = second, in_second
        return self.paths[path], in_second

    def reset(self) -> None:
        """Set all figures to zero, but for requests that are in flight."""
        for counter in (self.paths, self.clients, self.seconds, self.statuses, self.faults, self._latest):
            counter.clear()
        self.robots, self.max_in_flight = 0, self.in_flight

    @contextmanager
    def flying(self) -> Iterator[None]:
        """Count a request as in flight."""
        self.in_flight += 1
        self.max_in_flight = max(self.max_in_flight, self.in_flight)
        try:
            yield
        finally:
            self.in_flight -= 1

    def report(self) -> dict[str, Any]:
        """Return all figures, as `GET /__replica__/counts` gives them for each site."""
        return {
            "requests": self.paths.total(),
            "robots": self.robots,
            "in_flight": self.in_flight,
            "max_in_flight": self.max_in_flight,
            "paths": self.paths,
            "clients": self.clients,
            "seconds": self.seconds,
            "statuses": self.statuses,
            "faults": self.faults,
        }
