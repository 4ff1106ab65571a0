"""The names of a movie's fields, and which of them each site's pages have.

A page states a field's value, states that there is none, or says nothing: then the field is
unknown, and `Movie.unknown_fields` names it.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, Final, get_args, get_type_hints

from moviecrawler.items import AmountKind, Movie, Relation, Role, ScoreKind
from moviecrawler.sites import SCORES

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
    "scores": ("kind", get_args(ScoreKind)),
    "amounts": ("kind", get_args(AmountKind)),
    "related": ("relation", get_args(Relation)),
}
"""Lists whose parts are fields of their own, such as `scores.imdb`: the attribute by which they
differ, and its values."""

_PLAIN: Final = (
    "year",
    "release_date",
    "runtime_minutes",
    "genres",
    "certificate",
    "plot",
    "poster_url",
    "credits.director",
    "credits.writer",
    "credits.cast",
)
_PUBLISHED: Final[dict[Site, frozenset[str]]] = {
    "imdb": frozenset(
        {
            *_PLAIN,
            "original_title",
            "title_type",
            "countries",
            "languages",
            "scores.imdb",
            "scores.metascore",
            "popularity_rank",
            *(f"amounts.{kind}" for kind in PARTS["amounts"][1]),
            "poster_width",
            "poster_height",
            "keywords",
            "interests",
            "taglines",
            "awards",
            "offers",
            "related.similar",
            "related.connection",
            "critic_review_count",
        }
    ),
    "metacritic": frozenset(
        {
            *_PLAIN,
            "imdb_id",
            "countries",
            "languages",
            "scores.metascore",
            "scores.metacritic_user",
            "poster_width",
            "poster_height",
            "keywords",
            "taglines",
            "awards",
            "offers",
            "related.similar",
            "external_ids",
        }
    ),
    "rottentomatoes": frozenset(
        {
            *_PLAIN,
            "languages",
            "amounts.domestic",
            "scores.tomatometer",
            "scores.popcornmeter",
            "scores.tomatometer_top",
            "scores.popcornmeter_all",
            "scores.popcornmeter_verified",
            "offers",
            "related.similar",
            "consensus",
            "external_ids",
        }
    ),
}
"""The fields that pages of each site have for all kinds of titles."""

SHOWN_ONLY_WITH_VALUE: Final[dict[Site, frozenset[str]]] = {
    "imdb": frozenset({"taglines", "offers"}),
    "metacritic": frozenset({"countries", "languages", "poster_width", "poster_height"}),
    "rottentomatoes": frozenset(
        {
            "amounts.domestic",
            "certificate",
            "consensus",
            "languages",
            "offers",
            "release_date",
            "runtime_minutes",
        }
    ),
}
"""Fields that a title's page leaves out when there is no value, or that other pages have: that one
is unknown says nothing of the page."""

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

_PUBLISHED_OF_KIND: Final[dict[tuple[Site, TitleKind], frozenset[str]]] = {
    ("imdb", "movie"): frozenset({"imdb_top250_rank"}),
    ("imdb", "series"): frozenset(
        {"season_count", "episode_count", "end_year", "imdb_top250_tv_rank"}
    ),
    ("metacritic", "series"): frozenset({"season_count"}),
    ("rottentomatoes", "series"): frozenset({"season_count", "end_year"}),
    ("rottentomatoes", "season"): frozenset({"episode_count"}),
}
"""The fields that pages of each site have for one kind of titles only."""

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


@cache
def fields_published_by(site: Site, kind: TitleKind) -> frozenset[str]:
    """Return the names of the fields that the pages of a site have for titles of this kind.

    They are the same whichever page it is: names such as `year`, `credits.cast`, `scores.imdb`,
    `amounts.budget`. A field that is not among them is never unknown. Identity (site_id, url,
    title, kind) isn't among them: without it there is no movie. Nor is what a score has beside its
    value: see `score_facts_published`.
    """
    creators = {"credits.creator"} if kind in {"series", "season"} else set()
    return (
        _PUBLISHED[site]
        | _IN_SERIES.get(kind, frozenset())
        | _PUBLISHED_OF_KIND.get((site, kind), frozenset())
        | creators
    )


def score_facts_published(movie: Movie) -> set[str]:
    """Return the names of what its site publishes of a movie's scores, such as `scores.imdb.count`.

    Only the scores that the movie has count.
    """
    return {
        f"scores.{score.kind}.{fact}"
        for score in movie.scores
        if (form := SCORES.get(score.kind))
        and form.site == movie.site  # another kind is refused by the checks, and by stores
        for fact in form.facts
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
        {name for fields in _PUBLISHED.values() for name in fields if "." not in name}
        | ONLY_IN_DATASETS.union(*_PUBLISHED_OF_KIND.values(), *_IN_SERIES.values())
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
def unknown_in_datasets(
    kind: TitleKind, datasets: frozenset[str] = frozenset({"title.basics", "title.ratings"})
) -> tuple[str, ...]:
    """Return the unknown fields of a movie of this kind, read from these of IMDb's datasets."""
    return tuple(
        sorted(
            (fields_published_by("imdb", kind) | ONLY_IN_DATASETS).difference(
                *map(_IN_DATASETS.__getitem__, datasets)
            )
        )
    )
