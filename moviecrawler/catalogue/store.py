"""The catalogue in Postgres: which titles exist, where each is on each site, who fetches it now and when it is due again.

Everything here waits for the database: call it in a thread, never in the event loop. A store belongs to one thread at a
time. What is due next is decided by `catalogue.lanes`; a claim is a lease, so what a dead worker claimed is due again
when that ends.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import msgspec
import psycopg2
from psycopg2.extras import NamedTupleCursor

from moviecrawler.catalogue.lanes import boost_left, choose, next_due, release_of
from moviecrawler.catalogue.matching import DAYS_REMEMBERED
from moviecrawler.catalogue.rows import Wanted
from moviecrawler.catalogue.slugs import slug_guesses, slug_key, title_slug_keys
from moviecrawler.catalogue.sql import read_sql
from moviecrawler.errors import RejectedError, TransientStoreError
from moviecrawler.urls import HOMES

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
    from datetime import datetime

    from psycopg2.extensions import connection as Connection  # noqa: N812 - psycopg2 writes its classes in small letters

    from moviecrawler.catalogue.lanes import Turns
    from moviecrawler.catalogue.matching import Decision
    from moviecrawler.catalogue.rows import IdSource, Outcome, State
    from moviecrawler.items import Site, TitleKind

_CANDIDATES = read_sql("candidates.sql")
_TAKE = read_sql("take.sql")
_UNFOUND = read_sql("unfound.sql")
_FIND_ROWS = read_sql("record.sql")
_UPDATE = read_sql("update.sql")

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
_READING_TAKES = timedelta(hours=1)
"""The longest that others wait for the worker that reads a site's lists."""


@dataclass(slots=True, kw_only=True)
class Claim:
    """A title that this worker is to fetch from a site."""

    title_id: int
    ids: list[str]
    """Its id there; or several that may be it, the likeliest first."""
    evidence: IdSource | None
    """Where the ids come from; None for one that needs no check."""
    wanted: Wanted | None
    """What a page is compared with before it is taken for the title's; None exactly when `evidence` is."""
    boosted: bool = False


@dataclass(slots=True, kw_only=True)
class SiteOutcome:
    """How a try to fetch a title from a site ended."""

    site: Site
    outcome: Outcome
    at: datetime
    asked_id: str
    got_id: str | None = None
    """The id that the page itself has."""
    title_id: int | None = None
    """Of the claim; None for a page that was fetched without one."""
    release_date: str | None = None
    year: int | None = None
    evidence: IdSource | None = None
    """As in the claim."""
    decision: Decision | None = None
    """What the page was compared to be, if it was."""
    score: float = 0.0
    reasons: list[str] = field(default_factory=list)
    search_again: bool = False
    """Whether the title's id there is to be looked for now, as the one that it had is none."""


class Sighting(NamedTuple):
    """A title that a list or sitemap of a site names."""

    site_id: str
    title: str | None = None
    year: int | None = None
    kind: TitleKind | None = None


Reading = Literal["lists", "sitemap"]
"""What is read of a site beside its titles."""


class CatalogueStore:
    """The catalogue's tables, through one connection that is made when it is first needed, and again when it is lost.

    Every method raises TransientStoreError when the database can't be used now.
    """

    def __init__(self, connect: Callable[[], Connection], rejoin: Callable[[Any, Site, Sequence[str]], None]) -> None:
        """Take what connects to a database that has the tables, and what joins records anew: cursor, site, ids."""
        self._connect = connect
        self._rejoin = rejoin
        self._connection: Connection | None = None

    def close(self) -> None:
        """Disconnect."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    # --- What is due --------------------------------------------------------------------------------------------------

    def claim(
        self, site: Site, size: int, *, worker: str, lease: timedelta, turns: Turns, now: datetime
    ) -> list[Claim]:
        """Claim at most `size` titles whose id on the site is known, in the order in which to fetch them.

        None are returned only when none is due. Of workers that claim at once, each gets other titles.
        """
        claimed: list[Claim] = []
        with self.transaction() as cursor:
            for _ in range(_ROUNDS):
                missing = size - len(claimed)
                queues: dict[str, list[Any]] = {"boosted": [], "unread": [], "stale": []}
                cursor.execute(
                    _LOCK_CLAIMS + _CANDIDATES,
                    {"number": list(HOMES).index(site), "site": site, "now": now, "size": missing},
                )
                for candidate in cursor.fetchall():
                    queues[candidate[0]].append(candidate)
                chosen = [found.title_id for found in choose(missing, turns=turns, now=now, **queues)]
                if not chosen:
                    break
                cursor.execute(
                    _TAKE, {"site": site, "titles": chosen, "worker": worker, "now": now, "until": now + lease}
                )
                taken = {row.title_id: row for row in cursor.fetchall()}
                # The locks end here: others must not wait for what we do with our titles.
                cursor.connection.commit()
                worn = [row for row in taken.values() if row.claims > MOST_CLAIMS]
                claimed += [
                    _claim(site, taken[title_id])
                    for title_id in chosen
                    if title_id in taken and taken[title_id] not in worn
                ]
                self._record(cursor, [_worn_out(site, row, now) for row in worn])
                if len(claimed) >= size:
                    break
        return claimed

    def claim_unfound(
        self, site: Site, size: int, *, guesses: int, worker: str, lease: timedelta, now: datetime
    ) -> tuple[list[Claim], bool]:
        """Claim at most `size` titles whose id on the site may be one that a list names, or else is to be guessed.

        `guesses` is how many titles a day may be guessed for on this site. Returns whether there was anything to look at,
        too: titles of which nothing is found are put off, and others may follow.
        """
        if site == "imdb":
            return [], False  # its ids can't be told from a title
        claims: list[Claim] = []
        with self.transaction() as cursor:
            cursor.execute(
                "SELECT count(*) FROM title_sites WHERE site = %s AND guessed_at >= %s",
                (site, now.replace(hour=0, minute=0, second=0, microsecond=0)),
            )
            guesses -= cursor.fetchone()[0]
            since = now - timedelta(days=DAYS_REMEMBERED)
            cursor.execute(_UNFOUND, {"site": site, "now": now, "size": _LOOKED_AT, "since": since})
            rows = cursor.fetchall()
            wanted = {row.title_id: _wanted(row) for row in rows}
            listed = self._listed(cursor, site, wanted)
            put_off, guessed = [], []
            for row in rows:
                if len(claims) == size:
                    break
                title = wanted[row.title_id]
                found = [known for known in listed.get(row.title_id, []) if known[0] not in row.refused]
                ids = [site_id for site_id, _ in found]
                evidence: IdSource = found[0][1] if found else "guess"
                if not ids and guesses > 0:
                    ids = [site_id for site_id in slug_guesses(site, title) if site_id not in row.refused]
                    guesses -= bool(ids)
                    guessed += [row.title_id] if ids else []
                if ids:
                    claims.append(Claim(title_id=row.title_id, ids=ids, evidence=evidence, wanted=title))
                else:
                    put_off.append(row.title_id)
            cursor.execute(
                "UPDATE title_sites SET next_due = %s WHERE site = %s AND title_id = ANY (%s)",
                (now.replace(hour=0, minute=0, second=0, microsecond=0) + _LOOK_AGAIN, site, put_off),
            )
            cursor.execute(
                "UPDATE title_sites SET claimed_by = %s, claimed_until = %s, claims = claims + 1,"
                " guessed_at = CASE WHEN title_id = ANY (%s) THEN %s ELSE guessed_at END"
                " WHERE site = %s AND title_id = ANY (%s)",
                (worker, now + lease, guessed, now, site, [claim.title_id for claim in claims]),
            )
        return claims, bool(rows)

    def _listed(self, cursor: Any, site: Site, wanted: dict[int, Wanted]) -> dict[int, list[tuple[str, IdSource]]]:
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

    def extend(self, worker: str, until: datetime) -> int:
        """Keep what a worker has claimed until later; return how many titles those are."""
        with self.transaction() as cursor:
            cursor.execute("UPDATE title_sites SET claimed_until = %s WHERE claimed_by = %s", (until, worker))
            return int(cursor.rowcount)

    def release(self, worker: str, but: Collection[int] = ()) -> None:
        """Give back what a worker has claimed and not fetched, but for some titles."""
        with self.transaction() as cursor:
            cursor.execute(
                "UPDATE title_sites SET claimed_by = NULL, claimed_until = NULL, claims = greatest(claims - 1, 0)"
                " WHERE claimed_by = %s AND title_id <> ALL (%s::bigint[])",
                (worker, list(but)),
            )

    # --- What became of it --------------------------------------------------------------------------------------------

    def record(self, outcomes: Sequence[SiteOutcome]) -> None:
        """Write how tries ended, in one transaction. Those of pages of no title that is known are passed over."""
        if outcomes:
            with self.transaction() as cursor:
                self._record(cursor, outcomes)

    def _record(self, cursor: Any, outcomes: Sequence[SiteOutcome]) -> None:
        if not outcomes:
            return
        cursor.execute("SELECT lock_titles()")
        for outcome in outcomes:
            if outcome.outcome == "ok" and outcome.got_id not in {None, outcome.asked_id}:
                cursor.execute("SELECT rename_record(%s, %s, %s)", (outcome.site, outcome.asked_id, outcome.got_id))
                if cursor.fetchone()[0]:
                    # As long as there were two of them, neither could be told to be the title's.
                    self._join_anew(cursor, outcome.site, str(outcome.got_id))
        asked = [
            {"n": n, "site": o.site, "title_id": o.title_id, "asked": o.asked_id, "got": o.got_id}
            for n, o in enumerate(outcomes)
        ]
        cursor.execute(_FIND_ROWS, {"outcomes": _json(asked)})
        changes: dict[tuple[int, Site], dict[str, Any]] = {}
        for row in cursor.fetchall():
            outcome = outcomes[row.n]
            if outcome.decision is not None:
                outcome = self._decide(cursor, row.title_id, outcome)
            elif outcome.outcome == "absent" and outcome.evidence not in {None, "guess", "list", "sitemap"}:
                self._forget(cursor, row, outcome)
            changes[row.title_id, outcome.site] = _change(outcome, row, changes.get((row.title_id, outcome.site)))
        cursor.execute(_UPDATE, {"rows": _json(list(changes.values()))})

    def _decide(self, cursor: Any, title_id: int, outcome: SiteOutcome) -> SiteOutcome:
        """Keep what a page was compared to be; return the outcome for the title that it was fetched for."""
        site, site_id = outcome.site, outcome.got_id or outcome.asked_id
        decision, reasons = outcome.decision, outcome.reasons
        if decision == "accepted":
            self._link(cursor, title_id, outcome, site_id)
            cursor.execute(
                "SELECT s.site_id = %s FROM title_sites s WHERE s.title_id = %s AND s.site = %s",
                (site_id, title_id, site),
            )
            if not (found := cursor.fetchone()) or not found[0]:
                decision, reasons = "review", [*reasons, "but its record is taken for another title's"]
        elif outcome.evidence is not None:
            cursor.execute(
                "UPDATE title_sites SET site_id = NULL, id_source = NULL, id_confidence = NULL"
                " WHERE title_id = %s AND site = %s AND site_id IN (%s, %s) AND NOT id_verified",
                (title_id, site, site_id, outcome.asked_id),
            )
        for each in {site_id, outcome.asked_id} if decision != "accepted" else {site_id}:
            cursor.execute(
                "INSERT INTO title_matches AS m (title_id, site, site_id, decision, score, reasons, decided_at)"
                " VALUES (%s, %s, %s, %s, %s, %s, %s)"
                " ON CONFLICT (title_id, site, site_id) DO UPDATE SET decision = excluded.decision,"
                " score = excluded.score, reasons = excluded.reasons, decided_at = excluded.decided_at WHERE NOT m.by_hand",
                (title_id, site, each, decision, outcome.score, reasons, outcome.at),
            )
        if decision == "accepted":
            return outcome
        # Its page was read, but it isn't this title's: the title was not found.
        return SiteOutcome(site=site, outcome="absent", at=outcome.at, asked_id=outcome.asked_id, title_id=title_id)

    def _forget(self, cursor: Any, row: Any, outcome: SiteOutcome) -> None:
        """Let a title's id be looked for elsewhere: the site has no page under the one that a source gave."""
        cursor.execute(
            "UPDATE title_sites SET site_id = NULL, id_source = NULL, id_confidence = NULL"
            " WHERE title_id = %s AND site = %s AND site_id = %s AND NOT id_verified",
            (row.title_id, outcome.site, outcome.asked_id),
        )
        if cursor.rowcount:
            cursor.execute(
                "INSERT INTO title_matches (title_id, site, site_id, decision, score, reasons, decided_at)"
                " VALUES (%s, %s, %s, 'refused', 0, '{but the site has no such page}', %s) ON CONFLICT DO NOTHING",
                (row.title_id, outcome.site, outcome.asked_id, outcome.at),
            )
            outcome.search_again = True

    def _link(self, cursor: Any, title_id: int, outcome: SiteOutcome, site_id: str) -> None:
        """Make an id a title's, and a record that there is under it a record of the title's."""
        site = outcome.site
        cursor.execute(
            "UPDATE title_sites SET site_id = NULL, id_source = NULL, id_confidence = NULL, id_verified = false,"
            " state = 'never', last_success = NULL WHERE site = %s AND site_id = %s AND title_id <> %s",
            (site, site_id, title_id),
        )
        cursor.execute(
            "UPDATE title_sites SET site_id = %s, id_source = CASE WHEN %s THEN 'page' ELSE %s END::id_source,"
            " id_confidence = %s, id_verified = true WHERE title_id = %s AND site = %s",
            (site_id, "same IMDb id" in outcome.reasons, outcome.evidence, outcome.score, title_id, site),
        )
        self._join_anew(cursor, site, site_id)

    def _join_anew(self, cursor: Any, site: Site, site_id: str) -> None:
        with cursor.connection.cursor() as plain:
            self._rejoin(plain, site, [site_id])

    def decide(self, imdb_id: str, site: Site, site_id: str | None, *, accept: bool, now: datetime) -> list[str]:
        """Decide by hand whether pages under review are a title's: one of them, or all that are; return their ids."""
        with self.transaction() as cursor:
            cursor.execute("SELECT lock_titles()")
            cursor.execute(
                "UPDATE title_matches m SET decision = %s, by_hand = true, decided_at = %s FROM titles t"
                " WHERE t.title_id = m.title_id AND t.imdb_id = %s AND m.site = %s AND m.decision = 'review'"
                " AND (%s IS NULL OR m.site_id = %s) RETURNING m.title_id, m.site_id, m.score",
                ("accepted" if accept else "refused", now, imdb_id, site, site_id, site_id),
            )
            decided = cursor.fetchall()
            for row in decided if accept else []:
                outcome = SiteOutcome(
                    site=site, outcome="ok", at=now, asked_id=row.site_id, evidence="given", score=row.score
                )
                self._link(cursor, row.title_id, outcome, row.site_id)
                cursor.execute(
                    "UPDATE title_sites SET state = 'never', failures = 0, next_due = 'epoch'"
                    " WHERE title_id = %s AND site = %s AND last_success IS NULL",
                    (row.title_id, site),
                )
            return [row.site_id for row in decided]

    # --- What makes titles due ----------------------------------------------------------------------------------------

    def boost(self, imdb_ids: Sequence[str], weight: float, now: datetime) -> int:
        """Have lane 2 fetch titles on all sites; return how many of them are known."""
        with self.transaction() as cursor:
            cursor.execute("SELECT boost_titles(%s, %s, %s)", (list(imdb_ids), weight, now))
            return int(cursor.fetchone()[0])

    def sight(
        self, site: Site, sightings: Iterable[Sighting], reading: Reading, *, trending: bool, pages: int, now: datetime
    ) -> int:
        """Keep what a list page names; return how many titles are new.

        The titles of a list of what is popular today are boosted, the first ones most. IMDb's are added when they are not
        known; which titles the other sites' are is found out when these are looked for there.
        `pages` is by how many the list pages grow that are still to be read, -1 for the last one.
        """
        seen = list({sighting.site_id: sighting for sighting in sightings}.values())
        with self.transaction() as cursor:
            if trending:
                cursor.execute("SELECT lock_titles()")
            rows = [
                {
                    "site_id": s.site_id,
                    "key": slug_key(s.site_id),
                    "title": s.title,
                    "year": s.year,
                    "kind": s.kind,
                    "n": n,
                }
                for n, s in enumerate(seen)
            ]
            source: IdSource = "sitemap" if reading == "sitemap" else "list"
            arguments = {"site": site, "rows": _json(rows), "source": source, "now": now, "weight": len(seen)}
            if site != "imdb":
                cursor.execute(_SIGHT, arguments)
            added = 0
            if trending and site == "imdb":
                cursor.execute(_ADD_TRENDING, arguments)
                added = cursor.rowcount // 3
            if trending:
                cursor.execute(_BOOST_TRENDING, arguments)
            cursor.execute(
                "UPDATE list_readings SET pages_open = greatest(pages_open + %s, 0) WHERE site = %s AND reading = %s",
                (pages, site, reading),
            )
        return added

    def begin_reading(self, site: Site, reading: Reading, pages: int, every: timedelta, now: datetime) -> bool:
        """Return whether this worker is to read a site's lists, of so many first pages: at most one in so long is."""
        with self.transaction() as cursor:
            cursor.execute(
                "INSERT INTO list_readings AS r (site, reading, began_at, pages_open) VALUES (%s, %s, %s, %s)"
                " ON CONFLICT (site, reading) DO UPDATE SET began_at = excluded.began_at, pages_open = excluded.pages_open"
                " WHERE r.began_at <= %s RETURNING true",
                (site, reading, now, pages, now - every),
            )
            return cursor.fetchone() is not None

    def is_reading(self, site: Site, now: datetime) -> bool:
        """Return whether a worker is reading the site's lists, so that ids may still be found there."""
        with self.transaction() as cursor:
            cursor.execute(
                "SELECT FROM list_readings WHERE site = %s AND pages_open > 0 AND began_at > %s",
                (site, now - _READING_TAKES),
            )
            return bool(cursor.rowcount)

    # --- Sites that refuse us -----------------------------------------------------------------------------------------

    def pause(self, site: Site, until: datetime, reason: str) -> None:
        """Have nothing claimed of a site until then."""
        with self.transaction() as cursor:
            cursor.execute(
                "INSERT INTO site_pauses AS p (site, until, reason) VALUES (%s, %s, %s) ON CONFLICT (site) DO UPDATE"
                " SET until = greatest(p.until, excluded.until), reason = excluded.reason",
                (site, until, reason),
            )

    def resume(self, site: Site) -> None:
        """Let a site be claimed of again: it answers."""
        with self.transaction() as cursor:
            cursor.execute("DELETE FROM site_pauses WHERE site = %s", (site,))

    def paused(self, site: Site, now: datetime) -> str | None:
        """Return why nothing may be claimed of a site, None when it may."""
        with self.transaction() as cursor:
            cursor.execute("SELECT reason FROM site_pauses WHERE site = %s AND until > %s", (site, now))
            found = cursor.fetchone()
            return None if found is None else str(found[0])

    # --- The connection -----------------------------------------------------------------------------------------------

    @contextmanager
    def transaction(self) -> Iterator[Any]:
        """Give a cursor, and commit when all went well."""
        try:
            if self._connection is None or self._connection.closed:
                self._connection = self._connect()
            with self._connection as connection, connection.cursor(cursor_factory=NamedTupleCursor) as cursor:
                yield cursor
        except (psycopg2.DataError, psycopg2.IntegrityError) as error:
            raise RejectedError(" ".join((error.diag.message_primary or str(error)).split())) from error
        except psycopg2.Error as error:
            raise TransientStoreError(" ".join(str(error).split()) or type(error).__name__) from error


_SIGHT = """
INSERT INTO sightings AS s (site, site_id, key, title, year, source, seen_at)
SELECT %(site)s, r.site_id, r.key, r.title, r.year, %(source)s, %(now)s
FROM jsonb_to_recordset(%(rows)s) AS r (site_id text, key text, title text, year integer)
ON CONFLICT (site, site_id) DO UPDATE SET title = coalesce(excluded.title, s.title), year = coalesce(excluded.year, s.year),
    seen_at = excluded.seen_at, source = least(s.source, excluded.source)
"""
_ADD_TRENDING = """
WITH new AS (
    SELECT nextval(pg_get_serial_sequence('titles', 'title_id')) AS title_id, r.*
    FROM jsonb_to_recordset(%(rows)s) AS r (n integer, site_id text, title text, year integer, kind title_kind)
    WHERE r.title IS NOT NULL AND r.kind IS NOT NULL
        AND NOT EXISTS (SELECT FROM titles t WHERE t.imdb_id = r.site_id)
), added AS (
    INSERT INTO titles (title_id, imdb_id, title, kind, year)
    SELECT title_id, site_id, title, kind, year FROM new
)
INSERT INTO title_sites (title_id, site, site_id, id_source, id_verified)
SELECT n.title_id, s.site, CASE WHEN s.site = 'imdb' THEN n.site_id END,
    CASE WHEN s.site = 'imdb' THEN %(source)s::id_source END, s.site = 'imdb'
FROM new n CROSS JOIN unnest(enum_range(NULL::site)) AS s (site)
"""
# Boosted by their place on the list: the first one's weight is 1, the last one's almost 0.
_BOOST_TRENDING = """
SELECT boost_title_ids(array_agg(s.title_id), (1 - r.n::real / %(weight)s)::real, %(now)s)
FROM jsonb_to_recordset(%(rows)s) AS r (n integer, site_id text)
JOIN title_sites s ON s.site = %(site)s AND s.site_id = r.site_id
GROUP BY r.n
"""


def _claim(site: Site, row: Any) -> Claim:
    # What a record is joined by was compared then.
    verified = row.id_verified or site == "imdb" or row.id_source in {None, "joined"} or row.title is None
    return Claim(
        title_id=row.title_id,
        ids=[row.site_id],
        evidence=None if verified else row.id_source,
        wanted=None if verified else _wanted(row),
        boosted=bool(row.boosted),
    )


def _wanted(row: Any) -> Wanted:
    return Wanted(
        imdb_id=row.imdb_id,
        title=row.title,
        original_title=row.original_title,
        kind=row.kind,
        year=row.year,
        runtime_minutes=row.runtime_minutes,
        directors=row.directors or [],
    )


def _worn_out(site: Site, row: Any, now: datetime) -> SiteOutcome:
    return SiteOutcome(site=site, outcome="error", at=now, asked_id=row.site_id, title_id=row.title_id)


def _years_apart(row: Any, title: Wanted) -> int:
    """Return how far a listed title's year, or the one in its id, is from a title's; titles without are in between."""
    if title.year is None or row.year is None:
        named = [int(part) for part in row.site_id.replace("_", "-").split("-") if len(part) == 4 and part.isdigit()]  # noqa: PLR2004
        return min((abs(year - title.year) for year in named), default=1) if title.year else 1
    return abs(int(row.year) - title.year)


def _change(outcome: SiteOutcome, row: Any, before: dict[str, Any] | None) -> dict[str, Any]:
    """Return the row of a title on a site after a try."""
    failures, last_success, due, boosted = row.failures, row.last_success, row.next_due, row.boost_due
    if before is not None:
        failures, last_success = before["failures"], before["last_success"]
    state: State = outcome.outcome
    failures = {"ok": 0, "absent": 0, "blocked": failures, "error": failures + 1}[outcome.outcome]
    if outcome.outcome != "blocked":
        released = release_of(outcome.release_date, outcome.year or row.year)
        due = next_due(outcome.outcome, now=outcome.at, released=released, failures=failures)
    if outcome.outcome == "ok":
        last_success = outcome.at
    if outcome.search_again:
        state, due = "never", outcome.at
    boosted = boost_left(outcome.outcome, boost_due=boosted, next_due=due, failures=failures)
    return {
        "title_id": row.title_id,
        "site": outcome.site,
        "state": state,
        "last_success": last_success,
        "next_due": due,
        "failures": failures,
        "boost_due": boosted,
    }


def _json(rows: Sequence[dict[str, Any]]) -> str:
    return msgspec.json.encode(rows).decode()
