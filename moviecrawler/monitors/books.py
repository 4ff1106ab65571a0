"""Where alarms, their history and the levels of coverage are kept: in Redis, for all nodes, or in a file of this machine."""

from __future__ import annotations

import sqlite3
from abc import ABC, abstractmethod
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import date, timedelta
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import msgspec
import redis
import redis.asyncio
from scrapy.utils.misc import load_object

from moviecrawler.clock import utc_now
from moviecrawler.errors import ConfigurationError, MovieCrawlerError
from moviecrawler.frontier.options import redis_parameters
from moviecrawler.frontier.queue import trouble_of
from moviecrawler.monitors import keys
from moviecrawler.monitors.coverage import MOST_PAGES, merge

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from scrapy.settings import BaseSettings

    from moviecrawler.monitors.coverage import Levels

Kind = Literal["coverage", "extraction_errors", "blocks", "stalled", "store", "dead_letters", "freshness"]
What = Literal["opened", "recovered", "accepted"]

FILE = "alarms.sqlite3"
_EVENTS = 1000
"""That are kept."""
_KEPT_FOR = 400 * 86_400
_WAIT = 10.0
_ANSWER_WITHIN = 5.0
"""Seconds for the file's lock, and for Redis."""


class BookError(MovieCrawlerError):
    """The alarms can't be read or written now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Alarm:
    """Something that an operator has to know. Times are in seconds since 1970."""

    name: str
    """`<kind>/<site>`, and for some what it is about: `coverage/imdb/year`."""
    kind: Kind
    site: str
    text: str
    """One sentence, with figures."""
    since: float
    seen_at: float
    """When it was last seen to stand, by any node."""
    told_at: float = 0.0
    """When the last message about it went out; 0 when none could be delivered yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """What happened to an alarm."""

    at: float
    what: What
    alarm: Alarm


class Day(NamedTuple):
    """How many of a day's pages had a field."""

    day: str
    """ISO 8601, UTC."""
    field: str
    pages: int
    present: int


class Book(ABC):
    """All methods block, and raise BookError; they may be called from any thread, by one at a time."""

    @abstractmethod
    def fire(self, alarm: Alarm, reminder: float) -> Literal["opened", "reminder"] | None:
        """Say that an alarm stands; return whether this caller, and no other, is to tell people.

        That is when it opens, again when it was not told, and every `reminder` seconds.
        """

    @abstractmethod
    def untell(self, name: str) -> None:
        """Take back that an alarm was told, as the message could not be delivered."""

    @abstractmethod
    def recover(self, name: str, now: float, quiet: float, what: What = "recovered") -> Alarm | None:
        """End an alarm that nobody has seen standing for `quiet` seconds; return it to the one caller who is to tell people."""

    @abstractmethod
    def open_alarms(self) -> list[Alarm]:
        """Return the alarms that stand, the oldest first."""

    @abstractmethod
    def history(self, limit: int = 100) -> list[Event]:
        """Return the latest events, newest first."""

    @abstractmethod
    def levels(self, site: str) -> Levels:
        """Return what pages of a site usually have."""

    @abstractmethod
    def learn(self, site: str, learnt: Levels, day: str, counted: Mapping[str, int], pages: int) -> None:
        """Add pages to a site's levels, and to what was counted of a day (ISO 8601): field → pages that had it, of `pages`."""

    @abstractmethod
    def forget(self, site: str, field: str) -> None:
        """Forget what is usual of a field."""

    @abstractmethod
    def coverage(self, site: str, since_day: str, until_day: str | None = None) -> list[Day]:
        """Return what was counted each day, in order, until and with today if nothing else is said; 400 days are kept."""

    @abstractmethod
    def close(self) -> None:
        """Disconnect."""

    def accept(self, name: str, now: float) -> Alarm | None:
        """End an alarm because an operator says so; a field's level begins anew. Return it, None when there is none."""
        alarm = self.recover(name, now, float("-inf"), "accepted")
        if alarm is not None and alarm.kind == "coverage":
            self.forget(alarm.site, name.split("/", 2)[2])
        return alarm


def open_book(settings: BaseSettings) -> Book:
    """Return the book of a project's settings (REDIS_URL, REDIS_PARAMS, DATA_DIR), which connects with its first use.

    Raises ConfigurationError.
    """
    url = settings.get("REDIS_URL")
    return RedisBook(url, redis_parameters(settings)) if url else FileBook(Path(settings["DATA_DIR"]))


class RedisBook(Book):
    """The book of all nodes that share a Redis."""

    def __init__(self, url: str, parameters: Mapping[str, Any] | None = None) -> None:
        given = dict(parameters or {})
        named = load_object(given.pop("redis_cls", redis.Redis))
        self._is_cluster = issubclass(named, redis.RedisCluster | redis.asyncio.RedisCluster)
        usual = {"socket_connect_timeout": _ANSWER_WITHIN, "socket_timeout": _ANSWER_WITHIN}
        self._url, self._parameters = url, {**usual, **given, "decode_responses": True}
        self._connected: Any = None
        if not self._is_cluster:
            try:
                self._connected = redis.Redis.from_url(url, **self._parameters)
            except ValueError as error:
                raise ConfigurationError(f"REDIS_URL is no Redis URL: {error}") from None
        self._scripts: dict[str, Any] = {}

    def fire(self, alarm: Alarm, reminder: float) -> Literal["opened", "reminder"] | None:
        """See `Book`."""
        event = Event(at=alarm.since, what="opened", alarm=alarm)
        arguments = [alarm.name, _json(alarm), alarm.seen_at, reminder, _json(event), _EVENTS]
        return self._run("fire", [keys.OPEN, keys.HISTORY], arguments) or None

    def untell(self, name: str) -> None:
        """See `Book`."""
        self._run("untell", [keys.OPEN], [name])

    def recover(self, name: str, now: float, quiet: float, what: What = "recovered") -> Alarm | None:
        """See `Book`."""
        arguments = [name, now, max(quiet, -1e12), what, _EVENTS]
        ended = self._run("recover", [keys.OPEN, keys.HISTORY], arguments)
        return msgspec.json.decode(ended, type=Alarm) if ended else None

    def open_alarms(self) -> list[Alarm]:
        """See `Book`."""
        with _errors_translated():
            found = self._client.hvals(keys.OPEN)
        return sorted((msgspec.json.decode(one, type=Alarm) for one in found), key=lambda alarm: alarm.since)

    def history(self, limit: int = 100) -> list[Event]:
        """See `Book`."""
        with _errors_translated():
            return [msgspec.json.decode(one, type=Event) for one in self._client.lrange(keys.HISTORY, 0, limit - 1)]

    def levels(self, site: str) -> Levels:
        """See `Book`."""
        with _errors_translated():
            found = self._client.hgetall(keys.levels(site))
        levels: Levels = {}
        for name, figures in found.items():
            group, _, field = name.rpartition("/")
            pages, having = map(float, figures.split())
            levels.setdefault(group, {})[field] = pages, having
        return levels

    def learn(self, site: str, learnt: Levels, day: str, counted: Mapping[str, int], pages: int) -> None:
        """See `Book`."""
        added = [
            part
            for group, fields in learnt.items()
            for field, figures in fields.items()
            for part in (f"{group}/{field}", *figures)
        ]
        if added:
            self._run("learn", [keys.levels(site)], [MOST_PAGES, _KEPT_FOR, *added])
        if pages:
            with _errors_translated():
                pipe = self._client.pipeline(transaction=True)
                key = keys.coverage(site, day)
                for field, number in {**counted, "pages": pages}.items():
                    pipe.hincrby(key, field, number)
                pipe.expire(key, _KEPT_FOR)
                pipe.execute()

    def forget(self, site: str, field: str) -> None:
        """See `Book`."""
        with _errors_translated():
            gone = [name for name in self._client.hkeys(keys.levels(site)) if name.rpartition("/")[2] == field]
            if gone:
                self._client.hdel(keys.levels(site), *gone)

    def coverage(self, site: str, since_day: str, until_day: str | None = None) -> list[Day]:
        """See `Book`."""
        days = _days(since_day, until_day or _today())
        found = []
        with _errors_translated():
            pipe = self._client.pipeline(transaction=False)
            for day in days:
                pipe.hgetall(keys.coverage(site, day))
            for day, counted in zip(days, pipe.execute(), strict=True):
                pages = int(counted.pop("pages", 0))
                found += [Day(day, field, pages, int(number)) for field, number in sorted(counted.items())]
        return found

    def close(self) -> None:
        """See `Book`."""
        if self._connected is not None:
            self._connected.close()

    @property
    def _client(self) -> Any:
        """The client; that of a cluster asks its nodes when it is made."""
        if self._connected is None:
            self._connected = redis.RedisCluster.from_url(self._url, **self._parameters)
        return self._connected

    def _run(self, name: str, keys_: list[str], arguments: list[Any]) -> Any:
        with _errors_translated():
            if name not in self._scripts:
                text = files(__package__).joinpath(f"{name}.lua").read_text("utf-8")
                self._scripts[name] = self._client.register_script(text)
            return self._scripts[name](keys=keys_, args=arguments)


_SCHEMA = """
CREATE TABLE IF NOT EXISTS alarms (name TEXT PRIMARY KEY, alarm BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS events (number INTEGER PRIMARY KEY, event BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS levels (
    site TEXT NOT NULL, category TEXT NOT NULL, field TEXT NOT NULL, pages REAL NOT NULL, present REAL NOT NULL,
    PRIMARY KEY (site, category, field)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS coverage (
    site TEXT NOT NULL, day TEXT NOT NULL, field TEXT NOT NULL, pages INTEGER NOT NULL, present INTEGER NOT NULL,
    PRIMARY KEY (site, day, field)
) WITHOUT ROWID;
"""
_COUNT = """
INSERT INTO coverage VALUES (?, ?, ?, ?, ?)
ON CONFLICT DO UPDATE SET pages = pages + excluded.pages, present = present + excluded.present
"""


class FileBook(Book):
    """The book of the processes that share a DATA_DIR: an SQLite file."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / FILE
        self._connection: sqlite3.Connection | None = None

    def fire(self, alarm: Alarm, reminder: float) -> Literal["opened", "reminder"] | None:
        """See `Book`."""
        with self._transaction() as connection:
            known = self._known(connection, alarm.name)
            said: Literal["opened", "reminder"] | None = None
            if known is None:
                said = "opened"
                self._add_event(connection, Event(at=alarm.since, what="opened", alarm=alarm))
            elif known.told_at + reminder <= alarm.seen_at:
                said = "reminder" if known.told_at else "opened"
            self._keep(
                connection,
                replace(
                    alarm,
                    since=known.since if known else alarm.since,
                    told_at=alarm.seen_at if said or known is None else known.told_at,
                ),
            )
        return said

    def untell(self, name: str) -> None:
        """See `Book`."""
        with self._transaction() as connection:
            known = self._known(connection, name)
            if known is not None:
                self._keep(connection, replace(known, told_at=0.0))

    def recover(self, name: str, now: float, quiet: float, what: What = "recovered") -> Alarm | None:
        """See `Book`."""
        with self._transaction() as connection:
            known = self._known(connection, name)
            if known is None or known.seen_at + quiet > now:
                return None
            connection.execute("DELETE FROM alarms WHERE name = ?", (name,))
            self._add_event(connection, Event(at=now, what=what, alarm=known))
        return known

    def open_alarms(self) -> list[Alarm]:
        """See `Book`."""
        with self._transaction() as connection:
            found = connection.execute("SELECT alarm FROM alarms").fetchall()
        return sorted((msgspec.json.decode(one, type=Alarm) for (one,) in found), key=lambda alarm: alarm.since)

    def history(self, limit: int = 100) -> list[Event]:
        """See `Book`."""
        with self._transaction() as connection:
            found = connection.execute("SELECT event FROM events ORDER BY number DESC LIMIT ?", (limit,)).fetchall()
        return [msgspec.json.decode(one, type=Event) for (one,) in found]

    def levels(self, site: str) -> Levels:
        """See `Book`."""
        levels: Levels = {}
        with self._transaction() as connection:
            query = "SELECT category, field, pages, present FROM levels WHERE site = ?"
            for group, field, pages, having in connection.execute(query, (site,)):
                levels.setdefault(group, {})[field] = pages, having
        return levels

    def learn(self, site: str, learnt: Levels, day: str, counted: Mapping[str, int], pages: int) -> None:
        """See `Book`."""
        with self._transaction() as connection:
            for group, fields in learnt.items():
                for field, added in fields.items():
                    known = connection.execute(
                        "SELECT pages, present FROM levels WHERE site = ? AND category = ? AND field = ?",
                        (site, group, field),
                    ).fetchone()
                    merged = merge(known or (0.0, 0.0), *added)
                    connection.execute("REPLACE INTO levels VALUES (?, ?, ?, ?, ?)", (site, group, field, *merged))
            if pages:
                rows = [(site, day, field, pages, number) for field, number in counted.items()]
                connection.executemany(_COUNT, rows)
                connection.execute("DELETE FROM coverage WHERE day < date(?, '-400 days')", (day,))

    def forget(self, site: str, field: str) -> None:
        """See `Book`."""
        with self._transaction() as connection:
            connection.execute("DELETE FROM levels WHERE site = ? AND field = ?", (site, field))

    def coverage(self, site: str, since_day: str, until_day: str | None = None) -> list[Day]:
        """See `Book`."""
        query = """
            SELECT day, field, pages, present FROM coverage WHERE site = ? AND day BETWEEN ? AND ? ORDER BY day, field
        """
        with self._transaction() as connection:
            return [Day(*row) for row in connection.execute(query, (site, since_day, until_day or _today()))]

    def close(self) -> None:
        """See `Book`."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with _errors_translated():
            if self._connection is None:
                connection = sqlite3.connect(self._path, timeout=_WAIT, isolation_level=None, check_same_thread=False)
                try:
                    connection.executescript(_SCHEMA)
                except BaseException:
                    connection.close()
                    raise
                self._connection = connection
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
            except BaseException:
                # SQLite itself has rolled back after some errors, such as a full disk.
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise
            self._connection.execute("COMMIT")

    @staticmethod
    def _known(connection: sqlite3.Connection, name: str) -> Alarm | None:
        row = connection.execute("SELECT alarm FROM alarms WHERE name = ?", (name,)).fetchone()
        return None if row is None else msgspec.json.decode(row[0], type=Alarm)

    @staticmethod
    def _keep(connection: sqlite3.Connection, alarm: Alarm) -> None:
        connection.execute("REPLACE INTO alarms VALUES (?, ?)", (alarm.name, msgspec.json.encode(alarm)))

    @staticmethod
    def _add_event(connection: sqlite3.Connection, event: Event) -> None:
        number = connection.execute("INSERT INTO events (event) VALUES (?)", (msgspec.json.encode(event),)).lastrowid
        assert number is not None  # noqa: S101 - a row was inserted
        connection.execute("DELETE FROM events WHERE number <= ?", (number - _EVENTS,))


def _today() -> str:
    return utc_now().date().isoformat()


def _days(since: str, until: str) -> list[str]:
    """Return the days of which something may be kept: two are given, as ISO 8601, and none lies further back than 400."""
    last = date.fromisoformat(until)
    first = max(date.fromisoformat(since), last - timedelta(seconds=_KEPT_FOR))
    return [(first + timedelta(days=number)).isoformat() for number in range((last - first).days + 1)]


def _json(value: Alarm | Event) -> str:
    return msgspec.json.encode(value).decode()


@contextmanager
def _errors_translated() -> Iterator[None]:
    try:
        yield
    except (redis.exceptions.RedisError, redis.exceptions.RedisClusterException, sqlite3.Error) as error:
        raise BookError(f"alarms and levels of coverage can't be read or written: {trouble_of(error)}") from error
