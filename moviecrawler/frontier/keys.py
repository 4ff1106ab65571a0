"""Every Redis key of the frontier: its type, what it holds and when it expires.

The keys of a site share the hash tag `{site}`, which keeps the names of unfinished crawls valid
together. Where scrapy-redis has a key of the same meaning, ours has its name: `requests`, `dupefilter`, `start_urls`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from moviecrawler.items import Site

_TAG = re.compile(r"\{[^}]+\}")


@dataclass(frozen=True, slots=True)
class Keys:
    """The keys of one run of one site's crawl.

    Those of the run expire when no worker has been at it for two windows of the dupefilter and for a day, as each exchange puts
    that off; those of the site as said.
    """

    site: Site
    run: str
    start_urls_form: str = "%(name)s:start_urls"
    """REDIS_START_URLS_KEY, scrapy-redis' own setting."""

    def _of_run(self, name: str) -> str:
        return f"{{{self.site}}}:{self.run}:{name}"

    def _of_site(self, name: str) -> str:
        return f"{{{self.site}}}:{name}"

    # --- Of the run ---------------------------------------------------------------------------------------------------

    @property
    def state(self) -> str:
        """HASH of the run's figures.

        `born` (a nonce), `started_at` (ms), `ended_at` (ms, when the latest request ended), `busy_at` and `idle_at` (ms, when there
        last began to be something to do, and when all of it was done), the counters `total`, `done`, `failed`, `dropped`, `pops` and
        `rounds`, the dupefilter's `generation`; by the arguments' digest `seeded:…` (the worker that does it, or `done` and when, in
        ms), `round:…` (the number of the latest round) and `titles:…` (how many were queued in it); and by worker, while it is at
        the run, `pushed:…` (how many requests it has queued).
        """
        return self._of_run("state")

    def requests(self, level: int) -> str:
        """LIST of queued entries (see `exchange.lua`): 0 boosted, 1 list pages, 2 title pages."""
        return self._of_run(f"requests:{level}")

    def dupefilter(self, generation: int) -> str:
        """SET of 16-byte fingerprints, or a Bloom filter's bits in a STRING, of the generations of that parity."""
        return self._of_run(f"dupefilter:{generation % 2}")

    @property
    def round(self) -> str:
        """SET of 16-byte fingerprints, each with a round's number: what the rounds that are under way have queued by themselves."""
        return self._of_run("round")

    @property
    def workers(self) -> str:
        """ZSET: worker → when its leases end (ms, by Redis' clock)."""
        return self._of_run("workers")

    def leases(self, worker: str) -> str:
        """HASH: id → entry, of the requests that a worker holds."""
        return self._of_run(f"leases:{worker}")

    @property
    def nodes(self) -> str:
        """HASH: `<node> done` and `<node> failed` → how many requests ended there."""
        return self._of_run("nodes")

    @property
    def dead_letters(self) -> str:
        """HASH: id → a line of JSON with `reason` and `at` (ms), then the entry."""
        return self._of_run("deadletters")

    @property
    def failed(self) -> str:
        """HASH: id → entry, of requests that have failed. The next start of a crawl that is done tries them once more."""
        return self._of_run("failed")

    @property
    def hangs(self) -> str:
        """HASH: id → how many times the request's page made a worker hang, until it is done or set aside."""
        return self._of_run("hangs")

    @property
    def wakeup(self) -> str:
        """Channel on which workers that wait hear that something is queued, that nothing is left, or that the site answers again."""
        return self._of_run("wakeup")

    # --- Of the site --------------------------------------------------------------------------------------------------

    @property
    def runs(self) -> str:
        """ZSET: run → when it was started (ms). A run is taken out when its keys have expired."""
        return self._of_site("runs")

    @property
    def current(self) -> str:
        """ZSET: run → when a worker last began with it (ms), of runs that may not be over. Who finds one over takes it out."""
        return self._of_site("current")

    @property
    def budget(self) -> str:
        """HASH: `next` (ms), when the next request may start; `day`, and how many were `used` in it. Expires in 2 days."""
        return self._of_site("budget")

    @property
    def circuit(self) -> str:
        """HASH, while the site has refused us. Expires two weeks after `until`.

        `reason`, `until` (ms), `trips`, and once that is over `trial`, the id of the one request that may try whether the site
        answers again, and `probe` (ms), until when others wait for its outcome.
        """
        return self._of_site("circuit")

    @property
    def start_urls(self) -> str:
        """LIST, SET or ZSET of titles that others push: an id, a URL, or JSON with `url`. It never expires.

        scrapy-redis' own key, which has no tag unless REDIS_START_URLS_KEY gives it one.
        """
        return self.start_urls_form % {"name": self.site}

    @property
    def taken_seeds(self) -> str:
        """ZSET: a seed that a worker has taken and not queued yet, after a name of its own → until when (ms). It never expires.

        It stands in the same slot as `start_urls`.
        """
        key = self.start_urls
        return f"{key}:taken" if _TAG.search(key) else f"{{{key}}}:taken"
