"""Alarms, their history, and the baselines of pages: in the Redis that nodes share, or in a file on this machine."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from datetime import date, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar

import msgspec

from moviecrawler.clock import utc_now
from moviecrawler.monitors import keys
from moviecrawler.monitors.places import ANY, KNOWN_FROM_PAGES, NOTHING, WINDOW_PAGES, Example, merge

if TYPE_CHECKING:
    from collections.abc import Mapping

    from scrapy.settings import BaseSettings

    from moviecrawler.monitors.places import Baselines, Seen
    from moviecrawler.monitors.redis_hashes import RedisHashes
    from moviecrawler.monitors.sqlite_hashes import SqliteHashes

T = TypeVar("T")
Kind = Literal["coverage", "extraction_errors", "blocks", "stalled", "store", "dead_letters", "freshness"]
_READER = (
    "Is the value on such a page, under another name? Then moviecrawler/extract/{site}_title.py needs that place. "
)
FIRST_STEPS: dict[Kind, tuple[str, str]] = {
    "coverage": ("/quality#partial", f"{_READER}Is it gone from the site? Then: scrapy alarms --accept NAME"),
    "extraction_errors": ("/quality#errors", f"{_READER}The titles are tried again when they are due."),
    "blocks": (
        "/crawls#crawls",
        "Wait; the site is asked again by itself. If it happens daily, lower the site's budget.",
    ),
    "stalled": ("/crawls#running", "Does the machine reach the site? The end of the job's log says what it did last."),
    "store": (
        "/stores#totals",
        "Is the server up, its disk full, its password changed? The job's log has its own words.",
    ),
    "dead_letters": ("/stores#items", "Read the reason of each, and fetch or queue it again when its cause is gone."),
    "freshness": (
        "/#sites",
        "`scrapy catalogue status` says what is missing: more crawls, a larger budget or fewer titles.",
    ),
}
"""Of each kind: the part of the dashboard that shows the cause, and what to do first. The runbook, in scrapyd/README.md, has more."""
What = Literal["opened", "recovered", "accepted"]

FILE = "alarms.sqlite3"
MAX_EVENTS = 1000
"""Events that are kept."""
KEPT_SECONDS = 400 * 86_400
"""Seconds after the last page of a site until its baselines expire."""
_SILENT = "silent "
"""Prefix of a field's name in `keys.coverage`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Alarm:
    """A problem that an operator must know of. Times are in seconds since 1970."""

    name: str
    """`<kind>/<site>`, for some kinds with a subject: `coverage/imdb/year`."""
    kind: Kind
    site: str
    text: str
    """One sentence, with figures."""
    since: float
    seen_at: float
    """When a node last found that it stands."""
    told_at: float = 0.0
    """When the last message about it was sent; 0 when none was delivered yet."""

    @property
    def page(self) -> str:
        """The path of the part of the dashboard that shows the cause."""
        return FIRST_STEPS[self.kind][0]

    @property
    def todo(self) -> str:
        """What to do first."""
        return FIRST_STEPS[self.kind][1].format(site=self.site)


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """What happened to an alarm."""

    at: float
    what: What
    alarm: Alarm


class Day(NamedTuple):
    """Pages of a day: how many had a field, and how many were silent of it."""

    day: str
    """ISO 8601, UTC."""
    field: str
    pages: int
    present: int
    silent: int = 0


class AlarmStore:
    """The store. All methods block, raise AlarmStoreError, and may be called in any thread."""

    def __init__(self, hashes: RedisHashes | SqliteHashes) -> None:
        self._hashes = hashes

    # --- Alarms -------------------------------------------------------------------------------------------------------

    def fire(self, alarm: Alarm, reminder: float) -> Literal["opened", "reminder"] | None:
        """Record that an alarm stands; return which message this caller, and no other, is to send.

        There is one when the alarm opens, again when that was not delivered, and then every `reminder` seconds.
        """

        def change(found: list[dict[str, str]]) -> tuple[Alarm | None, Literal["opened", "reminder"] | None]:
            known = _decoded(found[0].get(alarm.name), Alarm)
            if known is not None and known.told_at + reminder > alarm.seen_at:
                now, due = replace(alarm, since=known.since, told_at=known.told_at), None
            else:
                now = replace(alarm, since=known.since if known else alarm.since, told_at=alarm.seen_at)
                due = "reminder" if known is not None and known.told_at else "opened"
            found[0][alarm.name] = _encoded(now)
            return known, due  # type: ignore[return-value]  # mypy widens the texts

        known, due = self._hashes.update([keys.OPEN], change, None)
        if known is None:
            self._add(Event(at=alarm.since, what="opened", alarm=alarm))
        return due

    def notification_failed(self, name: str) -> None:
        """Record that a message was not delivered: the next `fire` has it sent again."""

        def change(found: list[dict[str, str]]) -> None:
            known = _decoded(found[0].get(name), Alarm)
            if known is not None:
                found[0][name] = _encoded(replace(known, told_at=0.0))

        self._hashes.update([keys.OPEN], change, None)

    def recover(self, name: str, now: float, quiet: float, what: What = "recovered") -> Alarm | None:
        """End an alarm that no node has seen for `quiet` seconds; return it to the one caller that is to notify people."""

        def change(found: list[dict[str, str]]) -> Alarm | None:
            known = _decoded(found[0].get(name), Alarm)
            if known is not None and known.seen_at + quiet > now:
                return None
            found[0].pop(name, None)
            return known

        ended = self._hashes.update([keys.OPEN], change, None)
        if ended is not None:
            self._add(Event(at=now, what=what, alarm=ended))
        return ended

    def accept(self, name: str, now: float) -> Alarm | None:
        """End an alarm for an operator; a field's places are learnt anew. Return the alarm; None when there is none."""
        alarm = self.recover(name, now, float("-inf"), "accepted")
        if alarm is not None and alarm.kind == "coverage":
            self._forget(alarm.site, name.split("/", 2)[2])
        return alarm

    def open_alarms(self) -> list[Alarm]:
        """Return the open alarms, the oldest first."""
        found = self._hashes.read([keys.OPEN])[0].values()
        return sorted(filter(None, (_decoded(text, Alarm) for text in found)), key=lambda alarm: alarm.since)

    def history(self, limit: int = 100) -> list[Event]:
        """Return the latest events, newest first."""
        return list(filter(None, (_decoded(text, Event) for text in self._hashes.events(limit))))

    def _add(self, event: Event) -> None:
        self._hashes.add_event(_encoded(event), MAX_EVENTS)

    # --- Baselines of pages ---------------------------------------------------------------------------------------

    def baselines(self, site: str) -> Baselines:
        """Return which places pages of a site have."""
        known: Baselines = defaultdict(dict)
        for name, text in self._hashes.read([keys.places(site)])[0].items():
            group, _, field = name.rpartition("/")
            pages, silent, absent = map(float, text.split())
            known[group][field] = pages, silent, absent
        return dict(known)

    def latest(self, site: str) -> dict[str, str]:
        """Return by field the signs of the latest pages that should have its place, as in `Seen.marks`."""
        return self._hashes.read([keys.latest(site)])[0]

    def examples(self, site: str) -> dict[str, Example]:
        """Return by field the latest page that was silent of it."""
        found = self._hashes.read([keys.examples(site)])[0]
        return {field: example for field, text in found.items() if (example := _decoded(text, Example)) is not None}

    def learn(self, site: str, day: str, seen: Seen) -> None:
        """Add pages to the baselines of a site, and to the counts of a day (ISO 8601)."""

        def change(found: list[dict[str, str]]) -> None:
            places, latest, examples, coverage = found
            for group, fields in seen.baselines.items():
                for field, added in fields.items():
                    name = f"{group}/{field}"
                    pages, silent, absent = map(float, places[name].split()) if name in places else NOTHING
                    places[name] = " ".join(f"{figure:.6g}" for figure in merge((pages, silent, absent), added))
            for field, signs in seen.marks.items():
                latest[field] = (latest.get(field, "") + signs)[-WINDOW_PAGES:]
            examples.update({field: _encoded(example) for field, example in seen.examples.items()})
            counted = {**seen.having, **{_SILENT + field: number for field, number in seen.silent.items()}}
            for name, number in {**counted, "pages": seen.pages}.items():
                coverage[name] = str(int(coverage.get(name, 0)) + number)

        names = [keys.places(site), keys.latest(site), keys.examples(site), keys.coverage(site, day)]
        self._hashes.update(names, change, KEPT_SECONDS)

    def _forget(self, site: str, field: str) -> None:
        """Delete the baselines of a field: later pages may have its place or not."""

        def change(found: list[dict[str, str]]) -> None:
            places, latest = found
            for name in [name for name in places if name.rpartition("/")[2] == field]:
                del places[name]
            places[f"{ANY}/{field}"] = f"{KNOWN_FROM_PAGES} {KNOWN_FROM_PAGES} 0"
            latest.pop(field, None)

        self._hashes.update([keys.places(site), keys.latest(site)], change, KEPT_SECONDS)

    def coverage(self, site: str, since_day: str, until_day: str | None = None) -> list[Day]:
        """Return the counts of each day, in order, by default until today. 400 days are kept."""
        last = date.fromisoformat(until_day) if until_day else utc_now().date()
        first = max(date.fromisoformat(since_day), last - timedelta(seconds=KEPT_SECONDS))
        days = [(first + timedelta(days=number)).isoformat() for number in range((last - first).days + 1)]
        found = []
        for day, counted in zip(days, self._hashes.read([keys.coverage(site, day) for day in days]), strict=True):
            pages = int(counted.pop("pages", 0))
            found += [
                Day(day, field, pages, int(counted.get(field, 0)), int(counted.get(_SILENT + field, 0)))
                for field in sorted({name.removeprefix(_SILENT) for name in counted})
            ]
        return found

    def close(self) -> None:
        """Disconnect."""
        self._hashes.close()


def open_alarm_store(settings: BaseSettings | Mapping[str, Any]) -> AlarmStore:
    """Return the store of a project's settings (REDIS_URL, REDIS_PARAMS, DATA_DIR), which connects when it is used.

    Raises ConfigurationError.
    """
    url = settings.get("REDIS_URL")
    if url:
        from moviecrawler.monitors.redis_hashes import RedisHashes  # noqa: PLC0415 - not needed without Redis
        from moviecrawler.redis_client import redis_parameters  # noqa: PLC0415

        return AlarmStore(RedisHashes(url, redis_parameters(settings)))
    from moviecrawler.monitors.sqlite_hashes import SqliteHashes  # noqa: PLC0415 - not needed with Redis

    return AlarmStore(SqliteHashes(Path(settings["DATA_DIR"]) / FILE))


def _encoded(value: object) -> str:
    return msgspec.json.encode(value).decode()


def _decoded(text: str | None, type_: type[T]) -> T | None:
    """Return decoded JSON; None for no text, and for one that is damaged or of another version."""
    try:
        return None if text is None else msgspec.json.decode(text, type=type_)
    except (msgspec.DecodeError, RecursionError):
        return None
