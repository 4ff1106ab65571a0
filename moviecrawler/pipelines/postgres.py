"""Stores movies and misses in PostgreSQL; `database/sql/schema.sql` describes the tables.

A batch is stored, matched with other sites' titles and brought into the catalogue in one
transaction under `lock_titles`, so that processes write one after the other. It is copied into a
temporary table, from which a few statements update all tables.
"""

from __future__ import annotations

import io
import logging
import time
from collections import defaultdict
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from threading import Thread
from typing import TYPE_CHECKING, Any

import msgspec
import psycopg2
from psycopg2.extras import NamedTupleCursor
from scrapy.exceptions import NotConfigured

from moviecrawler.basics.clock import check_clock, latest, utc_now
from moviecrawler.basics.errors import ConfigurationError, TransientStoreError
from moviecrawler.catalogue.outcomes import write_outcomes
from moviecrawler.catalogue.rows import SITEMAP, Listed, ListedTitle
from moviecrawler.catalogue.store import write_listed
from moviecrawler.database.connection import (
    REJECTIONS,
    connect,
    errors_translated,
    in_one_line,
    open_database,
    read_url,
    refusals_translated,
)
from moviecrawler.database.scoreboard import ScoreboardRow, scoreboard_query
from moviecrawler.database.sql import read_sql
from moviecrawler.database.titles import (
    Plan,
    Stored,
    apply_plan,
    hash_keys,
    plan_titles,
    read_stored,
)
from moviecrawler.items import Fetched, Miss, Movie, Site, TitleKind
from moviecrawler.matching.merging import merged
from moviecrawler.pipelines.base import BatchingPipeline
from moviecrawler.pipelines.store import Limits, Record, Store, time_of
from moviecrawler.signals import news_queued, title_failed, titles_listed
from moviecrawler.sites import ID_SITE, SITES

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    # Psycopg2 writes its classes in small letters.
    from psycopg2.extensions import connection as Connection  # noqa: N812
    from psycopg2.extensions import cursor as Cursor  # noqa: N812 - as above
    from scrapy import Request
    from scrapy.crawler import Crawler
    from scrapy.settings import BaseSettings

    from moviecrawler.items import Entry

logger = logging.getLogger(__name__)

_SESSION = read_sql("session.sql")
_LOCATE = read_sql("locate.sql")
_COLUMNS = (
    "site",
    "site_id",
    "url",
    "imdb_id",
    "title",
    "original_title",
    "kind",
    "year",
    "end_year",
    "release_date",
    "runtime_minutes",
    "genres",
    "keywords",
    "interests",
    "related",
    "series_id",
    "series_title",
    "season",
    "episode",
    "season_count",
    "episode_count",
    "list_name",
    "list_rank",
    "source",
    "unknown_fields",
    "scraped_at",
)
"""The columns of `records` that are fields of a movie. Fields with neither a column nor a table are
in `facets`."""
_WRITE_RECORDS = read_sql("write_records.sql").format(
    columns=", ".join(_COLUMNS),
    values=", ".join(f"m.{name}" for name in _COLUMNS),
    changes=", ".join(f"{name} = excluded.{name}" for name in ("match_keys", "facets", *_COLUMNS)),
    others="{" + ",".join((*_COLUMNS, "credits", "scores", "offers")) + "}",
)
_WRITE_MOVIES = ";\n".join(
    ("ANALYZE incoming", _WRITE_RECORDS, read_sql("write_scores.sql"), read_sql("write_parts.sql"))
)
_WRITE_MISSES = read_sql("write_misses.sql")
_END_MISSES = read_sql("end_misses.sql")
_WRITE_ALIASES = read_sql("write_aliases.sql")
_END_ALIASES = read_sql("end_aliases.sql")
_COPY = "COPY incoming (record_id, title_id, is_new, site, scraped_at, match_keys, item) FROM STDIN"
_ROWS_AT_ONCE = 2_000
_STATEMENT_TIMEOUT = "60s"
_WAIT = "SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = %s"
_MATCH_ERRORS = (psycopg2.errors.QueryCanceled, *REJECTIONS)
"""Errors after which a record is stored, but not matched or not in the catalogue."""
_CLOSING_LOCK_TIMEOUT = "2s"
"""How long a process that is shutting down waits for other writers; what it could not write is
spooled."""


_IS_COUNTED = "failure_counted"
"""Key in a request's `meta`: its failure is written. Several signals may tell one failure."""


class PostgresPipeline(BatchingPipeline):
    """Writes movies and misses to the database that DATABASE_URL names, and tells its catalogue.

    When a title is due again is written together with its item.
    """

    item_types = (Movie, Miss, Fetched, Listed)
    """The last two are what only the catalogue is told: titles that failed without a Miss, and what
    lists name."""
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
            failed = replace(failed, decision=None, got_id=None)
        self._put_news(failed, request)

    def _put_news(self, news: Fetched | Listed, request: Request | None = None) -> None:
        """Queue what no item says, without waiting for space."""
        record = Record(news, self.encode(news), time.monotonic())
        self._add_pending(record)
        self._signals.send_catch_log(news_queued, item=news, request=request)
        self._writer.put(record)


class PostgresStore(Store):
    """The tables of one database, which any number of processes write one after the other."""

    name = "postgres"

    def __init__(self, url: str, margin: float = 0) -> None:
        read_url(url)
        self._url = url
        self._margin = margin
        self._connection: Connection | None = None
        self._waits = False  # whether it waits for other writers

    def open(self) -> None:
        """Connect, and bring the schema up to date."""
        self._connection = open_database(self._url, lambda: self.hurried)
        try:
            with refusals_translated():
                with self._connection as connection, connection.cursor() as cursor:
                    cursor.execute(_SESSION)
                    cursor.execute("SELECT clock_timestamp()")
                    ((theirs,),) = cursor.fetchall()
                    check_clock(theirs, "Postgres")
                    cursor.execute(_LOCATE, _names([(ID_SITE, "none")]))
                # This, and numbers for a new title, show which privileges the database user lacks.
                self.write([])
        except BaseException:
            self.close()
            raise

    def write(self, records: Sequence[Record]) -> None:
        """Store the records and match them with titles.

        This is one transaction, which waits for those of other processes.
        """
        news = [record.item for record in records if isinstance(record.item, Fetched | Listed)]
        records = [record for record in records if isinstance(record.item, Movie | Miss)]
        # This refuses an item without a time.
        records.sort(key=lambda record: time_of(record.item))
        misses = {
            _key(record.item): record.encoded for record in records if isinstance(record.item, Miss)
        }
        movies = [record for record in records if isinstance(record.item, Movie)]
        connection = self._connected()
        with errors_translated(), connection, connection.cursor() as cursor:
            self._wait_for_turn(cursor)
            # Misses first: a movie from a list makes its record newer than the miss, although its
            # page was not read.
            cursor.execute(_WRITE_MISSES, {"misses": f"[{b','.join(misses.values()).decode()}]"})
            stored = self._write_movies(movies, cursor)
            read = [record.item for record in movies if record.item.source != "list"]
            ids = [(movie, site_id) for movie in read for site_id in movie.ids]
            names = _names([(movie.site, site_id) for movie, site_id in ids])
            cursor.execute(_END_MISSES, {**names, "read": [movie.scraped_at for movie, _ in ids]})
            self._match(cursor, [*stored, *_write_aliases(cursor, read, stored)])
            _tell_catalogue(connection, [record.item for record in records], news)

    def close(self) -> None:
        """Disconnect."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def hurry(self) -> None:
        """Stop waiting for other writers, as this process is shutting down."""
        super().hurry()
        if self._waits and (connection := self._connection) is not None:
            # Cancelling opens a connection of its own, for which the event loop must not wait.
            Thread(target=_cancel, args=(connection,), daemon=True).start()

    def _connected(self) -> Connection:
        if self._connection is None or self._connection.closed:
            try:
                self.open()
            except ConfigurationError as error:
                # The configuration was right when the crawl began, so no item is to blame.
                raise TransientStoreError(str(error)) from error
        assert self._connection is not None  # noqa: S101 - `open` has made it
        return self._connection

    def _wait_for_turn(self, cursor: Cursor) -> None:
        """Wait until no other process writes, or until this one is shutting down.

        It waits however long that takes.
        """
        self._waits = True
        cursor.execute(_WAIT, (_CLOSING_LOCK_TIMEOUT if self.hurried else "0",))
        try:
            cursor.execute("SELECT lock_titles()")
        except psycopg2.errors.QueryCanceled as error:
            raise TransientStoreError(
                "other processes are writing, and this one is shutting down"
            ) from error
        finally:
            self._waits = False
        cursor.execute("SET LOCAL statement_timeout = %s", (_STATEMENT_TIMEOUT,))

    def _write_movies(self, records: Sequence[Record], cursor: Cursor) -> list[Stored]:
        """Write movies, and return the records that have changed."""
        by_title: dict[tuple[Site, str], list[Record]] = defaultdict(list)
        for record in records:
            by_title[_key(record.item)].append(record)
        cursor.execute(_LOCATE, _names(list(by_title)))
        rows = io.BytesIO()
        stored = []
        for group, (
            record_id,
            title_id,
            known_keys,
            by_hand,
            newer_id,
            is_known,
            verified_imdb_id,
            known,
        ) in zip(by_title.values(), cursor.fetchall(), strict=True):
            movie = None if known is None else msgspec.json.decode(known, type=Movie)
            before = movie
            encoded = b""
            for record in group:
                newer = (
                    record.item
                    if movie is None
                    else merged(record.item, movie, self._margin, latest())
                )
                if newer is not None:
                    movie = newer
                    encoded = record.encoded if newer is record.item else msgspec.json.encode(newer)
            if movie is None or movie is before:
                continue
            if movie.imdb_id is None and verified_imdb_id is not None:
                movie = replace(movie, imdb_id=verified_imdb_id)
            keys = hash_keys(movie)
            rows.write(_copy_row(record_id, title_id, known_keys is None, movie, keys, encoded))
            is_new = known_keys is None and not is_known
            is_changed = keys != known_keys and not by_hand
            was_older = newer_id is not None
            stored.append(
                Stored(
                    record_id=record_id,
                    title_id=title_id,
                    movie=movie,
                    is_new=is_new,
                    is_changed=is_changed or was_older,  # as it may be the newest of its title now
                    newer_id=newer_id,
                )
            )
        rows.seek(0)
        cursor.execute("TRUNCATE incoming, incoming_credits")
        cursor.copy_expert(_COPY, rows)
        cursor.execute(_WRITE_MOVIES)
        return stored

    def _match(self, cursor: Cursor, stored: Sequence[Stored]) -> None:
        """Give stored records to the titles that they belong to, and update the catalogue.

        A single record stays as it is stored when that takes too long or the database refuses it.
        """
        lacking = ""
        reason = ""
        try:
            with _savepoint(cursor):
                apply_plan(cursor, plan_titles(cursor, stored), stored)
        except _MATCH_ERRORS as error:
            if len(stored) != 1:
                raise  # the writer halves the batch; that of `open` is empty
            lacking = "not compared with other sites' titles"
            reason = in_one_line(str(error))
        if not lacking:
            return
        try:
            with _savepoint(cursor):
                apply_plan(cursor, Plan(), stored)
        except _MATCH_ERRORS:
            lacking = "not in the catalogue"
        movie = stored[0].movie
        logger.warning("%s %s is stored, but %s: %s", movie.site, movie.site_id, lacking, reason)


def read_scoreboard(
    url: str, limit: int | None = None, kind: TitleKind | None = None
) -> Iterator[ScoreboardRow]:
    """Yield the rows of `scoreboard_query`.

    A database without the tables has none. Raises the same as `connect`.
    """
    with (
        closing(connect(url)) as connection,
        errors_translated(),
        connection,
        connection.cursor("scoreboard") as cursor,
    ):
        try:
            cursor.execute(scoreboard_query('"C"', kind, limit))
            found = cursor.fetchmany(_ROWS_AT_ONCE)
        except psycopg2.errors.UndefinedTable:
            return
        names = [column.name for column in cursor.description or ()]
        while found:
            for row in found:
                yield ScoreboardRow.read(dict(zip(names, row, strict=True)))
            found = cursor.fetchmany(_ROWS_AT_ONCE)


def _tell_catalogue(
    connection: Connection, items: Sequence[Movie | Miss], news: Sequence[Fetched | Listed]
) -> None:
    """Write when the titles of items are due again, and what else the catalogue is told."""
    outcomes = [item.note for item in items if item.note is not None]
    with connection.cursor(cursor_factory=NamedTupleCursor) as cursor:
        for one in news:
            if isinstance(one, Listed):
                write_listed(cursor, one)
            else:
                outcomes.append(one)
        write_outcomes(cursor, outcomes)


def _write_aliases(cursor: Cursor, read: Sequence[Movie], stored: Sequence[Stored]) -> list[Stored]:
    """End the aliases that titles' ids were, and store those that led to their pages.

    The records to which that matters are matched again: those among `stored` are marked, and the
    others are returned.
    """
    names = _names([_key(movie) for movie in read])
    cursor.execute(_END_ALIASES, {**names, "read": [movie.scraped_at for movie in read]})
    concerned = set(cursor.fetchall())
    # Of several pages that one id led to, the last one counts. They are in the order of time.
    found = {
        (movie.site, movie.fetch.requested_id): movie
        for movie in read
        if movie.fetch is not None and movie.fetch.is_alias
    }
    aliases = {
        "sites": [site for site, _ in found],
        "old_ids": [old_id for _, old_id in found],
        "new_ids": [movie.site_id for movie in found.values()],
        "since": [movie.scraped_at for movie in found.values()],
    }
    cursor.execute(_WRITE_ALIASES, aliases)
    concerned.update(cursor.fetchall())
    for record in stored:
        if _key(record.movie) in concerned:
            record.is_changed = True
            concerned.discard(_key(record.movie))
    names = _names(sorted(concerned))
    return read_stored(cursor, names["sites"], names["site_ids"]) if concerned else []


def _cancel(connection: Connection) -> None:
    with suppress(psycopg2.Error):
        connection.cancel()


@contextmanager
def _savepoint(cursor: Cursor) -> Iterator[None]:
    """Roll back to the beginning of the block when it fails, but not the transaction."""
    cursor.execute("SAVEPOINT before")
    try:
        yield
    except psycopg2.Error:
        cursor.execute("ROLLBACK TO before")
        raise


def _key(item: Any) -> tuple[Site, str]:
    return item.site, item.site_id


def _names(keys: Sequence[tuple[Site, str]]) -> dict[str, list[Any]]:
    """Return the sites and site ids of titles as parameters of a statement."""
    return {"sites": [site for site, _ in keys], "site_ids": [site_id for _, site_id in keys]}


def _copy_row(
    record_id: int, title_id: int, is_new: bool, movie: Movie, keys: Sequence[int], item: bytes
) -> bytes:
    """Return a line of COPY's text format.

    Encoded JSON has no tabs or line breaks; its backslashes are doubled.
    """
    array = "{" + ",".join(map(str, keys)) + "}"
    columns = (record_id, title_id, is_new, movie.site, time_of(movie).isoformat(), array)
    return "\t".join(map(str, columns)).encode() + b"\t" + item.replace(b"\\", b"\\\\") + b"\n"
