"""Every Redis key of the alarms: its type, what it holds and when it expires. They share a hash tag."""

from __future__ import annotations

OPEN = "{alarms}:open"
"""HASH: alarm's name → JSON of the `Alarm`, of those that have not recovered. It never expires; names are few."""

HISTORY = "{alarms}:history"
"""LIST: JSON of `Event`s, newest first. At most 1,000."""


def levels(site: str) -> str:
    """Return the key of a HASH: `<group>/<field>` → pages and how many had it, of a site. Expires after 400 days without a page."""
    return f"{{alarms}}:levels:{site}"


def coverage(site: str, day: str) -> str:
    """Return the key of a HASH: `<field>` → pages that had it, and `pages`, of a site's UTC day. Expires after 400 days."""
    return f"{{alarms}}:coverage:{site}:{day}"
