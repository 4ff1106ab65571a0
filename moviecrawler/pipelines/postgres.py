"""Movies in PostgreSQL: normalised tables, the history of scores, and one row a title with every site's scores.

A batch is one transaction: it is copied into a temporary table, from which a few statements bring all tables up to
date. The tables are described in `sql/migrations/`.
"""

from __future__ import annotations

import io
import logging
import time
import uuid
from contextlib import closing, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import psycopg2
from scrapy.exceptions import NotConfigured

from moviecrawler.catalogue.merging import is_partial, merged
from moviecrawler.catalogue.scoreboard import ScoreboardRow
from moviecrawler.catalogue.stored import encode_movie, read_movie
from moviecrawler.clock import latest
from moviecrawler.database.connection import connect, errors_translated, in_one_line, read_url
from moviecrawler.database.migrations import migrate
from moviecrawler.database.sql import read_sql
from moviecrawler.database.titles import (
    Stored,
    apply_plan,
    hash_keys,
    is_part,
    plan_titles,
    read_stored,
    settle,
    still_holds,
)
from moviecrawler.errors import ConfigurationError, RejectedError, TransientStoreError
from moviecrawler.items import Miss, Movie, TitleKind
from moviecrawler.pipelines.base import BatchingPipeline
from moviecrawler.pipelines.store import Limits, Store

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence
    from datetime import datetime

    from psycopg2.extensions import connection as Connection  # noqa: N812 - psycopg2 writes its classes in small letters
    from psycopg2.extensions import cursor as Cursor  # noqa: N812 - as above
    from scrapy.settings import BaseSettings

    from moviecrawler.pipelines.store import Record

logger = logging.getLogger(__name__)

_SESSION = read_sql("session.sql")
_LOCATE = read_sql("locate.sql")
_RIGHTS = read_sql("rights.sql")
_WRITE_SCORES = read_sql("write_scores.sql")
_WRITE_MOVIES = ";\n".join(
    (
        read_sql("write_movies.sql"),
        _WRITE_SCORES.format(scores="scores", history="score_history", kind="score_kind"),
        _WRITE_SCORES.format(scores="finer_scores", history="finer_score_history", kind="finer_score_kind"),
        read_sql("write_parts.sql"),
    )
)
_WRITE_MISSES = read_sql("write_misses.sql")
_SCOREBOARD = read_sql("scoreboard.sql")
_OF_PARTS = read_sql("scoreboard_of_parts.sql")
_SCOREBOARDS: dict[TitleKind | None, str] = {
    "season": _OF_PARTS.format(
        view="season_scores", name="'Season ' || v.season", imdb_id="NULL", episode="NULL::integer"
    ),
    "episode": _OF_PARTS.format(view="episode_scores", name="v.imdb_id", imdb_id="v.imdb_id", episode="v.episode"),
}
"""Of what stands in a view of its own."""
_UNJOINED = (
    "INSERT INTO unjoined (record_id, owner) SELECT unnest(%s::bigint[]), %s"
    " ON CONFLICT (record_id) DO UPDATE SET owner = excluded.owner, since = excluded.since"
)
_LEFT_UNJOINED = (
    "SELECT record_id, site, site_id FROM unjoined JOIN records USING (record_id)"
    " WHERE (owner = %(owner)s OR since < now() - interval '2 minutes') AND record_id <> ALL (%(but)s) LIMIT %(most)s"
)
_JOINED = "DELETE FROM unjoined WHERE record_id = ANY (%s) AND owner = %s"
_COPY = "COPY incoming (record_id, title_id, read_at, tells_more, match_keys, item) FROM STDIN"

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


class _Given(NamedTuple):
    """A movie to be written."""

    movie: Movie
    encoded: bytes
    keys: list[int]
    """`hash_keys` of it."""


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
            _prepare(connection)
        except BaseException:
            connection.close()
            raise
        self._connection = connection

    def write(self, records: Sequence[Record]) -> None:
        """Store the records in one transaction, and then decide which titles they are.

        Only one process at a time writes: so what needs no other's rows is done before. While titles are compared with each other, none
        is kept from writing.
        """
        for record in records:
            if isinstance(record.item, Movie) and (record.item.scraped_at is None or record.item.site_id is None):
                raise RejectedError("a movie without site_id or scraped_at can't be stored")
        connection = self._connected()
        changed: dict[int, Stored] = {}
        keys = {id(record.item): hash_keys(record.item) for record in records if isinstance(record.item, Movie)}
        with errors_translated():
            with connection, connection.cursor() as cursor:
                _lock_titles(cursor)
                for number, part in enumerate(_each_title_once(records)):
                    if number:
                        cursor.execute("TRUNCATE incoming, written, incoming_credits")
                    movies = [_Given(r.item, r.encoded, keys[id(r.item)]) for r in part if isinstance(r.item, Movie)]
                    changed |= self._write_movies(cursor, movies)
                    _write_misses(cursor, [r.encoded for r in part if isinstance(r.item, Miss)])
                if changed:
                    cursor.execute(_UNJOINED, (list(changed), self._owner))
            self._join([*changed.values(), *self._left_unjoined(connection, changed)])

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

    def _write_movies(self, cursor: Cursor, movies: Sequence[_Given]) -> dict[int, Stored]:
        """Write movies, each title once; return by their ids the records that are new, or whose keys have changed."""
        if not movies:
            return {}
        cursor.execute(
            _LOCATE,
            {
                "sites": [given.movie.site for given in movies],
                "site_ids": [given.movie.site_id for given in movies],
                "partial": [is_partial(given.movie) for given in movies],
                "scraped": [given.movie.scraped_at for given in movies],
                "margin": self._margin,
            },
        )
        rows = io.BytesIO()
        changed: dict[int, Stored] = {}
        for (given, given_json, given_keys), (
            record_id,
            title_id,
            known_keys,
            by_hand,
            is_known,
            verified_imdb_id,
            known,
        ) in zip(movies, cursor.fetchall(), strict=True):
            movie, encoded = given, given_json
            tells_more = True
            if known is not None:
                now_known = merged(given, read_movie(known), self._margin, latest())
                tells_more = now_known is not None
                if now_known is not None:
                    movie, encoded = now_known, encode_movie(now_known)
            if movie.imdb_id is None and verified_imdb_id is not None:
                movie = replace(movie, imdb_id=verified_imdb_id)
            keys = given_keys if movie is given else hash_keys(movie)
            rows.write(
                _copy_row(
                    record_id, title_id, None if given.source == "list" else given.scraped_at, tells_more, keys, encoded
                )
            )
            if keys != known_keys and not by_hand and not is_part(movie):
                changed[record_id] = Stored(
                    record_id=record_id,
                    title_id=title_id,
                    movie=movie,
                    is_new=known_keys is None and not is_known,
                )
        rows.seek(0)
        cursor.copy_expert(_COPY, rows)
        cursor.execute(_WRITE_MOVIES, {"margin": self._margin})
        written = [record_id for (record_id,) in cursor.fetchall()]
        settle(cursor, (), [record_id for record_id in written if record_id not in changed])
        return {record_id: changed[record_id] for record_id in written if record_id in changed}

    def _left_unjoined(self, connection: Connection, but: Collection[int]) -> list[Stored]:
        """Return records that this process could not compare, or one that has died; looked for now and then."""
        if time.monotonic() < self._next_look:
            return []
        with connection, connection.cursor() as cursor:
            cursor.execute(_LEFT_UNJOINED, {"owner": self._owner, "most": _MAX_UNJOINED, "but": list(but)})
            found = cursor.fetchall()
            if not found:
                self._next_look = time.monotonic() + _UNJOINED_POLL_SECONDS
                return []
            cursor.execute(_UNJOINED, ([record_id for record_id, _, _ in found], self._owner))
            return read_stored(cursor, [site for _, site, _ in found], [site_id for _, _, site_id in found])

    def _join(self, records: Sequence[Stored]) -> None:
        """Give stored records to the titles that they belong to; one that takes too long stays a title of its own."""
        if not records:
            return
        self._next_look = 0.0  # until all is done
        try:
            self._join_at_once(records)
        except psycopg2.errors.QueryCanceled as error:
            if len(records) > 1:
                middle = len(records) // 2
                self._join(records[:middle])
                self._join(records[middle:])
                return
            message = "%s %s is stored, but not compared with other sites' titles, which took too long: %s"
            logger.warning(message, records[0].movie.site, records[0].movie.site_id, in_one_line(str(error)))
            with self._connected() as connection, connection.cursor() as cursor:
                _lock_titles(cursor)
                settle(cursor, (), [records[0].record_id])
                cursor.execute(_JOINED, ([records[0].record_id], self._owner))
        self._next_look = time.monotonic() + _UNJOINED_POLL_SECONDS

    def _join_at_once(self, records: Sequence[Stored]) -> None:
        connection = self._connected()
        for _ in range(_MAX_PLANS):
            with _without_transaction(connection), connection.cursor() as cursor:
                plan = plan_titles(cursor, records)
            with connection, connection.cursor() as cursor:
                _lock_titles(cursor)
                if still_holds(cursor, plan):
                    apply_plan(cursor, plan, records)
                    cursor.execute(_JOINED, ([record.record_id for record in records], self._owner))
                    return
        with connection, connection.cursor() as cursor:
            # Others write the same titles all the time: for once, they wait.
            _lock_titles(cursor)
            apply_plan(cursor, plan_titles(cursor, records), records)
            cursor.execute(_JOINED, ([record.record_id for record in records], self._owner))


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


def _prepare(connection: Connection) -> None:
    with errors_translated():
        try:
            migrate(connection)
            with connection, connection.cursor() as cursor:
                cursor.execute(_RIGHTS)
                refused = cursor.fetchall()[0][0]
                if not refused:
                    cursor.execute(_SESSION)
        except (psycopg2.ProgrammingError, psycopg2.errors.ReadOnlySqlTransaction) as error:
            raise ConfigurationError(
                f"the database that DATABASE_URL names doesn't let us make our tables: {in_one_line(str(error))}"
            ) from error
    if refused:
        user = connection.info.user
        raise ConfigurationError(
            f"the database that DATABASE_URL names doesn't let {user} {refused}; grant it, or name a user who may write"
        )


def _lock_titles(cursor: Cursor) -> None:
    """Wait until no other process writes. Raises TransientStoreError when that takes too long: no item is to blame."""
    try:
        cursor.execute("SELECT lock_titles()")
    except psycopg2.errors.QueryCanceled as error:
        raise TransientStoreError(
            f"other processes have been writing all the time: {in_one_line(str(error))}"
        ) from error


@contextmanager
def _without_transaction(connection: Connection) -> Iterator[None]:
    """Let each statement be one of its own, so that nothing is held between them, however long that is."""
    connection.autocommit = True
    try:
        yield
    finally:
        if not connection.closed:
            connection.autocommit = False


def _write_misses(cursor: Cursor, misses: Sequence[bytes]) -> None:
    if misses:
        cursor.execute(_WRITE_MISSES, {"misses": f"[{b','.join(misses).decode()}]"})


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


def _copy_row(
    record_id: int, title_id: int, read_at: datetime | None, tells_more: bool, keys: Sequence[int], item: bytes
) -> bytes:
    """Return a line of COPY's text format. JSON holds no tab or line break as such; its backslashes are doubled."""
    array = "{" + ",".join(map(str, keys)) + "}"
    when = r"\N" if read_at is None else read_at.isoformat()
    return f"{record_id}\t{title_id}\t{when}\t{tells_more}\t{array}\t".encode() + item.replace(b"\\", b"\\\\") + b"\n"
