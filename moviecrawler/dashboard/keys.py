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
    def secret(self) -> str:
        """STRING: what the tokens of forms are made with. It never expires."""
        return self._of("secret")

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


class CrawlKeys:
    """The keys that crawls write, in the Redis that they share (REDIS_URL)."""

    STORES = "{dashboard}:stores"
    """HASH: `<node> <process>` → JSON of `ProcessFigures`, of those that run. Those that died are removed by who comes next, in
    10 minutes. Expires in a day."""

    ENDED = "{dashboard}:ended"
    """LIST: JSON of the last `ProcessFigures` of processes that have ended, latest first. At most 20. Expires in a day."""

    REJECTED = "{dashboard}:rejected"
    """STREAM: `item` → JSON of a `RejectedItem`. The latest 1,000. Expires 30 days after the last one."""

    @staticmethod
    def unreadable(day: str) -> str:
        """Return the key of a HASH: `<site>/<field>` → pages that could not be read on a day (ISO 8601, UTC). Expires in 8 days."""
        return f"{{dashboard}}:unreadable:{day}"

    SAMPLES = "{dashboard}:samples"
    """HASH: `<site>/<field>` → a line of JSON, a `Sample`, and then a page that could not be read, gzipped; `<site>/silent <field>` → one that
    was silent of the field. Expires in 7 days."""
