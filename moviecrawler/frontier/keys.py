"""Every Redis key of the frontier: its type, what it holds and when it expires.

All keys of a site share the hash tag `{site}`. After it comes the version of the layout.
"""

from __future__ import annotations

from dataclasses import dataclass

LAYOUT = 2
"""The version of the layout of the keys, and of what they hold."""
EARLIER_KEYS_OF_RUN = (
    "state",
    "queue",
    "leases",
    "requests",
    "seen",
    "dead",
    "titles",
    "workers",
)
"""The ends of the names of a run's keys in the layout before, which are the same in this one."""
EARLIER_KEYS_OF_SITE = ("budget", "circuit")


def robots_key(host: str) -> str:
    """Return the key of a host's robots.txt, a STRING of JSON with `text` and `fetched_at` (s).

    It expires after 7 days.
    """
    return f"robots:{LAYOUT}:{host}"


RUN_SITES_KEY = f"sites:{LAYOUT}"
"""The key of a SET of the sites that have had runs: a worker may have a site that others lack. It
never expires."""
BANS_SECONDS = 30 * 86_400
"""Seconds after the last change for which a site's bans of proxies are kept."""


def bans_key(site: str) -> str:
    """Return the key of a HASH of a proxy's key → JSON of its ban by a site.

    It expires after BANS_SECONDS, when no ban counts any more.
    """
    return f"{{{site}}}:proxies"


@dataclass
class SiteKeys:
    """The keys of a site, which all of its runs share."""

    site: str
    start_urls_form: str = "%(name)s:start_urls"
    """REDIS_START_URLS_KEY, scrapy-redis' own setting."""

    def __post_init__(self) -> None:
        self.earlier_prefix = f"{{{self.site}}}:"
        """The beginning of all keys in the layout before this one."""
        self.prefix = f"{{{self.site}}}:{LAYOUT}:"
        """The beginning of all keys."""
        self.earlier_runs = f"{self.earlier_prefix}runs"
        """ZSET of the layout before: `<name>:<number>` of a run → when it was last joined (ms)."""
        self.runs = f"{self.prefix}runs"
        """ZSET: name of a run → when it was last used (ms). A name is forgotten after 60 days."""
        self.left = f"{self.prefix}left"
        """HASH: name of a run → how many requests were open when it was last used."""
        self.place = f"{self.prefix}place"
        """STRING: how this Redis is called where it must not be taken for another. It never
        expires."""
        self.budget = f"{self.prefix}budget"
        """HASH: `next`, when the next request may be sent, and `at`, when the last one was charged
        (ms); `day`, and how many requests it has `used`. It expires in 2 days."""
        self.circuit = f"{self.prefix}circuit"
        """HASH, when the site is blocking us: `reason`, `until` (ms), `trips`, and after that
        `probe_until` (ms): until when others wait for the response to the probe; `at`, when one of
        them was written (ms). It is deleted when the site answers, and expires two weeks after
        `until`."""
        self.start_urls = self.start_urls_form % {"name": self.site}
        """LIST, SET or ZSET of seeds that users push: an id, a URL, or JSON with `url`. It never
        expires."""


@dataclass
class RunKeys:
    """The keys of a run, which expire 7 days after their last use.

    Each id in `requests` is also in `queue` or in `leases`.
    """

    site: SiteKeys
    name: str

    def __post_init__(self) -> None:
        self.prefix = f"{self.site.prefix}{self.name}:"
        """The beginning of all keys of the run."""
        self.state = f"{self.prefix}state"
        """HASH of the run's figures: `arguments`; the fields of `Account` but `open`; `started_at`
        and `over_at` of the pass, and `counted_from`, from when on its account counts dead letters
        (ms); `was_lost`, until a worker is told that it was; `cursor` of the search for requests
        that `queue` or `leases` has lost."""
        self.queue = f"{self.prefix}queue"
        """ZSET of requests that wait: id → level, and when it was queued (µs)."""
        self.leases = f"{self.prefix}leases"
        """ZSET of leased requests: id → when the lease ends (ms), unless the worker renews it."""
        self.requests = f"{self.prefix}requests"
        r"""HASH of all requests that are queued or leased:
        id → `<level> <deliveries> <t for a title's, or ->\n<JSON, or a seed as it was pushed>`."""
        self.seen = f"{self.prefix}seen"
        """The dedupe set of the pass: a SET of ids, or a Bloom filter's bits in a STRING."""
        self.dead = f"{self.prefix}dead"
        r"""HASH of dead letters: id → `<JSON of reason and at (ms)>\n<value of requests>`. Each is
        kept for 30 days, whatever becomes of the run."""
        self.requeued = f"{self.prefix}requeued"
        """HASH of the dead letters that wait for the next pass, as in `dead`."""
        self.titles = f"{self.prefix}titles"
        """SET of the ids of the titles requested, when the run has a limit."""
        self.workers = f"{self.prefix}workers"
        """ZSET: worker → until when it counts as alive (ms), unless a heartbeat renews that."""
        self.of_pass = [
            self.state,
            self.queue,
            self.leases,
            self.requests,
            self.seen,
            self.titles,
            self.workers,
        ]
        """Those that expire with the pass."""
        self.for_scripts = [
            *self.of_pass,
            self.dead,
            self.requeued,
            self.site.runs,
            self.site.left,
            self.site.budget,
            self.site.circuit,
        ]
        """KEYS of the scripts of a run, in the order of `run.lua`."""
