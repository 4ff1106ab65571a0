"""Every Redis key of the dashboard: its type, what it holds and when it expires."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Keys:
    """The keys of one cluster's dashboard, under its `redis_prefix`."""

    prefix: str

    def _of(self, name: str) -> str:
        return f"{{{self.prefix}}}:dashboard:{name}"

    @property
    def counts(self) -> str:
        """STRING: JSON of the `Counts` of the catalogue. Expires a day after the last count."""
        return self._of("counts")

    @property
    def counting(self) -> str:
        """STRING, while nobody is to count again: the node that has counted last. Expires when somebody is to."""
        return self._of("counting")

    @property
    def versions(self) -> str:
        """HASH: node's name → JSON of its versions. Expires a day after the last node has started or told again."""
        return self._of("versions")
