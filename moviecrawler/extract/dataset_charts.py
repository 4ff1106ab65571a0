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
_CHARTED: dict[ChartName, tuple[TitleKind, frozenset[str]]] = {
    "top": ("movie", frozenset({"movie"})),
    "popular": ("movie", frozenset({"movie", "tvMovie"})),
    "toptv": ("series", frozenset({"tvSeries", "tvMiniSeries"})),
    "populartv": ("series", frozenset({"tvSeries", "tvMiniSeries"})),
}
"""The kind of titles of each chart, and their types."""
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


def top_250(basics: Blocks, ratings: Blocks, *, on_error: OnError, name: ChartName = "top") -> list[Movie]:
    """Return the 250 feature films (or series, of `toptv`) of the highest weighted rating.

    Like IMDb's own list it has no documentaries, which that of series has, and none of fewer than 25,000 votes. The mean is
    that of all votes for feature films, or for series. Of films that are equal, the one of more votes comes first, then the one of the lower id.
    """
    films: list[tuple[Movie, float, int]] = []
    points = voted = 0.0
    kind, title_types = _CHARTED[name]
    for movie in movies(basics, ratings, kinds={kind}, min_votes=1, on_error=on_error):
        if movie.title_type not in title_types:
            continue  # a TV movie is a movie, but no feature film
        rating, votes = movie.scores[0].value, movie.scores[0].count or 0
        points += rating * votes
        voted += votes
        if votes >= _TOP_VOTES and (name == "toptv" or "Documentary" not in movie.genres):
            films.append((movie, rating, votes))

    def place(film: tuple[Movie, float, int]) -> tuple[float, int, int]:
        movie, rating, votes = film
        return -weighted_rating(rating, votes, points / voted), -votes, int((movie.site_id or "tt0")[2:])

    films.sort(key=place)
    return _chart(name, [movie for movie, _, _ in films[:_TOP_SIZE]])


def most_voted(basics: Blocks, ratings: Blocks, *, name: ChartName = "popular", on_error: OnError) -> list[Movie]:
    """Return the films (or series, of `populartv`) of the most votes."""
    films = movies(basics, ratings, kinds={_CHARTED[name][0]}, min_votes=_POPULAR_VOTES, on_error=on_error)
    return _chart(name, heapq.nlargest(_MOST_POPULAR, films, key=lambda movie: movie.scores[0].count or 0))


def _chart(name: str, films: Iterable[Movie]) -> list[Movie]:
    chart = list(films)
    for rank, movie in enumerate(chart, start=1):
        movie.list_name, movie.list_rank, movie.list_computed = name, rank, True
    return chart
