"""Compares two titles of different sites. Pure.

The result has points with reasons, and a decision from a table of rules.

The points order the candidates of a title. The decision is that of the first row of `FILMS` or
`SERIES` that fits; both begin with vetoes against other directors and against dissimilar titles. An
id that a site or a source names outweighs the table, unless kinds or IMDb ids contradict each
other.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

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
_LIKENESS = {"equal": 1.0, "near": 0.5}
_DIRECTORS = {"same": 1.5, "other": -1.0}
_YEARS = {
    "same": 1.0,
    "next": 0.75,
    "run": 0.5,
    "before": 0.25,
    "later": 0.25,
    "apart": -1.0,
}
_EXTENTS = {"same": 0.5, "near": 0.25, "unlike": -0.5, "other": -1.0, "missing": -0.25}
_VOTES = {"some": -0.25, "few": -1.0}
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
"""IMDb tells these apart; the other sites call all of them movies."""
_MAY_BE_OTHER = _FILMS | {"series", "other"}
"""IMDb's specials (a comedian's hour) are films on one site and series on another."""


class Facts(NamedTuple):
    """The facts about a pair of titles that the rules are written in."""

    likeness: str
    """`equal`, `near` (similar, or without a subtitle), or `none`."""
    years: str
    """Of the other site's year: `same`, `next` (a year after IMDb's), `before` (a year before it),
    `later` (two after it), `third` (three after it), `run` (a year in which the series runs),
    `apart`, or `unknown`."""
    directors: str
    """Of series, creators: `same`, `other` or `unknown`."""
    extent: str
    """Runtimes: `same` (2 minutes), `near` (5), `similar` (a tenth), `unlike` (a fifth), `other`,
    `missing` (IMDb alone knows none) or `unknown`. Of series, the numbers of seasons: `same`,
    `unlike` or `unknown`."""
    votes: str
    """On IMDb: `many` (1,000), `some`, `few` (fewer than 100) or `unknown`."""


class Rule(NamedTuple):
    """A row of the table: the values that each fact may have."""

    decision: Decision
    facts: Facts


_ANY = ""
_NOT_FEW = "many some unknown"
_NOT_OTHER = "same near similar unknown missing"
_NOT_OTHER_DIRECTOR = "same unknown"


def _rule(
    decision: Decision,
    likeness: str,
    years: str,
    directors: str,
    extent: str,
    votes: str,
) -> Rule:
    return Rule(decision, Facts(likeness, years, directors, extent, votes))


# Above each row is a pair that it decides, of IMDb and of another site: title | year or years |
# director or creator | minutes or seasons | votes.
_VETO: list[Rule] = [
    # Crash|2004|Paul Haggis|112 = Crash|2004|David Cronenberg|110
    _rule("review", "equal", "same", "other", "same near similar unknown", _ANY),
    # Psycho|1960|Alfred Hitchcock|109 = Psycho|1998|Gus Van Sant|105
    _rule("refused", _ANY, _ANY, "other", _ANY, _ANY),
    # Alien|1979|Ridley Scott|117 = Alien Covenant|2017|Ridley Scott|122
    _rule("refused", "none", _ANY, _ANY, _ANY, _ANY),
]
FILMS: list[Rule] = [
    # Sahara Lys|1999|Ida Brandt|101 = Lights of the Sahara|1999|Ida Brandt|102
    _rule("review", "none", "same", "same", "same", _ANY),
    *_VETO,
    # The Hurt Locker|2008|Kathryn Bigelow|131 = The Hurt Locker|2009|Kathryn Bigelow|127
    _rule("accepted", "equal", "same next before unknown", "same", _ANY, _ANY),
    # Hero|2002|Zhang Yimou|107 = Hero|2004|Yimou Zhang|99
    _rule("accepted", "equal", "later third", "same", _NOT_OTHER, _ANY),
    # Metropolis|1927|Fritz Lang|153 = Metropolis [re-release]|2010|Fritz Lang|150
    _rule("accepted", "equal", _ANY, "same", "same near unknown missing", _ANY),
    # The Man Who Knew Too Much|1934|Alfred Hitchcock|75
    # = The Man Who Knew Too Much|1956|Alfred Hitchcock|120
    _rule("review", "equal", _ANY, "same", _ANY, _ANY),
    # Star Wars: Episode IV - A New Hope|1977|George Lucas|121 = Star Wars|1977|George Lucas|125
    _rule("accepted", "near", "same", "same", _NOT_OTHER, _ANY),
    # Koyaanisqatsi|1982|Godfrey Reggio|86
    # = Koyaanisqatsi - Life Out of Balance|1983|Godfrey Reggio|87
    _rule("accepted", "near", "next before", "same", "same", _ANY),
    # The Godfather|1972|Francis Ford Coppola|175 = The Godfather|1972||177
    _rule("accepted", "equal", "same", "unknown", "same near similar unknown", _NOT_FEW),
    # The Godfather|1972|||2000000 = The Godfather|1972||177
    _rule("accepted", "equal", "same", "unknown", "missing", "many unknown"),
    # Vatel|2000||103|9000 = Vatel|2000||117
    _rule("accepted", "equal", "same", "unknown", "unlike", "many"),
    # The Hurt Locker|2008||131 = The Hurt Locker|2009||127
    _rule("accepted", "equal", "next", "unknown", "same near similar unknown", _NOT_FEW),
    # Hero|2002||99 = Hero|2004||99
    _rule("accepted", "equal", "before later third", "unknown", "same", _NOT_FEW),
    # The Lord of the Rings: The Two Towers|2002||179|1700000 = The Two Towers|2002||179
    _rule("accepted", "near", "same", "unknown", "same unknown", "many"),
    # Dracula|1931||75 = Dracula|1931||104
    _rule("review", "equal", "same next before later third unknown", "unknown", _ANY, _ANY),
    # Rear Window|1954||112 = Rear Window|2000||112
    _rule("review", "equal", "apart", "unknown", "same near similar", _ANY),
    # Brewick|2001|Mara Levin = Brewick: The Return|2002|Mara Levin
    _rule(
        "review", "near", "same next before later unknown", _NOT_OTHER_DIRECTOR, _NOT_OTHER, _ANY
    ),
    # King Kong|1933||100 = King Kong|2005||187
    _rule("refused", _ANY, _ANY, _ANY, _ANY, _ANY),
]
SERIES: list[Rule] = [
    *_VETO,
    # Twin Peaks|1990-1991|Mark Frost = Twin Peaks|1990|David Lynch, Mark Frost
    _rule("accepted", "equal", "same next before run", "same", "same unknown", _ANY),
    # The Office|2005-2013||9 = The Office|2009||9
    _rule("accepted", "equal", "before run", "unknown", "same", _NOT_FEW),
    # The Wire|2002-2008||5 = The Wire|2002
    _rule("accepted", "equal", "same next", "unknown", "same unknown", _NOT_FEW),
    # Marvel's Daredevil|2015-2018|Drew Goddard = Daredevil|2015|Drew Goddard
    _rule("accepted", "near", "same", "same", "same unknown", _ANY),
    # Marvel's Daredevil|2015-2018||3 = Daredevil|2015||3
    _rule("accepted", "near", "same", "unknown", "same", _NOT_FEW),
    # Frasier|1993-2004|Christopher Lloyd = Frasier|2023|Christopher Lloyd
    _rule("review", "equal", _ANY, "same", _ANY, _ANY),
    # The Office|2005-2013||9 = The Office|2005||2
    _rule("review", "equal", "same next before run later third unknown", "unknown", _ANY, _ANY),
    # Marvel's Daredevil|2015-2018 = Daredevil|2015
    _rule("review", "near", "same next", _NOT_OTHER_DIRECTOR, _ANY, _ANY),
    # Battlestar Galactica|1978-1979 = Battlestar Galactica|2004
    _rule("refused", _ANY, _ANY, _ANY, _ANY, _ANY),
]


@dataclass(slots=True, kw_only=True)
class Match:
    """The result of comparing two titles of different sites."""

    score: float
    reasons: list[str]
    """Reasons for a match and, with "but" in front, against it."""
    decision: Decision
    is_candidate: bool = True
    """Whether titles or ids have anything in common. A pair without that is never a rival of
    another pair."""

    @property
    def accepted(self) -> bool:
        """Whether the two are stored as one title."""
        return self.decision == "accepted"


def compare(a: Title, b: Title, found: tuple[float, str] | None = None) -> Match:
    """Compare two titles; `found` has points and reason for the source of the page's id."""
    against = contradiction(a, b)
    if against is not None:
        return Match(score=0.0, reasons=[f"but {against}"], decision="refused", is_candidate=False)
    same_id = _have_same_id(a, b)
    are_series = _are_series(a, b)
    facts = facts_of(a, b)
    maker = "creator" if are_series else "director"
    points: list[tuple[float, str] | None] = [
        (SAME_ID, "same IMDb id") if same_id else None,
        found,
        (
            _LIKENESS.get(facts.likeness, 0.0),
            "same title" if facts.likeness == "equal" else "similar title",
        ),
        (_YEARS.get(facts.years, 0.0), _years_shown(a, b, facts.years)),
        (
            _DIRECTORS.get(facts.directors, 0.0),
            f"same {maker}" if facts.directors == "same" else f"other {maker}s",
        ),
        (
            _EXTENTS.get(facts.extent, 0.0),
            _extents_shown(a, b, facts.extent, are_series=are_series),
        ),
        (
            0.0 if facts.directors == "same" else _VOTES.get(facts.votes, 0.0),
            f"only {_votes(a, b)} votes on IMDb",
        ),
    ]
    counted = [each for each in points if each is not None and each[0]]
    score = sum(value for value, _ in counted)
    named = SAME_ID if same_id else found[0] if found else 0.0
    reasons = [reason if value > 0 else f"but {reason}" for value, reason in counted]
    if facts.likeness == "none":
        reasons.append("but unlike titles")
    return Match(
        score=score,
        reasons=reasons,
        decision=_decision(facts, score, named, SERIES if are_series else FILMS),
        is_candidate=facts.likeness != "none" or named > 0,
    )


def have_something_in_common(a: Title, b: Title) -> bool:
    """Return whether two titles are a candidate for `compare`, which takes much longer."""
    return _have_same_id(a, b) or _likeness(a, b) != "none"


def _have_same_id(a: Title, b: Title) -> bool:
    return a.imdb_id is not None and a.imdb_id == b.imdb_id


def decide(facts: Facts, rules: Sequence[Rule]) -> Rule:
    """Return the first rule that fits."""
    return next(
        rule
        for rule in rules
        if all(
            not allowed or fact in allowed.split()
            for allowed, fact in zip(rule.facts, facts, strict=True)
        )
    )


def _decision(facts: Facts, score: float, named: float, rules: Sequence[Rule]) -> Decision:
    """Return the decision for a score that includes `named` points for an id."""
    close = facts.years in {"same", "next", "before"}
    if named >= BY_HAND:
        # A page may name the IMDb id of a pilot or a dubbed version: then neither title nor year
        # agree.
        return (
            "accepted"
            if facts.likeness != "none" or close or facts.years == "unknown"
            else "review"
        )
    if named >= WIKIDATA:
        enough = _SURE_WITHOUT_TITLE if facts.likeness == "none" else ACCEPTED_FROM
        # Other directors and another year: the site has given an old address to another film of
        # that name.
        if score >= enough and (facts.directors != "other" or close or facts.years == "unknown"):
            return "accepted"
        return "review" if score >= REVIEW_FROM else "refused"
    return decide(facts, rules).decision


def weight(match: Match, a: Title, b: Title) -> float:
    """Return the points of a pair when it is compared with its rivals.

    They are its score, and more for many votes.
    """
    votes = _votes(a, b)
    return match.score + _PROMINENCE * math.log10(1 + (_VOTES_UNKNOWN if votes is None else votes))


def contradiction(a: Title, b: Title) -> str | None:
    """Return why two titles can't be one, whatever else they share; None when they can."""
    kinds = {a.kind, b.kind} - {None}
    if len(kinds) > 1 and not kinds <= _FILMS and not ("other" in kinds and kinds <= _MAY_BE_OTHER):
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


def facts_of(a: Title, b: Title) -> Facts:
    """Return the facts about two titles."""
    directors = {True: "same", False: "other", None: "unknown"}[
        same_person(a.directors, b.directors)
    ]
    votes = _votes(a, b)
    return Facts(
        likeness=_likeness(a, b),
        years=_years(a, b),
        directors=directors,
        extent=_seasons(a, b) if _are_series(a, b) else _runtimes(a, b),
        votes="unknown"
        if votes is None
        else "many"
        if votes >= _KNOWN
        else "some"
        if votes >= _OBSCURE
        else "few",
    )


def _likeness(a: Title, b: Title) -> str:
    if a.names & b.names or a.further & b.names or a.names & b.further:
        return "equal"
    if (
        a.names & b.parts
        or a.parts & b.names
        or any(similar(one, other) for one in a.names for other in b.names)
    ):
        return "near"
    return "none"


def _years(a: Title, b: Title) -> str:
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
    is_after = (one < other) == (a.site == ID_SITE)
    if gap == 1:
        return "next" if is_after else "before"
    return {2: "later", 3: "third"}.get(gap, "apart") if is_after else "apart"


def _years_shown(a: Title, b: Title, years: str) -> str:
    if years == "same":
        return "same year"
    if years == "run":
        return "years of one run"
    return (
        "released in that year"
        if a.years & b.years
        else f"years {min(a.years, default='')} and {min(b.years, default='')}"
    )


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


def _seasons(a: Title, b: Title) -> str:
    if a.seasons is None or b.seasons is None:
        return "unknown"
    fewer, more = sorted((a.seasons, b.seasons))
    if fewer == more:
        return "same" if more > 1 else "unknown"  # most series have one
    return "unlike" if more - fewer >= _SEASONS_APART and more >= 2 * fewer else "unknown"


def _runtimes(a: Title, b: Title) -> str:
    if (a.kind or b.kind or "movie") not in _FILMS:
        return "unknown"  # of a special, some sites give an episode's runtime
    if a.runtime is None or b.runtime is None:
        known, unknown = (a, b) if b.runtime is None else (b, a)
        return (
            "missing"
            if known.runtime is not None and unknown.site == ID_SITE != known.site
            else "unknown"
        )
    shorter, longer = sorted((a.runtime, b.runtime))
    if longer - shorter <= _NEAR_MINUTES:
        return "same" if longer - shorter <= _SAME_MINUTES else "near"
    if longer - shorter <= _SIMILAR_SHARE * longer:
        return "similar"
    return "unlike" if longer - shorter <= _UNLIKE_SHARE * longer else "other"


def _extents_shown(a: Title, b: Title, extent: str, *, are_series: bool) -> str:
    if are_series:
        return (
            f"both of {a.seasons} seasons"
            if extent == "same"
            else f"{a.seasons} and {b.seasons} seasons"
        )
    texts = {
        "same": "same runtime",
        "near": "about the same runtime",
        "missing": "IMDb knows no runtime",
    }
    return texts.get(extent, f"runtimes of {a.runtime} and {b.runtime} min")


def _votes(a: Title, b: Title) -> int | None:
    return a.votes if a.votes is not None else b.votes
