"""Every Redis key of the frontier: its type, what it holds and when it expires. Those of a site share the hash tag `{site}`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from moviecrawler.items import Site


@dataclass
class SiteKeys:
    """The keys of a site, which all of its runs share."""

    site: Site
    start_urls_form: str = "%(name)s:start_urls"
    """REDIS_START_URLS_KEY, scrapy-redis' own setting."""

    def __post_init__(self) -> None:
        self.runs = f"{{{self.site}}}:runs"
        """ZSET: `<name>:<number>` of a run → when a worker last joined it (ms). It never expires."""
        self.budget = f"{{{self.site}}}:budget"
        """HASH: `next` (ms), when the next request may be sent; `day`, and how many were `used` in it. Expires in 2 days."""
        self.circuit = f"{{{self.site}}}:circuit"
        """HASH, while the site has refused us: `reason`, `until` (ms), `trips`, and once that is over `probe_until` (ms): until
        when others wait for the one request that finds out whether the site answers again. Expires two weeks after `until`."""
        self.start_urls = self.start_urls_form % {"name": self.site}
        """LIST, SET or ZSET of seeds, which others push: an id, a URL, or JSON with `url`. It never expires."""

    def latest(self, run: str) -> str:
        """Return the key of a STRING: the number of the latest run of a name, which is when it began (ms). Expires in 8 days."""
        return f"{{{self.site}}}:{run}:latest"


@dataclass
class Keys:
    """The keys of one run, which expire 7 days after their last use. Each id in `requests` is in one of `queue` and `leases`."""

    site: SiteKeys
    run: str
    number: str
    """When the run began, in ms."""

    def __post_init__(self) -> None:
        self.prefix = f"{{{self.site.site}}}:{self.run}:{self.number}:"
        self.state = f"{self.prefix}state"
        """HASH of the run's figures: `arguments`; `order` (how many requests were queued so far, for the order of the next ones),
        `total`, `done`, `failed` (dead letters); `seeding_by` and `seeding_until` (ms) while a worker queues what the arguments
        name, then `seeded` (ms); `over_at` (ms) when all of it is done; `cursor` of the search for requests that were lost."""
        self.queue = f"{self.prefix}queue"
        """ZSET of requests that wait: id → level of priority, and order within it."""
        self.leases = f"{self.prefix}leases"
        """ZSET of requests that workers hold: id → until when (ms), unless the worker renews it."""
        self.requests = f"{self.prefix}requests"
        r"""HASH of all requests that are open: id → `<level> <deliveries> <worker>\n<JSON, or a seed as it was pushed>`."""
        self.seen = f"{self.prefix}seen"
        """SET of ids that were queued, or a Bloom filter's bits in a STRING."""
        self.dead = f"{self.prefix}dead"
        r"""HASH of dead letters: id → `<JSON with reason and at (ms)>\n<value of requests>`."""
        self.titles = f"{self.prefix}titles"
        """SET of the ids of the titles asked for, when the run has a limit."""
        self.workers = f"{self.prefix}workers"
        """ZSET: worker → until when it counts as one that shares the run (ms), unless it is heard of again."""
        of_run = [self.state, self.queue, self.leases, self.requests, self.seen, self.dead, self.titles, self.workers]
        self.for_scripts = [*of_run, self.site.budget, self.site.circuit, self.site.start_urls]
        """All of them in the order in which the scripts take them."""
