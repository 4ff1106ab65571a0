"""Which services are unavailable."""

from __future__ import annotations


class Outages:
    """The services that are unavailable now, so that an outage is logged once.

    Each has a name, unless there is only one.
    """

    def __init__(self) -> None:
        self._open: set[str] = set()

    def mark_down(self, name: str = "") -> bool:
        """Note that a service is unavailable; return whether that is new."""
        is_new = name not in self._open
        self._open.add(name)
        return is_new

    def mark_up(self, name: str = "") -> bool:
        """Note that a service answers; return whether it was unavailable."""
        was_unavailable = name in self._open
        self._open.discard(name)
        return was_unavailable
