"""The names of a movie's fields, and which of them each site's pages have.

A page states a field's value, states that there is none, or omits it: then the field is
unknown, and `Movie.unknown_fields` names it by its column. Readers and profiles name a field of
`Movie`, or a part of one such as `scores.imdb` or `scores.imdb.count`.
"""

from collections.abc import Collection, Iterable
from dataclasses import fields
from functools import cache
from typing import Any, get_args, get_type_hints

from moviecrawler.items import AmountKind, Movie, Relation, Role, Score, Site, TitleKind
from moviecrawler.sites import ID_SITE, SCORE_SITES, SCORES, SITES

TYPES: dict[str, Any] = get_type_hints(Movie)
"""The type of each field of a movie, without its bounds. What all fields of a type have in common
follows from it: their columns in Postgres and in `movies.csv`."""

SUBFIELDS: dict[str, tuple[str, tuple[str, ...]]] = {
    "credits": ("role", get_args(Role)),
    "scores": ("kind", tuple(SCORES)),
    "amounts": ("kind", get_args(AmountKind)),
    "related": ("relation", get_args(Relation)),
}
"""Lists whose parts are fields of their own, such as `scores.imdb`: the attribute by which they
differ, and its values."""

SCORE_DETAILS = tuple(field.name for field in fields(Score) if field.name not in {"kind", "value"})
"""What a score can have beside its value, each a field of its own, such as `scores.imdb.count`."""

AMOUNT_COLUMNS: dict[str, str] = {
    "budget": "budget",
    "opening_weekend": "opening_weekend",
    "domestic": "domestic_gross",
    "worldwide": "worldwide_gross",
}
"""The columns of the kinds of amounts; that of the currency ends in _currency."""

_IN_SERIES: dict[TitleKind, Collection[str]] = {
    "season": {"series_id", "series_title", "season"},
    "episode": {"series_id", "series_title", "season", "episode"},
}
"""The fields that give a title's position in its series."""

ONLY_IN_DATASETS = frozenset({"other_titles"})
"""The fields that no page has. Movies from pages don't name them as unknown."""

_IN_DATASETS: dict[str, Collection[str]] = {
    "title.basics": {
        "title_type",
        "original_title",
        "year",
        "end_year",
        "runtime_minutes",
        "genres",
    },
    "title.ratings": {"scores.imdb"},
    "title.crew": {"credits.director", "credits.writer"},
    "title.principals": {"credits.cast"},
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
def column_of(field: str) -> str:
    """Return the column of a field or of a part of one.

    What no column of the view `movies` has keeps the name of its table, of its kind, and of its
    column there.

    >>> column_of("year"), column_of("scores.imdb"), column_of("scores.imdb.count")
    ('year', 'imdb_rating', 'imdb_votes')
    >>> column_of("credits.director"), column_of("amounts.domestic"), column_of("credits.cast")
    ('directors', 'domestic_gross', 'credits.cast')
    >>> column_of("scores.imdb.histogram"), column_of("scores.tomatometer_top")
    ('scores.imdb.histogram', 'scores.tomatometer_top')
    """
    name, _, part = field.partition(".")
    kind, _, fact = part.partition(".")
    if name == "scores" and kind in SCORES and fact in {"", "count"}:
        columns = SCORES[kind].columns or (field, field)
        return columns[1 if fact else 0]
    if name == "credits" and kind in get_args(Role) and kind != "cast":
        return f"{kind}s"
    return AMOUNT_COLUMNS.get(kind, field) if name == "amounts" else field


@cache
def _depending_columns(site: Site) -> dict[str, str]:
    """Return the columns that are unknown whenever another one is, by that one.

    They are the counts of a site's own scores, and the currencies of amounts.
    """
    own = SITES[site].scores if site in SITES else {}
    counts = [score.columns for score in own.values() if score.columns]
    return dict(counts) | {name: f"{name}_currency" for name in AMOUNT_COLUMNS.values()}


def columns_of(site: Site, fields: Iterable[str]) -> list[str]:
    """Return the columns of fields in order, with those that depend on them.

    A column's own name stays.

    >>> columns_of("imdb", ["year", "scores.imdb", "budget"])
    ['budget', 'budget_currency', 'imdb_rating', 'imdb_votes', 'year']
    """
    depending = _depending_columns(site)
    names = set(map(column_of, fields))
    return sorted(names.union(depending[name] for name in names if name in depending))


def without_depending(site: Site, columns: Collection[str]) -> set[str]:
    """Return columns without those that depend on another one of them."""
    depending = _depending_columns(site)
    return set(columns) - {depending[name] for name in columns if name in depending}


@cache
def fields_published_by(site: Site, kind: TitleKind) -> frozenset[str]:
    """Return the columns that the pages of a site have for titles of this kind.

    They are the same whichever page it is: names such as `year`, `credits.cast`, `imdb_rating`,
    `budget`. A field that is not among them is never unknown. Identity (site_id, url, title, kind)
    isn't among them: without it there is no movie. Nor is what a score has beside its value: see
    `score_details_published`.
    """
    profile = SITES[site]
    fields = profile.published.union(
        _IN_SERIES.get(kind, ()),
        profile.published_of_kind.get(kind, ()),
        ["credits.creator"] if kind in {"series", "season"} else (),
    )
    return frozenset(map(column_of, fields))


def score_details_published(movie: Movie) -> set[str]:
    """Return the columns of what its site publishes of a movie's scores, such as `imdb_votes`.

    Only the scores that the movie has count.
    """
    return {
        column_of(f"scores.{score.kind}.{fact}")
        for score in movie.scores
        # Another kind is refused by the checks, and by stores.
        if SCORE_SITES.get(score.kind) == movie.site
        for fact in SCORES[score.kind].facts
    }


def known_fields(movie: Movie) -> set[str]:
    """Return the columns that a movie has a value for; `imdb_votes` is among them."""
    known = {name for name in PLAIN_NAMES if getattr(movie, name) not in _EMPTY_VALUES}
    for name, (attribute, _) in SUBFIELDS.items():
        if parts := getattr(movie, name):
            kinds = {getattr(part, attribute) for part in parts}
            known |= {column_of(f"{name}.{kind}") for kind in kinds}
    for score in movie.scores:
        known |= {
            column_of(f"scores.{score.kind}.{fact}")
            for fact in SCORE_DETAILS
            if getattr(score, fact) not in _EMPTY_VALUES
        }
    return known


_EMPTY_VALUES: tuple[object, ...] = (None, [], {})


PLAIN_NAMES = tuple(
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

    Published fields, minus those with a value, minus those `stated` absent. A row of a list states
    no absence.
    """
    published = fields_published_by(movie.site, movie.kind) | score_details_published(movie)
    absent = frozenset(map(column_of, stated))
    return columns_of(movie.site, published - known_fields(movie) - absent)


@cache
def unknown_in_datasets(kind: TitleKind, datasets: frozenset[str]) -> tuple[str, ...]:
    """Return the unknown fields of a movie of this kind, read from these of IMDb's datasets."""
    read = {column_of(name) for dataset in datasets for name in _IN_DATASETS[dataset]}
    published = fields_published_by(ID_SITE, kind) | ONLY_IN_DATASETS
    return tuple(columns_of(ID_SITE, published - read))
