"""Alarms, their history and what is known of pages in Redis, for all nodes that share it."""

from __future__ import annotations

from contextlib import contextmanager
from datetime import date, timedelta
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Literal

import msgspec
import redis.exceptions

from moviecrawler.monitors import keys
from moviecrawler.monitors.books import KEPT_FOR, MOST_EVENTS, Alarm, Book, BookError, Day, Event, today
from moviecrawler.monitors.places import ANY, KNOWN_FROM, MOST_PAGES, WINDOW, Example
from moviecrawler.redis_client import connect_blocking, describe_error

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from moviecrawler.monitors.books import What
    from moviecrawler.monitors.places import Levels, Seen

_SILENT = "silent "


class RedisBook(Book):
    """The book of all nodes that share a Redis."""

    def __init__(self, url: str, parameters: Mapping[str, Any] | None = None) -> None:
        self._client = connect_blocking(url, **{**(parameters or {}), "decode_responses": True})
        self._scripts: dict[str, Any] = {}

    def fire(self, alarm: Alarm, reminder: float) -> Literal["opened", "reminder"] | None:
        """See `Book`."""
        event = Event(at=alarm.since, what="opened", alarm=alarm)
        arguments = [alarm.name, _json(alarm), alarm.seen_at, reminder, _json(event), MOST_EVENTS]
        return self._run("fire", [keys.OPEN, keys.HISTORY], arguments) or None

    def untell(self, name: str) -> None:
        """See `Book`."""
        self._run("untell", [keys.OPEN], [name])

    def recover(self, name: str, now: float, quiet: float, what: What = "recovered") -> Alarm | None:
        """See `Book`."""
        arguments = [name, now, max(quiet, -1e12), what, MOST_EVENTS]
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
            found = self._client.hgetall(keys.places(site))
        levels: Levels = {}
        for name, figures in found.items():
            group, _, field = name.rpartition("/")
            pages, silent, absent = map(float, figures.split())
            levels.setdefault(group, {})[field] = pages, silent, absent
        return levels

    def latest(self, site: str) -> dict[str, str]:
        """See `Book`."""
        with _errors_translated():
            found: dict[str, str] = self._client.hgetall(keys.latest(site))
            return found

    def examples(self, site: str) -> dict[str, Example]:
        """See `Book`."""
        with _errors_translated():
            found = self._client.hgetall(keys.examples(site))
        return {field: msgspec.json.decode(text, type=Example) for field, text in found.items()}

    def learn(self, site: str, day: str, seen: Seen) -> None:
        """See `Book`."""
        pages = {
            "levels": {
                f"{group}/{field}": level for group, fields in seen.levels.items() for field, level in fields.items()
            },
            "marks": seen.marks,
            "examples": {field: msgspec.json.encode(example).decode() for field, example in seen.examples.items()},
            "coverage": {
                **seen.having,
                **{_SILENT + field: number for field, number in seen.silent.items()},
                "pages": seen.pages,
            },
        }
        of_site = [of(site) for of in (keys.places, keys.latest, keys.examples)]
        self._run(
            "learn",
            [*of_site, keys.coverage(site, day), keys.former_levels(site)],
            [MOST_PAGES, WINDOW, KEPT_FOR, msgspec.json.encode(pages)],
        )

    def forget(self, site: str, field: str) -> None:
        """See `Book`."""
        key = keys.places(site)
        with _errors_translated():
            gone = [name for name in self._client.hkeys(key) if name.rpartition("/")[2] == field]
            pipe = self._client.pipeline(transaction=True)
            if gone:
                pipe.hdel(key, *gone)
            pipe.hset(key, f"{ANY}/{field}", f"{KNOWN_FROM} {KNOWN_FROM} 0")
            pipe.hdel(keys.latest(site), field)
            pipe.execute()

    def coverage(self, site: str, since_day: str, until_day: str | None = None) -> list[Day]:
        """See `Book`."""
        days = _days(since_day, until_day or today())
        found = []
        with _errors_translated():
            pipe = self._client.pipeline(transaction=False)
            for day in days:
                pipe.hgetall(keys.coverage(site, day))
            for day, counted in zip(days, pipe.execute(), strict=True):
                pages = int(counted.pop("pages", 0))
                found += [
                    Day(day, field, pages, int(counted.get(field, 0)), int(counted.get(_SILENT + field, 0)))
                    for field in sorted({name.removeprefix(_SILENT) for name in counted})
                ]
        return found

    def close(self) -> None:
        """See `Book`."""
        self._client.close()

    def _run(self, name: str, keys_: list[str], arguments: list[Any]) -> Any:
        with _errors_translated():
            if name not in self._scripts:
                text = files(__package__).joinpath(f"{name}.lua").read_text("utf-8")
                self._scripts[name] = self._client.register_script(text)
            return self._scripts[name](keys=keys_, args=arguments)


def _days(since: str, until: str) -> list[str]:
    """Return the days of which something may be kept: two are given, as ISO 8601, and none lies further back than 400."""
    last = date.fromisoformat(until)
    first = max(date.fromisoformat(since), last - timedelta(seconds=KEPT_FOR))
    return [(first + timedelta(days=number)).isoformat() for number in range((last - first).days + 1)]


def _json(value: Alarm | Event) -> str:
    return msgspec.json.encode(value).decode()


@contextmanager
def _errors_translated() -> Iterator[None]:
    try:
        yield
    except redis.exceptions.RedisError as error:
        raise BookError(
            f"alarms and what is known of pages can't be read or written: {describe_error(error)}"
        ) from error
