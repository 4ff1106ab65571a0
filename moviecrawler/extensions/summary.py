"""Writes what a crawl did, in five lines at its end."""

from __future__ import annotations

import asyncio
import logging
import re
import sys
import time
from collections import Counter, defaultdict
from contextlib import closing
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from scrapy import signals

from moviecrawler.basics.clock import utc_text
from moviecrawler.basics.errors import MovieCrawlerError
from moviecrawler.basics.texts import on_one_line
from moviecrawler.extensions.checks import describe_missing_fields
from moviecrawler.frontier.account import DONE, INCOMPLETE, UNFINISHED, account_of, exit_code
from moviecrawler.frontier.contract import TITLE_OUTCOMES, Account
from moviecrawler.items import Miss, Movie
from moviecrawler.signals import (
    item_rejected,
    items_passed,
    list_failed,
    summary_written,
)
from moviecrawler.sites import SITES

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime
    from typing import Self

    from scrapy.crawler import Crawler
    from scrapy.settings import BaseSettings

    from moviecrawler.extensions.checks import Stats
    from moviecrawler.sites import Site

logger = logging.getLogger(__name__)

_MAX_SHOWN = 3
"""Reasons of an outcome that are shown."""
_MAX_REASONS = 200
"""Reasons that are counted one by one; further ones are counted together."""
_ADDRESS = re.compile(r"\s*\(?https?://\S+")
_ID = re.compile(r"\b(?:tt\d+|(?:m|tv|movie)/[\w/.-]*\w)")
"""Addresses and ids, without which most reasons are the same."""
_SPOOLED = re.compile(r"store/\w+/spooled")
_CRAWL_ENDS = {DONE: "complete", INCOMPLETE: "incomplete", UNFINISHED: "unfinished"}
"""How a crawl ended, in the stat `crawl/…`, by its exit code."""
_TIMEOUT_SECONDS = 15.0
"""Seconds to connect to the catalogue and read from it."""
_STATEMENT_SECONDS = 10
_DUE = """
SELECT
    count(*) FILTER (WHERE next_due <= now()) AS due,
    min(next_due) FILTER (WHERE next_due > now()) AS following,
    count(*) FILTER (
        WHERE last_success IS NOT NULL AND state <> 'absent' AND next_due <= now()
    ) AS overdue,
    count(*) FILTER (WHERE last_success IS NOT NULL AND state <> 'absent') AS fetched
FROM title_sites WHERE site = %s AND site_id IS NOT NULL
"""


class _Due(NamedTuple):
    """The row of `_DUE`."""

    now: int
    following: datetime | None
    """When the next title is due; None when there is none."""
    overdue: int
    fetched: int


class Summary:
    """Writes the lines to standard error when everything is stored and closed, and to LOG_FILE.

    A crawl that could not begin ends before Scrapy has logged its stats. `scrapy crawl` then writes
    the lines, so that they are the last ones in any case.
    """

    is_joint: ClassVar[bool] = False
    """Whether all crawls of this process have one summary, that of `joint_lines`."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._site: Site = crawler.spidercls.site  # type: ignore[attr-defined]
        self._started = time.monotonic()
        self._reasons: defaultdict[str, Counter[str]] = defaultdict(Counter)
        """Outcome of what is not stored or read → why, and how often in this process."""
        self.lines: list[str] = []
        self._is_written = False

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Connect the handlers to their signals."""
        summary = cls(crawler)
        crawler.signals.connect(summary.items_passed, items_passed)
        crawler.signals.connect(summary.item_rejected, item_rejected)
        crawler.signals.connect(summary.list_failed, list_failed)
        crawler.signals.connect(summary.spider_closed, signals.spider_closed)
        crawler.signals.connect(summary.engine_stopped, signals.engine_stopped)
        return summary

    def items_passed(self, items: Sequence[object]) -> None:
        """Note why titles are not stored."""
        for item in items:
            if isinstance(item, Miss):
                self._note_reason(item.outcome, item.reason)

    def item_rejected(self, store: str, item: object) -> None:
        """Note that a store, or the checks before all of them, refused a title."""
        if isinstance(item, Movie) and item.source != "list":
            who = "the checks" if store == "validate" else store
            self._note_reason("failed", f"rejected by {who}")

    def list_failed(self, reason: str, refused: bool) -> None:
        """Note why a list page, or a file of titles, could not be read."""
        if not refused:
            self._note_reason("unread", reason)

    def _note_reason(self, outcome: str, text: str) -> None:
        reason = _ID.sub("…", _ADDRESS.sub("", text)).strip(" ,;:()") or outcome
        reasons = self._reasons[outcome]
        is_new = reason not in reasons and len(reasons) >= _MAX_REASONS
        reasons["others" if is_new else reason] += 1

    async def spider_closed(self, reason: str) -> None:
        """Make the lines from the figures of this moment."""
        stats = self._crawler.stats.get_stats() | {"finish_reason": reason}
        self.lines = self._lines_of(stats)
        code = exit_code(stats)
        self._crawler.stats.inc_value(f"crawl/{_CRAWL_ENDS[code]}")
        if self._crawler.engine.start_time is None:  # an engine that has not started does not stop
            await self._complete()

    async def engine_stopped(self) -> None:
        """Write the lines, unless the spider was never opened.

        By now all outcomes are in the catalogue.
        """
        if self.lines:
            await self._complete()
            self.write()

    async def _complete(self) -> None:
        self.lines[-1] += await self._due()
        if self._crawler.settings["LOG_FILE"]:
            text = "\n  ".join(self.lines)
            logger.info("%s", text, extra={"spider": self._crawler.spider})
        await self._crawler.signals.send_catch_log_async(summary_written, lines=self.lines)

    def write(self) -> None:
        """Write the lines to standard error, unless they are written."""
        if self.lines and not self._is_written and not self.is_joint:
            self._is_written = True
            # With --nolog there is no other way.
            print("\n  ".join(self.lines), file=sys.stderr, flush=True)  # noqa: T201

    def _lines_of(self, stats: Stats) -> list[str]:
        """Return the lines, the last without what is due."""
        seconds = time.monotonic() - self._started
        reason = stats["finish_reason"]
        is_once = bool(self._crawler.settings.get("FRONTIER_RUN"))
        plan = self._crawler.spider.plan  # type: ignore[union-attr]  # a RunSpider's
        note = f"; {plan.note}" if plan.note else ""
        lines = [
            f"{self._site}: {self._titles(stats)}{note}; in {seconds:,.1f} s ({reason})",
            f"stores: {_stores(stats)}",
            f"refusals: {_refusals(self._site, stats)}",
            f"missing fields: {_missing(stats)}",
            f"next: {_next(stats, is_once, plan.is_due)}",
        ]
        return [on_one_line(line) for line in lines]  # a client's error may have several

    def _titles(self, stats: Stats) -> str:
        """Return how the titles of the run ended, with the most frequent reasons.

        The numbers add up.
        """
        account = account_of(stats) or Account()
        counts = _count_titles(account)
        shown = [
            f"{count:,} {outcome}{self._why(outcome, count)}"
            for outcome, count in counts.items()
            if count
        ]
        if account.unread:
            lists = f"{account.unread:,} list pages" if shown else "the list"
            shown.append(f"{lists} could not be read{self._why('unread', account.unread)}")
        is_finished = stats["finish_reason"] == "finished"
        nothing = "nothing found" if is_finished else "the crawl ended first"
        titles = sum(counts.values())
        return f"{titles:,} titles asked for: {', '.join(shown) or nothing}"

    def _why(self, outcome: str, count: int) -> str:
        """Return the most frequent reasons of an outcome, in brackets."""
        reasons = self._reasons[outcome].most_common(_MAX_SHOWN)
        if not reasons:
            return ""
        texts = [f"{number:,} {why}" for why, number in reasons]
        others = count - sum(number for _, number in reasons)
        if others > 0:
            texts.append(f"{others:,} for other reasons")
        return f" ({'; '.join(texts)})"

    async def _due(self) -> str:
        """Return how much is due, and set the stats of overdue titles."""
        if not self._crawler.settings.get("DATABASE_URL") or self._site not in SITES:
            return ""  # of a replay nothing is due
        try:
            async with asyncio.timeout(_TIMEOUT_SECONDS):
                due = await asyncio.to_thread(_count_due, self._crawler.settings, self._site)
        except (MovieCrawlerError, TimeoutError):
            return "; the catalogue is unavailable"
        self._crawler.stats.set_value("catalogue/overdue", due.overdue)
        self._crawler.stats.set_value("catalogue/fetched", due.fetched)
        then = f", the next one on {utc_text(due.following)}" if due.following is not None else ""
        return f"; {due.now:,} titles are due now{then}"


def _count_titles(account: Account) -> dict[str, int]:
    """Return how many titles of a run ended in which way."""
    counts = {outcome: getattr(account, outcome) for outcome in TITLE_OUTCOMES}
    # A state that was lost takes the number of titles with it.
    left = max(0, account.titles - sum(counts.values()))
    counts["dead letters"] = min(account.dead, left)
    left -= counts["dead letters"]
    counts["waiting in the queue"] = min(account.open, left)
    counts["lost"] = left - counts["waiting in the queue"]
    return counts


def joint_lines(crawlers: Sequence[Crawler], unknown: str) -> list[str]:
    """Return the lines of several crawls: all together, each, and what they have in common.

    Args:
        crawlers: Those that were interrupted before they began have no lines.
        unknown: What was requested of a site without an id there.
    """
    counts = Counter[str]()
    stats = Counter[str]()
    first_lines = []
    parts: defaultdict[str, list[str]] = defaultdict(list)
    for crawler in crawlers:
        summary = crawler.get_extension(Summary)
        if summary is None or not summary.lines:
            continue
        own_stats = crawler.stats.get_stats()
        counts.update(_count_titles(account_of(own_stats) or Account()))
        for name, value in own_stats.items():
            if name.startswith("store/") and isinstance(value, int):
                stats[name] += value
        first_line, _, *others = summary.lines
        first_lines.append(first_line)
        for line in others:
            label, _, text = line.partition(": ")
            if text not in {"none", "nothing is left"}:
                parts[label].append(f"{first_line.partition(':')[0]}: {text}")
    if not first_lines:
        return []
    ends = ", ".join(f"{count:,} {outcome}" for outcome, count in counts.items() if count)
    return [
        f"all: {counts.total():,} titles asked for: {ends or 'nothing found'}",
        *first_lines,
        f"stores: {_stores(stats)}",
        f"refusals: {'; '.join(parts['refusals']) or 'none'}",
        f"missing fields: {'; '.join(parts['missing fields']) or 'none'}",
        f"unknown: {unknown or 'none'}",
        f"next: {'; '.join(parts['next']) or 'nothing is left'}",
    ]


def _next(stats: Stats, is_once: bool, is_due: bool) -> str:
    """Return why a crawl has left something, what that is, and what to do.

    Args:
        stats: The crawl's stats at its end.
        is_once: Whether FRONTIER_RUN names the run, so that nothing passes over it again.
        is_due: Whether the catalogue named the titles, so that it has what failed.
    """
    account = account_of(stats)
    cause = stats.get("crawl/cause")
    parts = [str(cause)] if cause else []
    if account is None:
        parts.append("nothing was requested")
        if stats["finish_reason"] != "frontier_refused":  # its cause says what to change
            parts.append("the same command begins again")
        return "; ".join(parts)
    if account.open:
        parts.append(
            f"{account.open:,} requests wait in the queue, and the same command continues with them"
        )
    if account.dead:
        parts.append(f"`scrapy deadletters` has {account.dead:,} requests that were given up")
    if failed := account.failed + account.disallowed + account.unread:
        parts.append(f"{failed:,} failed, and {_again(account, is_once, is_due)}")
    if account.lost:
        parts.append(
            f"{account.lost:,} were deleted from the queue, and the same command begins anew"
        )
    spooled = sum(value for name, value in stats.items() if _SPOOLED.fullmatch(name))
    if spooled:
        parts.append(f"{spooled:,} items are spooled, and the next crawl stores them")
    if not parts and exit_code(stats) == INCOMPLETE:
        parts.append("the line on stores says what went wrong")
    return "; ".join(parts) or "nothing is left"


def _again(account: Account, is_once: bool, is_due: bool) -> str:
    """Return how titles and lists that failed are requested anew."""
    if is_due:
        return "the catalogue has them requested when they are due again"
    if is_once:
        return "another FRONTIER_RUN requests them anew"
    when = " once these are done" if account.open else ""
    return f"the same command requests them anew{when}"


def _count_due(settings: BaseSettings, site: Site) -> _Due:
    """Count a site's titles in the catalogue; call it in a thread.

    Raises MovieCrawlerError, also after a time-out.
    """
    # Imports Postgres' client.
    from moviecrawler.catalogue.store import open_catalogue  # noqa: PLC0415

    with closing(open_catalogue(settings)) as catalogue, catalogue.transaction() as cursor:
        cursor.execute("SET LOCAL statement_timeout = %s", (_STATEMENT_SECONDS * 1000,))
        cursor.execute(_DUE, (site,))
        return _Due(*cursor.fetchone())


def _stores(stats: Stats) -> str:
    shown = []
    for store in sorted({name.split("/")[1] for name in stats if name.startswith("store/")}):
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
        if damaged := stats.get(f"store/{store}/damaged", 0):
            shown.append(f"{damaged:,} spool files of {store} can't be read")
        if remark := stats.get(f"store/{store}/remark"):
            shown.append(remark)
    if invalid := stats.get("items/rejected", 0):
        shown.append(f"{invalid:,} invalid items were offered to none")
    if unrecorded := stats.get("items/unrecorded", 0):
        shown.append(f"{unrecorded:,} rejected items could not be written to rejected.jsonl")
    return "; ".join(shown) or "none of this project's is in ITEM_PIPELINES"


def _refusals(site: str, stats: Stats) -> str:
    """Return how often the site refused us or a proxy, by kind."""
    counts = Counter[str]()
    for name, value in stats.items():
        area, _, rest = name.partition(f"/{site}/")
        if area == "blocks" and isinstance(value, int):
            counts[rest] += value
    shown = ", ".join(f"{count:,} {kind}" for kind, count in sorted(counts.items())) or "none"
    stopped = stats.get(f"blocks/{site}/stopped")
    return f"{shown}; {stopped}" if stopped else shown


def _missing(stats: Stats) -> str:
    shown = describe_missing_fields(stats)
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
