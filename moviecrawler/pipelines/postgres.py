"""Movies in PostgreSQL: normalised tables, the history of scores, and one row a title with every site's scores.

A batch is copied into a temporary table, from which a few statements bring all tables up to date; then its titles are settled. README.md
says which locks that takes. The tables are described in `database/sql/schema.sql`.
"""

from __future__ import annotations

import io
import logging
import time
import uuid
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import msgspec
import psycopg2
from scrapy.exceptions import NotConfigured

from moviecrawler.catalogue.merging import merged
from moviecrawler.catalogue.scoreboard import ID_FIELDS, VALUE_FIELDS, ScoreboardRow
from moviecrawler.clock import latest
from moviecrawler.database.connection import REJECTIONS, connect, errors_translated, in_one_line, read_url, told_by
from moviecrawler.database.schema import update_schema
from moviecrawler.database.sql import read_sql
from moviecrawler.database.titles import (
    SETTLE_BESIDE_OTHERS,
    WRITE_ALONE,
    WRITE_BESIDE_OTHERS,
    Plan,
    Stored,
    apply_plan,
    hash_keys,
    is_part,
    plan_titles,
    read_stored,
    still_holds,
)
from moviecrawler.errors import ConfigurationError, TransientStoreError
from moviecrawler.fields import TYPES
from moviecrawler.items import Miss, Movie, TitleKind
from moviecrawler.pipelines.base import BatchingPipeline
from moviecrawler.pipelines.store import Limits, Store, time_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

    from psycopg2.extensions import connection as Connection  # noqa: N812 - psycopg2 writes its classes in small letters
    from psycopg2.extensions import cursor as Cursor  # noqa: N812 - as above
    from scrapy.settings import BaseSettings

    from moviecrawler.pipelines.store import Record

logger = logging.getLogger(__name__)
_T = TypeVar("_T")

_SESSION = read_sql("session.sql")
_LOCATE = read_sql("locate.sql")
_RIGHTS = read_sql("rights.sql")
_COLUMNS = [name for name in TYPES if name not in {"genres", "credits", "scores", "amounts", "offers"}]
"""Of `records`: the fields of a movie that have no table of their own."""
_WRITE_RECORDS = partial(
    read_sql("write_records.sql").format,
    columns=", ".join(f'"{name}"' for name in _COLUMNS),
    values=", ".join(f'm."{name}"' for name in _COLUMNS),
)
_REPLACED = ("match_keys", *(name for name in _COLUMNS if name not in {"site", "site_id"}))
_WRITE_MOVIES = ";\n".join(
    (
        "ANALYZE incoming",
        # In this order: who adds a record waits for whoever changes the same one.
        _WRITE_RECORDS(is_new="true", action="NOTHING"),
        _WRITE_RECORDS(
            is_new="false", action="UPDATE SET " + ", ".join(f'"{name}" = excluded."{name}"' for name in _REPLACED)
        ),
        "ANALYZE written",
        read_sql("write_scores.sql"),
        read_sql("write_parts.sql"),
    )
)
_WRITE_MISSES = read_sql("write_misses.sql")
_END_MISSES = read_sql("end_misses.sql")
_SHOWN = {
    "values": ", ".join(f"s.{field}::float" for field in VALUE_FIELDS.values()),
    "ids": ", ".join(f"s.{field}" for site, field in ID_FIELDS.items() if site != "imdb"),
}
_SCOREBOARD = read_sql("scoreboard.sql").format(
    first=" ".join(f"WHEN s.{site}_fetched_at IS NOT NULL THEN '{site}'::site" for site in ID_FIELDS), **_SHOWN
)
_OF_PARTS = partial(read_sql("scoreboard_of_parts.sql").format, **_SHOWN)
_SCOREBOARDS: dict[TitleKind | None, str] = {
    "season": _OF_PARTS(view="season_scores", name="'Season ' || s.season", imdb_id="NULL", episode="NULL::integer"),
    "episode": _OF_PARTS(view="episode_scores", name="s.imdb_id", imdb_id="s.imdb_id", episode="s.episode"),
}
"""The queries of the kinds that have a view of their own, by kind."""
_UNJOINED = (
    "INSERT INTO unjoined (record_id, owner) SELECT unnest(%s::bigint[]), %s ORDER BY 1"
    " ON CONFLICT (record_id) DO UPDATE SET owner = excluded.owner, since = excluded.since"
)
_LEFT_UNJOINED = (
    "SELECT record_id, site, site_id FROM records WHERE record_id IN (SELECT record_id FROM unjoined"
    " WHERE (owner = %(owner)s OR since < now() - interval '2 minutes') AND record_id <> ALL (%(but)s) LIMIT %(most)s)"
    " ORDER BY site, site_id FOR NO KEY UPDATE"
)
_FORGET_NAMES = "UPDATE titles SET title = NULL WHERE title_id = ANY (%s)"
_JOINED = "DELETE FROM unjoined WHERE record_id = ANY (%s) AND owner = %s"
_COPY = "COPY incoming (record_id, title_id, is_new, match_keys, item) FROM STDIN"
_LOCK_RECORDS = (
    "SELECT record_id FROM records JOIN unnest(%(sites)s::site[], %(site_ids)s::text[]) AS a (site, site_id) USING (site, site_id)"
    " ORDER BY site, site_id FOR NO KEY UPDATE OF records"
)
_CONFLICTS = (
    psycopg2.errors.DeadlockDetected,
    psycopg2.errors.UniqueViolation,
    psycopg2.errors.ForeignKeyViolation,
)
"""What two processes that write at the same time may meet with. Alone, the last two are an item's fault."""
_GIVEN_UP = (psycopg2.errors.QueryCanceled, *REJECTIONS)
"""For what a record is neither compared nor in the catalogue, though it is stored."""

_UNJOINED_POLL_SECONDS = 60.0
"""Seconds between two looks for records that nobody has compared."""
_MAX_UNJOINED = 500
"""Such records that are compared beside a batch."""
_MAX_PLANS = 3
"""Times that titles are compared without keeping others from writing, when these have written the same ones meanwhile."""


class PostgresPipeline(BatchingPipeline):
    """Writes movies and misses to the database that DATABASE_URL names."""

    # A batch costs as much as a hundred titles. IMDb's datasets fill large ones, pages never do within `batch_seconds`.
    default_limits = Limits(batch_items=2_000, batch_bytes=8 * 1024 * 1024, buffer_items=5_000)

    @classmethod
    def store_from_settings(cls, settings: BaseSettings) -> PostgresStore:
        """Read DATABASE_URL and FRESHNESS_MARGIN (seconds)."""
        url = settings.get("DATABASE_URL")
        if not url:
            raise NotConfigured
        return PostgresStore(url, settings.getfloat("FRESHNESS_MARGIN", 3600))


class _Written(NamedTuple):
    """What became of movies that were to be written."""

    records: dict[int, Stored]
    """That were written, by their ids."""
    overtaken: list[Record]
    """Movies that another process has stored at the same moment, for the first time. They are to be written once more."""


class PostgresStore(Store):
    """The tables of one database, which any number of processes may write together."""

    name = "postgres"

    def __init__(self, url: str, margin: float = 0) -> None:
        read_url(url)
        self._url = url
        self._margin = margin
        self._connection: Connection | None = None
        self._owner = uuid.uuid4().hex
        self._next_look = 0.0  # for records that nobody has compared, by `time.monotonic()`

    def open(self) -> None:
        """Connect, and bring the schema up to date."""
        connection = connect(self._url)
        try:
            _prepare(connection, lambda: self.hurried)
        except BaseException:
            connection.close()
            raise
        self._connection = connection

    def write(self, records: Sequence[Record]) -> None:
        """Store the records, and then decide which titles they are.

        Processes store movies beside each other: each locks the records that it writes, and all do so in the same order. One at a time
        brings titles, the catalogue and misses after what was stored. While titles are compared with each other, nothing is locked.
        """
        for record in records:
            time_of(record.item)  # which all of them must have
        movies = [record for record in records if isinstance(record.item, Movie)]
        misses = [record for record in records if isinstance(record.item, Miss)]
        parts = _each_title_once(movies)
        stored: dict[int, Stored] = {}
        reread: set[int] = set()  # new titles of which the batch has a second reading
        try:
            with errors_translated():
                if misses:
                    # Before a list's row of the same title makes its record newer, which is no reading of its page.
                    self._transaction(SETTLE_BESIDE_OTHERS, partial(self._write_misses, misses))
                while parts:
                    written = self._transaction(WRITE_BESIDE_OTHERS, partial(self._write_movies, parts.pop(0)))
                    for record_id, later in written.records.items():
                        if earlier := stored.get(record_id):
                            later.is_changed |= earlier.is_changed
                            if earlier.is_new:
                                reread.add(later.title_id)
                    stored |= written.records
                    if written.overtaken:
                        parts.insert(0, written.overtaken)
                if movies:
                    self._transaction(SETTLE_BESIDE_OTHERS, partial(self._end_misses, movies, reread))
                changed = [record_id for record_id, record in stored.items() if record.is_changed]
                self._join([*stored.values(), *self._left_unjoined(changed)])
        except BaseException:
            self._next_look = 0.0  # some of the records may be stored, and not compared: the next try compares them
            raise

    def close(self) -> None:
        """Disconnect."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _connected(self) -> Connection:
        if self._connection is None or self._connection.closed:
            try:
                self.open()
            except ConfigurationError as error:
                # All was right when the crawl began: whatever is wrong by now, no item is to blame.
                raise TransientStoreError(str(error)) from error
        assert self._connection is not None  # noqa: S101 - `open` has made it
        return self._connection

    def _transaction(self, lock: str, work: Callable[[Cursor], _T]) -> _T:
        """Return what `work` does in a transaction beside other writers'; once more and alone, when it has met with one of them."""
        connection = self._connected()
        try:
            with connection, connection.cursor() as cursor:
                cursor.execute(lock)
                return work(cursor)
        except _CONFLICTS as error:
            logger.debug("Another process wrote the same at the same time: %s", in_one_line(str(error)))
        with connection, connection.cursor() as cursor:
            cursor.execute(WRITE_ALONE)
            return work(cursor)

    def _write_movies(self, records: Sequence[Record], cursor: Cursor) -> _Written:
        """Write movies, each title once."""
        names = _names([record.item for record in records])
        cursor.execute(_LOCK_RECORDS, names)
        locked = {record_id for (record_id,) in cursor.fetchall()}
        cursor.execute(_LOCATE, names)
        rows = io.BytesIO()
        new: dict[int, Record] = {}
        overtaken: list[Record] = []
        stored: dict[int, Stored] = {}
        for record, (record_id, title_id, known_keys, by_hand, is_known, verified_imdb_id, known) in zip(
            records, cursor.fetchall(), strict=True
        ):
            if known_keys is None:
                new[record_id] = record
            elif record_id not in locked:  # it has come since
                overtaken.append(record)
                continue
            movie, encoded = record.item, record.encoded
            if known is not None:
                now_known = merged(movie, msgspec.json.decode(known, type=Movie), self._margin, latest())
                if now_known is None:
                    continue
                if now_known is not movie:
                    movie, encoded = now_known, msgspec.json.encode(now_known)
            if movie.imdb_id is None and verified_imdb_id is not None:
                movie = replace(movie, imdb_id=verified_imdb_id)
            keys = hash_keys(movie)
            rows.write(_copy_row(record_id, title_id, known_keys is None, keys, encoded))
            stored[record_id] = Stored(
                record_id=record_id,
                title_id=title_id,
                movie=movie,
                is_new=known_keys is None and not is_known,
                is_changed=is_part(movie) or (keys != known_keys and not by_hand),
            )
        rows.seek(0)
        cursor.copy_expert(_COPY, rows)
        cursor.execute(_WRITE_MOVIES)
        written = {record_id: stored[record_id] for (record_id,) in cursor.fetchall()}
        if changed := [record_id for record_id, record in written.items() if record.is_changed]:
            cursor.execute(_UNJOINED, (changed, self._owner))
        overtaken += [record for record_id, record in new.items() if record_id not in written]
        return _Written(written, overtaken)

    def _write_misses(self, records: Sequence[Record], cursor: Cursor) -> None:
        for part in _each_title_once(records):
            cursor.execute(_WRITE_MISSES, {"misses": f"[{b','.join(record.encoded for record in part).decode()}]"})

    def _end_misses(self, records: Sequence[Record], reread: Collection[int], cursor: Cursor) -> None:
        """Note which titles are no longer missed, as they were read; give `reread` ones their latest names when they are joined."""
        if reread:
            cursor.execute(_FORGET_NAMES, (list(reread),))
        read = [record.item for record in records if record.item.source != "list"]
        cursor.execute(_END_MISSES, {**_names(read), "read": [movie.scraped_at for movie in read]})

    def _left_unjoined(self, but: Collection[int]) -> list[Stored]:
        """Return records that this process could not compare, or one that has died; looked for now and then."""
        if time.monotonic() < self._next_look:
            return []

        def take(cursor: Cursor) -> list[Stored]:
            cursor.execute(_LEFT_UNJOINED, {"owner": self._owner, "most": _MAX_UNJOINED, "but": list(but)})
            found = cursor.fetchall()
            if not found:
                self._next_look = time.monotonic() + _UNJOINED_POLL_SECONDS
                return []
            cursor.execute(_UNJOINED, ([record_id for record_id, _, _ in found], self._owner))
            return read_stored(cursor, [site for _, site, _ in found], [site_id for _, _, site_id in found])

        return self._transaction(WRITE_BESIDE_OTHERS, take)

    def _join(self, records: Sequence[Stored]) -> None:
        """Give stored records to the titles that they belong to, and bring the catalogue after them.

        One for which that takes too long, or that the database refuses there, stays as it is stored.
        """
        if not records:
            return
        try:
            self._join_at_once(records)
        except _GIVEN_UP as error:
            if len(records) > 1:
                middle = len(records) // 2
                self._join(records[:middle])
                self._join(records[middle:])
                return
            self._give_up(records[0], error)
        self._next_look = time.monotonic() + _UNJOINED_POLL_SECONDS

    def _give_up(self, record: Stored, error: psycopg2.Error) -> None:
        lacking = "not compared with other sites' titles"
        try:
            self._transaction(SETTLE_BESIDE_OTHERS, partial(self._apply, Plan(), [record]))
        except _GIVEN_UP:
            lacking = "not in the catalogue"
            self._transaction(SETTLE_BESIDE_OTHERS, partial(self._end_joining, [record]))
        message = "%s %s is stored, but %s: %s"
        logger.warning(message, record.movie.site, record.movie.site_id, lacking, in_one_line(str(error)))

    def _join_at_once(self, records: Sequence[Stored]) -> None:
        connection = self._connected()
        for _ in range(_MAX_PLANS):
            with _without_transaction(connection), connection.cursor() as cursor:
                plan = plan_titles(cursor, records)
            if self._transaction(SETTLE_BESIDE_OTHERS, partial(self._apply, plan, records)):
                return
        # Others write the same titles all the time: for once, they wait.
        self._transaction(WRITE_ALONE, lambda cursor: self._apply(plan_titles(cursor, records), records, cursor))

    def _apply(self, plan: Plan, records: Sequence[Stored], cursor: Cursor) -> bool:
        """Give records to titles as planned; return False when what that was decided by is no longer so."""
        if not still_holds(cursor, plan):
            return False
        apply_plan(cursor, plan, records)
        self._end_joining(records, cursor)
        return True

    def _end_joining(self, records: Sequence[Stored], cursor: Cursor) -> None:
        # One whose keys are as before may be one that an earlier try has stored and not compared.
        cursor.execute(_JOINED, ([record.record_id for record in records if record.is_changed], self._owner))


def read_scoreboard(url: str, limit: int | None = None, kind: TitleKind | None = None) -> list[ScoreboardRow]:
    """Return the scoreboard's rows of a kind, or of all but seasons; all or the first `limit`, in the order in which they are shown.

    There are none in a database without the tables. Raises what `connect` raises.
    """
    with closing(connect(url)) as connection, errors_translated(), connection, connection.cursor() as cursor:
        cursor.execute("SET statement_timeout = '10min'")
        try:
            cursor.execute(_SCOREBOARDS.get(kind, _SCOREBOARD), {"limit": limit, "kind": kind})
        except psycopg2.errors.UndefinedTable:
            return []
        names = [column.name for column in cursor.description or ()]
        return [ScoreboardRow(**dict(zip(names, row, strict=True))) for row in cursor.fetchall()]


def _prepare(connection: Connection, is_ending: Callable[[], bool]) -> None:
    with errors_translated():
        try:
            update_schema(connection, is_ending)
            with connection, connection.cursor() as cursor:
                cursor.execute(_RIGHTS)
                refused = cursor.fetchall()[0][0]
                if not refused:
                    cursor.execute(_SESSION)
        except (psycopg2.ProgrammingError, psycopg2.errors.ReadOnlySqlTransaction) as error:
            raise ConfigurationError(
                f"the database that DATABASE_URL names doesn't let us make our tables: {told_by(error)}"
            ) from error
    if refused:
        user = connection.info.user
        raise ConfigurationError(
            f"the database that DATABASE_URL names doesn't let {user} {refused}; grant it, or name a user who may write"
        )


@contextmanager
def _without_transaction(connection: Connection) -> Iterator[None]:
    """Let each statement be one of its own, so that nothing is held between them, however long that is."""
    connection.autocommit = True
    try:
        yield
    finally:
        if not connection.closed:
            connection.autocommit = False


def _names(movies: Sequence[Movie]) -> dict[str, list[Any]]:
    """Return the sites of movies, and their ids there, as arguments of a statement."""
    return {"sites": [movie.site for movie in movies], "site_ids": [movie.site_id for movie in movies]}


def _each_title_once(records: Iterable[Record]) -> list[list[Record]]:
    """Return the records in parts that name no title twice; the items of one title stay in order."""
    parts: list[dict[tuple[str, str | None], Record]] = []
    for record in records:
        key = (record.item.site, record.item.site_id)
        part = next((part for part in parts if key not in part), None)
        if part is None:
            part = {}
            parts.append(part)
        part[key] = record
    return [list(part.values()) for part in parts]


def _copy_row(record_id: int, title_id: int, is_new: bool, keys: Sequence[int], item: bytes) -> bytes:
    """Return a line of COPY's text format. JSON holds no tab or line break as such; its backslashes are doubled."""
    array = "{" + ",".join(map(str, keys)) + "}"
    return f"{record_id}\t{title_id}\t{is_new}\t{array}\t".encode() + item.replace(b"\\", b"\\\\") + b"\n"
