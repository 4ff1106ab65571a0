"""Matching stored records and judged pages again with today's rules: shown, and changed on demand.

Records are taken a batch at a time. Each batch is judged anew in one transaction, as if its records were written now; then
what has become of them is compared with what was, and the transaction is kept or undone. So what is shown is what would
be done, but for what one batch changes for another. What a person has decided or placed stays as it is.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import msgspec

from moviecrawler.catalogue.matching import verify
from moviecrawler.catalogue.outcomes import SiteOutcome
from moviecrawler.catalogue.slugs import slug_key
from moviecrawler.catalogue.wanted import wanted_titles
from moviecrawler.database.sql import read_sql
from moviecrawler.database.titles import apply_plan, plan_titles, read_stored
from moviecrawler.items import Movie

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from moviecrawler.catalogue.store import CatalogueStore
    from moviecrawler.items import Site

_JUDGED = read_sql("judged.sql")
_STANDING = read_sql("standing.sql")
_RECORDS = "SELECT record_id, site::text, site_id FROM records WHERE record_id > %s ORDER BY record_id LIMIT %s"
_SIGHTINGS = (
    "SELECT site::text, site_id, key FROM sightings WHERE (site, site_id) > (%s::site, %s)"
    " ORDER BY site, site_id LIMIT %s"
)
_NEW_SIGHTING_KEYS = (
    "UPDATE sightings s SET key = n.key FROM jsonb_to_recordset(%s) AS n (site site, site_id text, key text)"
    " WHERE s.site = n.site AND s.site_id = n.site_id"
)
_UNVERIFY = "UPDATE title_sites SET id_verified = false WHERE title_id = %s AND site = %s AND site_id = %s AND id_source <> 'given'"
_BATCH = 200
"""Records for which others wait at a time."""
_SIGHTINGS_AT_ONCE = 5_000


@dataclass(slots=True, kw_only=True)
class Standing:
    """What a record is taken for."""

    imdb_id: str | None
    title: str | None
    """The name of the title in the catalogue."""
    beside: list[str]
    """The other sites' ids of the title's records."""
    matched_by: list[str] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class Change:
    """A record that is taken for another title than before."""

    site: Site
    site_id: str
    record_title: str
    was: Standing
    becomes: Standing


def rematch(store: CatalogueStore, *, apply: bool) -> Iterator[list[Change]]:
    """Judge all records anew; yield what that changes, a list for each batch. Without `apply`, nothing is changed.

    The keys by which records and sightings are found are brought up to date in any case: they decide nothing. It may be
    broken off at any moment, and begun again. Raises TransientStoreError.
    """
    _renew_sighting_keys(store)
    for batch in _batches(store):  # before anything is judged, as records are found by the keys of others
        with store.transaction() as cursor, cursor.connection.cursor() as plain:
            cursor.execute("SELECT lock_titles()")
            read_stored(plain, *batch)
    for batch in _batches(store):
        with store.transaction() as cursor:
            cursor.execute("SELECT lock_titles()")
            changes = _judge(store, cursor, *batch)
            if not apply:
                cursor.connection.rollback()
        yield changes


def _batches(store: CatalogueStore) -> Iterator[tuple[list[Site], list[str]]]:
    """Yield the sites and ids of records, in the order in which they came."""
    last = 0
    while True:
        with store.transaction() as cursor:
            cursor.execute(_RECORDS, (last, _BATCH))
            rows = cursor.fetchall()
        if not rows:
            return
        last = rows[-1].record_id
        yield [row.site for row in rows], [row.site_id for row in rows]


def _judge(store: CatalogueStore, cursor: Any, sites: list[Site], site_ids: list[str]) -> list[Change]:
    cursor.execute(_JUDGED, {"sites": sites, "site_ids": site_ids})
    judged = cursor.fetchall()
    with cursor.connection.cursor() as plain:
        plan = plan_titles(plain, read_stored(plain, sites, site_ids))
        concerned = {record.record_id for record in plan.pool if record.record_id > 0}
        before = _standing(cursor, concerned)
        outcomes = _outcomes(cursor, judged)
        store.record_within(cursor, outcomes)
        # What was read of a record is read again: another page's verdict may have changed what is known of it.
        changed = read_stored(plain, sites, site_ids)
        apply_plan(plain, plan_titles(plain, changed), changed)
    after = _standing(cursor, concerned)
    return [
        Change(site=site, site_id=site_id, record_title=name, was=was, becomes=becomes)
        for record_id, (site, site_id, name, was) in before.items()
        if record_id in after and _told(becomes := after[record_id][3]) != _told(was)
    ]


def _outcomes(cursor: Any, judged: Collection[Any]) -> list[SiteOutcome]:
    """Return what is said today of pages that were compared with titles, where that is something else than before."""
    by_site: dict[Site, list[Any]] = defaultdict(list)
    for row in judged:
        by_site[row.site].append(row)
    outcomes: list[SiteOutcome] = []
    for site, rows in by_site.items():
        wanted = wanted_titles(cursor, site, {row.title_id for row in rows})
        for row in rows:
            if row.title_id not in wanted:
                continue
            movie = msgspec.json.decode(row.item, type=Movie)
            found = verify(wanted[row.title_id], movie, row.evidence)
            if found.decision == row.decision:
                continue
            if not found.accepted:
                cursor.execute(_UNVERIFY, (row.title_id, site, row.site_id))
            outcomes.append(
                SiteOutcome(
                    site=site,
                    outcome="ok",
                    at=row.scraped_at,
                    asked_id=row.site_id,
                    got_id=row.site_id,
                    title_id=row.title_id,
                    release_date=movie.release_date,
                    year=movie.year,
                    evidence=row.evidence,
                    decision=found.decision,
                    score=found.score,
                    reasons=found.reasons,
                )
            )
    # What is taken away comes before what is given: a page may change hands.
    return sorted(outcomes, key=lambda outcome: outcome.decision == "accepted")


def _standing(cursor: Any, records: Collection[int]) -> dict[int, tuple[Site, str, str, Standing]]:
    cursor.execute(_STANDING, {"records": sorted(records)})
    return {
        row.record_id: (
            row.site,
            row.site_id,
            row.record_title,
            Standing(imdb_id=row.imdb_id, title=row.title, beside=row.beside, matched_by=row.matched_by),
        )
        for row in cursor.fetchall()
    }


def _told(standing: Standing) -> tuple[str | None, list[str]]:
    return standing.imdb_id, standing.beside


def _renew_sighting_keys(store: CatalogueStore) -> None:
    last = ("imdb", "")
    while True:
        with store.transaction() as cursor:
            cursor.execute(_SIGHTINGS, (*last, _SIGHTINGS_AT_ONCE))
            rows = cursor.fetchall()
            if not rows:
                return
            last = rows[-1].site, rows[-1].site_id
            renewed = [
                {"site": row.site, "site_id": row.site_id, "key": key}
                for row in rows
                if (key := slug_key(row.site_id)) != row.key
            ]
            if renewed:
                cursor.execute(_NEW_SIGHTING_KEYS, (msgspec.json.encode(renewed).decode(),))
