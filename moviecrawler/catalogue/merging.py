"""What is known of a title after one more reading of it, by any store and from any source: the one rule of erasing.

A value takes the place of a value. A stated absence erases the value at once. A field that the reading does not mention keeps
what was known of it. So each field has what the newest reading that tells of it says.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, get_args

from moviecrawler.fields import ONLY_IN_DATASETS, PARTS, SCORE_FACTS, present_in, told_by
from moviecrawler.items import Role, Score, Source

if TYPE_CHECKING:
    from datetime import datetime

    from moviecrawler.items import Movie, Offer

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


def merged(movie: Movie, known: Movie, margin: float, latest: datetime) -> Movie | None:
    """Return what is known of a title after a reading of it; None when that is what was known before.

    A reading that does not supersede what is known still tells what that does not mention. So archived pages that are
    read anew fill fields that a newer row of a list or a dataset can't tell.
    """
    if supersedes(movie, known, margin, latest):
        return complete(movie, known)
    filled = complete(known, movie)
    return None if filled == known else filled


def complete(movie: Movie, known: Movie) -> Movie:
    """Return a reading of a title with what an older one told of the fields that it does not mention; itself where it tells all.

    What is returned does not mention what neither tells, and its source is the fuller of both.
    """
    source = max(movie.source, known.source, key=_FULLNESS.__getitem__)
    told = present_in(known)
    unknown = set(movie.unknown_fields)
    if movie.source != "dataset":
        unknown |= ONLY_IN_DATASETS & told - present_in(movie)
    else:
        movie = _named(movie, known)
        if known.source == "page":
            movie = _without_poorer(movie, known)
            unknown |= told_by(movie.site, movie.kind) - present_in(movie)
    if not unknown and known.external_ids.keys() <= movie.external_ids.keys():
        return movie if source == movie.source else replace(movie, source=source)
    changes: dict[str, Any] = {name: getattr(known, name) for name in unknown & told if "." not in name}
    if "offers" in changes:
        changes["offers"] = [_seen(offer, movie, known) for offer in known.offers]
    for name, (attribute, kinds) in PARTS.items():
        wanted = {kind for kind in kinds if f"{name}.{kind}" in unknown & told}
        kept = [part for part in getattr(known, name) if getattr(part, attribute) in wanted]
        changes[name] = getattr(movie, name) + kept
    # A page names an id or doesn't; none says that a title has none.
    changes["external_ids"] = known.external_ids | movie.external_ids
    changes["scores"] = [_with_facts(score, known, unknown) for score in changes["scores"]]
    kept_scores = {f"scores.{score.kind}" for score in known.scores} & unknown
    still = {name for name in unknown - told if name in known.unknown_fields or _lacks_score(name, known)}
    still |= {name for name in known.unknown_fields if _score_of(name) in kept_scores}
    if source != "dataset":
        still -= ONLY_IN_DATASETS
    return replace(movie, **changes, unknown_fields=sorted(still), source=source)


def _seen(offer: Offer, movie: Movie, known: Movie) -> Offer:
    """Return an offer with when it was seen. A known reading may be from the future, by a clock that was wrong."""
    if offer.seen_at is not None or known.scraped_at is None or movie.scraped_at is None:
        return offer
    return replace(offer, seen_at=min(known.scraped_at, movie.scraped_at))


def _named(movie: Movie, known: Movie) -> Movie:
    """Return a movie of which people without a name have the one that is known."""
    if all(credit.name is not None for credit in movie.credits):
        return movie
    names = {credit.person_id: credit.name for credit in known.credits if credit.person_id}
    return replace(
        movie,
        credits=[
            replace(credit, name=names.get(credit.person_id or "")) if credit.name is None else credit
            for credit in movie.credits
        ],
    )


def _without_poorer(movie: Movie, known: Movie) -> Movie:
    """Return a dataset's movie without the lists of which its page told more: datasets have three genres, and ten of a cast."""
    poorer = {role for role in get_args(Role) if not _people(known, role) <= _people(movie, role)}
    return replace(
        movie,
        credits=[credit for credit in movie.credits if credit.role not in poorer],
        genres=movie.genres if set(known.genres) <= set(movie.genres) else [],
    )


def _people(movie: Movie, role: Role) -> set[str | None]:
    return {credit.person_id or credit.name for credit in movie.people(role)}


def _with_facts(score: Score, known: Movie, unknown: set[str]) -> Score:
    """Return a score with what is known of it beside its value, where its reading does not mention that."""
    before = known.score(score.kind)
    unsaid = [fact for fact in SCORE_FACTS if f"scores.{score.kind}.{fact}" in unknown] if before is not None else []
    return replace(score, **{fact: getattr(before, fact) for fact in unsaid}) if unsaid else score


def _score_of(name: str) -> str:
    """Return the name of the score that a field belongs to: `scores.imdb` for `scores.imdb.count`."""
    return ".".join(name.split(".")[:2])


def _lacks_score(name: str, known: Movie) -> bool:
    """Return whether a name is that of a fact of a score that isn't known: then nothing is known of the fact."""
    return name.count(".") > 1 and all(f"scores.{score.kind}" != _score_of(name) for score in known.scores)
