"""Every Redis key of proxies: its type, what it holds and when it expires.

The keys of a site share the hash tag `{site}`, as those of the frontier do. Their names keep the older word, exits,
so that the quarantines that stand stay known. No proxy's URL is in them, only ids.
"""

from __future__ import annotations

from dataclasses import dataclass

HOUR = 3600
HOURS_KEPT = 24


@dataclass(frozen=True, slots=True)
class Keys:
    """The keys of one site's proxies."""

    site: str

    def figures(self, hour: int) -> str:
        """Name a HASH: `<proxy's id> <figure>` → number, of an hour since 1970. Expires a day after it."""
        return f"{{{self.site}}}:exits:figures:{hour}"

    @property
    def quarantines(self) -> str:
        """HASH: proxy's id → JSON of a `Quarantine`. Expires after twice the longest quarantine."""
        return f"{{{self.site}}}:exits:quarantines"

    def probe(self, proxy_id: str) -> str:
        """Name a STRING: the process that tries a proxy whose quarantine is over. Expires with its time to try."""
        return f"{{{self.site}}}:exits:probe:{proxy_id}"
