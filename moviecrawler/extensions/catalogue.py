"""Writing to the catalogue what became of titles, once their items are durable, and what the sites' lists name."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import uuid
from contextlib import suppress
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from scrapy import signals
from scrapy.exceptions import NotConfigured

from moviecrawler.catalogue import claims, store
from moviecrawler.catalogue.outcomes import Fetched, Judged, ToldBySeries, release_of
from moviecrawler.catalogue.rows import SITEMAP, Sighting
from moviecrawler.clock import utc_now
from moviecrawler.database.connection import Database
from moviecrawler.errors import MovieCrawlerError
from moviecrawler.extensions.catalogue_writer import CatalogueWriter
from moviecrawler.items import Miss, Movie
from moviecrawler.options import CatalogueOptions
from moviecrawler.signals import item_completed, site_refused, titles_listed
from moviecrawler.sites import SCOREBOARD_KINDS, SITES

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime
    from typing import Self

    from scrapy import Request
    from scrapy.crawler import Crawler
    from scrapy.http import Response
    from twisted.python.failure import Failure

    from moviecrawler.catalogue.rows import IdSource, Outcome
    from moviecrawler.items import Entry, Site
    from moviecrawler.signals import Outcome as StoreOutcome

logger = logging.getLogger(__name__)

_COUNTED = "catalogue_counted"
"""In a request's `meta`: that it was counted as failed, as more than one signal may say so."""
_WRITE_INTERVAL_SECONDS = 2.0
"""Seconds between two writes, and so the longest that an outcome waits."""


class CatalogueRecorder:
    """Writes the outcome of every title that a crawl asks for, and what its lists name, a few seconds after it is known.

    The database is only ever waited for in a thread, of which there is one. While it is away, outcomes are kept, and titles
    stay claimed.
    """

    def __init__(self, crawler: Crawler, database: Database, options: CatalogueOptions) -> None:
        self.crawler = crawler
        self.options = options
        self.lease = timedelta(seconds=options.lease)
        self.worker = f"{socket.gethostname()}-{os.getpid()}-{uuid.uuid4().hex[:8]}"
        self.held: set[int] = set()
        """Titles that were claimed and of which no outcome was written."""
        self.fetching: set[int] = set()
        """Titles that were claimed and whose requests have not ended here."""
        self.has_claimed = False
        """Whether anything was ever claimed, perhaps without our knowing."""
        self.writer = CatalogueWriter(database)
        self._task: asyncio.Task[None] | None = None
        self._closing = asyncio.Event()
        self._last_extended = utc_now()

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Read DATABASE_URL and CATALOGUE_BATCH, CATALOGUE_LEASE and so on."""
        if not crawler.settings.get("DATABASE_URL"):
            raise NotConfigured
        if getattr(crawler.spidercls, "site", None) is None:
            raise NotConfigured  # such as `scrapy replay`, which fetches nothing
        recorder = cls(crawler, store.open_catalogue(crawler.settings), CatalogueOptions.read(crawler.settings))
        for handler, signal in (
            (recorder.spider_opened, signals.spider_opened),
            (recorder.spider_closed, signals.spider_closed),
            # A movie did not pass the checks, a pipeline failed on one, or a callback failed.
            (recorder.title_failed, signals.item_dropped),
            (recorder.title_failed, signals.item_error),
            (recorder.title_failed, signals.spider_error),
            (recorder.item_completed, item_completed),
            (recorder.titles_listed, titles_listed),
            (recorder.site_refused, site_refused),
        ):
            crawler.signals.connect(handler, signal)
        return recorder

    # --- For the spider -----------------------------------------------------------------------------------------------

    def claimed(self, title_ids: Sequence[int]) -> None:
        """Take note of titles that this worker has claimed."""
        self.held.update(title_ids)
        self.fetching.update(title_ids)

    async def flush(self) -> None:
        """Write what is known by now. Raises nothing: what can't be written is kept."""
        over = await self.writer.flush()
        self.held -= over

    # --- Signals ------------------------------------------------------------------------------------------------------

    def spider_opened(self) -> None:
        """Begin to write."""
        self._task = asyncio.get_running_loop().create_task(self._write_now_and_then())

    async def spider_closed(self) -> None:
        """Write what is left, and give back what was claimed and not fetched."""
        self._closing.set()
        if self._task is not None:
            await self._task  # cancelled in the middle of a write, it would lose what it has taken from the queue
        await self.flush()
        if self.writer.waiting:
            logger.warning("%d outcomes could not be written; their titles are due again later", self.writer.waiting)
        try:
            if self.has_claimed:
                await self.writer.call(claims.release, self.worker)
            await self.writer.call(Database.close)
        except MovieCrawlerError as error:
            logger.warning(
                "This worker's claims could not be given back to the catalogue, and end by themselves: %s", error
            )
        self.writer.close()

    def item_passed(self, item: Any, request: Request | None) -> None:
        """Take note that a title's request has ended."""
        if isinstance(item, Movie | Miss) and not _is_row_of_list(item):
            self._ended(request)

    def title_failed(self, response: Response | Failure | None, item: Any = None) -> None:
        """Count a title as failed, but not a series for a season that its page tells of."""
        if isinstance(item, Movie) and _is_told_by_series(item):
            return
        self._failed(getattr(response, "request", None))
        if isinstance(item, Movie) and item.source == "dataset" and item.site_id:
            # Of no request for a title: one pass gives many.
            self.writer.add(Fetched(site=item.site, outcome="error", at=utc_now(), asked_id=item.site_id))

    def site_refused(self, site: str, reason: str, pause: float) -> None:
        """Have nothing claimed of a site for a while."""
        if site in SITES:
            until = utc_now() + timedelta(seconds=pause)
            self.writer.add(lambda database: store.pause(database, site, until, reason))

    def titles_listed(self, site: Site, list_name: str, entries: Sequence[Entry], ids: Sequence[str]) -> None:
        """Keep what a list page names."""
        seen = [Sighting(entry.site_id, entry.year) for entry in entries]
        seen += [Sighting(site_id) for site_id in ids]
        source: IdSource = "sitemap" if list_name.startswith(SITEMAP) else "list"
        trending, now = list_name in SITES[site].trending, utc_now()
        self.writer.add(lambda database: store.sight(database, site, seen, source, trending=trending, now=now))

    # --- Outcomes -----------------------------------------------------------------------------------------------------

    def item_completed(self, item: Any, request: Request | None, outcomes: frozenset[StoreOutcome]) -> None:
        """Take note of what became of titles. One whose item was lost is due again when its claim ends."""
        if isinstance(item, Movie) and _is_told_by_series(item):
            self._told_by_series(item, outcomes)
        elif isinstance(item, Movie | Miss) and not _is_row_of_list(item):
            self._title_completed(item, request, outcomes)

    def _title_completed(self, item: Movie | Miss, request: Request | None, outcomes: frozenset[StoreOutcome]) -> None:
        due = request.cb_kwargs.get("due") if request is not None else None
        if "lost" in outcomes:
            if due:
                self.held.discard(due["title_id"])  # otherwise the claim would be extended as long as this crawl lasts
            return
        outcome = _outcome(item, rejected="rejected" in outcomes)
        verdict = request.meta.get("verdict", {}) if request is not None else {}
        is_other = bool(verdict) and verdict["decision"] != "accepted"
        if outcome != "ok" and not is_other:
            verdict = {}  # a page that was right for the title, and could not be stored
        movie = item if isinstance(item, Movie) else None
        ended: dict[str, Any] = {
            "site": item.site,
            "outcome": outcome,
            "at": (item.scraped_at if isinstance(item, Movie) else item.checked_at) or utc_now(),
            "asked_id": (request.cb_kwargs.get("site_id") if request is not None else None) or item.site_id or "",
            "got_id": item.site_id if outcome == "ok" or is_other else None,
            "released": release_of(movie.release_date, movie.year) if movie is not None else None,
            "title_id": due["title_id"] if due else None,
        }
        if due and due["evidence"] is not None:
            others_follow = bool(due["ids"]) and (outcome == "absent" or is_other)
            self.writer.add(Judged(**ended, evidence=due["evidence"], others_follow=others_follow, **verdict))
        else:
            self.writer.add(Fetched(**ended))

    def _told_by_series(self, season: Movie, outcomes: frozenset[StoreOutcome]) -> None:
        """Take note that the page of its series tells a season's scores; when it tells all, its own need not be fetched for them."""
        if {"lost", "rejected"} & outcomes or season.site_id is None:
            return
        self.writer.add(
            ToldBySeries(
                site=season.site,
                at=season.scraped_at or utc_now(),
                asked_id=season.site_id,
                released=release_of(season.release_date, season.year),
                lacks_scores=any(f"scores.{kind}" in season.unknown_fields for kind in SCOREBOARD_KINDS),
            )
        )

    def _failed(self, request: Request | None) -> None:
        if request is None or "site_id" not in request.cb_kwargs or request.meta.get(_COUNTED):
            return
        request.meta[_COUNTED] = True
        self._ended(request)
        due = request.cb_kwargs.get("due")
        ended: dict[str, Any] = {
            "site": request.meta["site"],
            "outcome": "error",
            "at": utc_now(),
            "asked_id": request.cb_kwargs["site_id"],
            "title_id": due["title_id"] if due else None,
        }
        evidence = due["evidence"] if due else None
        self.writer.add(Fetched(**ended) if evidence is None else Judged(**ended, evidence=evidence))

    def _ended(self, request: Request | None) -> None:
        due = request.cb_kwargs.get("due") if request is not None else None
        if due:
            self.fetching.discard(due["title_id"])

    # --- Writing ------------------------------------------------------------------------------------------------------

    async def _write_now_and_then(self) -> None:
        while not self._closing.is_set():
            with suppress(TimeoutError):
                await asyncio.wait_for(self._closing.wait(), _WRITE_INTERVAL_SECONDS)
                return
            await self.flush()
            now = utc_now()
            if self.held and not timedelta() <= now - self._last_extended < self.lease / 4:
                try:
                    await self._extend(now)
                except MovieCrawlerError as error:
                    logger.warning("Claims could not be kept: %s", error)

    async def _extend(self, now: datetime) -> None:
        """Keep the claims; those that others have taken since are let go."""
        asked = frozenset(self.held)
        gone = asked - await self.writer.call(claims.extend, self.worker, now + self.lease, asked)
        self._last_extended = now
        self.held -= gone
        self.fetching -= gone


def _is_told_by_series(item: Movie) -> bool:
    return item.kind == "season" and item.source == "list"


def _is_row_of_list(item: Movie | Miss) -> bool:
    return isinstance(item, Movie) and item.source == "list"


def _outcome(item: Movie | Miss, *, rejected: bool) -> Outcome:
    if isinstance(item, Movie):
        return "error" if rejected else "ok"
    outcomes: dict[str, Outcome] = {"absent": "absent", "blocked": "blocked", "failed": "error", "disallowed": "error"}
    return outcomes[item.outcome]
