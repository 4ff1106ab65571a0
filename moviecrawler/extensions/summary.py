"""Writes what a crawl did, in five lines at its end."""

from __future__ import annotations

import asyncio
import logging
import sys
import time
from collections import Counter
from contextlib import closing
from typing import TYPE_CHECKING, Any

from scrapy import signals
from scrapy.exceptions import NotConfigured

from moviecrawler.clock import utc_text
from moviecrawler.errors import MovieCrawlerError
from moviecrawler.extensions.outcomes import OUTCOMES, TitleOutcomes, is_complete
from moviecrawler.signals import summary_written

if TYPE_CHECKING:
    from typing import Self

    from scrapy.crawler import Crawler
    from scrapy.settings import BaseSettings

    from moviecrawler.items import Site

logger = logging.getLogger(__name__)

_MAX_SHOWN = 3
_TIMEOUT_SECONDS = 15.0
"""Seconds to connect to the catalogue and get its answer."""
_STATEMENT_SECONDS = 10
_DUE = """
SELECT
    count(*) FILTER (
        WHERE next_due <= now() AND (claimed_until IS NULL OR claimed_until <= now())
    ) AS due,
    min(next_due) FILTER (WHERE next_due > now()) AS following,
    count(*) FILTER (
        WHERE last_success IS NOT NULL AND state <> 'absent' AND next_due <= now()
    ) AS overdue,
    count(*) FILTER (WHERE last_success IS NOT NULL AND state <> 'absent') AS fetched
FROM title_sites WHERE site = %s AND site_id IS NOT NULL
"""


class Summary:
    """Writes the lines to standard error when everything is stored and closed, and to LOG_FILE."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._site: Site = crawler.spidercls.site  # type: ignore[attr-defined]
        self._started = time.monotonic()
        self._lines: list[str] = []

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Connect the handlers to their signals."""
        if not hasattr(crawler.spidercls, "site"):
            raise NotConfigured
        summary = cls(crawler)
        crawler.signals.connect(summary.spider_closed, signals.spider_closed)
        crawler.signals.connect(summary.engine_stopped, signals.engine_stopped)
        return summary

    async def spider_closed(self, reason: str) -> None:
        """Make the lines from the figures of this moment."""
        self._lines = self._lines_of(reason)
        if self._crawler.engine.start_time is None:  # an engine that has not started does not stop
            await self.engine_stopped()

    async def engine_stopped(self) -> None:
        """Write the lines, unless the spider was never opened.

        By now all outcomes are in the catalogue.
        """
        if not self._lines:
            return
        stats = self._crawler.stats
        spider: Any = self._crawler.spider
        complete = is_complete(stats.get_stats(), within_budget=spider.plan.lane is not None)
        stats.inc_value("crawl/complete" if complete else "crawl/incomplete")
        *lines, last = self._lines
        lines.append(f"{last}; {await self._due()}")
        text = "\n  ".join(lines)
        print(text, file=sys.stderr, flush=True)  # noqa: T201 - with --nolog there is no other way
        if self._crawler.settings["LOG_FILE"]:
            logger.info("%s", text, extra={"spider": self._crawler.spider})
        await self._crawler.signals.send_catch_log_async(summary_written, lines=lines)

    def _lines_of(self, reason: str) -> list[str]:
        """Return the lines, the last without what is due; `reason` is why the crawl ended."""
        stats = self._crawler.stats.get_stats()
        seconds = time.monotonic() - self._started
        return [
            f"{self._site}: {self._titles(stats, reason)}; in {seconds:,.1f} s ({reason})",
            f"stores: {_stores(stats)}",
            f"refusals: {_refusals(self._site, stats)}",
            f"missing fields: {_missing(stats)}",
            f"next: {self._left(stats)}",
        ]

    def _titles(self, stats: dict[str, Any], reason: str) -> str:
        """Return how the titles asked for ended, with the most frequent reasons.

        The numbers add up.
        """
        asked = stats.get("titles/asked", 0)
        counts = {outcome: stats.get(f"titles/{outcome}", 0) for outcome in OUTCOMES}
        counts["dead letters"] = min(
            stats.get("frontier/dead_letters", 0), max(0, asked - sum(counts.values()))
        )
        counts["not done"] = max(0, asked - sum(counts.values()))
        outcomes = self._crawler.get_extension(TitleOutcomes)
        shown = []
        for outcome, count in counts.items():
            reasons = (
                outcomes.reasons[outcome].most_common(_MAX_SHOWN) if outcomes is not None else []
            )
            more = count - sum(number for _, number in reasons)
            texts = [f"{number:,} {why}" for why, number in reasons]
            if reasons and more > 0:
                texts.append(f"{more:,} for other reasons")
            if count:
                shown.append(f"{count:,} {outcome}" + (f" ({'; '.join(texts)})" if texts else ""))
        if missed := stats.get("lists/missed", 0):
            shown.append(
                "the list could not be read"
                if not shown
                else f"{missed:,} list pages could not be read"
            )
        nothing = "nothing found" if reason == "finished" else "the crawl ended first"
        return f"{asked:,} titles asked for: {', '.join(shown) or nothing}"

    def _left(self, stats: dict[str, Any]) -> str:
        """Return what the crawl has not done.

        For a shared crawl, that is what the whole run has not done.
        """
        if account := stats.get("frontier/run/account"):
            return str(account)
        ended = sum(stats.get(f"titles/{outcome}", 0) for outcome in OUTCOMES if outcome != "lost")
        left = stats.get("titles/asked", 0) - ended
        if left > 0:
            return (
                f"{left:,} titles of this crawl were not done; the same command asks for them again"
            )
        return "nothing of this crawl"

    async def _due(self) -> str:
        """Return how much is due, and set the stats of overdue titles."""
        if not self._crawler.settings.get("DATABASE_URL"):
            return "without DATABASE_URL, nothing is known of what is due"
        try:
            async with asyncio.timeout(_TIMEOUT_SECONDS):
                due, following, overdue, fetched = await asyncio.to_thread(
                    _ask, self._crawler.settings, self._site
                )
        except (MovieCrawlerError, TimeoutError):
            return "the catalogue can't be asked"
        self._crawler.stats.set_value("catalogue/overdue", overdue)
        self._crawler.stats.set_value("catalogue/fetched", fetched)
        then = f", the next one on {utc_text(following)}" if following is not None else ""
        return f"{due:,} titles are due now{then}"


def _ask(settings: BaseSettings, site: Site) -> Any:
    """Return the row of `_DUE`; call it in a thread.

    Raises MovieCrawlerError, also after a time-out.
    """
    # Imports Postgres' client.
    from moviecrawler.catalogue.store import open_catalogue  # noqa: PLC0415

    with closing(open_catalogue(settings)) as catalogue, catalogue.transaction() as cursor:
        cursor.execute("SET LOCAL statement_timeout = %s", (_STATEMENT_SECONDS * 1000,))
        cursor.execute(_DUE, (site,))
        return cursor.fetchone()


def _stores(stats: dict[str, Any]) -> str:
    stores = sorted({name.split("/")[1] for name in stats if name.startswith("store/")})
    shown = []
    for store in stores:
        counts = {
            what: stats.get(f"store/{store}/{what}", 0)
            for what in ("durable", "rejected", "spooled", "lost")
        }
        batches = stats.get(f"store/{store}/batches", 0)
        retries = stats.get(f"store/{store}/retries", 0)
        kept = ", ".join(
            f"{count:,} {what}" for what, count in counts.items() if count or what == "durable"
        )
        shown.append(
            f"{store} {kept} in {batches:,} batches"
            + (f" and {retries:,} retries" if retries else "")
        )
        if remark := stats.get(f"store/{store}/remark"):
            shown.append(remark)
    if invalid := stats.get("items/rejected", 0):
        shown.append(f"{invalid:,} invalid items were offered to none")
    return "; ".join(shown) or "none"


def _refusals(site: str, stats: dict[str, Any]) -> str:
    """Return how often the site refused us or a proxy, by kind."""
    counts = Counter[str]()
    for name, value in stats.items():
        area, _, rest = name.partition(f"/{site}/")
        if area == "blocks" and isinstance(value, int):
            counts[rest] += value
    shown = ", ".join(f"{count:,} {kind}" for kind, count in sorted(counts.items())) or "none"
    stopped = stats.get(f"blocks/{site}/stopped")
    return f"{shown}; {stopped}" if stopped else shown


def _missing(stats: dict[str, Any]) -> str:
    shown = [
        f"{name.removeprefix('pages/missing/')} {why}"
        for name, why in sorted(stats.items())
        if name.startswith("pages/missing/")
    ]
    unreadable = {
        name.rpartition("/")[2]: count
        for name, count in sorted(stats.items())
        if name.startswith("extraction/errors/")
    }
    if unreadable:
        shown.append(
            f"{sum(unreadable.values()):,} pages could not be read ({', '.join(unreadable)})"
        )
    return "; ".join(shown) or "none"
