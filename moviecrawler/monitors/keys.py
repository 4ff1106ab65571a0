"""Every Redis key of the alarms: its type, what it holds and when it expires. They share a hash tag.

A site's keys expire 400 days after its last page.
"""

from __future__ import annotations

OPEN = "{alarms}:open"
"""HASH: alarm's name → JSON of the `Alarm`, of those that have not recovered. It never expires; names are few."""

HISTORY = "{alarms}:history"
"""LIST: JSON of `Event`s, newest first. At most 1,000."""


def places(site: str) -> str:
    """Return the key of a HASH: `<group>/<field>` → its `Baseline` as three numbers, of a site."""
    return f"{{alarms}}:places:{site}"


def latest(site: str) -> str:
    """Return the key of a HASH: `<field>` → a sign for each of the latest pages that were to have its place, as in `Seen.marks`."""
    return f"{{alarms}}:latest:{site}"


def examples(site: str) -> str:
    """Return the key of a HASH: `<field>` → JSON of the `Example` that was silent of it last."""
    return f"{{alarms}}:examples:{site}"


def coverage(site: str, day: str) -> str:
    """Return the key of a HASH of a site's UTC day: `<field>` → pages that had a value, `silent <field>` → pages silent of it, and `pages`."""
    return f"{{alarms}}:coverage:{site}:{day}"
