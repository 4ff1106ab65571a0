"""What became of titles on a site: when each is due again, and which pages are theirs."""

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

    from moviecrawler.catalogue.comparing import Decision
    from moviecrawler.catalogue.rows import IdSource, Outcome
    from moviecrawler.database.connection import Database
    from moviecrawler.items import Site

_FETCHED, _TOLD_BY_SERIES = read_sql("fetched.sql"), read_sql("told_by_series.sql")
_FORGET = (
    "UPDATE title_sites SET site_id = NULL, id_source = NULL, id_confidence = NULL, state = 'never', failures = 0, next_due = %s,"
    " claimed_by = NULL, claimed_until = NULL, claims = 0 WHERE title_id = %s AND site = %s"
    " AND (site_id IS NULL OR site_id IN (%s, %s) AND NOT id_verified)"
)
"""Has a title looked for anew in the site's lists."""
_REMEMBER = (
    "INSERT INTO title_matches AS m (title_id, site, site_id, decision, score, reasons, decided_at)"
    " VALUES (%s, %s, %s, %s, %s, %s, %s) ON CONFLICT (title_id, site, site_id) DO UPDATE SET decision = excluded.decision,"
    " score = excluded.score, reasons = excluded.reasons, decided_at = excluded.decided_at WHERE NOT m.by_hand"
)
_SURER_HOLDER = (
    "SELECT coalesce(t.imdb_id, t.title) AS name FROM title_sites s JOIN titles t USING (title_id)"
    " WHERE s.site = %s AND s.site_id = %s AND s.title_id <> %s AND s.id_verified"
    " AND (s.id_source = 'given' OR s.id_confidence >= %s)"
)

LISTED_SOURCES: tuple[IdSource, ...] = ("list", "sitemap")
"""Where ids come from that may be a title's, the least first."""


@dataclass(slots=True, kw_only=True)
class Fetched:
    """How a try to fetch a title from a site ended, whose page needed no check."""

    site: Site
    outcome: Outcome
    at: datetime
    asked_id: str | None
    """None for the claimed title whatever its id is."""
    got_id: str | None = None
    """The id that the page itself has."""
    title_id: int | None = None
    """Of the claim; None for a page that was fetched without one."""
    released: date | None = None


@dataclass(slots=True, kw_only=True)
class Judged(Fetched):
    """How a try ended of which it was to be seen whether the page is the claimed title's."""

    evidence: IdSource | None
    """Where the id came from."""
    decision: Decision | None = None
    """What the page was compared to be; None when there was none."""
    score: float = 0.0
    reasons: list[str] = field(default_factory=list)
    others_follow: bool = False
    """Whether another id that may be the title's is tried now, so that this one decides only of the page."""


@dataclass(slots=True, kw_only=True)
class ToldBySeries:
    """A season of which its series' page has told."""

    site: Site
    at: datetime
    asked_id: str
    released: date | None = None
    lacks_scores: bool = False
    """Whether that page lacked a score, so that the season's own page is still wanted."""
    title_id: None = None


AnyOutcome = Fetched | ToldBySeries


def release_of(release_date: str | None, year: int | None) -> date | None:
    """Return the day by which a title's age is told: of a month or a year its last one; None when nothing is known.

    `release_date` is `YYYY-MM-DD` or `YYYY-MM`, as in `Movie`. The last day, so that no title passes for older than it is.

    >>> release_of("2026-02", 2026), release_of(None, 1999)
    (datetime.date(2026, 2, 28), datetime.date(1999, 12, 31))
    """
    if release_date is not None:
        at, month, *day = map(int, release_date.split("-"))
        return date(at, month, *day) if day else date(at + month // 12, month % 12 + 1, 1) - timedelta(days=1)
    return None if year is None else date(year, 12, 31)


def record(database: Database, outcomes: Sequence[AnyOutcome]) -> None:
    """Write how tries ended, in one transaction. Those of pages of no title that is known are passed over.

    Raises TransientStoreError, and psycopg2's errors for what the database refuses.
    """
    with database.transaction() as cursor:
        cursor.execute("SELECT lock_titles()")
        ends: list[Fetched | None] = []
        for outcome in outcomes:
            if isinstance(outcome, Judged):
                ends.append(_end_of_judged(cursor, outcome))
            elif isinstance(outcome, Fetched):
                _rename(cursor, outcome)
                ends.append(outcome)
        write_ends(cursor, [end for end in ends if end is not None])
        told = [asdict(season) for season in outcomes if isinstance(season, ToldBySeries)]
        cursor.execute(_TOLD_BY_SERIES, {"outcomes": _as_json(told)})


def write_ends(cursor: Any, ends: Sequence[Fetched]) -> None:
    """Write when titles are due again, and end their claims."""
    rows = [
        {"n": n, **{field.name: getattr(end, field.name) for field in fields(Fetched)}} for n, end in enumerate(ends)
    ]
    cursor.execute(_FETCHED, {"outcomes": _as_json(rows)})


def _as_json(rows: Sequence[dict[str, Any]]) -> str:
    return as_json([{name: storable(v) if isinstance(v, str) else v for name, v in row.items()} for row in rows])


def _rename(cursor: Any, outcome: Fetched) -> None:
    """Make one record of two when a page was asked for under an id that is no longer its own."""
    if outcome.outcome == "ok" and outcome.got_id not in {None, outcome.asked_id}:
        asked, got = storable(str(outcome.asked_id)), storable(str(outcome.got_id))
        cursor.execute("SELECT rename_record(%s, %s, %s)", (outcome.site, asked, got))
        if cursor.fetchone()[0]:
            # As long as there were two of them, neither could be told to be the title's.
            _match_again(cursor, outcome.site, got)


def _end_of_judged(cursor: Any, outcome: Judged) -> Fetched | None:
    """Keep what a page was compared to be, and forget an id that is not the title's; return how the try for the title ended."""
    site, title_id = outcome.site, outcome.title_id
    cursor.execute("SELECT site_id FROM title_sites WHERE title_id = %s AND site = %s", (title_id, site))
    if (known := cursor.fetchone()) is None:
        return None  # it was merged into another title
    asked = storable(str(outcome.asked_id))
    page = asked if outcome.got_id is None else storable(outcome.got_id)
    decision, reasons = outcome.decision, [storable(reason) for reason in outcome.reasons]
    if decision == "accepted":
        decision, reasons = _take(cursor, outcome, page, reasons)
    verdicts: dict[str, tuple[Decision, list[str]]] = {}
    if decision is not None:
        verdicts[asked] = "refused", [f"but it leads to {page}"]
        verdicts[page] = decision, reasons
        if decision == "accepted" and asked != page:
            del verdicts[asked]
    elif outcome.outcome == "absent":
        verdicts[asked] = "refused", ["but the site has no such page"]
    for site_id, (verdict, why) in verdicts.items():
        cursor.execute(_REMEMBER, (title_id, site, site_id, verdict, outcome.score, why, outcome.at))
    if verdicts and decision != "accepted":
        if not outcome.others_follow:
            cursor.execute(_FORGET, (outcome.at, title_id, site, asked, page))
        return None
    if decision == "accepted":
        return replace(outcome, asked_id=asked, got_id=page)
    # A title without an id is meant whatever id was asked for.
    return replace(outcome, asked_id=None if known.site_id is None else asked, got_id=None)


def _take(cursor: Any, outcome: Judged, site_id: str, reasons: list[str]) -> tuple[Decision, list[str]]:
    """Make an accepted page the title's; return what becomes of that when another title has it more surely."""
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


def _link(cursor: Any, title_id: int | None, site: Site, site_id: str, source: IdSource | None, score: float) -> None:
    """Make an id a title's, and a record that there is under it a record of the title's."""
    cursor.execute(
        "UPDATE title_sites SET site_id = NULL, id_source = NULL, id_confidence = NULL, id_verified = false,"
        " state = 'never', last_success = NULL WHERE site = %s AND site_id = %s AND title_id <> %s",
        (site, site_id, title_id),
    )
    cursor.execute(
        "UPDATE title_sites SET site_id = %s, id_source = %s, id_confidence = %s, id_verified = true"
        " WHERE title_id = %s AND site = %s",
        (site_id, source, score, title_id, site),
    )
    _match_again(cursor, site, site_id)


def _match_again(cursor: Any, site: Site, site_id: str) -> None:
    with cursor.connection.cursor() as plain:
        match_again(plain, site, [site_id])


def decide(
    database: Database, imdb_id: str, site: Site, site_id: str | None, *, accept: bool, now: datetime
) -> list[str]:
    """Decide by hand whether pages under review are a title's: one of them, or all that are; return their ids."""
    with database.transaction() as cursor:
        cursor.execute("SELECT lock_titles()")
        cursor.execute(
            "UPDATE title_matches m SET decision = %s, by_hand = true, decided_at = %s FROM titles t"
            " WHERE t.title_id = m.title_id AND t.imdb_id = %s AND m.site = %s AND m.decision = 'review'"
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
        return [row.site_id for row in decided]
