"""Every Redis key of the frontier: its type, what it holds and when it expires.

All keys of a site share the hash tag `{site}`.
"""

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
        """HASH: `next`, when the next request may be sent (ms); `day`, and how many requests it has
        `used`. Expires in 2 days."""
        self.circuit = f"{{{self.site}}}:circuit"
        """HASH, when the site has refused us: `reason`, `until` (ms), `trips`, and after that
        `probe_until` (ms): until when others wait for the answer to the probe. It is deleted when
        the site answers, and expires two weeks after `until`."""
        self.start_urls = self.start_urls_form % {"name": self.site}
        """LIST, SET or ZSET of seeds that users push: an id, a URL, or JSON with `url`. It never
        expires."""

    def latest(self, run: str) -> str:
        """Return the key of a STRING: the number of the latest run of a name, which is when that began (ms). Expires in 8 days."""
        return f"{{{self.site}}}:{run}:latest"


@dataclass
class Keys:
    """The keys of one run, which expire 7 days after their last use.

    Each id in `requests` is also in `queue` or in `leases`.
    """

    site: SiteKeys
    run: str
    number: str
    """When the run began, in ms."""

    def __post_init__(self) -> None:
        self.prefix = f"{{{self.site.site}}}:{self.run}:{self.number}:"
        self.state = f"{self.prefix}state"
        """HASH of the run's figures: `arguments`; `total`, `done`, `failed` (dead letters);
        `over_at` (ms) when all is done; `cursor` of the search for requests that `queue` or
        `leases` has lost."""
        self.queue = f"{self.prefix}queue"
        """ZSET of requests that wait: id → level of priority, and when it was queued (µs)."""
        self.leases = f"{self.prefix}leases"
        """ZSET of leased requests: id → when the lease ends (ms), unless the worker renews it."""
        self.requests = f"{self.prefix}requests"
        r"""HASH of all requests that are queued or leased: id → `<level> <deliveries>
        <worker>\n<JSON, or a seed as it was pushed>`. The first of a run stands for its arguments."""
        self.seen = f"{self.prefix}seen"
        """The dedupe set: a SET of ids, or a Bloom filter's bits in a STRING."""
        self.dead = f"{self.prefix}dead"
        r"""HASH of dead letters: id → `<JSON with reason and at (ms)>\n<value of requests>`."""
        self.titles = f"{self.prefix}titles"
        """SET of the ids of the titles asked for, when the run has a limit."""
        self.workers = f"{self.prefix}workers"
        """ZSET: worker → until when it counts as alive (ms), unless a heartbeat renews that."""
        of_run = [
            self.state,
            self.queue,
            self.leases,
            self.requests,
            self.seen,
            self.dead,
            self.titles,
            self.workers,
        ]
        self.for_scripts = [*of_run, self.site.budget, self.site.circuit, self.site.start_urls]
        """KEYS of the scripts, in their order."""
