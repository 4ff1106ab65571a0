"""Records in the catalogue the outcomes of titles, and the titles that lists name.

An outcome is recorded once its item is durable.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import time
import uuid
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from scrapy import signals
from scrapy.exceptions import NotConfigured

from moviecrawler.basics.outages import Outages
from moviecrawler.catalogue import claims, store
from moviecrawler.catalogue.outcomes import (
    AnyOutcome,
    CoveredBySeries,
    Fetched,
    Judged,
    record,
    release_of,
)
from moviecrawler.catalogue.rows import SITEMAP, ListedTitle
from moviecrawler.clock import utc_now
from moviecrawler.errors import ConfigurationError, MovieCrawlerError, TransientStoreError
from moviecrawler.items import Miss, Movie
from moviecrawler.options import CatalogueOptions
from moviecrawler.signals import item_completed, titles_listed
from moviecrawler.sites import SCOREBOARD_KINDS, SITES
from moviecrawler.sites.identity import OTHER_TITLE

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Self

    from scrapy import Request
    from scrapy.crawler import Crawler
    from scrapy.http import Response
    from twisted.python.failure import Failure

    from moviecrawler.catalogue.rows import Outcome
    from moviecrawler.database.connection import Database
    from moviecrawler.items import Entry, Site
    from moviecrawler.matching.facts import IdSource
    from moviecrawler.signals import Outcome as StoreOutcome

logger = logging.getLogger(__name__)
T = TypeVar("T")

_COUNTED = "catalogue_counted"
"""Key in a request's `meta`: its failure is counted. Several signals may report one failure."""
_WRITE_SECONDS = 2.0
"""Seconds between two writes."""
_BATCH = 200
"""Outcomes in one write."""
_MAX_WAITING = 20_000
"""Outcomes, and other writes, that are kept while the database is away. A title whose outcome is
dropped is due again."""
_OUTCOMES: dict[str, Outcome] = {
    "absent": "absent",
    "blocked": "blocked",
    "failed": "error",
    "disallowed": "error",
}
"""The outcome of a miss in the catalogue."""


class CatalogueRecorder:
    """Record the outcome of every title that a crawl asks for, and what its lists name.

    They are recorded within seconds. While the database is away, outcomes are kept, and titles stay
    claimed.
    """

    def __init__(self, crawler: Crawler, database: Database, options: CatalogueOptions) -> None:
        self.crawler = crawler
        self.options = options
        self.lease = timedelta(seconds=options.lease)
        self.worker = f"{socket.gethostname()}-{os.getpid()}-{uuid.uuid4().hex[:8]}"
        self.claimed_ids: set[int] = set()
        """Claimed titles without a written outcome."""
        self.fetching: set[int] = set()
        """Claimed titles whose requests have not ended."""
        self.has_claimed = False
        """Whether a claim was ever tried: one without an answer may have succeeded."""
        self.closed = False
        """Whether the crawl is over and the database closed."""
        self._database = database
        # Everything that uses the database runs in this thread.
        self._thread = ThreadPoolExecutor(1, "catalogue")
        self.outcomes: deque[AnyOutcome] = deque()
        """Outcomes that are not written yet."""
        self._other_writes: deque[Callable[[Database], object]] = deque(maxlen=_MAX_WAITING)
        """Further functions that write, in order."""
        self._flushing = asyncio.Lock()
        self._outages = Outages()
        self._task: asyncio.Task[None] | None = None
        self._closing = asyncio.Event()
        self._extended_at = time.monotonic()

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Read DATABASE_URL and CATALOGUE_BATCH, CATALOGUE_LEASE and so on."""
        if not crawler.settings.get("DATABASE_URL"):
            raise NotConfigured
        recorder = cls(
            crawler, store.open_catalogue(crawler.settings), CatalogueOptions.read(crawler.settings)
        )
        for handler, signal in (
            (recorder.spider_opened, signals.spider_opened),
            (recorder.spider_closed, signals.spider_closed),
            # A movie did not pass the checks, a pipeline failed on one, or a callback failed.
            (recorder.title_failed, signals.item_dropped),
            (recorder.title_failed, signals.item_error),
            (recorder.title_failed, signals.spider_error),
            (recorder.item_completed, item_completed),
            (recorder.titles_listed, titles_listed),
        ):
            crawler.signals.connect(handler, signal)
        return recorder

    def claimed(self, title_ids: Sequence[int]) -> None:
        """Note titles that this worker has claimed."""
        self.claimed_ids.update(title_ids)
        self.fetching.update(title_ids)

    async def call(self, function: Callable[..., T], *args: Any, **kwargs: Any) -> T:
        """Run a function in the thread, with the database as its first argument."""
        if self.closed:
            raise TransientStoreError("the crawl is over")
        call = partial(function, self._database, *args, **kwargs)
        try:
            return await asyncio.get_running_loop().run_in_executor(self._thread, call)
        except ConfigurationError as error:
            # The database was as it should be when the crawl began, and may soon be again.
            raise TransientStoreError(str(error)) from error

    # --- Signals ----------------------------------------------------------------------------------

    def spider_opened(self) -> None:
        """Begin to write."""
        self._task = asyncio.get_running_loop().create_task(self._write_now_and_then())

    async def spider_closed(self) -> None:
        """Write what is left, and release the claims on titles that were not fetched."""
        self._closing.set()
        if self._task is not None:
            await self._task
        await self.flush()
        if left := len(self.outcomes) + len(self._other_writes):
            logger.warning(
                "%d outcomes could not be written; "
                "their titles are due again when their claims end",
                left,
            )
        try:
            if self.has_claimed:
                await self.call(claims.release, self.worker)
        except MovieCrawlerError as error:
            message = "This worker's claims could not be released, and end by themselves: %s"
            logger.warning(message, error)
        self.closed = True
        await asyncio.get_running_loop().run_in_executor(self._thread, self._database.close)
        self._thread.shutdown(wait=False)

    def item_passed(self, item: Any, request: Request | None) -> None:
        """Note that a title's request has ended."""
        if isinstance(item, Movie | Miss) and not _is_of_list(item):
            self._ended(request)

    def title_failed(self, response: Response | Failure | None, item: Any = None) -> None:
        """Count a title as failed.

        A season that its series' page lists does not fail its series.
        """
        if isinstance(item, Movie) and _is_of_list(item) and item.kind == "season":
            return
        request = getattr(response, "request", None)
        if (
            request is not None
            and "site_id" in request.cb_kwargs
            and not request.meta.get(_COUNTED)
        ):
            request.meta[_COUNTED] = True
            self._ended(request)
            self._add_outcome(
                request,
                site=request.meta["site"],
                outcome="error",
                at=utc_now(),
                asked_id=request.cb_kwargs["site_id"],
            )
        if isinstance(item, Movie) and item.source == "dataset" and item.site_id:
            # One pass over the datasets gives many titles, without a request for each.
            self._add(Fetched(site=item.site, outcome="error", at=utc_now(), asked_id=item.site_id))

    def titles_listed(
        self, site: Site, list_name: str, entries: Sequence[Entry], ids: Sequence[str]
    ) -> None:
        """Record the titles that a list page names."""
        seen = [ListedTitle(entry.site_id, entry.year) for entry in entries]
        seen += [ListedTitle(site_id) for site_id in ids]
        source: IdSource = "sitemap" if list_name.startswith(SITEMAP) else "list"
        trending = list_name in SITES[site].trending
        now = utc_now()
        self._other_writes.append(
            lambda database: store.record_listed(
                database, site, seen, source, trending=trending, now=now
            )
        )

    def item_completed(
        self, item: Any, request: Request | None, outcomes: frozenset[StoreOutcome]
    ) -> None:
        """Note the outcomes of titles. One whose item was lost is due again when its claim ends."""
        if isinstance(item, Movie | Miss) and not _is_of_list(item):
            self._title_completed(item, request, outcomes)
        elif (
            isinstance(item, Movie)
            and item.kind == "season"
            and item.site_id
            and not {"lost", "rejected"} & outcomes
        ):
            # A season's own page need not be fetched for scores that its series' page has.
            self._add(
                CoveredBySeries(
                    site=item.site,
                    at=item.scraped_at or utc_now(),
                    asked_id=item.site_id,
                    released=release_of(item.release_date, item.year),
                    lacks_scores=any(
                        f"scores.{kind}" in item.unknown_fields for kind in SCOREBOARD_KINDS
                    ),
                )
            )

    # --- Outcomes ---------------------------------------------------------------------------------

    def _title_completed(
        self, item: Movie | Miss, request: Request | None, outcomes: frozenset[StoreOutcome]
    ) -> None:
        due = _due(request)
        if "lost" in outcomes:
            if due:
                # Otherwise the claim would be extended as long as this crawl lasts.
                self.claimed_ids.discard(due["title_id"])
            return
        if isinstance(item, Movie):
            at = item.scraped_at
            released = release_of(item.release_date, item.year)
            outcome: Outcome = "error" if "rejected" in outcomes else "ok"
        else:
            at = item.checked_at
            released = None
            outcome = _OUTCOMES[item.outcome]
        verdict = request.meta.get("verdict", {}) if request is not None else {}
        is_other_title = verdict.get("decision", "accepted") != "accepted"
        if outcome != "ok" and not is_other_title:
            verdict = {}  # the page is the title's, but could not be stored
        self._add_outcome(
            request,
            verdict,
            site=item.site,
            outcome=outcome,
            at=at or utc_now(),
            asked_id=(request.cb_kwargs.get("site_id") if request is not None else None)
            or item.site_id
            or "",
            got_id=item.site_id if outcome == "ok" or is_other_title else None,
            other_id=request.meta.get(OTHER_TITLE) if request is not None else None,
            released=released,
        )

    def _add_outcome(
        self, request: Request | None, verdict: dict[str, Any] | None = None, **ended: Any
    ) -> None:
        due = _due(request)
        if not due:
            self._add(Fetched(**ended))
        elif due["evidence"] is None:
            self._add(Fetched(**ended, title_id=due["title_id"]))
        else:
            verdict = verdict or {}
            is_other_title = verdict.get("decision", "accepted") != "accepted"
            leads_on = ended["outcome"] == "absent" or is_other_title or bool(ended.get("other_id"))
            has_more_ids = bool(due["ids"]) and leads_on
            ended |= {
                "title_id": due["title_id"],
                "evidence": due["evidence"],
                "has_more_ids": has_more_ids,
            }
            self._add(Judged(**ended, **verdict))

    def _ended(self, request: Request | None) -> None:
        if due := _due(request):
            self.fetching.discard(due["title_id"])

    # --- Writing ----------------------------------------------------------------------------------

    def _add(self, outcome: AnyOutcome) -> None:
        self.outcomes.append(outcome)
        if len(self.outcomes) > _MAX_WAITING and (title_id := self.outcomes.popleft().title_id):
            self.claimed_ids.discard(title_id)  # its claim ends, so that it is due again

    async def flush(self) -> None:
        """Write what is known by now. Raises nothing: what can't be written stays queued."""
        # A batch that has left the queue is written even if the caller is cancelled.
        await asyncio.shield(asyncio.ensure_future(self._flush()))

    async def _flush(self) -> None:
        async with self._flushing:
            try:
                while self.outcomes:
                    batch = [
                        self.outcomes.popleft() for _ in range(min(_BATCH, len(self.outcomes)))
                    ]
                    try:
                        await self.call(_record, batch)
                    except TransientStoreError:
                        self.outcomes.extendleft(reversed(batch))
                        raise
                    self.claimed_ids -= {
                        one.title_id
                        for one in batch
                        if one.title_id and not getattr(one, "has_more_ids", False)
                    }
                while self._other_writes:
                    await self.call(_write, self._other_writes[0])
                    self._other_writes.popleft()
            except TransientStoreError as error:
                if self._outages.mark_down():
                    logger.warning(
                        "The catalogue can't be written to now; it will be tried again: %s", error
                    )
            else:
                self._outages.mark_up()

    async def _write_now_and_then(self) -> None:
        while not self._closing.is_set():
            with suppress(TimeoutError):
                await asyncio.wait_for(self._closing.wait(), _WRITE_SECONDS)
                return
            await self.flush()
            if self.claimed_ids and time.monotonic() - self._extended_at >= self.options.lease / 4:
                try:
                    await self._extend()
                except MovieCrawlerError as error:
                    logger.warning("Claims could not be extended: %s", error)

    async def _extend(self) -> None:
        """Extend the claims, and drop those that other workers have by now."""
        extended = frozenset(self.claimed_ids)
        gone = extended - await self.call(
            claims.extend, self.worker, utc_now() + self.lease, extended
        )
        self._extended_at = time.monotonic()
        self.claimed_ids -= gone
        self.fetching -= gone


def _is_of_list(item: Movie | Miss) -> bool:
    """Return whether an item is of a row in a list or a series' page.

    Otherwise it is of the title's own page.
    """
    return isinstance(item, Movie) and item.source == "list"


def _due(request: Request | None) -> Any:
    """Return the claim that a request is for; None for a request without one."""
    return request.cb_kwargs.get("due") if request is not None else None


def _record(database: Database, batch: Sequence[AnyOutcome]) -> None:
    """Write outcomes, one by one if the batch fails.

    A title whose outcome fails is due again when its claim ends.
    """
    try:
        record(database, batch)
    except (TransientStoreError, ConfigurationError):
        raise  # all of them are tried again
    except Exception:
        if len(batch) == 1:
            logger.exception(
                "The catalogue refused the outcome of %s; it is due again later", batch[0].asked_id
            )
            return
        for outcome in batch:
            _record(database, [outcome])


def _write(database: Database, write: Callable[[Database], object]) -> None:
    try:
        write(database)
    except (TransientStoreError, ConfigurationError):
        raise
    except Exception:
        logger.exception("The catalogue refused the titles that a list names")
