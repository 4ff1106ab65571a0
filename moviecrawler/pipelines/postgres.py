"""Stores movies and misses in PostgreSQL; `database/tables.py` declares the tables.

A batch is stored, matched with other sites' titles and brought into the catalogue in one
transaction under `lock_titles`, so that processes write one after the other.
"""

from __future__ import annotations

import logging
import math
import time
from collections import Counter
from contextlib import contextmanager
from dataclasses import replace
from threading import Thread
from typing import TYPE_CHECKING

import psycopg2
from psycopg2 import errors
from scrapy.exceptions import NotConfigured

from moviecrawler.basics.clock import check_clock, utc_now
from moviecrawler.basics.errors import ConfigurationError, TransientStoreError
from moviecrawler.basics.texts import fold
from moviecrawler.catalogue.outcomes import write_outcomes
from moviecrawler.catalogue.rows import SITEMAP, Listed, ListedTitle
from moviecrawler.catalogue.store import write_listed
from moviecrawler.database.connection import (
    REJECTIONS,
    Database,
    Session,
    read_url,
    refusals_translated,
)
from moviecrawler.database.postgres import PostgresTables
from moviecrawler.database.records import BatchWriter
from moviecrawler.database.sql import read_sql
from moviecrawler.database.titles import Plan, apply_plan, plan_titles, read_changed
from moviecrawler.items import Fetched, ListPage, Miss, Movie, Noted, Site
from moviecrawler.pipelines.base import BatchingPipeline
from moviecrawler.pipelines.store import Limits, Record, Store, in_order
from moviecrawler.signals import news_queued, title_failed, titles_listed
from moviecrawler.sites import SITES

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    # Psycopg2 writes its classes in small letters.
    from psycopg2.extensions import cursor as Cursor  # noqa: N812
    from scrapy import Request
    from scrapy.crawler import Crawler
    from scrapy.settings import BaseSettings

    from moviecrawler.database.records import Stored
    from moviecrawler.items import Entry

logger = logging.getLogger(__name__)

_SESSION = Session(settings=read_sql("session.sql"))
_STATEMENT_TIMEOUT = "60s"
_WAIT = "SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = %s"
_MATCH_ERRORS = (errors.QueryCanceled, *REJECTIONS)
"""Errors after which a record is stored, but not matched or not in the catalogue."""
_LOCK_TIMEOUT = "10s"
"""How long a process waits for other writers before it logs that, and waits on."""
_PATIENCE_SECONDS = 60.0
"""Seconds after which a crawl that starts waits no longer."""
_HOLDER = read_sql("holder.sql")
_SHUTTING_DOWN = "other processes are writing, and this one is shutting down"
_CLOSING_LOCK_TIMEOUT = "2s"
"""How long a process that is shutting down waits for other writers; what it could not write is
spooled."""


_IS_COUNTED = "failure_counted"
"""Key in a request's `meta`: its failure is written. Several signals may report one failure."""


class PostgresPipeline(BatchingPipeline):
    """Writes movies and misses to the database that DATABASE_URL names, and updates its catalogue.

    When a title is due again is written together with its item.
    """

    item_types = (Movie, Miss, ListPage, Fetched, Listed)
    """The last two are for the catalogue alone: titles that failed without a Miss, and what lists
    name."""
    # Other processes wait while a batch is written: about a millisecond a title.
    default_limits = Limits(batch_items=100, buffer_items=5_000)

    def __init__(self, crawler: Crawler, store: Store, limits: Limits) -> None:
        super().__init__(crawler, store, limits)
        crawler.signals.connect(self._titles_listed, titles_listed)
        crawler.signals.connect(self._title_failed, title_failed)

    @classmethod
    def store_from_settings(cls, settings: BaseSettings) -> PostgresStore:
        """Read DATABASE_URL and FRESHNESS_MARGIN (seconds)."""
        url = settings.get("DATABASE_URL")
        if not url:
            raise NotConfigured
        return PostgresStore(url, settings.getfloat("FRESHNESS_MARGIN", 3600))

    def _titles_listed(
        self, site: Site, list_name: str, entries: Sequence[Entry], ids: Sequence[str]
    ) -> None:
        """Write what a list page names."""
        titles = [ListedTitle(entry.site_id, entry.year) for entry in entries]
        titles += [ListedTitle(site_id) for site_id in ids]
        listed = Listed(
            site=site,
            titles=titles,
            source="sitemap" if list_name.startswith(SITEMAP) else "list",
            trending=list_name in SITES[site].trending,
            at=utc_now(),
        )
        self._put_news(listed)

    def _title_failed(self, note: Fetched, request: Request | None) -> None:
        """Write that a title failed; the lease of its request waits for that."""
        if request is not None and "site_id" in request.cb_kwargs:
            if request.meta.get(_IS_COUNTED):
                return
            request.meta[_IS_COUNTED] = True
        failed = replace(note, outcome="error")
        if note.decision == "accepted":  # the page is the title's, but could not be stored
            failed = replace(failed, decision=None, page_id=None)
        self._put_news(failed, request)

    def _put_news(self, news: Fetched | Listed, request: Request | None = None) -> None:
        """Queue what is not an item of a page, without waiting for space."""
        record = Record(news, self.encode(news), time.monotonic())
        self._add_pending(record)
        self._signals.send_catch_log(news_queued, item=news, request=request)
        self._writer.put(record)


class PostgresStore(Store):
    """The tables of one database, which any number of processes write one after the other."""

    name = "postgres"

    def __init__(self, url: str, margin: float = 0) -> None:
        read_url(url)
        self._database = Database(url, _SESSION, lambda: self.hurried)
        self._margin = margin
        self.figures: Counter[str] = Counter()
        """`crowded_searches`: those for other records of a title that went without keys which too
        many records share."""
        self._waits = False  # whether it waits for other writers

    def open(self) -> None:
        """Connect, and bring the schema up to date."""
        try:
            with refusals_translated(), self._database.transaction() as cursor:
                cursor.execute("SELECT clock_timestamp()")
                ((theirs,),) = cursor.fetchall()
                check_clock(theirs, "Postgres")
                PostgresTables(cursor).check_privileges()
                self._wait_for_turn(cursor, _PATIENCE_SECONDS)
        except BaseException:
            self.close()
            raise

    def write(self, records: Sequence[Record]) -> None:
        """Store the records and match them with titles.

        This is one transaction, which waits for those of other processes.
        """
        news = [record.item for record in records if isinstance(record.item, Fetched | Listed)]
        items = in_order(
            [record for record in records if not isinstance(record.item, Fetched | Listed)]
        )
        try:
            self._database.open()
        except ConfigurationError as error:
            # The configuration was right when the crawl began, so no item is to blame.
            raise TransientStoreError(str(error)) from error
        with self._database.transaction() as cursor:
            self._wait_for_turn(cursor)
            stored, concerned = BatchWriter(PostgresTables(cursor), self._margin).write(items)
            for record in stored:
                key = (record.movie.site, str(record.movie.site_id))
                if key in concerned:
                    record.is_changed = True
                    concerned.discard(key)
            figures: Counter[str] = Counter()
            figures["crowded_searches"] = self._match(
                cursor, [*stored, *read_changed(cursor, concerned)]
            )
            _update_catalogue(cursor, items, news, figures)
        self.figures.update(figures)

    def close(self) -> None:
        """Disconnect."""
        self._database.close()

    def hurry(self) -> None:
        """Stop waiting for other writers, as this process is shutting down."""
        super().hurry()
        if self._waits:
            # Cancelling opens a connection of its own, for which the event loop must not wait.
            Thread(target=self._database.interrupt, daemon=True).start()

    def _wait_for_turn(self, cursor: Cursor, longest_seconds: float = math.inf) -> None:
        """Wait until no other session writes, or until this process is shutting down.

        Who holds the lock is logged every 10 seconds. Raises TransientStoreError after
        `longest_seconds`.
        """
        self._waits = True
        began = time.monotonic()
        try:
            while not self._has_turn(cursor):
                waited = time.monotonic() - began
                if self.hurried:
                    raise TransientStoreError(_SHUTTING_DOWN)
                cursor.execute(_HOLDER)
                holder = ", ".join(text for (text,) in cursor.fetchall()) or "no session any more"
                if waited >= longest_seconds:
                    raise TransientStoreError(
                        f"another session has held the lock of writers for {waited:.0f} s: {holder}"
                    )
                logger.warning(
                    "Postgres: waiting %.0f s for the lock of writers, which %s holds",
                    waited,
                    holder,
                )
        except errors.QueryCanceled as error:
            raise TransientStoreError(_SHUTTING_DOWN) from error
        finally:
            self._waits = False
        cursor.execute("SET LOCAL statement_timeout = %s", (_STATEMENT_TIMEOUT,))

    def _has_turn(self, cursor: Cursor) -> bool:
        """Wait for the lock of writers for a while, and return whether it is ours."""
        cursor.execute(_WAIT, (_CLOSING_LOCK_TIMEOUT if self.hurried else _LOCK_TIMEOUT,))
        try:
            with _savepoint(cursor):
                cursor.execute("SELECT lock_titles()")
        except errors.LockNotAvailable:
            return False
        return True

    def _match(self, cursor: Cursor, stored: Sequence[Stored]) -> int:
        """Give stored records to the titles that they belong to, and update the catalogue.

        A single record stays as it is stored when that takes too long or the database refuses it.
        Return how many searches went without crowded keys.
        """
        try:
            with _savepoint(cursor):
                plan = plan_titles(cursor, stored)
                apply_plan(cursor, plan, stored)
                return plan.crowded_searches
        except _MATCH_ERRORS as error:
            if len(stored) != 1:
                raise  # the writer halves the batch; that of `open` is empty
            lacking = "not compared with other sites' titles"
            reason = fold(str(error))
        try:
            with _savepoint(cursor):
                apply_plan(cursor, Plan(), stored)
        except _MATCH_ERRORS:
            lacking = "not in the catalogue"
        movie = stored[0].movie
        logger.warning("%s %s is stored, but %s: %s", movie.site, movie.site_id, lacking, reason)
        return 0


def _update_catalogue(
    cursor: Cursor,
    items: Sequence[Movie | Miss | ListPage],
    news: Sequence[Fetched | Listed],
    figures: Counter[str],
) -> None:
    """Write when the titles of items are due again, and the news for the catalogue."""
    outcomes = [item.note for item in items if isinstance(item, Noted) and item.note is not None]
    for one in news:
        if isinstance(one, Listed):
            write_listed(cursor, one)
        else:
            outcomes.append(one)
    write_outcomes(cursor, outcomes, figures)


@contextmanager
def _savepoint(cursor: Cursor) -> Iterator[None]:
    """Roll back to the beginning of the block when it fails, but not the transaction."""
    cursor.execute("SAVEPOINT before")
    try:
        yield
    except psycopg2.Error:
        cursor.execute("ROLLBACK TO before")
        raise
