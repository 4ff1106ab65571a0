"""Claims: leases by which workers share the titles of a site.

All functions raise TransientStoreError.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from moviecrawler.catalogue.outcomes import LISTED_SOURCES, Fetched, write_ends
from moviecrawler.catalogue.sql import read_sql
from moviecrawler.catalogue.wanted import wanted_titles
from moviecrawler.matching.slugs import title_slug_keys
from moviecrawler.matching.titles import DAYS_REMEMBERED
from moviecrawler.sites import ID_SITE

if TYPE_CHECKING:
    from collections.abc import Collection
    from datetime import datetime

    from moviecrawler.database.connection import Database
    from moviecrawler.items import Site
    from moviecrawler.matching.facts import IdSource, TitleFacts

CLAIM = read_sql("claim.sql")
_UNFOUND = read_sql("unfound.sql")
_LISTED = read_sql("listed.sql")
MAX_CLAIMS = 5
"""Claims of a title without an outcome, after which it counts as failed: its page may be what kills
the workers."""
_MAX_SEARCHED = 500
"""Most titles whose ids are searched in one step."""
_SEARCH_INTERVAL = timedelta(days=7)
"""How long a title that no list names is not searched again."""


@dataclass(slots=True, kw_only=True)
class Claim:
    """A title that this worker has to fetch from a site."""

    title_id: int
    ids: list[str]
    """Its id there, or its candidate ids, the likeliest first."""
    evidence: IdSource | None
    """Where the ids come from; None for one that needs no check."""
    wanted: TitleFacts | None
    """Facts that the page is compared with before it is accepted; None exactly when `evidence`
    is."""
    boosted: bool = False


def claim(
    database: Database, site: Site, size: int, *, worker: str, lease: timedelta, now: datetime
) -> list[Claim]:
    """Claim at most `size` titles whose id on the site is known.

    They come in the order in which to fetch them. Workers that claim at the same time get different
    titles. A title that was claimed MAX_CLAIMS times without an outcome counts as failed. Raises
    TransientStoreError also when all due titles are locked, such as by an import.
    """
    values = claim_values(site, size, worker, now, lease)
    with database.transaction() as cursor:
        cursor.execute(CLAIM, values)
        if not cursor.rowcount:
            # Titles that are due may all be locked: then this raises an error.
            cursor.execute(CLAIM.replace("SKIP LOCKED", "NOWAIT"), values)
        found = cursor.fetchall()
        if claimed_too_often := [row.title_id for row in found if row.claims > MAX_CLAIMS]:
            write_ends(
                cursor,
                [
                    Fetched(site=site, outcome="error", at=now, asked_id=None, title_id=each)
                    for each in claimed_too_often
                ],
            )
    rows = [row for row in found if row.claims <= MAX_CLAIMS]
    with database.transaction() as cursor:
        wanted = wanted_titles(
            cursor, site, [row.title_id for row in rows if not _is_sure(site, row)]
        )
    return [
        Claim(
            title_id=row.title_id,
            ids=[row.site_id],
            evidence=row.id_source if row.title_id in wanted else None,
            wanted=wanted.get(row.title_id),
            boosted=row.queue == "boosted",
        )
        for row in rows
    ]


def claim_values(
    site: Site, size: int, worker: str, now: datetime, lease: timedelta
) -> dict[str, Any]:
    """Return the parameters of `sql/claim.sql`."""
    chance = random.random()  # noqa: S311 - no secret
    return {
        "site": site,
        "size": size,
        "worker": worker,
        "now": now,
        "until": now + lease,
        "chance": chance,
    }


def claim_unfound(
    database: Database, site: Site, size: int, *, worker: str, lease: timedelta, now: datetime
) -> tuple[list[Claim], bool]:
    """Claim at most `size` titles whose id on the site is unknown.

    They are titles for which lists name candidate ids. Returns also whether any title was searched.
    Titles without candidate ids are put off for a week.
    """
    if site == ID_SITE:
        return [], False  # its ids don't contain the title
    with database.transaction() as cursor:
        since = now - timedelta(days=DAYS_REMEMBERED)
        values = {
            "site": site,
            "now": now,
            "size": _MAX_SEARCHED,
            "since": since,
            "again": _SEARCH_INTERVAL,
        }
        cursor.execute(_UNFOUND, values)
        rows = cursor.fetchall()
        wanted = wanted_titles(cursor, site, [row.title_id for row in rows])
        listed = _listed_ids(cursor, site, wanted)
        claims: list[Claim] = []
        put_off = []
        for row in rows:
            if len(claims) == size:
                break
            found = {
                key: source
                for key, source in listed.get(row.title_id, {}).items()
                if key not in row.refused
            }
            if not found or row.claims >= MAX_CLAIMS:
                put_off.append(row.title_id)
                continue
            evidence = min(found.values(), key=LISTED_SOURCES.index)
            claims.append(
                Claim(
                    title_id=row.title_id,
                    ids=list(found),
                    evidence=evidence,
                    wanted=wanted[row.title_id],
                )
            )
        cursor.execute(
            "UPDATE title_sites"
            " SET next_due = %s, claimed_by = NULL, claimed_until = NULL, claims = 0"
            " WHERE site = %s AND title_id = ANY (%s)",
            (now + _SEARCH_INTERVAL, site, put_off),
        )
        cursor.execute(
            "UPDATE title_sites SET claimed_by = %s, claimed_until = %s, claims = claims + 1"
            " WHERE site = %s AND title_id = ANY (%s)",
            (worker, now + lease, site, [found.title_id for found in claims]),
        )
    return claims, bool(rows)


def _listed_ids(
    cursor: Any, site: Site, wanted: dict[int, TitleFacts]
) -> dict[int, dict[str, IdSource]]:
    """Return the candidate ids of each title from lists, those of its year first."""
    keys = {title_id: title_slug_keys(title) for title_id, title in wanted.items()}
    cursor.execute(_LISTED, {"site": site, "keys": list(set().union(*keys.values()))})
    rows = cursor.fetchall()
    return {
        title_id: {
            row.site_id: row.source
            for row in sorted(rows, key=lambda row: (_years_apart(row, title), row.site_id))
            if row.key in keys[title_id]
        }
        for title_id, title in wanted.items()
    }


def extend(database: Database, worker: str, until: datetime, titles: Collection[int]) -> set[int]:
    """Extend a worker's claims on these titles; return the titles that it still has.

    Other claims of the worker, of which it never heard because the connection was lost, are left to
    expire.
    """
    with database.transaction() as cursor:
        # An import locks the same rows in another order: without this, a deadlock.
        cursor.execute("SELECT lock_titles()")
        cursor.execute(
            "UPDATE title_sites SET claimed_until = %s"
            " WHERE claimed_by = %s AND title_id = ANY (%s::bigint[])"
            " RETURNING title_id",
            (until, worker, list(titles)),
        )
        return {row.title_id for row in cursor.fetchall()}


def release(database: Database, worker: str, but: Collection[int] = ()) -> None:
    """Release a worker's claims, except on the titles `but`."""
    with database.transaction() as cursor:
        cursor.execute("SELECT lock_titles()")
        cursor.execute(
            "UPDATE title_sites"
            " SET claimed_by = NULL, claimed_until = NULL, claims = greatest(claims - 1, 0)"
            " WHERE claimed_by = %s AND title_id <> ALL (%s::bigint[])",
            (worker, list(but)),
        )


def claimed_by_others(
    database: Database, site: Site, *, worker: str, now: datetime
) -> tuple[int, datetime | None]:
    """Return how many titles of a site other workers have claimed.

    Those workers may be running or killed. Returns also when the last claim expires.
    """
    with database.transaction() as cursor:
        cursor.execute(
            "SELECT count(*), max(claimed_until) FROM title_sites"
            " WHERE site = %s AND claimed_until > %s AND claimed_by <> %s",
            (site, now, worker),
        )
        number, until = cursor.fetchone()
        return number, until


def _is_sure(site: Site, row: Any) -> bool:
    """Return whether the page needs no comparison with the title.

    An example is a record that was matched already.
    """
    return row.id_verified or site == ID_SITE or row.id_source in {None, "joined"}


def _years_apart(row: Any, title: TitleFacts) -> int:
    """Return the distance of a listed title's year from a title's.

    Without that year it is the distance of the year in its id; 1 when one is unknown.
    """
    if title.year is None or row.year is None:
        named = [
            int(part)
            for part in row.site_id.replace("_", "-").split("-")
            if len(part) == 4 and part.isdigit()  # noqa: PLR2004
        ]
        return min((abs(year - title.year) for year in named), default=1) if title.year else 1
    return abs(int(row.year) - title.year)
