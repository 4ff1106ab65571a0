"""What is known of a title when it was read from several sources, one of which says less than another."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, get_args

from moviecrawler.catalogue.fields import BITS, COUNTS, present, with_counts_of, with_fields_of
from moviecrawler.items import Source

if TYPE_CHECKING:
    from moviecrawler.items import Movie

_FULLNESS = {source: place for place, source in enumerate(("list", "dataset", "page"))}
assert set(_FULLNESS) == set(get_args(Source))  # noqa: S101 - a new source needs its place above

_FILLED = (
    *("imdb_id", "original_title", "title_type", "year", "end_year", "release_date", "runtime_minutes"),
    *("genres", "countries", "languages", "certificate", "plot", "poster_url", "credits", "amounts"),
    *("imdb_top250_rank", "imdb_top250_tv_rank", "popularity_rank"),
    *("series_id", "series_title", "season", "episode"),
)
"""Not what leads to a title (its list), nor when it was read."""


def supersedes(movie: Movie, known: Movie, margin: float) -> bool:
    """Return whether a reading of a title takes the place of a known one; an older one never does.

    It has to be newer by `margin` seconds, in which little changes, or be from a fuller source. The same reading always
    does, as a better reader may have made more of the same page. Both have `scraped_at`.
    """
    assert movie.scraped_at is not None  # noqa: S101 - the stores' own condition
    assert known.scraped_at is not None  # noqa: S101
    if movie.scraped_at == known.scraped_at:
        return True
    fuller = _FULLNESS[movie.source] > _FULLNESS[known.source]
    return (movie.scraped_at - known.scraped_at).total_seconds() >= (0 if fuller else margin)


def is_partial(movie: Movie) -> bool:
    """Return whether `complete` has to be asked, as a known reading may tell more."""
    return movie.source != "page" or bool(movie.unsure)


def complete(movie: Movie, known: Movie) -> Movie:
    """Return `movie` with what only a fuller, older reading of the same title told.

    A row of a list has no plot because lists have none, not because the title has none: that must not erase the plot
    that the title's page gave before. A reading from an equal or fuller source stands for itself, None included, but for
    what it is `unsure` of.
    """
    if _FULLNESS[movie.source] >= _FULLNESS[known.source]:
        return _keep_doubtful(movie, known) if movie.unsure else movie
    kinds = {score.kind for score in movie.scores}
    return replace(
        movie,
        **{name: getattr(movie, name) or getattr(known, name) for name in _FILLED},
        scores=movie.scores + [score for score in known.scores if score.kind not in kinds],
        source=known.source,
        unsure=known.unsure,
    )


def _keep_doubtful(movie: Movie, known: Movie) -> Movie:
    """Return `movie` with the known values of what it is unsure of.

    A value that an unusual page lacks is kept once. The next page that lacks it as well is believed, unless coverage has
    collapsed: so what a site takes away is gone with the second reading, and a site that changes its pages erases nothing.
    """
    assert movie.scraped_at is not None  # noqa: S101 - the stores' own condition
    assert known.scraped_at is not None  # noqa: S101
    is_another = movie.scraped_at > known.scraped_at  # else the same batch is written again
    unsure = {
        name: doubt
        for name, doubt in movie.unsure.items()
        if not (is_another and doubt == known.unsure.get(name) == "unusual")
    }
    had = present(known)
    kept = with_fields_of(movie, known, {name for name in unsure if had & BITS.get(name, 0)})
    return replace(with_counts_of(kept, known, unsure.keys() & COUNTS.keys()), unsure=unsure)
