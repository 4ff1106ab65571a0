"""The fields of a movie that pages usually have: by which coverage is counted, and values are kept."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, get_args, get_type_hints

from moviecrawler.items import Amount, Role, ScoreKind

if TYPE_CHECKING:
    from collections.abc import Collection

    from moviecrawler.items import Movie

_PLAIN = (
    *("imdb_id", "original_title", "title_type", "year", "release_date", "runtime_minutes"),
    *("genres", "countries", "languages", "certificate", "plot", "poster_url", "popularity_rank"),
)
"""Not what few titles have by their nature (a rank in the Top 250, a season), nor what every stored movie has."""
_PARTS: dict[str, tuple[str, tuple[str, ...]]] = {
    "credits": ("role", get_args(Role)),
    "scores": ("kind", get_args(ScoreKind)),
    "amounts": ("kind", get_args(get_type_hints(Amount)["kind"])),
}
"""Lists whose parts are fields of their own: the attribute that tells them apart, and its values."""

NAMES: tuple[str, ...] = (*_PLAIN, *(f"{name}.{kind}" for name, (_, kinds) in _PARTS.items() for kind in kinds))
"""Such as `year`, `scores.imdb`, `credits.cast`."""
BITS: dict[str, int] = {name: 1 << place for place, name in enumerate(NAMES)}
ALL = (1 << len(NAMES)) - 1
COUNTS: dict[str, ScoreKind] = {f"scores.{kind}.count": kind for kind in get_args(ScoreKind)}
"""Names of the votes that a page gives with a score, which are no fields of their own as nothing has them without it."""
_PLAIN_BITS = tuple((name, BITS[name]) for name in _PLAIN)


def present(movie: Movie) -> int:
    """Return the bits of the fields that the movie has."""
    found = 0
    for name, bit in _PLAIN_BITS:
        if getattr(movie, name):  # a list may be empty, and no number among them can be 0
            found |= bit
    for role in {credit.role for credit in movie.credits}:
        found |= BITS[f"credits.{role}"]
    for score in movie.scores:
        found |= BITS[f"scores.{score.kind}"]
    for amount in movie.amounts:
        found |= BITS[f"amounts.{amount.kind}"]
    return found


def names_of(bits: int) -> list[str]:
    """Return the names of fields by their bits."""
    return [name for name, bit in BITS.items() if bits & bit]


def with_fields_of(movie: Movie, known: Movie, names: Collection[str]) -> Movie:
    """Return `movie` with these fields, which it lacks, as `known` has them."""
    changes: dict[str, Any] = {name: getattr(known, name) for name in names if "." not in name}
    for name, (attribute, kinds) in _PARTS.items():
        wanted = {kind for kind in kinds if f"{name}.{kind}" in names}
        if wanted:
            changes[name] = getattr(movie, name) + [
                part for part in getattr(known, name) if getattr(part, attribute) in wanted
            ]
    return replace(movie, **changes)


def with_counts_of(movie: Movie, known: Movie, names: Collection[str]) -> Movie:
    """Return `movie` with these of `COUNTS` as `known` has them, in scores that lack theirs."""
    kinds = {COUNTS[name] for name in names}
    counts = {score.kind: score.count for score in known.scores if score.kind in kinds}
    scores = [replace(score, count=counts.get(score.kind)) if score.count is None else score for score in movie.scores]
    return replace(movie, scores=scores)
