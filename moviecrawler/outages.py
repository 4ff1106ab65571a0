"""Logging an outage once: when it begins, and when it ends."""

from __future__ import annotations


class Outages:
    """The services that are away now. Each has a name, unless there is only one."""

    def __init__(self) -> None:
        self._open: set[str] = set()

    def begins(self, name: str = "") -> bool:
        """Note that a service is away; return whether that is new."""
        is_new = name not in self._open
        self._open.add(name)
        return is_new

    def ends(self, name: str = "") -> bool:
        """Note that a service answers; return whether it was away."""
        was_away = name in self._open
        self._open.discard(name)
        return was_away
