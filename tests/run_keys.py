"""The Redis keys of the frontier, as others see them; `keys.lua` says what each holds."""

from __future__ import annotations

LAYOUT = 2


def bans_key(site: str) -> str:
    """Return the key of a site's bans of proxies."""
    return f"{{{site}}}:proxies"


class SiteKeys:
    """The keys of a site, which all of its runs share."""

    def __init__(self, site: str) -> None:
        self.prefix = f"{{{site}}}:{LAYOUT}:"
        self.runs = f"{self.prefix}runs"
        self.left = f"{self.prefix}left"
        self.place = f"{self.prefix}place"
        self.budget = f"{self.prefix}budget"
        self.circuit = f"{self.prefix}circuit"
        self.start_urls = f"{site}:start_urls"


class RunKeys:
    """The keys of a run."""

    def __init__(self, site: SiteKeys, name: str) -> None:
        self.site = site
        self.name = name
        self.prefix = f"{site.prefix}{name}:"
        self.state = f"{self.prefix}state"
        self.queue = f"{self.prefix}queue"
        self.leases = f"{self.prefix}leases"
        self.requests = f"{self.prefix}requests"
        self.seen = f"{self.prefix}seen"
        self.titles = f"{self.prefix}titles"
        self.workers = f"{self.prefix}workers"
        self.dead = f"{self.prefix}dead"
        self.requeued = f"{self.prefix}requeued"
