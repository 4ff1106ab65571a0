"""Charts computed from IMDb's datasets, where its own pages may not be had. Each movie is marked as computed. Pure."""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING, Literal

from moviecrawler.extract.datasets import movies

if TYPE_CHECKING:
    from collections.abc import Iterable

    from moviecrawler.extract.datasets import Blocks, OnError
    from moviecrawler.items import Movie, TitleKind

ChartName = Literal["top", "toptv", "popular", "populartv"]
_TOP_TYPES: dict[ChartName, frozenset[str]] = {
    "top": frozenset({"movie"}),  # a TV movie is a movie, but no feature film
    "toptv": frozenset({"tvSeries", "tvMiniSeries"}),
}
"""The types of titles that the top lists have."""
_TOP_SIZE = 250
_TOP_VOTES = 25_000
"""That a title of a top list has at least, and that its mean is weighed against."""
_MOST_POPULAR = 100
"""As long as IMDb's own chart of what is popular."""
_POPULAR_VOTES = 1_000


def weighted_rating(rating: float, votes: int, mean: float) -> float:
    """Return IMDb's published weighted rating: a title's mean, drawn to the `mean` of all the more, the fewer its votes.

    >>> weighted_rating(9.0, 25_000, 7.0)
    8.0
    """
    return (votes * rating + _TOP_VOTES * mean) / (votes + _TOP_VOTES)


def chart(basics: Blocks, ratings: Blocks, name: ChartName, *, on_error: OnError) -> list[Movie]:
    """Return the titles of a chart: the 250 of the highest weighted rating, or of what is popular those of the most votes."""
    kind: TitleKind = "series" if name in {"toptv", "populartv"} else "movie"
    is_top = name in _TOP_TYPES
    titles = movies(basics, ratings, kinds={kind}, min_votes=1 if is_top else _POPULAR_VOTES, on_error=on_error)
    films = _top(titles, name) if is_top else heapq.nlargest(_MOST_POPULAR, titles, key=_votes)
    for rank, movie in enumerate(films, start=1):
        movie.list_name, movie.list_rank, movie.list_computed = name, rank, True
    return films


def _top(titles: Iterable[Movie], name: ChartName) -> list[Movie]:
    """Return the titles of the highest weighted rating; of equal ones, that of more votes comes first, then that of the lower id.

    Like IMDb's own list it has no documentaries, which that of series has, and none of fewer than 25,000 votes. The mean is
    that of all votes for feature films, or for series.
    """
    films: list[Movie] = []
    points = voted = 0.0
    for movie in titles:
        if movie.title_type not in _TOP_TYPES[name]:
            continue
        points += movie.scores[0].value * _votes(movie)
        voted += _votes(movie)
        if _votes(movie) >= _TOP_VOTES and (name == "toptv" or "Documentary" not in movie.genres):
            films.append(movie)

    def place(movie: Movie) -> tuple[float, int, int]:
        rating = weighted_rating(movie.scores[0].value, _votes(movie), points / voted)
        return -rating, -_votes(movie), int((movie.site_id or "tt0")[2:])

    return sorted(films, key=place)[:_TOP_SIZE]


def _votes(movie: Movie) -> int:
    return movie.scores[0].count or 0
