"""Who fetches which titles of a site, and until when: claims are leases."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from moviecrawler.catalogue.lanes import FARTHEST_DUE, choose
from moviecrawler.catalogue.matching import DAYS_REMEMBERED
from moviecrawler.catalogue.outcomes import BY_WEIGHT, Outcomes, SiteOutcome
from moviecrawler.catalogue.slugs import title_slug_keys
from moviecrawler.catalogue.sql import read_sql
from moviecrawler.catalogue.wanted import wanted_titles
from moviecrawler.errors import TransientStoreError
from moviecrawler.sites import SITES

if TYPE_CHECKING:
    from collections.abc import Collection
    from datetime import datetime

    from moviecrawler.catalogue.lanes import DeficitRoundRobin
    from moviecrawler.catalogue.rows import IdSource, TitleFacts
    from moviecrawler.items import Site

_CANDIDATES = read_sql("candidates.sql")
_TAKE = read_sql("take.sql")
_UNFOUND = read_sql("unfound.sql")

MOST_CLAIMS = 5
"""Times that a title is claimed without an outcome, before that counts as an error: it may be what kills the workers."""
_ROUNDS = 20
"""Tries to claim titles that somebody else has locked at the same moment, such as to write their outcomes."""
_LOCK_CLAIMS = "SELECT pg_advisory_xact_lock(1703170117, %(number)s);"
"""Held, with a site's number, until titles of it are claimed: claimers at once would all choose the same ones. The first number
is any that no other program takes."""
_LOOKED_AT = 500
"""Titles whose ids are looked for in one step, at most."""
_LOOK_AGAIN = timedelta(days=7)
"""After which a title is looked for anew that no list named."""


@dataclass(slots=True, kw_only=True)
class Claim:
    """A title that this worker is to fetch from a site."""

    title_id: int
    ids: list[str]
    """Its id there; or several that may be it, the likeliest first."""
    evidence: IdSource | None
    """Where the ids come from; None for one that needs no check."""
    wanted: TitleFacts | None
    """What a page is compared with before it is taken for the title's; None exactly when `evidence` is."""
    boosted: bool = False


class Claims(Outcomes):
    """Gives workers titles to fetch."""

    def claim(
        self, site: Site, size: int, *, worker: str, lease: timedelta, round_robin: DeficitRoundRobin, now: datetime
    ) -> list[Claim]:
        """Claim at most `size` titles whose id on the site is known, in the order in which to fetch them.

        None are returned only when none is due. Of workers that claim at once, each gets other titles. Raises TransientStoreError
        when all that are due are locked, such as by an import.
        """
        claimed: list[Claim] = []
        chosen: list[int] = []
        with self.transaction() as cursor:
            for _ in range(_ROUNDS):
                missing = size - len(claimed)
                cursor.execute(_LOCK_CLAIMS, {"number": list(SITES).index(site)})
                chosen = [found.title_id for found in next_titles(cursor, site, missing, round_robin, now)]
                if not chosen:
                    break
                cursor.execute(
                    _TAKE, {"site": site, "titles": chosen, "worker": worker, "now": now, "until": now + lease}
                )
                taken = {row.title_id: row for row in cursor.fetchall()}
                # The locks end here: others must not wait for what we do with our titles.
                cursor.connection.commit()
                unsure = [row.title_id for row in taken.values() if not _is_sure(site, row)]
                wanted = wanted_titles(cursor, site, unsure)
                worn = [row for row in taken.values() if row.claims > MOST_CLAIMS]
                claimed += [
                    _claim(taken[title_id], wanted.get(title_id))
                    for title_id in chosen
                    if title_id in taken and taken[title_id] not in worn
                ]
                self.record_within(cursor, [_worn_out(site, row, now) for row in worn])
                if len(claimed) >= size:
                    break
        if chosen and not claimed:
            raise TransientStoreError("another program is writing to all titles that are due")
        return claimed

    def claim_unfound(
        self, site: Site, size: int, *, worker: str, lease: timedelta, now: datetime
    ) -> tuple[list[Claim], bool]:
        """Claim at most `size` titles whose id on the site is unknown, but for which a list names ids that may be theirs.

        Returns whether any title was looked at, too: titles for which no list names an id are put off for a week.
        """
        if site == "imdb":
            return [], False  # its ids can't be told from a title
        claims: list[Claim] = []
        with self.transaction() as cursor:
            cursor.execute(_LOCK_CLAIMS, {"number": list(SITES).index(site)})
            since = now - timedelta(days=DAYS_REMEMBERED)
            cursor.execute(
                _UNFOUND, {"site": site, "now": now, "size": _LOOKED_AT, "since": since, "again": _LOOK_AGAIN}
            )
            rows = cursor.fetchall()
            wanted = wanted_titles(cursor, site, [row.title_id for row in rows])
            listed = self._listed(cursor, site, wanted)
            put_off = []
            for row in rows:
                if len(claims) == size:
                    break
                if row.claims >= MOST_CLAIMS:
                    put_off.append(row.title_id)
                    continue
                found = [known for known in listed.get(row.title_id, []) if known[0] not in row.refused]
                if not found:
                    put_off.append(row.title_id)
                    continue
                ids = [site_id for site_id, _ in found]
                evidence = min((source for _, source in found), key=BY_WEIGHT.index)
                claims.append(Claim(title_id=row.title_id, ids=ids, evidence=evidence, wanted=wanted[row.title_id]))
            cursor.execute(
                "UPDATE title_sites SET next_due = %s, claimed_by = NULL, claimed_until = NULL, claims = 0"
                " WHERE site = %s AND title_id = ANY (%s)",
                (now + _LOOK_AGAIN, site, put_off),
            )
            cursor.execute(
                "UPDATE title_sites SET claimed_by = %s, claimed_until = %s, claims = claims + 1"
                " WHERE site = %s AND title_id = ANY (%s)",
                (worker, now + lease, site, [claim.title_id for claim in claims]),
            )
        return claims, bool(rows)

    def _listed(self, cursor: Any, site: Site, wanted: dict[int, TitleFacts]) -> dict[int, list[tuple[str, IdSource]]]:
        """Return the ids that lists name and that may be a title's, those of its year first, by the title."""
        keys = {title_id: title_slug_keys(title) for title_id, title in wanted.items()}
        cursor.execute(
            "SELECT g.key, g.site_id, g.source, g.year FROM sightings g WHERE g.site = %s AND g.key = ANY (%s)"
            " AND NOT EXISTS (SELECT FROM title_sites o JOIN titles t USING (title_id)"
            " WHERE o.site = g.site AND o.site_id = g.site_id AND (t.imdb_id IS NOT NULL OR o.id_verified))",
            (site, list({key for each in keys.values() for key in each})),
        )
        by_key: dict[str, list[Any]] = {}
        for row in cursor.fetchall():
            by_key.setdefault(row.key, []).append(row)
        found: dict[int, list[tuple[str, IdSource]]] = {}
        for title_id, title in wanted.items():
            rows = {row.site_id: row for key in keys[title_id] for row in by_key.get(key, [])}.values()
            ordered = sorted(rows, key=lambda row, title=title: (_years_apart(row, title), row.site_id))  # type: ignore[misc]
            if ordered:
                found[title_id] = [(row.site_id, row.source) for row in ordered]
        return found

    def extend(self, worker: str, until: datetime, titles: Collection[int]) -> set[int]:
        """Keep what a worker has claimed until later, of these titles; return those that it still has.

        What it was never told of, as the database went away in between, is not kept.
        """
        with self.transaction() as cursor:
            cursor.execute("SELECT lock_titles()")  # else an import might lock the same rows in another order
            cursor.execute(
                "UPDATE title_sites SET claimed_until = %s WHERE claimed_by = %s AND title_id = ANY (%s::bigint[])"
                " RETURNING title_id",
                (until, worker, list(titles)),
            )
            return {row.title_id for row in cursor.fetchall()}

    def release(self, worker: str, but: Collection[int] = ()) -> None:
        """Give back what a worker has claimed and not fetched, but for some titles."""
        with self.transaction() as cursor:
            cursor.execute("SELECT lock_titles()")
            cursor.execute(
                "UPDATE title_sites SET claimed_by = NULL, claimed_until = NULL, claims = greatest(claims - 1, 0)"
                " WHERE claimed_by = %s AND title_id <> ALL (%s::bigint[])",
                (worker, list(but)),
            )

    def claimed_by_others(self, site: Site, *, worker: str, now: datetime) -> tuple[int, datetime | None]:
        """Return how many titles of a site other workers have claimed, or have left so when they were killed, and until when at most."""
        with self.transaction() as cursor:
            cursor.execute(
                "SELECT count(*), max(claimed_until) FROM title_sites WHERE site = %s AND claimed_until > %s AND claimed_by <> %s",
                (site, now, worker),
            )
            number, until = cursor.fetchone()
            return number, until


def next_titles(cursor: Any, site: Site, size: int, round_robin: DeficitRoundRobin, now: datetime) -> list[Any]:
    """Return the rows of at most `size` titles that are due, in the order in which to fetch them; each has its queue."""
    queues: dict[str, list[Any]] = {"boosted": [], "unread": [], "stale": []}
    cursor.execute(_CANDIDATES, {"site": site, "now": now, "farthest": FARTHEST_DUE, "size": size})
    for candidate in cursor.fetchall():
        queues[candidate.queue].append(candidate)
    return choose(size, round_robin=round_robin, now=now, **queues)


def _is_sure(site: Site, row: Any) -> bool:
    """Return whether a page need not be compared with the title: what a record is joined by was compared then."""
    return row.id_verified or site == "imdb" or row.id_source in {None, "joined"}


def _claim(row: Any, wanted: TitleFacts | None) -> Claim:
    return Claim(
        title_id=row.title_id,
        ids=[row.site_id],
        evidence=None if wanted is None else row.id_source,
        wanted=wanted,
        boosted=bool(row.boosted),
    )


def _worn_out(site: Site, row: Any, now: datetime) -> SiteOutcome:
    return SiteOutcome(site=site, outcome="error", at=now, asked_id=row.site_id, title_id=row.title_id)


def _years_apart(row: Any, title: TitleFacts) -> int:
    """Return how far a listed title's year, or the one in its id, is from a title's; titles without are in between."""
    if title.year is None or row.year is None:
        named = [int(part) for part in row.site_id.replace("_", "-").split("-") if len(part) == 4 and part.isdigit()]  # noqa: PLR2004
        return min((abs(year - title.year) for year in named), default=1) if title.year else 1
    return abs(int(row.year) - title.year)
