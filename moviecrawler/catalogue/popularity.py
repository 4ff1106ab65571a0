"""Converts IMDb's votes and TMDB's popularity to one scale. Pure."""

from __future__ import annotations

import math

_MOST_POPULAR_VOTES = 3_000_000
"""About the votes of the title with most votes on IMDb."""
_MOST_POPULAR_TMDB = 2_000.0
"""TMDB's popularity is unbounded; from this value on it counts as 100."""


def popularity_of_votes(votes: int) -> float:
    """Return a popularity of 0 to 100, with one decimal, that grows with the votes' logarithm.

    >>> popularity_of_votes(0), popularity_of_votes(1_000), popularity_of_votes(3_000_000)
    (0.0, 46.3, 100.0)
    """
    return _scaled(votes, _MOST_POPULAR_VOTES)


def popularity_of_tmdb(popularity: float) -> float:
    """Return TMDB's popularity on the scale of `popularity_of_votes`.

    >>> popularity_of_tmdb(0.6), popularity_of_tmdb(50.0)
    (6.2, 51.7)
    """
    return _scaled(popularity, _MOST_POPULAR_TMDB)


def _scaled(value: float, most: float) -> float:
    return min(round(100 * math.log1p(max(value, 0)) / math.log1p(most), 1), 100.0)
