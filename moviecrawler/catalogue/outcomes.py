"""Records the outcomes of fetched titles: when each is due again, and which pages are theirs."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields, replace
from datetime import date, timedelta
from typing import TYPE_CHECKING, Any

from moviecrawler.catalogue.sql import read_sql
from moviecrawler.database.connection import as_json, storable
from moviecrawler.database.titles import match_again

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from moviecrawler.catalogue.rows import Outcome
    from moviecrawler.database.connection import Database
    from moviecrawler.items import Site
    from moviecrawler.matching.comparing import Decision
    from moviecrawler.matching.facts import IdSource

_FETCHED = read_sql("fetched.sql")
_COVERED_BY_SERIES = read_sql("covered_by_series.sql")
_REJECT_ID = (
    "UPDATE title_sites SET site_id = NULL, id_source = NULL, id_confidence = NULL,"
    " state = 'never', failures = 0, next_due = %s,"
    " claimed_by = NULL, claimed_until = NULL, claims = 0"
    " WHERE title_id = %s AND site = %s"
    " AND (site_id IS NULL OR site_id IN (%s, %s) AND NOT id_verified)"
)
"""Rejects a title's id, so that the site's lists are searched again."""
_STORE_DECISION = (
    "INSERT INTO title_matches AS m (title_id, site, site_id, decision, score, reasons, decided_at)"
    " VALUES (%s, %s, %s, %s, %s, %s, %s)"
    " ON CONFLICT (title_id, site, site_id) DO UPDATE SET decision = excluded.decision,"
    " score = excluded.score, reasons = excluded.reasons, decided_at = excluded.decided_at"
    " WHERE NOT m.by_hand"
)
_SURER_HOLDER = (
    "SELECT coalesce(t.imdb_id, t.title) AS name FROM title_sites s JOIN titles t USING (title_id)"
    " WHERE s.site = %s AND s.site_id = %s AND s.title_id <> %s AND s.id_verified"
    " AND (s.id_source = 'given' OR s.id_confidence >= %s)"
)

LISTED_SOURCES: tuple[IdSource, ...] = ("list", "sitemap")
"""Sources of candidate ids, the weakest first."""


@dataclass(slots=True, kw_only=True)
class Fetched:
    """The outcome of fetching a title whose id is sure."""

    site: Site
    outcome: Outcome
    at: datetime
    asked_id: str | None
    """None: the claimed title, whatever its id is."""
    got_id: str | None = None
    """The id that the page itself names."""
    other_id: str | None = None
    """The id of another title, whose page came; only of an error."""
    title_id: int | None = None
    """The claimed title; None for a page that was fetched without a claim."""
    released: date | None = None


@dataclass(slots=True, kw_only=True)
class Judged(Fetched):
    """The outcome of fetching a candidate id, whose page was compared with the claimed title."""

    evidence: IdSource | None
    """The source of the id."""
    decision: Decision | None = None
    """The result of the comparison; None when there was no page."""
    score: float = 0.0
    reasons: list[str] = field(default_factory=list)
    has_more_ids: bool = False
    """Whether more candidate ids will be tried, so that this outcome is not yet the title's."""


@dataclass(slots=True, kw_only=True)
class CoveredBySeries:
    """A season that the page of its series lists."""

    site: Site
    at: datetime
    asked_id: str
    released: date | None = None
    lacks_scores: bool = False
    """Whether that page lacked a score, so that the season's own page is still needed."""
    title_id: None = None


AnyOutcome = Fetched | CoveredBySeries


def release_of(release_date: str | None, year: int | None) -> date | None:
    """Return a title's day of release, or the last day of its month or year.

    None when nothing is known. `release_date` is as in `Movie`. The last day is safe: the title is
    never taken for older than it is.

    >>> release_of("2026-02", 2026), release_of(None, 1999)
    (datetime.date(2026, 2, 28), datetime.date(1999, 12, 31))
    """
    if release_date is not None:
        at, month, *day = map(int, release_date.split("-"))
        return (
            date(at, month, *day)
            if day
            else date(at + month // 12, month % 12 + 1, 1) - timedelta(days=1)
        )
    return None if year is None else date(year, 12, 31)


def record(database: Database, outcomes: Sequence[AnyOutcome]) -> None:
    """Write outcomes in one transaction; ignore those of unknown titles.

    Raises TransientStoreError, and psycopg2's errors for what the database refuses.
    """
    with database.transaction() as cursor:
        cursor.execute("SELECT lock_titles()")
        ends: list[Fetched | None] = []
        for outcome in outcomes:
            if isinstance(outcome, Fetched) and outcome.other_id and outcome.title_id:
                _review_page(cursor, outcome)
            if isinstance(outcome, Judged):
                ends.append(_end_of_judged(cursor, outcome))
            elif isinstance(outcome, Fetched):
                ends.append(outcome)
        write_ends(cursor, [end for end in ends if end is not None])
        covered = [asdict(season) for season in outcomes if isinstance(season, CoveredBySeries)]
        cursor.execute(_COVERED_BY_SERIES, {"outcomes": _as_json(covered)})


def write_ends(cursor: Any, ends: Sequence[Fetched]) -> None:
    """Write when titles are due again, and end their claims."""
    rows = [
        {"n": n, **{field.name: getattr(end, field.name) for field in fields(Fetched)}}
        for n, end in enumerate(ends)
    ]
    cursor.execute(_FETCHED, {"outcomes": _as_json(rows)})


def _as_json(rows: Sequence[dict[str, Any]]) -> str:
    return as_json(
        [
            {name: storable(v) if isinstance(v, str) else v for name, v in row.items()}
            for row in rows
        ]
    )


def _review_page(cursor: Any, outcome: Fetched) -> None:
    """Put a claimed title's id under review, as another title's page came for it."""
    cursor.execute("SELECT FROM titles WHERE title_id = %s", (outcome.title_id,))
    if not cursor.rowcount:
        return  # the title was merged into another one
    reason = f"but its page is that of {storable(str(outcome.other_id))}"
    asked = storable(str(outcome.asked_id))
    values = (outcome.title_id, outcome.site, asked, "review", 0.0, [reason], outcome.at)
    cursor.execute(_STORE_DECISION, values)


def _end_of_judged(cursor: Any, outcome: Judged) -> Fetched | None:
    """Store the decision on a page, and reject an id that is not the title's.

    Return the title's outcome, if there is one.
    """
    site = outcome.site
    title_id = outcome.title_id
    cursor.execute(
        "SELECT site_id FROM title_sites WHERE title_id = %s AND site = %s", (title_id, site)
    )
    if (known := cursor.fetchone()) is None:
        return None  # the title was merged into another one
    asked = storable(str(outcome.asked_id))
    page = asked if outcome.got_id is None else storable(outcome.got_id)
    decision = outcome.decision
    reasons = [storable(reason) for reason in outcome.reasons]
    if decision == "accepted":
        decision, reasons = _accept(cursor, outcome, page, reasons)
    verdicts: dict[str, tuple[Decision, list[str]]] = {}
    if decision is not None:
        verdicts[asked] = "refused", [f"but it leads to {page}"]
        verdicts[page] = decision, reasons
        if decision == "accepted" and asked != page:
            del verdicts[asked]
    elif outcome.outcome == "absent":
        verdicts[asked] = "refused", ["but the site has no such page"]
    for site_id, (verdict, why) in verdicts.items():
        cursor.execute(
            _STORE_DECISION, (title_id, site, site_id, verdict, outcome.score, why, outcome.at)
        )
    if verdicts and decision != "accepted":
        if not outcome.has_more_ids:
            cursor.execute(_REJECT_ID, (outcome.at, title_id, site, asked, page))
        return None
    if decision == "accepted":
        return replace(outcome, asked_id=asked, got_id=page)
    if outcome.other_id is not None and outcome.has_more_ids:
        return None
    # Without an id the title itself is meant, whatever id was requested.
    return replace(outcome, asked_id=None if known.site_id is None else asked, got_id=None)


def _accept(
    cursor: Any, outcome: Judged, site_id: str, reasons: list[str]
) -> tuple[Decision, list[str]]:
    """Make an accepted page the title's.

    Put it under review when another title has it more surely.
    """
    cursor.execute(_SURER_HOLDER, (outcome.site, site_id, outcome.title_id, outcome.score))
    if holder := cursor.fetchone():
        return "review", [*reasons, f"but it is taken for {holder.name}"]
    source = "page" if "same IMDb id" in reasons else outcome.evidence
    _link(cursor, outcome.title_id, outcome.site, site_id, source, outcome.score)
    cursor.execute(
        "SELECT FROM title_sites WHERE title_id = %s AND site = %s AND site_id = %s",
        (outcome.title_id, outcome.site, site_id),
    )
    if not cursor.rowcount:
        return "review", [*reasons, "but its record is taken for another title's"]
    return "accepted", reasons


def _link(
    cursor: Any,
    title_id: int | None,
    site: Site,
    site_id: str,
    source: IdSource | None,
    score: float,
) -> None:
    """Give an id, and the record that is stored under it, to a title."""
    cursor.execute(
        "UPDATE title_sites SET site_id = NULL, id_source = NULL, id_confidence = NULL,"
        " id_verified = false, state = 'never', last_success = NULL"
        " WHERE site = %s AND site_id = %s AND title_id <> %s",
        (site, site_id, title_id),
    )
    cursor.execute(
        "UPDATE title_sites"
        " SET site_id = %s, id_source = %s, id_confidence = %s, id_verified = true"
        " WHERE title_id = %s AND site = %s",
        (site_id, source, score, title_id, site),
    )
    _match_again(cursor, site, site_id)


def _match_again(cursor: Any, site: Site, site_id: str) -> None:
    with cursor.connection.cursor() as plain:
        match_again(plain, site, [site_id])


def decide(
    database: Database,
    imdb_id: str,
    site: Site,
    site_id: str | None,
    *,
    accept: bool,
    now: datetime,
) -> list[str]:
    """Accept or refuse by hand one page, or all pages, that are under review for a title.

    A refused page is not fetched for the title again. Return their ids.
    """
    with database.transaction() as cursor:
        cursor.execute("SELECT lock_titles()")
        cursor.execute(
            "UPDATE title_matches m SET decision = %s, by_hand = true, decided_at = %s"
            " FROM titles t"
            " WHERE t.title_id = m.title_id AND t.imdb_id = %s AND m.site = %s"
            " AND m.decision = 'review'"
            " AND (%s IS NULL OR m.site_id = %s) RETURNING m.title_id, m.site_id, m.score",
            ("accepted" if accept else "refused", now, imdb_id, site, site_id, site_id),
        )
        decided = cursor.fetchall()
        for row in decided if accept else []:
            _link(cursor, row.title_id, site, row.site_id, "given", row.score)
            cursor.execute(
                "UPDATE title_sites SET state = 'never', failures = 0, next_due = 'epoch'"
                " WHERE title_id = %s AND site = %s AND last_success IS NULL",
                (row.title_id, site),
            )
        for row in decided if not accept else []:
            cursor.execute(
                "UPDATE title_sites"
                " SET site_id = NULL, id_source = NULL, id_confidence = NULL, id_verified = false"
                " WHERE title_id = %s AND site = %s AND site_id = %s",
                (row.title_id, site, row.site_id),
            )
        return [row.site_id for row in decided]
