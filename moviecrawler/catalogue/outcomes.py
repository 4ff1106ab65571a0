"""What became of titles on a site: when each is due again, and which pages are theirs."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from moviecrawler.catalogue.lanes import boost_left, next_due, release_of, season_due
from moviecrawler.catalogue.sql import read_sql
from moviecrawler.database.connection import Database, as_json, storable
from moviecrawler.database.titles import rejoin

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from moviecrawler.catalogue.comparing import Decision
    from moviecrawler.catalogue.rows import IdSource, Outcome, State
    from moviecrawler.items import Site

_FIND_ROWS = read_sql("record.sql")
_UPDATE = read_sql("update.sql")
_HASTEN_SERIES_OF = (
    "SELECT hasten_series(ARRAY(SELECT DISTINCT series_title_id FROM titles WHERE title_id = ANY (%(titles)s)"
    " AND series_title_id IS NOT NULL), %(now)s)"
)
_UNLINK = (
    "UPDATE title_sites SET site_id = NULL, id_source = NULL, id_confidence = NULL"
    " WHERE title_id = %s AND site = %s AND site_id = ANY (%s) AND NOT id_verified"
)

BY_WEIGHT: tuple[IdSource, ...] = ("guess", "list", "sitemap")
"""Where ids come from that may be a title's, the least first."""


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
    others_follow: bool = False
    """Whether another id that may be the title's is tried now, so that this one decides only of the page."""
    by_series: bool = False
    """Whether it is a season, of which its series' page has told."""
    lacks_scores: bool = False
    """Whether that page was silent of a score, so that the season's own page is still wanted."""
    search_again: bool = False
    """Whether the title's id there is to be looked for now, as the one that it had is none."""

    @property
    def is_of_claim(self) -> bool:
        """Whether it says something of the claimed title alone: not of one that has the page's id."""
        return self.title_id is not None and (self.decision is not None or self.evidence in BY_WEIGHT)


class Outcomes(Database):
    """Writes how tries ended, and decides which page is a title's."""

    def record(self, outcomes: Sequence[SiteOutcome]) -> None:
        """Write how tries ended, in one transaction. Those of pages of no title that is known are passed over."""
        with self.transaction() as cursor:
            self.record_within(cursor, outcomes)

    def record_within(self, cursor: Any, outcomes: Sequence[SiteOutcome]) -> None:
        """Write how tries ended, or what pages that were read before are said to be now, within a transaction."""
        if not outcomes:
            return
        outcomes = [_storable_outcome(outcome) for outcome in outcomes]
        cursor.execute("SELECT lock_titles()")
        for outcome in outcomes:
            if outcome.outcome == "ok" and outcome.got_id not in {None, outcome.asked_id}:
                cursor.execute("SELECT rename_record(%s, %s, %s)", (outcome.site, outcome.asked_id, outcome.got_id))
                if cursor.fetchone()[0]:
                    # As long as there were two of them, neither could be told to be the title's.
                    self._join_anew(cursor, outcome.site, str(outcome.got_id))
        asked: list[dict[str, Any]] = [
            {"n": n, "site": o.site, "title_id": o.title_id}
            | ({} if o.is_of_claim else {"asked": o.asked_id, "got": o.got_id})
            for n, o in enumerate(outcomes)
        ]
        latest = max(outcome.at for outcome in outcomes)
        cursor.execute(_FIND_ROWS, {"outcomes": as_json(asked), "now": latest})
        changes: dict[tuple[int, Site], dict[str, Any]] = {}
        over = {(o.title_id, o.site) for o in outcomes if o.title_id is not None and not o.others_follow}
        for row in cursor.fetchall():
            outcome = outcomes[row.n]
            # An import, or a person, may have given the title another id meanwhile.
            has_other = row.site_id not in {None, outcome.asked_id, outcome.got_id}
            is_outdated = has_other or (row.site_id is None and not outcome.is_of_claim)
            if outcome.decision is not None:
                outcome = self._decide(cursor, row.title_id, outcome)
            elif outcome.outcome == "absent" and outcome.evidence is not None:
                self._forget(cursor, row, outcome)
            if outcome.others_follow or (is_outdated and outcome.decision is None):
                continue  # what was accepted is the title's in any case
            if (
                outcome.by_series
                and row.last_success is not None
                and (outcome.lacks_scores or row.last_success >= outcome.at)
            ):
                continue  # its own page has told more, or later
            changes[row.title_id, outcome.site] = _change(outcome, row, changes.get((row.title_id, outcome.site)))
        cursor.execute(_UPDATE, {"rows": as_json(list(changes.values()))})
        told = [title_id for title_id, _ in changes]
        if any(outcome.by_series for outcome in outcomes):
            # A new season may be the first sign that its series runs again.
            cursor.execute(_HASTEN_SERIES_OF, {"titles": told, "now": latest})
        for title_id, site in over - changes.keys():
            cursor.execute(
                "UPDATE title_sites SET claimed_by = NULL, claimed_until = NULL, claims = 0 WHERE title_id = %s AND site = %s",
                (title_id, site),
            )

    def _decide(self, cursor: Any, title_id: int, outcome: SiteOutcome) -> SiteOutcome:
        """Keep what a page was compared to be; return the outcome for the title that it was fetched for."""
        site, site_id = outcome.site, outcome.got_id or outcome.asked_id
        decision, reasons = outcome.decision, outcome.reasons
        assert decision is not None  # noqa: S101 - for mypy
        if decision == "accepted" and (holder := self._surer_holder(cursor, title_id, outcome, site_id)):
            decision, reasons = "review", [*reasons, f"but it is taken for {holder}"]
        if decision == "accepted":
            self._link(cursor, title_id, outcome, site_id)
            cursor.execute(
                "SELECT s.site_id = %s FROM title_sites s WHERE s.title_id = %s AND s.site = %s",
                (site_id, title_id, site),
            )
            if not (found := cursor.fetchone()) or not found[0]:
                decision, reasons = "review", [*reasons, "but its record is taken for another title's"]
        if decision != "accepted" and outcome.evidence is not None:
            cursor.execute(_UNLINK, (title_id, site, [site_id, outcome.asked_id]))
        self._remember(cursor, title_id, outcome, site_id, decision, reasons)
        if decision == "accepted":
            return outcome
        if outcome.asked_id != site_id:
            self._remember(cursor, title_id, outcome, outcome.asked_id, "refused", [f"but it leads to {site_id}"])
        # Its page was read, but it isn't this title's: the title was not found.
        return replace(outcome, outcome="absent", got_id=None, decision=None)

    def _surer_holder(self, cursor: Any, title_id: int, outcome: SiteOutcome, site_id: str) -> str | None:
        """Return which other title's an id is, as a page or a person has shown that at least as surely."""
        cursor.execute(
            "SELECT coalesce(t.imdb_id, t.title) FROM title_sites s JOIN titles t USING (title_id)"
            " WHERE s.site = %s AND s.site_id = %s AND s.title_id <> %s AND s.id_verified"
            " AND (s.id_source = 'given' OR s.id_confidence >= %s)",
            (outcome.site, site_id, title_id, outcome.score),
        )
        found = cursor.fetchone()
        return None if found is None else str(found[0])

    def _remember(
        self, cursor: Any, title_id: int, outcome: SiteOutcome, site_id: str, decision: Decision, reasons: Sequence[str]
    ) -> None:
        """Keep what was decided of an id; what a person has decided stays."""
        cursor.execute(
            "INSERT INTO title_matches AS m (title_id, site, site_id, decision, score, reasons, decided_at)"
            " VALUES (%s, %s, %s, %s, %s, %s, %s)"
            " ON CONFLICT (title_id, site, site_id) DO UPDATE SET decision = excluded.decision,"
            " score = excluded.score, reasons = excluded.reasons, decided_at = excluded.decided_at WHERE NOT m.by_hand",
            (title_id, outcome.site, site_id, decision, outcome.score, list(reasons), outcome.at),
        )

    def _forget(self, cursor: Any, row: Any, outcome: SiteOutcome) -> None:
        """Don't try an id again of which the site has no page; when a source gave it, look for the title's elsewhere."""
        cursor.execute(_UNLINK, (row.title_id, outcome.site, [outcome.asked_id]))
        outcome.search_again = bool(cursor.rowcount)
        if outcome.search_again or outcome.evidence in BY_WEIGHT:
            self._remember(
                cursor, row.title_id, outcome, outcome.asked_id, "refused", ["but the site has no such page"]
            )

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
            rejoin(plain, site, [site_id])

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


def _change(outcome: SiteOutcome, row: Any, before: dict[str, Any] | None) -> dict[str, Any]:
    """Return the row of a title on a site after a try."""
    failures, last_success, due, boosted = row.failures, row.last_success, row.next_due, row.boost_due
    if before is not None:
        failures, last_success = before["failures"], before["last_success"]
    state: State = outcome.outcome
    failures = {"ok": 0, "absent": 0, "blocked": failures, "error": failures + 1}[outcome.outcome]
    if outcome.outcome != "blocked":
        released = release_of(outcome.release_date, outcome.year or row.year)
        if outcome.by_series:
            due = season_due(outcome.at, released, airs=row.airs)
        else:
            due = next_due(outcome.outcome, now=outcome.at, released=released, failures=failures, airs=row.airs)
    if outcome.outcome == "ok":
        last_success = outcome.at
    if outcome.search_again or outcome.lacks_scores:
        state, due, last_success = "never", outcome.at, None
    if not outcome.by_series:
        airs = row.airs and row.kind == "series"  # its seasons come with its page
        boosted = boost_left(outcome.outcome, boost_due=boosted, next_due=due, failures=failures, airs=airs)
    return {
        "title_id": row.title_id,
        "site": outcome.site,
        "state": state,
        "last_success": last_success,
        "next_due": due,
        "failures": failures,
        "boost_due": boosted,
        "keeps_boost": outcome.by_series or outcome.outcome in {"error", "blocked"},
        "keeps_claim": outcome.by_series,
    }


def _storable_outcome(outcome: SiteOutcome) -> SiteOutcome:
    return replace(
        outcome,
        asked_id=storable(outcome.asked_id),
        got_id=None if outcome.got_id is None else storable(outcome.got_id),
        reasons=[storable(reason) for reason in outcome.reasons],
    )
