"""Requests and seeds that were set aside, as they are in Redis: dead letters, for people and their programs."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from moviecrawler.frontier.keys import Keys
from moviecrawler.frontier.report import read_runs
from moviecrawler.sites import SITES

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable
    from typing import Self

    from moviecrawler.frontier.runs import RunReport
    from moviecrawler.items import Site

_SHOWN = ("url", "callback", "errback", "cb_kwargs", "priority", "depth", "created_at", "retries")
"""What is shown of a request."""
_FIELDS = ("version", "url", "site", *_SHOWN[1:4], "expects", *_SHOWN[4:])
"""What an entry begins with, as `serialisation.Envelope` has it."""
_CURSOR = re.compile(r"[0-9]{1,19}", re.ASCII)


@dataclass(slots=True, kw_only=True)
class DeadLetter:
    """A request or a seed that was set aside."""

    site: Site
    run: str
    id: str
    reason: str
    at: float | None
    """Seconds since 1970; None for a seed."""
    entry: str
    """What stood in the queue, with what is not UTF-8 escaped."""

    @property
    def keys(self) -> Keys:
        """The keys of its run."""
        return Keys(self.site, self.run)

    @property
    def request(self) -> dict[str, Any] | None:
        """What the entry says of the request, as far as it can be read; None when it is none."""
        try:
            values = msgspec.json.decode(self.entry[35:], type=list[Any])
        except (msgspec.DecodeError, RecursionError):
            return None
        fields = dict(zip(_FIELDS, values, strict=False))
        if len(fields) < len(_FIELDS) or not isinstance(fields["url"], str):
            return None
        return {name: fields[name] for name in _SHOWN} | {"deliveries": self.entry[1:3]}


class _Head(msgspec.Struct):
    """What stands before an entry that was set aside."""

    reason: str
    at: float | None = None


async def dead_letters(client: Any, site: Site | None = None, run: str | None = None) -> AsyncIterator[DeadLetter]:
    """Yield what was set aside, in no order; in all runs, or in those of that site and of that name."""
    for report in await read_runs(client, site, run):
        if report.dead_letters:
            keys = Keys(report.site, report.run)
            async for letter_id, letter in client.hscan_iter(keys.dead_letters):
                yield _dead_letter(keys, letter_id, letter)


class Place(NamedTuple):
    """Where a page of dead letters begins: Redis' own cursor into those of a run."""

    site: Site
    run: str
    cursor: int

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return what `str` has made a text of. Raises ValueError."""
        site, _, rest = text.partition("/")
        run, _, cursor = rest.partition("/")
        if site not in SITES or not _CURSOR.fullmatch(cursor):
            raise ValueError(f"{text[:80]!r} is no place among dead letters")
        return cls(site, run, int(cursor))

    def __str__(self) -> str:
        return "/".join(map(str, self))


async def page_of_dead_letters(
    client: Any, runs: Iterable[RunReport], place: Place | None, size: int
) -> tuple[list[DeadLetter], Place | None]:
    """Return what was set aside in those runs, from a place on, and the place after it; None for the end.

    That is `size` of them or some more; all pages together have each that is there all the time.
    """
    found: dict[tuple[Keys, str], DeadLetter] = {}
    for site, run in sorted((report.site, report.run) for report in runs if report.dead_letters):
        if place is not None and (site, run) < (place.site, place.run):
            continue
        if len(found) >= size:
            return list(found.values()), Place(site, run, 0)
        keys = Keys(site, run)
        cursor = place.cursor if place is not None and (site, run) == (place.site, place.run) else 0
        while True:
            cursor, letters = await client.hscan(keys.dead_letters, cursor, count=size)
            for letter_id, letter in letters.items():
                one = _dead_letter(keys, letter_id, letter)
                found[keys, one.id] = one
            if not cursor:
                break
            if len(found) >= size:
                return list(found.values()), Place(site, run, cursor)
    return list(found.values()), None


def _dead_letter(keys: Keys, letter_id: bytes, letter: bytes) -> DeadLetter:
    first, _, entry = letter.partition(b"\n")
    try:
        head = msgspec.json.decode(first, type=_Head)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        head = _Head(reason="set aside by another program")
    return DeadLetter(
        site=keys.site,
        run=keys.run,
        id=letter_id.decode(errors="backslashreplace"),
        reason=head.reason,
        at=None if head.at is None else head.at / 1000,
        entry=entry.decode(errors="backslashreplace"),
    )


async def drop(client: Any, keys: Keys, letter_id: str) -> bool:
    """Forget a dead letter; return whether it was there. What it was for stays counted as failed."""
    return bool(await client.hdel(keys.dead_letters, letter_id))
