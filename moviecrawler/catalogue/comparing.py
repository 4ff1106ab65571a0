"""What two titles of different sites have in common, and how far that says that they are one: points with reasons. Pure.

Evidence adds up; README.md has what each piece of it counts, as the constants here do. A pair is accepted from ACCEPTED_FROM on, with an id or a
title that fits: never on a title alone, never with other directors, never when IMDb ids or kinds contradict each other. The weaker the
title, the more else must agree; see `_is_sure`. A series that began at another time, outside the run, is never accepted without an id.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

from moviecrawler.catalogue.normalise import (
    contains,
    is_distinctive,
    is_latin,
    similar,
    sound,
    sounds_similar,
    telling_words,
    without_numbers,
)
from moviecrawler.catalogue.people import same_person

if TYPE_CHECKING:
    from moviecrawler.catalogue.forms import Title

Decision = Literal["accepted", "review", "refused"]
_Likeness = Literal["equal", "similar", "part", "contained"]
_Runtimes = Literal["same", "near", "similar", "cut", "other"]

ACCEPTED_FROM = 1.5
REVIEW_FROM = 1.0
SAME_ID = 4.0
"""What an equal IMDb id counts: more than all else together."""
BY_HAND = 4.0
WIKIDATA = 2.0
LISTED = 0.25
RIVALS_WITHIN = 0.5
"""Points by which a title has to be ahead of every other that a page may be of."""

_LIKENESS: dict[_Likeness, float] = {"equal": 1.0, "similar": 0.5, "part": 0.5, "contained": 0.25}
_OTHER_PART = -1.0
_SURE_WITHOUT_TITLE = 2.5
"""From there on an id that Wikidata names needs no similar title: films are renamed in other countries."""
_SAME_DIRECTOR, _OTHER_DIRECTORS = 1.5, -1.0
_SAME_YEAR, _YEAR_LATER, _YEAR_APART, _DOUBTFUL_YEAR, _OTHER_YEAR = 1.0, 0.75, 0.5, 0.25, -1.0
_LATE_RELEASE = 2
"""Years after IMDb's in which many a film comes out in another country."""
_LATEST_RELEASE = 3
"""Years after which few do."""
_RUNTIMES: dict[_Runtimes, float] = {"same": 0.5, "near": 0.25, "similar": 0.0, "cut": -0.5, "other": -1.0}
_RUNTIME_SPREAD = 0.1
"""Cuts of one film differ by less, and so does a film that is released again; when it is made again, it seldom does."""
_CUT_SPREAD = 0.2
"""The share by which a film may be shorter in another country."""
_NEAR_RUNTIME = 5
"""Minutes by which runtimes may differ in any case: a short film's tenth is nothing."""
_SAME_RUNTIME = 2
"""Minutes by which two sites round and count the credits differently."""
_OTHER_RUNTIMES = frozenset({"cut", "other"})
_SAME_SEASONS, _OTHER_SEASONS = 0.5, -0.5
_SEVERAL_SEASONS = 2
"""From here on the same number says something: most series have one."""
_SEASONS_APART = 3
"""From here on the numbers are of two series: sites count specials, halves of seasons, and those to come, each in its own way."""
_RUNTIME_MISSING = -0.25
"""IMDb knows the runtime of nearly every film that other sites have."""
_KNOWN, _OBSCURE = 1_000, 100
"""Votes on IMDb from which nearly every film is on the other sites, and below which hardly any is."""
_LITTLE_KNOWN_POINTS, _OBSCURE_POINTS = -0.25, -1.0
_PROMINENCE = 0.25
"""Points for ten times the votes, between rivals."""
_VOTES_UNKNOWN = 100
"""Votes for which a rival passes of which they are not known."""

_FILMS = frozenset({"movie", "short", "video"})
"""IMDb tells these apart; the other sites call all of them movies."""
_MAY_BE_OTHER = _FILMS | {"series", "other"}
"""IMDb's specials (a comedian's hour) are films on one site and series on another."""


@dataclass(slots=True, kw_only=True)
class Match:
    """How far two titles of different sites are the same."""

    score: float
    reasons: list[str]
    """What speaks for it and, with "but" in front, what speaks against it."""
    decision: Decision
    alike: bool = True
    """Whether titles or ids have anything in common, without which the pair is nobody's rival."""

    @property
    def accepted(self) -> bool:
        """Whether it is sure enough to be stored as one title."""
        return self.decision == "accepted"


class _Evidence(NamedTuple):
    """What two titles have in common beside an id, as far as it decides whether they are one."""

    likeness: _Likeness | None
    gap: int | None
    """Years between them."""
    later: bool | None
    """Whether IMDb's year is the earlier; None where neither title or each is IMDb's."""
    in_run: bool
    """Whether a series' first year is one of those in which the other runs."""
    same_director: bool | None
    """Of series, a creator."""
    same_seasons: bool | None
    runtimes: _Runtimes | None
    one_sided: bool
    """Whether only IMDb lacks the runtime."""
    votes: int | None
    distinctive: bool
    """Whether there is much to a title that they have in common."""
    one_word: bool
    """Whether each of these has one word that says something."""


def compare(a: Title, b: Title, found: tuple[float, str] | None = None) -> Match:
    """Return how far two titles are one; `found` is what it counts where one was found, and says of it."""
    against = contradiction(a, b)
    if against is not None:
        return Match(score=0.0, reasons=[f"but {against}"], decision="refused", alike=False)
    same_id = a.imdb_id is not None and a.imdb_id == b.imdb_id
    likeness = _likeness(a, b)
    other_part = None if likeness else _other_part(a, b)
    gap, later = _years_apart(a, b)
    are_series = _are_series(a, b)
    seasons = _seasons_points(a, b) if are_series else None
    shared = a.names & b.names or (a.further & b.names) | (a.names & b.further)
    evidence = _Evidence(
        likeness=likeness[0] if likeness else None,
        gap=gap,
        later=later,
        in_run=are_series and gap is not None and gap > 1 and (_in_run(a, b) or _in_run(b, a)),
        same_director=same_person(a.directors, b.directors),
        same_seasons=None if seasons is None else seasons[0] > 0,
        runtimes=_runtimes(a, b),
        one_sided=_lacks_runtime(a, b),
        votes=_votes(a, b),
        distinctive=any(map(is_distinctive, shared)),
        one_word=all(telling_words(name) <= 1 for name in shared),
    )
    points: list[tuple[float, str] | None] = [
        (SAME_ID, "same IMDb id") if same_id else None,
        found,
        (_LIKENESS[likeness[0]], likeness[1]) if likeness else other_part,
        (_YEAR_APART, "years of one run") if evidence.in_run else _year_points(a, b, gap, later),
        _director_points("creator" if are_series else "director", same=evidence.same_director),
        seasons,
        _runtime_points(a, b, evidence.runtimes),
        (_RUNTIME_MISSING, "IMDb knows no runtime") if evidence.one_sided else None,
        None if evidence.same_director else _votes_points(evidence.votes),
    ]
    counted = [each for each in points if each is not None]
    score = sum(value for value, _ in counted)
    named = SAME_ID if same_id else found[0] if found else 0.0
    return Match(
        score=score,
        reasons=[reason if value > 0 else f"but {reason}" for value, reason in counted],
        decision=_decision(evidence, score, named, are_series=are_series, other_part=other_part is not None),
        alike=evidence.likeness is not None or named > 0,
    )


def _decision(e: _Evidence, score: float, named: float, *, are_series: bool, other_part: bool) -> Decision:
    """Return what is decided by a score, of which an id counts `named`; `other_part` is whether the titles differ by nothing but a number."""
    if named >= BY_HAND:
        # The id that a page names may be that of a pilot or a dub: then neither title nor year agree.
        accepted = e.likeness is not None or e.gap is None or e.gap <= 1
    elif named >= WIKIDATA and not (e.same_director is False and e.gap is not None and e.gap > 1):
        # Other directors and another year: an old address has become that of a namesake.
        accepted = score >= (ACCEPTED_FROM if e.likeness not in {None, "contained"} else _SURE_WITHOUT_TITLE)
    else:
        # That the site lists a title is no second reason for it.
        accepted = score - named >= ACCEPTED_FROM and (_is_sure_series(e) if are_series else _is_sure(e))
    if accepted:
        return "accepted"
    # A film that is released again may carry the year of that, and be cut anew.
    may_be_again = e.likeness == "equal" and (
        e.same_director or (e.same_director is None and e.runtimes in {"same", "near", "similar"})
    )
    is_other_part = other_part or (
        e.likeness in {"part", "contained"} and e.gap is not None and (e.gap > _LATE_RELEASE or e.in_run)
    )
    undecided = (score >= REVIEW_FROM and (named >= WIKIDATA or not is_other_part)) or may_be_again
    return "review" if undecided else "refused"


def weight(match: Match, a: Title, b: Title) -> float:
    """Return by how many points a pair stands beside its rivals: sites with reviews have what many people vote on."""
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
        return "seasons are told by their series and number"
    # Metacritic's pages of seasons name the IMDb id of the series.
    if None not in {a.kind, b.kind} and (a.season, a.episode) != (b.season, b.episode):
        return "other season or episode"
    return None


# --- What is compared -------------------------------------------------------------------------------------------------


def _is_sure(e: _Evidence) -> bool:
    """Return whether two films without an id are one."""
    if e.likeness is None or e.same_director is False:
        return False
    about_the_same = e.runtimes in {"same", "near"}
    if e.likeness == "contained":
        return e.same_director is True and e.gap in {0, 1} and about_the_same
    if e.same_director:
        if e.likeness in {"similar", "part"}:
            # A sequel is often a subtitle and a year away.
            return e.runtimes not in _OTHER_RUNTIMES and (
                e.gap == 0 or (e.likeness == "similar" and e.gap == 1 and e.runtimes == "same")
            )
        if e.gap is None or e.gap <= 1:
            return True
        # A film that is released again may carry the year of that. So does one that is made again, by someone else.
        if e.gap <= _LATE_RELEASE and e.later is not False:
            return e.runtimes not in _OTHER_RUNTIMES
        return e.likeness == "equal" and (e.runtimes is None or about_the_same)
    # The director is not known.
    if e.gap is None or (e.votes is not None and e.votes < _OBSCURE):
        return False
    well_known = e.votes is not None and e.votes >= _KNOWN
    if e.runtimes in _OTHER_RUNTIMES:
        return e.runtimes == "cut" and e.likeness == "equal" and e.gap == 0 and well_known and e.distinctive
    if e.likeness in {"similar", "part"}:
        known_enough = e.votes is None or well_known
        return e.gap == 0 and known_enough and not e.one_sided and (e.runtimes is None or about_the_same)
    if e.gap == 0:
        return e.votes is None or well_known or not e.one_sided
    if e.gap == 1 and e.later is not False:
        return well_known or e.distinctive or not e.one_sided or (e.votes is None and not e.one_word)
    if e.runtimes != "same":
        return False
    if e.later is False:
        return e.gap == 1
    return e.gap <= _LATE_RELEASE or (e.gap <= _LATEST_RELEASE and (well_known or e.distinctive))


def _is_sure_series(e: _Evidence) -> bool:
    """Return whether two series without an id are one.

    Whoever begins a show again often is who began it, so that a creator says nothing about a year outside the run.
    """
    if e.likeness in {None, "contained"} or e.same_director is False or e.gap is None or e.same_seasons is False:
        return False
    backed = bool(e.same_director or e.same_seasons)
    if e.votes is not None and e.votes < _OBSCURE and not e.same_director:
        return False
    if e.likeness != "equal":
        return e.gap == 0 and backed
    if e.in_run:
        return backed or e.distinctive
    return e.gap == 0 or (e.gap == 1 and (backed or e.later is not False))


def _likeness(a: Title, b: Title) -> tuple[_Likeness, str] | None:
    if a.names & b.names:
        return "equal", "same title"
    if a.further & b.names or a.names & b.further:
        return "equal", "a title under which it is known too"
    if a.names & b.parts or a.parts & b.names:
        return "part", "same title but for a subtitle"
    found: tuple[_Likeness, str] | None = None
    for one in a.names:
        for other in b.names:
            if is_latin(one) != is_latin(other):
                ours, theirs = sound(one), sound(other)
                if sounds_similar(ours, theirs):
                    if ours == theirs:
                        return "equal", "same title in another script"
                    found = "similar", "same title in another script"
            elif found is None and similar(one, other):
                found = "similar", "similar title"
    if found is None and any(
        contains(*sorted((one, other), key=len, reverse=True)) for one in a.names for other in b.names
    ):
        return "contained", "one title has the other in it"
    return found


def _other_part(a: Title, b: Title) -> tuple[float, str] | None:
    """Return what it says that two titles differ by nothing but a number, as those of sequels do."""
    ours, theirs = ({words for name in title.names if (words := without_numbers(name))} for title in (a, b))
    return (_OTHER_PART, "another number") if ours & theirs else None


def _years_apart(a: Title, b: Title) -> tuple[int | None, bool | None]:
    """Return how many years two titles are apart, None when unknown; and whether IMDb's is the earlier, if one is IMDb's.

    Where only a date of release agrees, that is one year.
    """
    if a.year is not None and a.year == b.year:
        return 0, None
    at_least = 0 if a.year is None or b.year is None else 1
    if at_least == 0 and not (a.years and b.years):
        return None, None
    gap, one, other = min((max(1, abs(one - other)), one, other) for one in a.years for other in b.years)
    if one == other and a.year is not None and b.year is not None:
        one, other = a.year, b.year
    if (a.site == "imdb") == (b.site == "imdb") or one == other:
        return gap, None
    return gap, (one < other) if a.site == "imdb" else (other < one)


def _year_points(a: Title, b: Title, gap: int | None, later: bool | None) -> tuple[float, str] | None:
    if gap is None:
        return None
    if gap == 0:
        return _SAME_YEAR, "same year"
    released = bool(a.years & b.years)
    shown = "released in that year" if released else f"years {min(a.years)} and {min(b.years)}"
    if released or gap == 1:
        return (_YEAR_APART if later is None else _YEAR_LATER if later else _DOUBTFUL_YEAR), shown
    if gap <= _LATE_RELEASE and later:
        return _DOUBTFUL_YEAR, shown
    return (0.0 if gap <= _LATEST_RELEASE and later else _OTHER_YEAR), shown


def _are_series(a: Title, b: Title) -> bool:
    kinds = {a.kind, b.kind}
    return "series" in kinds and kinds <= {"series", None}


def _in_run(a: Title, b: Title) -> bool:
    """Return whether a series' first year is one of those in which the other runs. That one still runs only IMDb is sure to say."""
    if a.year is None or b.year is None or a.year < b.year:
        return False
    return a.year <= b.end_year if b.end_year is not None else b.site == "imdb"


def _director_points(maker: str, *, same: bool | None) -> tuple[float, str] | None:
    if same is None:
        return None
    return (_SAME_DIRECTOR, f"same {maker}") if same else (_OTHER_DIRECTORS, f"other {maker}s")


def _seasons_points(a: Title, b: Title) -> tuple[float, str] | None:
    if a.seasons is None or b.seasons is None:
        return None
    fewer, more = sorted((a.seasons, b.seasons))
    if fewer == more:
        return (_SAME_SEASONS, f"both of {more} seasons") if more >= _SEVERAL_SEASONS else None
    if more - fewer >= _SEASONS_APART and more >= 2 * fewer:
        return _OTHER_SEASONS, f"{a.seasons} and {b.seasons} seasons"
    return None


def _runtimes(a: Title, b: Title) -> _Runtimes | None:
    # Of a series, some sites give an episode's runtime and some that of all of them.
    if a.runtime is None or b.runtime is None or (a.kind or b.kind or "movie") not in _FILMS:
        return None
    shorter, longer = sorted((a.runtime, b.runtime))
    if longer - shorter <= _NEAR_RUNTIME:
        return "same" if longer - shorter <= _SAME_RUNTIME else "near"
    if longer - shorter <= _RUNTIME_SPREAD * longer:
        return "similar"
    return "cut" if longer - shorter <= _CUT_SPREAD * longer else "other"


def _runtime_points(a: Title, b: Title, runtimes: _Runtimes | None) -> tuple[float, str] | None:
    if runtimes is None or runtimes == "similar":
        return None
    said = {"same": "same runtime", "near": "about the same runtime"}
    return _RUNTIMES[runtimes], said.get(runtimes, f"runtimes of {a.runtime} and {b.runtime} min")


def _lacks_runtime(a: Title, b: Title) -> bool:
    """Return whether IMDb alone has no runtime of a film."""
    return any(
        one.site == "imdb" != other.site
        and one.runtime is None
        and other.runtime is not None
        and (one.kind or other.kind or "movie") in _FILMS
        for one, other in ((a, b), (b, a))
    )


def _votes(a: Title, b: Title) -> int | None:
    return a.votes if a.votes is not None else b.votes


def _votes_points(votes: int | None) -> tuple[float, str] | None:
    if votes is None or votes >= _KNOWN:
        return None
    return (_OBSCURE_POINTS if votes < _OBSCURE else _LITTLE_KNOWN_POINTS), f"only {votes} votes on IMDb"
