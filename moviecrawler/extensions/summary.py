"""What a crawl did, in eleven lines at its end."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from typing import TYPE_CHECKING, Any

from scrapy import signals
from scrapy.exceptions import NotConfigured

from moviecrawler.clock import utc_text
from moviecrawler.errors import MovieCrawlerError
from moviecrawler.extensions.alarms import Alarms
from moviecrawler.extensions.coverage import CoverageWatch
from moviecrawler.extensions.outcomes import OUTCOMES, TitleOutcomes
from moviecrawler.fields import ON_OTHER_PAGES
from moviecrawler.frontier.shared import shared_scheduler
from moviecrawler.meta import DIRECT

if TYPE_CHECKING:
    from typing import Self

    from scrapy.crawler import Crawler

    from moviecrawler.items import Site

logger = logging.getLogger(__name__)

_MAX_SHOWN = 3
_MEGABYTE = 1_000_000
_TIMEOUT_SECONDS = 15.0  # seconds for the catalogue's answer, with connecting
_STATEMENT_SECONDS = 10
_NEXT_DUE = """
SELECT count(*) FILTER (WHERE next_due <= now() AND (claimed_until IS NULL OR claimed_until <= now())),
    min(next_due) FILTER (WHERE next_due > now())
FROM title_sites WHERE site = %s AND site_id IS NOT NULL
"""


class Summary:
    """Logs the lines when everything is stored and closed, after Scrapy's own last lines."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._site: Site = crawler.spidercls.site  # type: ignore[attr-defined]
        self._started = time.monotonic()
        self._lines: list[str] = []

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Wait for the end."""
        if not hasattr(crawler.spidercls, "site"):
            raise NotConfigured
        summary = cls(crawler)
        crawler.signals.connect(summary.spider_closed, signals.spider_closed)
        crawler.signals.connect(summary.engine_stopped, signals.engine_stopped)
        return summary

    async def spider_closed(self, reason: str) -> None:
        """Make them of the figures as they are now."""
        self._lines = self._lines_of(reason)
        if self._crawler.engine.start_time is None:  # an engine that has not started does not stop
            await self._log()

    async def engine_stopped(self) -> None:
        """Log them, unless the spider was never opened. The catalogue knows by now what this crawl has fetched."""
        if self._lines:
            await self._log()

    async def _log(self) -> None:
        logger.info("%s; %s", "\n  ".join(self._lines), await self._due(), extra={"spider": self._crawler.spider})

    def _lines_of(self, reason: str) -> list[str]:
        """Return the lines, the last without what is due; `reason` is why the crawl ended."""
        stats = self._crawler.stats.get_stats()
        seconds = time.monotonic() - self._started
        return [
            _titles(self._site, stats, seconds, reason),
            f"stores: {_stores(stats)}",
            f"absent: {self._missed('absent', stats)}",
            f"failed: {self._missed('failed', stats)}",
            f"read in part: {self._partial()}",
            f"rejected and set aside: {_set_aside(stats)}",
            f"blocks: {_blocks(self._site, stats)}",
            f"traffic: {_traffic(self._site, stats)}",
            f"alarms: {self._alarms()}",
            f"time: {_times(stats, seconds)}",
            f"next: {self._left()}",
        ]

    def _missed(self, outcome: str, stats: dict[str, Any]) -> str:
        total = stats.get(f"titles/{outcome}", 0)
        outcomes = self._crawler.get_extension(TitleOutcomes)
        reasons = outcomes.reasons[outcome] if outcomes is not None else Counter[str]()
        shown = [f"{count:,} {why}" for why, count in reasons.most_common(_MAX_SHOWN)]
        more = total - sum(count for _, count in reasons.most_common(_MAX_SHOWN))
        if shown and more > 0:
            shown.append(f"{more:,} for other reasons")
        return f"{total:,}" + (f" ({'; '.join(shown)})" if shown else "")

    def _partial(self) -> str:
        watch = self._crawler.get_extension(CoverageWatch)
        if watch is None or not watch.places.partial:
            return "0"
        places = watch.places
        # What no page of the site has a place for is no news.
        silent = ((name, number) for name, number in places.silent.items() if name not in ON_OTHER_PAGES[self._site])
        fields = sorted(silent, key=lambda item: (item[1] == places.pages, -item[1]))
        shown = [
            f"{number:,} silent of {name}, such as {places.examples[name].site_id}"
            for name, number in fields[:_MAX_SHOWN]
        ]
        more = len(fields) - len(shown)
        return f"{places.partial:,} ({'; '.join(shown)}{f'; and {more} more fields' if more else ''})"

    def _alarms(self) -> str:
        alarms = self._crawler.get_extension(Alarms)
        standing = [verdict.name for verdict in alarms.verdicts if verdict.stands] if alarms is not None else []
        return f"{', '.join(standing)}; see the runbook in scrapyd/README.md" if standing else "none"

    def _left(self) -> str:
        """Return what the crawl has not done."""
        scheduler = shared_scheduler(self._crawler)
        if scheduler is not None and scheduler.waiting:
            return f"{scheduler.waiting:,} requests wait in the shared queue, for the next worker"
        left = self._figures("asked") - sum(map(self._figures, OUTCOMES)) + self._figures("lost")
        if scheduler is None and left > 0:
            return f"{left:,} titles of this crawl were not done; the same command asks for them again"
        return "nothing of this crawl"

    async def _due(self) -> str:
        """Return what is due, as far as it is known."""
        if not self._crawler.settings.get("DATABASE_URL"):
            return "without DATABASE_URL, nothing is known of what is due"
        from moviecrawler.extensions.catalogue_writer import ask  # noqa: PLC0415 - imports Postgres' client

        try:
            async with asyncio.timeout(_TIMEOUT_SECONDS):
                due, following = await asyncio.to_thread(
                    ask, self._crawler.settings, _NEXT_DUE, self._site, seconds=_STATEMENT_SECONDS
                )
        except (MovieCrawlerError, TimeoutError):
            return "the catalogue can't be asked"
        then = f", the next one on {utc_text(following)}" if following is not None else ""
        return f"{due:,} titles are due now{then}"

    def _figures(self, name: str) -> int:
        return int(self._crawler.stats.get_value(f"titles/{name}", 0))


def _titles(site: str, stats: dict[str, Any], seconds: float, reason: str) -> str:
    counts = {outcome: stats.get(f"titles/{outcome}", 0) for outcome in OUTCOMES}
    counts["not accounted for"] = max(0, stats.get("titles/asked", 0) - sum(counts.values()))
    ended = ", ".join(f"{count} {outcome}" for outcome, count in counts.items() if count) or "nothing found"
    return f"{site}: {stats.get('titles/asked', 0)} titles asked for: {ended}; in {seconds:.1f} s ({reason})"


def _stores(stats: dict[str, Any]) -> str:
    stores = sorted({name.split("/")[1] for name in stats if name.startswith("store/")})
    shown = []
    for store in stores:
        counts = {what: stats.get(f"store/{store}/{what}", 0) for what in ("durable", "rejected", "spooled", "lost")}
        batches, retries = stats.get(f"store/{store}/batches", 0), stats.get(f"store/{store}/retries", 0)
        kept = ", ".join(f"{count:,} {what}" for what, count in counts.items() if count or what == "durable")
        shown.append(f"{store} {kept} in {batches:,} batches" + (f" and {retries:,} retries" if retries else ""))
    return "; ".join(shown) or "none"


def _set_aside(stats: dict[str, Any]) -> str:
    invalid = stats.get("items/rejected", 0)
    refused = sum(value for name, value in stats.items() if name.startswith("store/") and name.endswith("/rejected"))
    return f"{invalid:,} invalid items, {refused:,} refused by stores, {stats.get('frontier/dead_letters', 0):,} dead letters"


def _blocks(site: str, stats: dict[str, Any]) -> str:
    counts = {
        name.rpartition("/")[2]: value
        for name, value in stats.items()
        if name.startswith(f"blocks/{site}/") and isinstance(value, int)
    }
    shown = ", ".join(f"{count:,} {kind}" for kind, count in sorted(counts.items())) or "none"
    stopped = stats.get(f"blocks/{site}/stopped")
    return f"{shown}; {stopped}" if stopped else shown


def _traffic(site: str, stats: dict[str, Any]) -> str:
    pools: dict[str, Counter[str]] = {DIRECT: Counter()}
    for name, count in stats.items():
        if name.startswith(f"proxy/{site}/"):
            pool, what = name.split("/", 3)[2:]
            pools.setdefault(pool, Counter())[what] = count
    # What did not go through a pool of proxies went directly.
    for what, total in (("bytes_in", "downloader/response_bytes"), ("bytes_out", "downloader/request_bytes")):
        pools[DIRECT][what] += max(0, stats.get(total, 0) - sum(pool[what] for pool in pools.values()))
    shown = []
    for pool, counts in sorted(pools.items()):
        into, out = counts.pop("bytes_in", 0), counts.pop("bytes_out", 0)
        outcomes = ", ".join(f"{count:,} {outcome}" for outcome, count in counts.most_common())
        if into or out or outcomes:
            size = f"{into / _MEGABYTE:,.2f} MB in, {out / _MEGABYTE:,.2f} MB out"
            shown.append(f"{site} via {pool} {size}" + (f" ({outcomes})" if outcomes else ""))
    return "; ".join(shown) or "none"


def _times(stats: dict[str, Any], seconds: float) -> str:
    pages = stats.get("coverage/pages", 0)
    rate = 60 * pages / seconds if seconds > 0 else 0.0
    answers, retries = stats.get("downloader/response_count", 0), stats.get("retry/count", 0)
    return (
        f"{seconds:,.1f} s, {pages:,} title pages read, {rate:,.0f} a minute, {answers:,} answers, {retries:,} retries"
    )
