"""Every Redis key of identity: its type, what it holds and when it expires.

The keys of a site share the hash tag `{site}`, as those of the frontier do. No proxy's URL stands in them, only exits' ids.
"""

from __future__ import annotations

from dataclasses import dataclass

HOUR = 3600
HOURS_KEPT = 24


@dataclass(frozen=True, slots=True)
class Keys:
    """The keys of one site's exits."""

    site: str

    def figures(self, hour: int) -> str:
        """Name a HASH: `<exit id> <figure>` → number, of an hour since 1970. Expires a day after it."""
        return f"{{{self.site}}}:exits:figures:{hour}"

    @property
    def quarantines(self) -> str:
        """HASH: exit id → JSON of a `Quarantine`. Expires when nobody is quarantined for as long as one can last, twice."""
        return f"{{{self.site}}}:exits:quarantines"

    def probe(self, exit_id: str) -> str:
        """Name a STRING, while one process tries an exit whose quarantine is over: which. Expires with its time to try."""
        return f"{{{self.site}}}:exits:probe:{exit_id}"
