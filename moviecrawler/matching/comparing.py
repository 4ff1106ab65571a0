"""Compares two titles of different sites. Pure.

The result has points with reasons, and a decision. The points order the candidates of a title. The
decision is that of the first row of `rules.csv` that fits; both films and series begin with vetoes
against other directors and against dissimilar titles. An id that a site or a source names outweighs
the rules, unless kinds or IMDb ids contradict each other.
"""

from __future__ import annotations

import csv
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

import msgspec

from moviecrawler.basics.files import read_package_file
from moviecrawler.matching.normalise import similar
from moviecrawler.matching.people import same_person
from moviecrawler.sites import ID_SITE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from moviecrawler.matching.forms import Title

Decision = Literal["accepted", "review", "refused"]

ACCEPTED_FROM = 1.5
REVIEW_FROM = 1.0
"""Points from which a pair with an id from Wikidata is accepted or reviewed; the table decides on
pairs without an id."""
SAME_ID = 4.0
"""Points of an equal IMDb id: more than everything else together."""
BY_HAND = 4.0
"""Points of an id given by hand: more than everything else together."""
WIKIDATA = 2.0
LISTED = 0.25
RIVALS_WITHIN = 0.5
"""Points by which a pair must be ahead of every other pair of its titles."""

_SURE_WITHOUT_TITLE = 2.5
"""Points from which an id of Wikidata needs no similar title, as films are renamed in other
countries."""
_LIKENESS: dict[Likeness, float] = {"equal": 1.0, "near": 0.5}
_DIRECTORS: dict[Directors, float] = {"same": 1.5, "other": -1.0}
_YEARS: dict[Years, float] = {
    "same": 1.0,
    "next": 0.75,
    "run": 0.5,
    "before": 0.25,
    "later": 0.25,
    "apart": -1.0,
}
_EXTENTS: dict[Extent, float] = {
    "same": 0.5,
    "near": 0.25,
    "unlike": -0.5,
    "other": -1.0,
    "missing": -0.25,
}
_VOTES: dict[Votes, float] = {"some": -0.25, "few": -1.0}
_PROMINENCE = 0.25
"""Points between rivals for ten times the votes: a site with reviews means the film that people
know."""
_VOTES_UNKNOWN = 100
"""The votes that a rival with unknown votes is given."""
_KNOWN = 1_000
_OBSCURE = 100
"""Votes on IMDb from which nearly every film is on the other sites, and below which hardly any
is."""
_SAME_MINUTES = 2
_NEAR_MINUTES = 5
"""Minutes by which sites round and count the credits differently, and by which a short film's
runtimes may differ."""
_SIMILAR_SHARE = 0.1
_UNLIKE_SHARE = 0.2
"""Versions of one film differ by less than the first share, remakes seldom do. In another country a
film may be shorter by the second."""
_SEASONS_APART = 3
"""Sites count specials and half seasons differently; from this difference on, twice as many seasons
mean another series."""
_FILMS = frozenset({"movie", "short", "video"})
"""IMDb distinguishes these; the other sites call all of them movies."""
_MAY_BE_OTHER = _FILMS | {"series", "other"}
"""IMDb's specials (a comedian's hour) are films on one site and series on another."""


Likeness = Literal["equal", "near", "none"]
"""`near`: similar, or without a subtitle."""
Years = Literal["same", "next", "before", "later", "third", "run", "apart", "unknown"]
"""Of the other site's year: `next` is a year after IMDb's, `before` a year before it, `later` two
and `third` three years after it, `run` a year in which the series runs."""
Directors = Literal["same", "other", "unknown"]
"""Of series, creators."""
Extent = Literal["same", "near", "similar", "unlike", "other", "missing", "unknown"]
"""Runtimes: `same` (2 minutes), `near` (5), `similar` (a tenth), `unlike` (a fifth), `missing`
(IMDb alone has none). Of series, the numbers of seasons: `same`, `unlike` or `unknown`."""
Votes = Literal["many", "some", "few", "unknown"]
"""On IMDb: `many` (1,000), `few` (fewer than 100)."""


class Comparison(NamedTuple):
    """What two titles have in common, in the terms of the rules."""

    likeness: Likeness
    years: Years
    directors: Directors
    extent: Extent
    votes: Votes


class Rule(msgspec.Struct):
    """A row of `rules.csv`."""

    kinds: set[Literal["films", "series"]]
    decision: Decision
    likeness: set[Likeness]
    """The values that are allowed, as in the next columns; empty allows all."""
    years: set[Years]
    directors: set[Directors]
    extent: set[Extent]
    votes: set[Votes]
    example: str
    """A pair that it decides, of IMDb and of another site: title | year or years | director or
    creator | minutes or seasons | votes."""

    def fits(self, comparison: Comparison) -> bool:
        """Return whether it allows all that two titles have in common."""
        return all(
            value in allowed
            for column, value in zip(Comparison._fields, comparison, strict=True)
            if (allowed := getattr(self, column))
        )


RULES = [
    msgspec.convert(
        {
            column: cell if column in {"decision", "example"} else cell.split()
            for column, cell in row.items()
        },
        Rule,
    )
    for row in csv.DictReader(read_package_file("moviecrawler.matching", "rules.csv").splitlines())
]
FILMS = [rule for rule in RULES if "films" in rule.kinds]
SERIES = [rule for rule in RULES if "series" in rule.kinds]


class Evidence(NamedTuple):
    """What counts for a match or, below 0, against it."""

    points: float
    reason: str


NO_EVIDENCE = Evidence(0.0, "")


@dataclass(slots=True, kw_only=True)
class Match:
    """The result of comparing two titles of different sites."""

    score: float
    reasons: list[str]
    """Reasons for a match and, with "but" in front, against it."""
    decision: Decision
    weight: float = 0.0
    """Points that are compared with those of rivals: the score, and more for many votes."""
    is_candidate: bool = True
    """Whether titles or ids have anything in common. A pair without that is never a rival of
    another pair."""

    @property
    def accepted(self) -> bool:
        """Whether the two are stored as one title."""
        return self.decision == "accepted"


def compare(a: Title, b: Title, of_id: Evidence = NO_EVIDENCE) -> Match:
    """Compare two titles; `of_id` is the evidence of the source of the page's id."""
    against = contradiction(a, b)
    if against is not None:
        return Match(score=0.0, reasons=[f"but {against}"], decision="refused", is_candidate=False)
    comparison = comparison_of(a, b)
    votes = _votes(a, b)
    is_same_id = _have_same_id(a, b)
    maker = "creator" if _are_series(a, b) else "director"
    is_same_maker = comparison.directors == "same"
    evidence = [
        Evidence(SAME_ID if is_same_id else 0.0, "same IMDb id"),
        of_id,
        Evidence(
            _LIKENESS.get(comparison.likeness, 0.0),
            "same title" if comparison.likeness == "equal" else "similar title",
        ),
        Evidence(_YEARS.get(comparison.years, 0.0), _years_shown(a, b, comparison.years)),
        Evidence(
            _DIRECTORS.get(comparison.directors, 0.0),
            f"same {maker}" if is_same_maker else f"other {maker}s",
        ),
        Evidence(_EXTENTS.get(comparison.extent, 0.0), _extents_shown(a, b, comparison.extent)),
        Evidence(
            0.0 if is_same_maker else _VOTES.get(comparison.votes, 0.0),
            f"only {votes} votes on IMDb",
        ),
    ]
    reasons = [reason if points > 0 else f"but {reason}" for points, reason in evidence if points]
    if comparison.likeness == "none":
        reasons.append("but unlike titles")
    score = sum(each.points for each in evidence)
    id_points = SAME_ID if is_same_id else of_id.points
    return Match(
        score=score,
        reasons=reasons,
        decision=_decision(comparison, score, id_points, SERIES if _are_series(a, b) else FILMS),
        weight=score + _PROMINENCE * math.log10(1 + (_VOTES_UNKNOWN if votes is None else votes)),
        is_candidate=comparison.likeness != "none" or is_same_id,
    )


def have_something_in_common(a: Title, b: Title) -> bool:
    """Return whether two titles are a candidate for `compare`, which takes much longer."""
    return _have_same_id(a, b) or _likeness(a, b) != "none"


def _have_same_id(a: Title, b: Title) -> bool:
    return a.imdb_id is not None and a.imdb_id == b.imdb_id


def decide(comparison: Comparison, rules: Sequence[Rule]) -> Rule:
    """Return the first rule that fits."""
    return next(rule for rule in rules if rule.fits(comparison))


def _decision(
    comparison: Comparison, score: float, id_points: float, rules: Sequence[Rule]
) -> Decision:
    """Return the decision for a score that includes `id_points` for an id."""
    is_unlike = comparison.likeness == "none"
    is_close = comparison.years in {"same", "next", "before", "unknown"}
    if id_points >= BY_HAND:
        # A page may name the IMDb id of a pilot or a dubbed version: then neither title nor year
        # agree.
        return "review" if is_unlike and not is_close else "accepted"
    if id_points >= WIKIDATA:
        enough = _SURE_WITHOUT_TITLE if is_unlike else ACCEPTED_FROM
        # Other directors and another year: the site has given an old address to another film of
        # that name.
        if score >= enough and (comparison.directors != "other" or is_close):
            return "accepted"
        return "review" if score >= REVIEW_FROM else "refused"
    return decide(comparison, rules).decision


def contradiction(a: Title, b: Title) -> str | None:
    """Return why two titles can't be one, whatever else they share; None when they can."""
    kinds = {a.kind, b.kind} - {None}
    if len(kinds) > 1 and kinds - _FILMS and ("other" not in kinds or kinds - _MAY_BE_OTHER):
        return f"one is a {a.kind}, one a {b.kind}"
    if a.imdb_id and b.imdb_id and a.imdb_id != b.imdb_id:
        return f"IMDb ids {a.imdb_id} and {b.imdb_id}"
    if "season" in kinds:
        return "seasons are matched by their series and number"
    # Metacritic's pages of seasons name the IMDb id of the series.
    if None not in {a.kind, b.kind} and (a.season, a.episode) != (b.season, b.episode):
        return "other season or episode"
    return None


# --- What is compared -----------------------------------------------------------------------------


def comparison_of(a: Title, b: Title) -> Comparison:
    """Return what two titles have in common."""
    directors: dict[bool | None, Directors] = {True: "same", False: "other", None: "unknown"}
    return Comparison(
        likeness=_likeness(a, b),
        years=_years(a, b),
        directors=directors[same_person(a.directors, b.directors)],
        extent=_seasons(a, b) if _are_series(a, b) else _runtimes(a, b),
        votes=_prominence(_votes(a, b)),
    )


def _likeness(a: Title, b: Title) -> Likeness:
    if a.names & b.names or a.further & b.names or a.names & b.further:
        return "equal"
    if (
        a.names & b.short_forms
        or a.short_forms & b.names
        or any(similar(one, other) for one in a.names for other in b.names)
    ):
        return "near"
    return "none"


def _years(a: Title, b: Title) -> Years:
    if a.year is not None and a.year == b.year:
        return "same"
    if not (a.years and b.years):
        return "unknown"
    gap, one, other = min((abs(one - other), one, other) for one in a.years for other in b.years)
    if gap == 0:  # only a release date agrees
        if a.year is None or b.year is None:
            return "next"
        gap = 1
        one = a.year
        other = b.year
    if gap > 1 and _are_series(a, b) and (_in_run(a, b) or _in_run(b, a)):
        return "run"
    if (a.site == ID_SITE) == (b.site == ID_SITE):
        return "next" if gap == 1 else "apart"
    after: dict[int, Years] = {1: "next", 2: "later", 3: "third"}
    if (one < other) == (a.site == ID_SITE):
        return after.get(gap, "apart")
    return "before" if gap == 1 else "apart"


def _years_shown(a: Title, b: Title, years: Years) -> str:
    if years == "same":
        return "same year"
    if years == "run":
        return "years of one run"
    if a.years & b.years:
        return "released in that year"
    return f"years {min(a.years, default='')} and {min(b.years, default='')}"


def _are_series(a: Title, b: Title) -> bool:
    kinds = {a.kind, b.kind}
    return "series" in kinds and kinds <= {"series", None}


def _in_run(a: Title, b: Title) -> bool:
    """Return whether `a` begins while the series `b` runs.

    Only on IMDb does a missing last year mean that it still runs.
    """
    if a.year is None or b.year is None or a.year < b.year:
        return False
    return a.year <= b.end_year if b.end_year is not None else b.site == ID_SITE


def _seasons(a: Title, b: Title) -> Extent:
    if a.seasons is None or b.seasons is None:
        return "unknown"
    fewer, more = sorted((a.seasons, b.seasons))
    if fewer == more:
        return "same" if more > 1 else "unknown"  # most series have one
    return "unlike" if more - fewer >= _SEASONS_APART and more >= 2 * fewer else "unknown"


def _runtimes(a: Title, b: Title) -> Extent:
    if (a.kind or b.kind or "movie") not in _FILMS:
        return "unknown"  # of a special, some sites give an episode's runtime
    if a.runtime is None or b.runtime is None:
        sites_without = [title.site for title in (a, b) if title.runtime is None]
        return "missing" if sites_without == [ID_SITE] else "unknown"
    shorter, longer = sorted((a.runtime, b.runtime))
    if longer - shorter <= _NEAR_MINUTES:
        return "same" if longer - shorter <= _SAME_MINUTES else "near"
    if longer - shorter <= _SIMILAR_SHARE * longer:
        return "similar"
    return "unlike" if longer - shorter <= _UNLIKE_SHARE * longer else "other"


def _extents_shown(a: Title, b: Title, extent: Extent) -> str:
    if _are_series(a, b):
        both = f"{a.seasons} and {b.seasons} seasons"
        return f"both of {a.seasons} seasons" if extent == "same" else both
    texts: dict[Extent, str] = {
        "same": "same runtime",
        "near": "about the same runtime",
        "missing": "IMDb knows no runtime",
    }
    return texts.get(extent, f"runtimes of {a.runtime} and {b.runtime} min")


def _prominence(votes: int | None) -> Votes:
    if votes is None:
        return "unknown"
    if votes >= _OBSCURE:
        return "many" if votes >= _KNOWN else "some"
    return "few"


def _votes(a: Title, b: Title) -> int | None:
    return a.votes if a.votes is not None else b.votes
