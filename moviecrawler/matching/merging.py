"""Merges a new movie into the stored one: the one rule for all stores and sources.

A value replaces a value. A stated absence erases the value at once. An unknown field keeps the
stored value. So each field has the value of the newest page that has it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, get_args

from moviecrawler.items import Movie, Offer, Role, Score, Source
from moviecrawler.sites.fields import (
    ONLY_IN_DATASETS,
    PLAIN_NAMES,
    SCORE_DETAILS,
    SUBFIELDS,
    column_of,
    columns_of,
    fields_published_by,
    known_fields,
    without_depending,
)

if TYPE_CHECKING:
    from collections.abc import Collection
    from datetime import datetime


_FULLNESS = {source: rank for rank, source in enumerate(("list", "dataset", "page"))}
_MOST_SHOWN = 20
"""Members of the cast that a title's page shows: of more, it shows the first."""
assert set(_FULLNESS) == set(get_args(Source))  # noqa: S101 - a new source needs a rank above


def supersedes(movie: Movie, known: Movie, margin: float, latest: datetime) -> bool:
    """Return whether a movie replaces the known one; an older one never does.

    Both have `scraped_at`. The movie must be newer by `margin` seconds, or newer and from a fuller
    source. With the same `scraped_at` it replaces the known one too, as a newer version may extract
    more of the page. A known movie from after `latest` is always replaced: it came from a machine
    with a wrong clock.
    """
    assert movie.scraped_at is not None  # noqa: S101 - the stores check it
    assert known.scraped_at is not None  # noqa: S101
    if movie.scraped_at == known.scraped_at or known.scraped_at > latest:
        return True
    fuller = _FULLNESS[movie.source] > _FULLNESS[known.source]
    return (movie.scraped_at - known.scraped_at).total_seconds() >= (0 if fuller else margin)


def merged(movie: Movie, known: Movie, margin: float, latest: datetime) -> Movie | None:
    """Return the known movie with a new one merged in; None when nothing changes.

    A movie that does not supersede the known one still fills its unknown fields, so that archived
    pages that are extracted again add fields which a newer list or dataset lacks.
    """
    if supersedes(movie, known, margin, latest):
        return complete(movie, known)
    filled = complete(known, movie)
    return None if filled == known else filled


def complete(movie: Movie, known: Movie) -> Movie:
    """Return a movie with its unknown fields filled from an older one.

    It gets the fuller source of the two.
    """
    source = max(movie.source, known.source, key=_FULLNESS.__getitem__)
    present = known_fields(known)

    # What is unknown is what the movie itself says so, and what its source can't know: a page shows
    # the first of the cast alone and has no titles of other countries. A dataset has few fields of
    # a page, and fewer genres and people; names that it lacks are those that the page has.
    unknown = without_depending(movie.site, movie.unknown_fields)
    if _shows_first_of_cast(movie, known):
        movie = _without(movie, {"cast"})
        unknown.add(column_of("credits.cast"))
    if movie.source != "dataset":
        unknown |= ONLY_IN_DATASETS & present - known_fields(movie)
    else:
        movie = _with_names(movie, known)
        if known.source == "page":
            movie = _without_poorer(movie, known)
            unknown |= fields_published_by(movie.site, movie.kind) - known_fields(movie)
    if not unknown and known.external_ids.keys() <= movie.external_ids.keys():
        return movie if source == movie.source else replace(movie, source=source)

    # An unknown field gets the known value. An offer remembers when it was last seen.
    changes = {name: getattr(known, name) for name in unknown.intersection(present, PLAIN_NAMES)}
    if "offers" in changes:
        changes["offers"] = [_with_seen_at(offer, movie, known) for offer in known.offers]

    # Of lists with subfields, such as credits by role, the known entries of an
    # unknown kind are added.
    for name, (attribute, kinds) in SUBFIELDS.items():
        wanted = {kind for kind in kinds if column_of(f"{name}.{kind}") in unknown & present}
        kept = [part for part in getattr(known, name) if getattr(part, attribute) in wanted]
        changes[name] = getattr(movie, name) + kept

    # A page that lacks an external id doesn't state that there is none.
    changes["external_ids"] = known.external_ids | movie.external_ids

    # A newer score gets its unknown details, such as the count, from the known one.
    changes["scores"] = [_with_details(score, known, unknown) for score in changes["scores"]]

    # What neither of the two has stays unknown. What the known one states absent is absent, but
    # it says nothing of what is beside a score that it lacks; a score that is kept keeps what was
    # unknown beside it.
    still = unknown & set(known.unknown_fields)
    for score in changes["scores"]:
        details = _columns_of_details(score)
        if known.score(score.kind) is None:
            still |= details & unknown - present
        elif column_of(f"scores.{score.kind}") in unknown:
            still |= details & set(known.unknown_fields)
    names = columns_of(movie.site, still)
    return replace(movie, **changes, unknown_fields=names, source=source)


def _shows_first_of_cast(movie: Movie, known: Movie) -> bool:
    """Return whether a movie has only some of a cast that is longer than a title's page shows."""
    cast = _people(known, "cast")
    shown = _people(movie, "cast")
    return bool(shown) and len(cast) > _MOST_SHOWN and shown < cast


def _without(movie: Movie, roles: Collection[Role]) -> Movie:
    kept = [credit for credit in movie.credits if credit.role not in roles]
    return replace(movie, credits=kept)


def _with_seen_at(offer: Offer, movie: Movie, known: Movie) -> Offer:
    """Return an offer with the time when it was seen.

    The known movie may be from the future, by a wrong clock.
    """
    if offer.seen_at is not None or known.scraped_at is None or movie.scraped_at is None:
        return offer
    return replace(offer, seen_at=min(known.scraped_at, movie.scraped_at))


def _with_names(movie: Movie, known: Movie) -> Movie:
    """Return a movie whose people without a name get the known one."""
    names = {credit.person_id: credit.name for credit in known.credits if credit.person_id}
    return replace(
        movie,
        credits=[
            replace(credit, name=names.get(credit.person_id or ""))
            if credit.name is None
            else credit
            for credit in movie.credits
        ],
    )


def _without_poorer(movie: Movie, known: Movie) -> Movie:
    """Return a dataset's movie without lists that its page has more of.

    Datasets have three genres and ten of the cast.
    """
    poorer = {role for role in get_args(Role) if not _people(known, role) <= _people(movie, role)}
    return replace(
        _without(movie, poorer),
        genres=movie.genres if set(known.genres) <= set(movie.genres) else [],
    )


def _people(movie: Movie, role: Role) -> set[str | None]:
    return {credit.person_id or credit.name for credit in movie.people(role)}


def _with_details(score: Score, known: Movie, unknown: set[str]) -> Score:
    """Return a score with its unknown details, such as the count, filled from the known score."""
    before = known.score(score.kind)
    if before is None:
        return score
    missing = [
        name for name in SCORE_DETAILS if column_of(f"scores.{score.kind}.{name}") in unknown
    ]
    return replace(score, **{name: getattr(before, name) for name in missing})


def _columns_of_details(score: Score) -> set[str]:
    """Return the columns of a score's details."""
    return {column_of(f"scores.{score.kind}.{detail}") for detail in SCORE_DETAILS}
