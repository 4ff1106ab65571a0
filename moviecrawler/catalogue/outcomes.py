"""What became of titles on a site: when each is due again, and which pages are theirs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from moviecrawler.catalogue.sql import read_sql
from moviecrawler.database.connection import as_json, storable
from moviecrawler.database.titles import rejoin

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import date, datetime

    from moviecrawler.catalogue.comparing import Decision
    from moviecrawler.catalogue.rows import IdSource, Outcome
    from moviecrawler.database.connection import Database
    from moviecrawler.items import Site

_FETCHED, _TOLD_BY_SERIES = read_sql("fetched.sql"), read_sql("told_by_series.sql")
_FREE = "UPDATE title_sites SET claimed_by = NULL, claimed_until = NULL, claims = 0 WHERE title_id = %s AND site = %s"
_FORGET = (
    "UPDATE title_sites SET site_id = NULL, id_source = NULL, id_confidence = NULL"
    " WHERE title_id = %s AND site = %s AND site_id = ANY (%s) AND NOT id_verified"
)
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
    asked_id: str
    got_id: str | None = None
    """The id that the page itself has."""
    title_id: int | None = None
    """Of the claim; None for a page that was fetched without one."""
    released: date | None = None


@dataclass(slots=True, kw_only=True)
class Judged:
    """How a try ended of which it was to be seen whether the page is the claimed title's."""

    site: Site
    outcome: Outcome
    at: datetime
    asked_id: str
    got_id: str | None = None
    title_id: int
    released: date | None = None
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


AnyOutcome = Fetched | Judged | ToldBySeries


class _End(NamedTuple):
    """What `fetched.sql` takes of an outcome."""

    site: Site
    title_id: int | None
    asked: str | None
    got: str | None
    outcome: Outcome
    at: datetime
    released: date | None
    search_again: bool = False


def record(database: Database, outcomes: Sequence[AnyOutcome]) -> None:
    """Write how tries ended, in one transaction. Those of pages of no title that is known are passed over.

    Raises TransientStoreError, and psycopg2's errors for what the database refuses.
    """
    if not outcomes:
        return
    now = max(outcome.at for outcome in outcomes)
    with database.transaction() as cursor:
        cursor.execute("SELECT lock_titles()")
        ends: list[_End] = []
        for outcome in outcomes:
            if isinstance(outcome, Judged):
                ends += _end_of_judged(cursor, outcome)
            elif isinstance(outcome, Fetched):
                ends.append(_end_of_fetched(cursor, outcome))
        rows = [{"n": n, **end._asdict()} for n, end in enumerate(ends)]
        cursor.execute(_FETCHED, {"outcomes": as_json(rows), "now": now})
        told = [
            {
                "site": season.site,
                "site_id": storable(season.asked_id),
                "at": season.at,
                "released": season.released,
                "lacks_scores": season.lacks_scores,
            }
            for season in outcomes
            if isinstance(season, ToldBySeries)
        ]
        if told:
            cursor.execute(_TOLD_BY_SERIES, {"outcomes": as_json(told), "now": now})


def _end_of_fetched(cursor: Any, outcome: Fetched) -> _End:
    asked, got = storable(outcome.asked_id), None if outcome.got_id is None else storable(outcome.got_id)
    if outcome.outcome == "ok" and got not in {None, asked}:
        cursor.execute("SELECT rename_record(%s, %s, %s)", (outcome.site, asked, got))
        if cursor.fetchone()[0]:
            # As long as there were two of them, neither could be told to be the title's.
            _join_anew(cursor, outcome.site, str(got))
    return _End(outcome.site, outcome.title_id, asked, got, outcome.outcome, outcome.at, outcome.released)


def _end_of_judged(cursor: Any, outcome: Judged) -> list[_End]:
    """Keep what a page was compared to be; return the outcome for the title that it was fetched for, if it is known by now."""
    site, title_id = outcome.site, outcome.title_id
    cursor.execute("SELECT site_id FROM title_sites WHERE title_id = %s AND site = %s", (title_id, site))
    if (known := cursor.fetchone()) is None:
        return []  # it was merged into another title
    asked = storable(outcome.asked_id)
    site_id = asked if outcome.got_id is None else storable(outcome.got_id)
    decision, reasons = outcome.decision, [storable(reason) for reason in outcome.reasons]
    is_listed = outcome.evidence in LISTED_SOURCES
    ended, search_again = outcome.outcome, False

    def remember(site_id: str, decision: Decision, reasons: list[str]) -> None:
        cursor.execute(_REMEMBER, (title_id, site, site_id, decision, outcome.score, reasons, outcome.at))

    if decision == "accepted":
        decision, reasons = _take(cursor, outcome, site_id, reasons)
    if decision is not None:
        if decision != "accepted":
            cursor.execute(_FORGET, (title_id, site, [site_id, asked]))
            ended = "absent"  # the page was read, but it isn't this title's
            if asked != site_id:
                remember(asked, "refused", [f"but it leads to {site_id}"])
        remember(site_id, decision, reasons)
    elif ended == "absent":
        cursor.execute(_FORGET, (title_id, site, [asked]))
        search_again = bool(cursor.rowcount)  # a source has given a wrong id: the lists may name the right one
        if search_again or is_listed:
            remember(asked, "refused", ["but the site has no such page"])
    if outcome.others_follow and decision != "accepted":
        return []
    if decision != "accepted" and known.site_id not in {None, asked, site_id}:
        # An import, or a person, has given the title another id meanwhile.
        cursor.execute(_FREE, (title_id, site))
        return []
    is_titles_own = decision is not None or is_listed or search_again
    page = None if is_titles_own else asked
    got = None if is_titles_own or outcome.got_id is None else site_id
    return [_End(site, title_id, page, got, ended, outcome.at, outcome.released, search_again)]


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


def _link(cursor: Any, title_id: int, site: Site, site_id: str, source: IdSource | None, score: float) -> None:
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
    _join_anew(cursor, site, site_id)


def _join_anew(cursor: Any, site: Site, site_id: str) -> None:
    with cursor.connection.cursor() as plain:
        rejoin(plain, site, [site_id])


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
