"""Decides which fields have disappeared from a site's pages. Pure.

It also decides when none of the site's pages can be read any more.
"""

from __future__ import annotations

from collections import defaultdict, deque
from typing import TYPE_CHECKING

from moviecrawler.sites import SCOREBOARD_KINDS, SCORES, SITES
from moviecrawler.sites.fields import column_of, fields_published_by

if TYPE_CHECKING:
    from moviecrawler.items import Movie

SCORE_WINDOW = 50
MISSING_SCORE_PAGES = 15
"""Pages, of the latest `SCORE_WINDOW`: a score of the scoreboard is missing when it, or the number
of its votes, is unknown on them. Other scores, such as scores.tomatometer_top, are not watched."""
FIELD_RUN = 30
"""Pages in a row: a field that is not a score is missing when it is unknown on them, after this
crawl has seen it."""
GONE_AFTER_PAGES = 30
"""Pages in a row: the crawl stops when none of them can be read, or none has a known score."""
_WATCHED_SCORES = frozenset(
    column_of(name)
    for kind in SCOREBOARD_KINDS
    for name in (f"scores.{kind}", f"scores.{kind}.count")
)


class MissingFields:
    """Follows the title pages of one site, in one process."""

    def __init__(self) -> None:
        self.missing: dict[str, str] = {}
        """Field → why it is missing, with the page that showed it."""
        self.unreadable = 0
        """Current number of pages in a row that could not be read."""
        self.scoreless = 0
        """Current number of pages in a row of which every score is unknown."""
        self._windows: defaultdict[str, deque[bool]] = defaultdict(
            lambda: deque(maxlen=SCORE_WINDOW)
        )
        self._runs: dict[str, int] = {}
        """Field that was seen → current number of pages in a row on which it is unknown."""

    def add_unreadable(self) -> None:
        """Count a page that could not be read."""
        self.unreadable += 1

    def add(self, movie: Movie) -> list[str]:
        """Add what was read from a page; return the fields that are missing since this page."""
        fields = fields_published_by(movie.site, movie.kind)
        unknown = frozenset(movie.unknown_fields)
        scores = fields.intersection(column_of(f"scores.{kind}") for kind in SCORES)
        self.unreadable = 0
        self.scoreless = self.scoreless + 1 if scores <= unknown else 0
        # A page has a number of votes only if it has the score.
        counts = {column_of(f"scores.{score.kind}.count") for score in movie.scores}
        reasons = {}
        for name in (fields | counts) & _WATCHED_SCORES:
            window = self._windows[name]
            window.append(name in unknown)
            if sum(window) >= MISSING_SCORE_PAGES:
                reasons[name] = f"unknown on {sum(window)} of the latest {len(window)} pages"
        optional = {column_of(name) for name in SITES[movie.site].optional_fields}
        for name in fields - optional - scores:
            if name not in unknown:
                self._runs[name] = 0
            elif name in self._runs:
                self._runs[name] += 1
                if self._runs[name] >= FIELD_RUN:
                    reasons[name] = f"unknown on {self._runs[name]} pages in a row"
        new = sorted(reasons.keys() - self.missing.keys())
        self.missing.update({name: f"{reasons[name]}, such as {movie.site_id}" for name in new})
        return new
