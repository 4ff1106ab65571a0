"""Every Redis key of the frontier: its type, what it holds and when it expires.

The keys of a site share the hash tag `{site}`. Those of a run expire 7 days after they were last used.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from moviecrawler.items import Site


@dataclass(frozen=True, slots=True)
class SiteKeys:
    """The keys of a site, which all of its runs share."""

    site: Site
    start_urls_form: str = "%(name)s:start_urls"
    """REDIS_START_URLS_KEY, scrapy-redis' own setting."""

    @property
    def runs(self) -> str:
        """ZSET: `<name>:<number>` of a run → when a worker last joined it (ms). It never expires."""
        return f"{{{self.site}}}:runs"

    @property
    def budget(self) -> str:
        """HASH: `next` (ms), when the next request may start; `day`, and how many were `used` in it. Expires in 2 days."""
        return f"{{{self.site}}}:budget"

    @property
    def circuit(self) -> str:
        """HASH, while the site has refused us. Expires two weeks after `until`.

        `reason`, `until` (ms), `trips`, and once that is over `probe_until` (ms): until when others wait for the outcome of the
        one request that finds out whether the site answers again.
        """
        return f"{{{self.site}}}:circuit"

    @property
    def start_urls(self) -> str:
        """LIST, SET or ZSET of seeds, which others push: an id, a URL, or JSON with `url`. It never expires."""
        return self.start_urls_form % {"name": self.site}

    def latest(self, run: str) -> str:
        """Return the key of a STRING: the number of the latest run of a name, which is when it began (ms). Expires in 8 days."""
        return f"{{{self.site}}}:{run}:latest"


@dataclass(frozen=True, slots=True)
class Keys:
    """The keys of one run. Each id in `requests` is in exactly one of `queue` and `leases`."""

    site: SiteKeys
    run: str
    number: str
    """When the run began, in ms."""

    @property
    def prefix(self) -> str:
        """What the keys of the run begin with."""
        return f"{{{self.site.site}}}:{self.run}:{self.number}:"

    @property
    def state(self) -> str:
        """HASH of the run's figures.

        `arguments`; `order` (how many requests were queued so far, for the order of the next ones), `total`, `done`, `failed`
        (dead letters), `filtered`, `above_limit`; `seeding_by` and `seeding_until` (ms) while a worker queues what the arguments
        name, then `seeded` (ms); `over_at` (ms) when all of it is done; `cursor` of the search for requests that were lost.
        """
        return f"{self.prefix}state"

    @property
    def queue(self) -> str:
        """ZSET of requests that wait: id → level of priority, and order within it."""
        return f"{self.prefix}queue"

    @property
    def leases(self) -> str:
        """ZSET of requests that workers hold: id → until when (ms), unless the worker renews it."""
        return f"{self.prefix}leases"

    @property
    def requests(self) -> str:
        r"""HASH of all requests that are open: id → `<level> <deliveries> <worker>\n<JSON, or a seed as it was pushed>`."""
        return f"{self.prefix}requests"

    @property
    def seen(self) -> str:
        """SET of ids that were queued, or a Bloom filter's bits in a STRING."""
        return f"{self.prefix}seen"

    @property
    def dead(self) -> str:
        r"""HASH of dead letters: id → `<JSON with reason and at (ms)>\n<value of requests>`."""
        return f"{self.prefix}dead"

    @property
    def titles(self) -> str:
        """SET of the ids of the titles asked for, when the run has a limit."""
        return f"{self.prefix}titles"

    @property
    def workers(self) -> str:
        """ZSET: worker → until when it counts as one that shares the run (ms), unless it is heard of again."""
        return f"{self.prefix}workers"

    @property
    def for_scripts(self) -> list[str]:
        """All of them in the order in which the scripts take them."""
        of_run = [self.state, self.queue, self.leases, self.requests, self.seen, self.dead, self.titles, self.workers]
        return [*of_run, self.site.budget, self.site.circuit, self.site.start_urls]
