"""What is known of a title after one more reading of it, by any store and from any source: the one rule of erasing.

A value takes the place of a value. A stated absence erases the value at once. A field that the reading is silent of keeps
what was known of it. So each field has what the newest reading that tells of it says.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, get_args

from moviecrawler.fields import PARTS, present_in
from moviecrawler.items import Score, Source

if TYPE_CHECKING:
    from datetime import datetime

    from moviecrawler.items import Movie

_FULLNESS = {source: place for place, source in enumerate(("list", "dataset", "page"))}
assert set(_FULLNESS) == set(get_args(Source))  # noqa: S101 - a new source needs its place above


def supersedes(movie: Movie, known: Movie, margin: float, latest: datetime) -> bool:
    """Return whether a reading of a title takes the place of a known one; an older one never does.

    It has to be newer by `margin` seconds, in which little changes, or be from a fuller source. The same reading always
    does, as a better reader may have made more of the same page. A known reading from after `latest` always gives way: the clock of
    the machine that made it was wrong. Both have `scraped_at`.
    """
    assert movie.scraped_at is not None  # noqa: S101 - the stores' own condition
    assert known.scraped_at is not None  # noqa: S101
    if movie.scraped_at == known.scraped_at or known.scraped_at > latest:
        return True
    fuller = _FULLNESS[movie.source] > _FULLNESS[known.source]
    return (movie.scraped_at - known.scraped_at).total_seconds() >= (0 if fuller else margin)


def is_partial(movie: Movie) -> bool:
    """Return whether `complete` has to be asked, as a known reading may tell more."""
    return bool(movie.silent) or movie.source != "page"


def complete(movie: Movie, known: Movie) -> Movie:
    """Return a reading of a title with what an older one told of the fields that it is silent of.

    What is returned is silent of what neither tells, and its source is the fuller of both.
    """
    source = max(movie.source, known.source, key=_FULLNESS.__getitem__)
    if not movie.silent:
        return movie if source == movie.source else replace(movie, source=source)
    told = present_in(known)
    silent = set(movie.silent)
    changes: dict[str, Any] = {name: getattr(known, name) for name in silent & told if "." not in name}
    for name, (attribute, kinds) in PARTS.items():
        wanted = {kind for kind in kinds if f"{name}.{kind}" in silent & told}
        kept = [part for part in getattr(known, name) if getattr(part, attribute) in wanted]
        changes[name] = getattr(movie, name) + kept
    changes["scores"] = [_with_count(score, known, silent) for score in changes["scores"]]
    kept_scores = {f"scores.{score.kind}" for score in known.scores} & silent
    still = {name for name in silent - told if name in known.silent or _lacks_score(name, known)}
    still |= {name for name in known.silent if name.removesuffix(".count") in kept_scores}
    return replace(movie, **changes, silent=sorted(still), source=source)


def _with_count(score: Score, known: Movie, silent: set[str]) -> Score:
    """Return a score with the number of votes that is known of it, where its reading is silent of that."""
    before = known.score(score.kind) if f"scores.{score.kind}.count" in silent else None
    return score if before is None else replace(score, count=before.count)


def _lacks_score(name: str, known: Movie) -> bool:
    """Return whether a name is that of the votes of a score that isn't known: then nothing is known of its votes."""
    part, _, last = name.rpartition(".")
    return last == "count" and all(f"scores.{score.kind}" != part for score in known.scores)
