"""Every Redis key of the dashboard: its type, what it holds and when it expires."""

from __future__ import annotations


class Keys:
    """The keys of one cluster's dashboard, under its `redis_prefix`."""

    def __init__(self, prefix: str) -> None:
        self.counts = f"{{{prefix}}}:dashboard:counts"
        """STRING: JSON of the `Counts` of the catalogue. Expires a day after the last count."""
        self.counting = f"{{{prefix}}}:dashboard:counting"
        """STRING, while nobody is to count again: the node that has counted last. Expires when somebody is to."""
