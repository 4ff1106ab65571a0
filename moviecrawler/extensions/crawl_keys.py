"""Every Redis key that crawls write for the dashboard: its type, what it holds and when it expires."""

from __future__ import annotations


class CrawlKeys:
    """The keys that crawls write, in the Redis that they share (REDIS_URL)."""

    STORES = "{dashboard}:stores"
    """HASH: `<node> <process>` → JSON of `ProcessFigures`, of those that run. The next process to write removes those that
    died, after 10 minutes. Expires in a day."""

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
