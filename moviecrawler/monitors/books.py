"""Alarms, their history and what is known of pages, and what keeps them: a Redis, for all nodes, or a file of this machine."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

from moviecrawler.clock import utc_now
from moviecrawler.errors import MovieCrawlerError

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

    from moviecrawler.monitors.places import Example, Levels, Seen

Kind = Literal["coverage", "extraction_errors", "blocks", "stalled", "store", "dead_letters", "freshness"]
What = Literal["opened", "recovered", "accepted"]

FILE = "alarms.sqlite3"
MOST_EVENTS = 1000
"""That are kept."""
KEPT_FOR = 400 * 86_400
"""Seconds."""


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
    """How many of a day's pages had a field, and how many were silent of it."""

    day: str
    """ISO 8601, UTC."""
    field: str
    pages: int
    present: int
    silent: int = 0


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
        """Return which places pages of a site have."""

    @abstractmethod
    def latest(self, site: str) -> dict[str, str]:
        """Return the signs of the latest pages that were to have the place of each field, as in `Seen.marks`."""

    @abstractmethod
    def examples(self, site: str) -> dict[str, Example]:
        """Return the latest page that was silent of each field."""

    @abstractmethod
    def learn(self, site: str, day: str, seen: Seen) -> None:
        """Add pages to what is known of a site, and to what was counted of a day (ISO 8601)."""

    @abstractmethod
    def forget(self, site: str, field: str) -> None:
        """Forget which pages have the place of a field: those that come may have it or not."""

    @abstractmethod
    def coverage(self, site: str, since_day: str, until_day: str | None = None) -> list[Day]:
        """Return what was counted each day, in order, until and with today if nothing else is said; 400 days are kept."""

    @abstractmethod
    def close(self) -> None:
        """Disconnect."""

    def accept(self, name: str, now: float) -> Alarm | None:
        """End an alarm because an operator says so; a field's places are learnt anew. Return it, None when there is none."""
        alarm = self.recover(name, now, float("-inf"), "accepted")
        if alarm is not None and alarm.kind == "coverage":
            self.forget(alarm.site, name.split("/", 2)[2])
        return alarm


def today() -> str:
    """Return the day (ISO 8601, UTC)."""
    return utc_now().date().isoformat()


def open_book(settings: BaseSettings) -> Book:
    """Return the book of a project's settings (REDIS_URL, REDIS_PARAMS, DATA_DIR), which connects with its first use.

    Raises ConfigurationError.
    """
    url = settings.get("REDIS_URL")
    if url:
        from moviecrawler.monitors.redis_book import RedisBook  # noqa: PLC0415 - only shared alarms need Redis' client
        from moviecrawler.redis_client import redis_parameters  # noqa: PLC0415

        return RedisBook(url, redis_parameters(settings))
    from moviecrawler.monitors.file_book import FileBook  # noqa: PLC0415 - only alarms of one machine need SQLite

    return FileBook(Path(settings["DATA_DIR"]))
