"""The names of a movie's fields, and which of them each site's pages have.

A page states a field's value, states that there is none, or says nothing: then the field is
unknown, and `Movie.unknown_fields` names it.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, Final, get_args, get_type_hints

from moviecrawler.items import AmountKind, Movie, Relation, Role
from moviecrawler.sites import ID_SITE, SCORE_SITES, SCORES, SITES

if TYPE_CHECKING:
    from collections.abc import Collection

    from moviecrawler.items import Site, TitleKind


TYPES: Final[dict[str, Any]] = get_type_hints(Movie)
"""The type of each field of a movie, without its bounds. What all fields of a type have in common
follows from it: their columns in Postgres and in `movies.csv`."""
NUMBERS: Final = tuple(name for name, kind in TYPES.items() if kind == int | None)
TEXTS: Final = tuple(name for name, kind in TYPES.items() if kind == str | None)
TEXT_LISTS: Final = tuple(
    name for name, kind in TYPES.items() if kind == list[str] and name != "unknown_fields"
)

PARTS: Final[dict[str, tuple[str, tuple[str, ...]]]] = {
    "credits": ("role", get_args(Role)),
    "scores": ("kind", tuple(SCORES)),
    "amounts": ("kind", get_args(AmountKind)),
    "related": ("relation", get_args(Relation)),
}
"""Lists whose parts are fields of their own, such as `scores.imdb`: the attribute by which they
differ, and its values."""

SCORE_FACTS: Final = (
    "count",
    "average",
    "reviews",
    "liked",
    "neutral",
    "disliked",
    "certified",
    "sentiment",
    "histogram",
)
"""What a score can have beside its value, each a field of its own, such as `scores.imdb.count`."""

_IN_SERIES: Final[dict[TitleKind, frozenset[str]]] = {
    "season": frozenset({"series_id", "series_title", "season"}),
    "episode": frozenset({"series_id", "series_title", "season", "episode"}),
}
"""The fields that give a title's position in its series."""

ONLY_IN_DATASETS: Final = frozenset({"other_titles"})
"""The fields that no page has. Movies from pages don't name them as unknown."""

_IN_DATASETS: Final[dict[str, frozenset[str]]] = {
    "title.basics": frozenset(
        {"title_type", "original_title", "year", "end_year", "runtime_minutes", "genres"}
    ),
    "title.ratings": frozenset({"scores.imdb"}),
    "title.crew": frozenset({"credits.director", "credits.writer"}),
    "title.principals": frozenset({"credits.cast"}),
    "title.akas": ONLY_IN_DATASETS,
    "title.episode": _IN_SERIES["episode"],
}
"""The fields of each of IMDb's datasets; one that has no value there is stated absent."""


def datasets_of(field: str) -> list[str]:
    """Return the names of IMDb's datasets that have a field or a part of it."""
    return [
        f"IMDb's {dataset}"
        for dataset, names in _IN_DATASETS.items()
        if any(f"{name}.".startswith(f"{field}.") for name in names)
    ]


@cache
def fields_published_by(site: Site, kind: TitleKind) -> frozenset[str]:
    """Return the names of the fields that the pages of a site have for titles of this kind.

    They are the same whichever page it is: names such as `year`, `credits.cast`, `scores.imdb`,
    `amounts.budget`. A field that is not among them is never unknown. Identity (site_id, url,
    title, kind) isn't among them: without it there is no movie. Nor is what a score has beside its
    value: see `score_facts_published`.
    """
    creators = {"credits.creator"} if kind in {"series", "season"} else set()
    profile = SITES[site]
    return (
        profile.published
        | _IN_SERIES.get(kind, frozenset())
        | profile.published_of_kind.get(kind, frozenset())
        | creators
    )


def score_facts_published(movie: Movie) -> set[str]:
    """Return the names of what its site publishes of a movie's scores, such as `scores.imdb.count`.

    Only the scores that the movie has count.
    """
    return {
        f"scores.{score.kind}.{fact}"
        for score in movie.scores
        # Another kind is refused by the checks, and by stores.
        if SCORE_SITES.get(score.kind) == movie.site
        for fact in SCORES[score.kind].facts
    }


def present_in(movie: Movie) -> set[str]:
    """Return the names of the fields that a movie has a value for.

    `scores.imdb.count` is among them.
    """
    found = {name for name in PLAIN_NAMES if getattr(movie, name) not in _NOTHING}
    for name, (attribute, _) in PARTS.items():
        found |= {f"{name}.{getattr(part, attribute)}" for part in getattr(movie, name)}
    for score in movie.scores:
        found |= {
            f"scores.{score.kind}.{fact}"
            for fact in SCORE_FACTS
            if getattr(score, fact) not in _NOTHING
        }
    return found


_NOTHING: Final[tuple[object, ...]] = (None, [], {})


PLAIN_NAMES: Final = tuple(
    sorted(
        name
        for name in ONLY_IN_DATASETS.union(
            *(profile.published for profile in SITES.values()),
            *(
                fields
                for profile in SITES.values()
                for fields in profile.published_of_kind.values()
            ),
            *_IN_SERIES.values(),
        )
        if "." not in name
    )
)
"""The fields of `Movie` that may be unknown and that have no parts."""


def unknown_fields_of(movie: Movie, stated: Collection[str] = ()) -> list[str]:
    """Return what `movie.unknown_fields` is to be.

    That is all that its site publishes of such titles, but for its values and what is `stated` to
    be absent. A row of a list states no absence.
    """
    published = fields_published_by(movie.site, movie.kind) | score_facts_published(movie)
    return sorted(published - present_in(movie) - frozenset(stated))


@cache
def unknown_in_datasets(kind: TitleKind, datasets: frozenset[str]) -> tuple[str, ...]:
    """Return the unknown fields of a movie of this kind, read from these of IMDb's datasets."""
    return tuple(
        sorted(
            (fields_published_by(ID_SITE, kind) | ONLY_IN_DATASETS).difference(
                *map(_IN_DATASETS.__getitem__, datasets)
            )
        )
    )
