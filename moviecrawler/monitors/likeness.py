"""With which pages a page is compared: pages of titles like its own. Fame decides which fields a title has.

A title that a million people voted on has a Metascore and a budget, and one with fifty votes has neither, whoever asks for
it; so a field is looked at among pages with about as many votes. Whether the votes are still there at all is looked at
among pages that tell about as much besides.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from moviecrawler.catalogue.fields import BITS, COUNTS, NAMES

if TYPE_CHECKING:
    from collections.abc import Collection

    from moviecrawler.items import Movie, ScoreKind
    from moviecrawler.monitors.coverage import Levels

VOTES = "votes"
"""Whether a page says of any of its scores how many votes it is of."""
_SCORES = tuple((kind, f"scores.{kind}", name) for name, kind in COUNTS.items())
_OTHERS = tuple(name for name in NAMES if not name.startswith("scores."))
_OTHER_BITS = sum(BITS[name] for name in _OTHERS)
_BANDS = ("-", *map(str, range(17)))
"""Of votes: none, then the halves of powers of ten, 1, 3, 10, 32 and so on, to 100 million and more."""
_RICHER = 3
"""Fields by which a page of the next group is richer."""
_RICHNESS = tuple(f"rich {place}" for place in range(len(_OTHERS) // _RICHER + 1))


class Observation(NamedTuple):
    """Whether a page has a field."""

    group: str
    """The pages it is compared with."""
    field: str
    """One of `catalogue.fields.NAMES`; of `COUNTS`, of pages that show the score; or `VOTES`."""
    has: bool


def section_of(movie: Movie) -> str:
    """Return what a title is whatever its fame: `<list>|<kind>|<new or old>`.

    A title that is not out yet has no scores. One whose year can't be read is taken for an older one, as most are.
    """
    is_new = movie.year is not None and movie.scraped_at is not None and movie.year >= movie.scraped_at.year
    return f"{movie.list_name or '-'}|{movie.kind}|{'new' if is_new else 'old'}"


def group_of(movie: Movie) -> str:
    """Return the group of a title's pages: its section and the magnitude of its votes."""
    return f"{section_of(movie)}|{_band(_votes(movie).values())}"


def observe(movie: Movie, having: int) -> list[Observation]:
    """Return all that a page tells of its fields; `having` are the bits of those it has.

    A score is looked at by the votes of the other scores, as its own go with it.
    """
    section, votes = section_of(movie), _votes(movie)
    group = f"{section}|{_band(votes.values())}"
    found = [Observation(group, name, bool(having & BITS[name])) for name in _OTHERS]
    for kind, name, count_name in _SCORES:
        has = bool(having & BITS[name])
        others = [count for other, count in votes.items() if other != kind]
        if others:
            found.append(Observation(f"{section}|{_band(others)}", name, has))
        if has:
            found.append(Observation(f"{section}|any", count_name, kind in votes))
    richness = _RICHNESS[(having & _OTHER_BITS).bit_count() // _RICHER]
    return [*found, Observation(f"{section}|{richness}", VOTES, bool(votes))]


@lru_cache(maxsize=1024)
def groups_beside(group: str) -> tuple[list[str], list[str]]:
    """Return the groups of the same section whose titles are at most as famous as a group's, and those at least as famous."""
    section, _, place = group.rpartition("|")
    for scale in (_BANDS, _RICHNESS):
        if place in scale:
            groups = [f"{section}|{each}" for each in scale]
            here = scale.index(place)
            return groups[: here + 1], groups[here:]
    return [group], [group]


def groups_of_today(levels: Levels) -> Levels:
    """Return the levels without the groups of an earlier version, which knew a section only."""
    return {group: fields for group, fields in levels.items() if len(group.split("|")) > len(("list", "kind", "age"))}


def _votes(movie: Movie) -> dict[ScoreKind, int]:
    return {score.kind: score.count for score in movie.scores if score.count}


def _band(counts: Collection[int]) -> str:
    return _BANDS[1 + min(int(2 * math.log10(max(counts))), len(_BANDS) - 2)] if counts else _BANDS[0]
