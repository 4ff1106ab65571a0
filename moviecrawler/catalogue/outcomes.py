"""Writes the outcomes of fetched titles: when each is due again, and which pages are theirs."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import TYPE_CHECKING, NamedTuple

from moviecrawler.catalogue.sql import read_sql
from moviecrawler.database.connection import as_json, storable
from moviecrawler.database.titles import match_again
from moviecrawler.items import CoveredBySeries, Fetched

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Sequence
    from datetime import datetime

    from moviecrawler.database.connection import Cursor, Database
    from moviecrawler.matching.comparing import Decision
    from moviecrawler.matching.facts import IdSource
    from moviecrawler.sites import Site

_FETCHED = read_sql("fetched.sql")
_COVERED_BY_SERIES = read_sql("covered_by_series.sql")
_REJECT_ID = (
    "UPDATE title_sites SET site_id = NULL, id_source = NULL, id_confidence = NULL,"
    " state = 'never', failures = 0, next_due = %s"
    " WHERE title_id = %s AND site = %s"
    " AND (site_id IS NULL OR site_id IN (%s, %s) AND NOT id_verified)"
)
"""Rejects a title's id, so that the site's lists are searched again."""
_STORE_DECISION = (
    "INSERT INTO title_matches AS m (title_id, site, site_id, decision, score, reasons, decided_at)"
    " SELECT title_id, %s, %s, %s::match_decision, %s, %s, %s FROM titles WHERE title_id = %s"
    " ON CONFLICT (title_id, site, site_id) DO UPDATE SET decision = excluded.decision,"
    " score = excluded.score, reasons = excluded.reasons, decided_at = excluded.decided_at"
    " WHERE NOT m.by_hand"
)
"""Stores a decision on a title's id, unless the title was merged into another one."""
_FETCH_NOW = (
    "UPDATE title_sites SET state = 'never', failures = 0, next_due = 'epoch'"
    " WHERE title_id = %s AND site = %s AND last_success IS NULL"
)
_REMOVE_ID = (
    "UPDATE title_sites"
    " SET site_id = NULL, id_source = NULL, id_confidence = NULL, id_verified = false"
    " WHERE title_id = %s AND site = %s AND site_id = %s"
)
_OTHER_HOLDER = (
    "SELECT coalesce(t.imdb_id, t.title) AS name FROM title_sites s JOIN titles t USING (title_id)"
    " WHERE s.site = %s AND s.site_id = %s AND s.title_id <> %s AND s.id_verified"
    " AND (s.id_source = 'given' OR s.id_confidence >= %s)"
)

LISTED_SOURCES: tuple[IdSource, ...] = ("list", "sitemap")
"""Sources of candidate ids, the weakest first."""


class Verdict(NamedTuple):
    """What was decided of an id: whether it is the title's, and why."""

    site_id: str
    decision: str
    """accepted, review or refused."""
    reasons: list[str]


def write_outcomes(
    cursor: Cursor, outcomes: Sequence[Fetched | CoveredBySeries], figures: Counter[str]
) -> None:
    """Write outcomes: due dates, decisions on candidate ids, and the ids of accepted pages.

    Call it in a transaction under `lock_titles`. Outcomes of unknown titles are ignored.

    Args:
        cursor: Of that transaction.
        outcomes: Later ones override earlier ones of the same title and site.
        figures: `crowded_searches` is added to it.
    """
    ends: list[Fetched] = []
    covered = []
    for outcome in outcomes:
        if isinstance(outcome, CoveredBySeries):
            covered.append(asdict(outcome))
            continue
        if outcome.other_id and outcome.title_id:
            _review_page(cursor, outcome)
        is_sure = outcome.evidence is None
        end = outcome if is_sure else _outcome_of_candidate(cursor, outcome, figures)
        if end is not None:
            ends.append(end)
    if ends:
        # Of a title's outcomes on one site, fetched.sql takes the one with the highest n.
        rows = [{"n": n, **asdict(end)} for n, end in enumerate(ends)]
        cursor.execute(_FETCHED, {"outcomes": _as_json(rows)})
    if covered:
        cursor.execute(_COVERED_BY_SERIES, {"outcomes": _as_json(covered)})


def _as_json(rows: Sequence[dict[str, object]]) -> str:
    return as_json(
        [
            {name: storable(v) if isinstance(v, str) else v for name, v in row.items()}
            for row in rows
        ]
    )


def _review_page(cursor: Cursor, outcome: Fetched) -> None:
    """Put a title's id under review, as another title's page came for it."""
    reason = f"but its page is that of {storable(str(outcome.other_id))}"
    requested = storable(str(outcome.requested_id))
    values = (outcome.site, requested, "review", 0.0, [reason], outcome.at, outcome.title_id)
    cursor.execute(_STORE_DECISION, values)


def _outcome_of_candidate(
    cursor: Cursor, outcome: Fetched, figures: Counter[str]
) -> Fetched | None:
    """Store the decision on a candidate id.

    Remove the id from the title if its page was refused or needs a review, and no further candidate
    id will be tried.

    Returns:
        The outcome to write for the title; None if the title stays due, as it was merged, as its id
        was refused or needs a review, or as its next candidate id will be tried.
    """
    site = outcome.site
    title_id = outcome.title_id
    cursor.execute(
        "SELECT site_id FROM title_sites WHERE title_id = %s AND site = %s", (title_id, site)
    )
    if (title_site := cursor.fetchone()) is None:
        return None  # the title was merged into another one
    requested = storable(str(outcome.requested_id))
    page = requested if outcome.page_id is None else storable(outcome.page_id)
    decision = outcome.decision
    reasons = [storable(reason) for reason in outcome.reasons]
    if decision == "accepted":
        decision, reasons = _accept(cursor, outcome, page, reasons, figures)
    verdicts: list[Verdict] = []
    if decision is not None:
        verdicts.append(Verdict(page, decision, reasons))
        if requested != page and decision != "accepted":
            verdicts.append(Verdict(requested, "refused", [f"but it leads to {page}"]))
    elif outcome.outcome == "absent":
        verdicts.append(Verdict(requested, "refused", ["but the site has no such page"]))
    for verdict in verdicts:
        cursor.execute(
            _STORE_DECISION,
            (
                site,
                verdict.site_id,
                verdict.decision,
                outcome.score,
                verdict.reasons,
                outcome.at,
                title_id,
            ),
        )
    if verdicts and decision != "accepted":
        if not outcome.has_more_ids:
            cursor.execute(_REJECT_ID, (outcome.at, title_id, site, requested, page))
        return None
    if decision == "accepted":
        return replace(outcome, requested_id=requested, page_id=page)
    if outcome.other_id is not None and outcome.has_more_ids:
        return None
    # A title without an id on the site is found by its title_id alone.
    is_by_id = title_site.site_id is not None
    return replace(outcome, requested_id=requested if is_by_id else None, page_id=None)


def _accept(
    cursor: Cursor, outcome: Fetched, site_id: str, reasons: list[str], figures: Counter[str]
) -> tuple[Decision, list[str]]:
    """Link an accepted id to its title.

    Returns:
        The decision and its reasons. It is "review" if another title has the id, by hand or with at
        least the same confidence, or if its record was matched with another title.
    """
    cursor.execute(_OTHER_HOLDER, (outcome.site, site_id, outcome.title_id, outcome.score))
    if holder := cursor.fetchone():
        return "review", [*reasons, f"but it is taken for {holder.name}"]
    source = "page" if "same IMDb id" in reasons else outcome.evidence
    crowded = _link(cursor, outcome.title_id, outcome.site, site_id, source, outcome.score)
    figures["crowded_searches"] += crowded
    cursor.execute(
        "SELECT FROM title_sites WHERE title_id = %s AND site = %s AND site_id = %s",
        (outcome.title_id, outcome.site, site_id),
    )
    if not cursor.rowcount:
        return "review", [*reasons, "but its record is taken for another title's"]
    return "accepted", reasons


def _link(
    cursor: Cursor,
    title_id: int | None,
    site: Site,
    site_id: str,
    source: str | None,
    score: float,
) -> int:
    """Give an id, and the record that is stored under it, to a title.

    Return how many searches for its other records went without crowded keys.
    """
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
    with cursor.connection.cursor() as plain:
        return match_again(plain, site, [site_id])


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
        for row in decided:
            if accept:
                _link(cursor, row.title_id, site, row.site_id, "given", row.score)
                cursor.execute(_FETCH_NOW, (row.title_id, site))
            else:
                cursor.execute(_REMOVE_ID, (row.title_id, site, row.site_id))
        return [row.site_id for row in decided]
