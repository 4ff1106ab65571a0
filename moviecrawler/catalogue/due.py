"""What is due: which titles of a site are to be fetched next, for the queue that feeds them.

All functions raise TransientStoreError.
"""

from __future__ import annotations

import asyncio
import random
import time
from datetime import timedelta
from typing import TYPE_CHECKING, TypeVar

from moviecrawler.basics.clock import utc_now, utc_text
from moviecrawler.basics.errors import ConfigurationError, TransientStoreError
from moviecrawler.catalogue.expected import expected_titles
from moviecrawler.catalogue.outcomes import LISTED_SOURCES
from moviecrawler.catalogue.sql import read_sql
from moviecrawler.frontier.serialisation import DueTitle
from moviecrawler.matching.slugs import title_slug_keys
from moviecrawler.matching.titles import DAYS_REMEMBERED
from moviecrawler.sites import ID_SITE

if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from datetime import datetime

    from moviecrawler.database.connection import Cursor, Database, Row
    from moviecrawler.frontier.contract import Backend, RunName
    from moviecrawler.items import Site
    from moviecrawler.matching.facts import IdSource, TitleFacts

DUE = read_sql("due.sql")
_UNFOUND = read_sql("unfound.sql")
_LISTED = read_sql("listed.sql")
_PUT_OFF = (
    "UPDATE title_sites SET next_due = %s"
    " WHERE site = %s AND site_id IS NULL AND title_id = ANY (%s)"
)
_HOLD = (
    "INSERT INTO feeds AS f (site, queue, seen_at) VALUES (%s, %s, now())"
    " ON CONFLICT (site) DO UPDATE SET queue = excluded.queue, seen_at = excluded.seen_at"
    " WHERE f.queue = excluded.queue OR f.seen_at < now() - interval '2 minutes' RETURNING queue"
)
_MAX_SEARCHED = 500
"""Most titles whose ids are searched in one step."""
_SEARCH_INTERVAL = timedelta(days=7)
"""How long a title that no list names is not searched again."""
Result = TypeVar("Result")
_HOLD_SECONDS = 30.0
"""Seconds after which it is noted again that a queue is fed."""


class Feed:
    """What feeds the queue of a run with what is due on its site."""

    def __init__(self, database: Database, backend: Backend, run: RunName) -> None:
        self._database = database
        self._backend = backend
        self._run = run
        self._held_at = -_HOLD_SECONDS

    async def hold(self) -> None:
        """Note periodically that the queue is fed.

        Raises ConfigurationError when another one is.
        """
        if time.monotonic() - self._held_at >= _HOLD_SECONDS:
            refusal = await self._call(hold_feed, await self._queue())
            if refusal is not None:
                raise ConfigurationError(refusal)
            self._held_at = time.monotonic()

    async def select(self, size: int, open_titles: Collection[int]) -> list[DueTitle]:
        """Return at most `size` titles that are due and not open, in the order to fetch them."""
        terms = {"open_titles": open_titles, "now": utc_now()}
        titles = await self._call(select_due, size, **terms)
        has_more = not titles
        while has_more and not titles:
            titles, has_more = await self._call(search_unfound, size, **terms)
        return titles

    async def end(self) -> None:
        """Let another queue be fed at once, as the run is over."""
        await self._call(end_feed, await self._queue())

    async def _queue(self) -> str:
        return f"run {self._run.name} in {await self._backend.place(self._run.site)}"

    async def _call(
        self, function: Callable[..., Result], *args: object, **terms: object
    ) -> Result:
        site = self._run.site
        try:
            return await asyncio.to_thread(function, self._database, site, *args, **terms)
        except ConfigurationError as error:
            # The database was as it should be when the crawl began, and may soon be again.
            raise TransientStoreError(str(error)) from error


def hold_feed(database: Database, site: Site, queue: str) -> str | None:
    """Note that a queue is fed with what is due on a site.

    Return why not, when another queue was fed less than two minutes ago.
    """
    with database.transaction() as cursor:
        cursor.execute(_HOLD, (site, queue))
        if cursor.rowcount:
            return None
        cursor.execute("SELECT queue, seen_at FROM feeds WHERE site = %s", (site,))
        other = cursor.fetchone()
    return (
        f"what is due on {site} goes into another queue: {other.queue}, last at"
        f" {utc_text(other.seen_at)}; use that one, or begin two minutes after its crawls have"
        f" ended (this one is {queue})"
    )


def end_feed(database: Database, site: Site, queue: str) -> None:
    """Note that a queue is fed no more."""
    with database.transaction() as cursor:
        cursor.execute("DELETE FROM feeds WHERE site = %s AND queue = %s", (site, queue))


def select_due(
    database: Database, site: Site, size: int, *, open_titles: Collection[int], now: datetime
) -> list[DueTitle]:
    """Return at most `size` titles that are due, and whose id on the site is known.

    They come in the order in which to fetch them, without those of `open_titles`.
    """
    with database.transaction() as cursor:
        cursor.execute(DUE, due_values(site, size, open_titles, now))
        rows = cursor.fetchall()
        unsure = [row.title_id for row in rows if not _is_sure(site, row)]
        expected = expected_titles(cursor, site, unsure)
    return [
        DueTitle(
            title_id=row.title_id,
            ids=[row.site_id],
            evidence=row.id_source if row.title_id in expected else None,
            expected=expected.get(row.title_id),
            boosted=row.queue == "boosted",
        )
        for row in rows
    ]


def due_values(
    site: Site, size: int, open_titles: Collection[int], now: datetime
) -> dict[str, object]:
    """Return the parameters of `sql/due.sql`."""
    chance = random.random()  # noqa: S311 - no secret
    return {"site": site, "size": size, "open": list(open_titles), "now": now, "chance": chance}


def search_unfound(
    database: Database, site: Site, size: int, *, open_titles: Collection[int], now: datetime
) -> tuple[list[DueTitle], bool]:
    """Return at most `size` titles whose id on the site is unknown.

    They are titles for which lists name candidate ids. Returns also whether any title was searched.
    Titles without candidate ids are put off for a week.
    """
    if site == ID_SITE:
        return [], False  # its ids don't contain the title
    with database.transaction() as cursor:
        terms = {
            "site": site,
            "now": now,
            "size": _MAX_SEARCHED,
            "open": list(open_titles),
            "again": _SEARCH_INTERVAL,
        }
        cursor.execute(_UNFOUND, terms)
        searched = [title_id for (title_id,) in cursor.fetchall()]
        expected = expected_titles(cursor, site, searched)
        candidates = _listed_ids(cursor, site, expected, now)
        due: list[DueTitle] = []
        put_off = []
        for title_id in searched:
            if len(due) == size:
                break
            sources = candidates.get(title_id)
            if sources is None:
                put_off.append(title_id)
                continue
            due.append(
                DueTitle(
                    title_id=title_id,
                    boosted=False,
                    ids=list(sources),
                    evidence=min(sources.values(), key=LISTED_SOURCES.index),
                    expected=expected[title_id],
                )
            )
        if put_off:
            # An import locks the same rows in another order: without this, a deadlock.
            cursor.execute("SELECT lock_titles()")
            cursor.execute(_PUT_OFF, (now + _SEARCH_INTERVAL, site, put_off))
    return due, bool(searched)


def _listed_ids(
    cursor: Cursor, site: Site, expected: dict[int, TitleFacts], now: datetime
) -> dict[int, dict[str, IdSource]]:
    """Return the candidate ids of each title and their sources, those of its year first."""
    named = [
        (title_id, key) for title_id, title in expected.items() for key in title_slug_keys(title)
    ]
    terms = {
        "site": site,
        "titles": [title_id for title_id, _ in named],
        "keys": [key for _, key in named],
        "years": [expected[title_id].year for title_id, _ in named],
        "since": now - timedelta(days=DAYS_REMEMBERED),
    }
    cursor.execute(_LISTED, terms)
    candidates: dict[int, dict[str, IdSource]] = {}
    for title_id, site_id, source in cursor.fetchall():
        candidates.setdefault(title_id, {})[site_id] = source
    return candidates


def _is_sure(site: Site, row: Row) -> bool:
    """Return whether the page needs no comparison with the title.

    An example is a record that was matched already.
    """
    return row.id_verified or site == ID_SITE or row.id_source in {None, "joined"}
