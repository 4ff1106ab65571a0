"""The series of the replica's datasets, which have no pages: two seasons of five episodes, and an episode of no season."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moviecrawler.replica import words

if TYPE_CHECKING:
    from collections.abc import Iterator

_MOVIES_PER_SERIES = 100
_MOST_SERIES = 2_000
_FIRST_ID, _ID_STRIDE = 100_000, 14
"""Their ids begin with a 0, so that they stand before those of all movies."""
_EPISODES = (*((season, episode) for season in (1, 2) for episode in range(1, 6)), (r"\N", r"\N"))


def count_series(titles: int) -> int:
    """Return how many series there are beside so many movies."""
    return min(titles // _MOVIES_PER_SERIES, _MOST_SERIES)


def basics_rows(titles: int) -> Iterator[str]:
    """Yield the rows of series and episodes in title.basics, in the order of their ids."""
    for number in range(count_series(titles)):
        year, adjective = 1960 + number % 60, words.ADJECTIVES[number * 7 % len(words.ADJECTIVES)]
        title = f"The {adjective} {words.NOUNS[number * 11 % len(words.NOUNS)]} Files"
        yield f"{_id_of(number)}\ttvSeries\t{title}\t{title}\t0\t{year}\t{year + 1}\t45\tDrama"
        for place, _ in enumerate(_EPISODES, start=1):
            name = f"The {title.split()[1]} Door, Part {place}"
            yield f"{_id_of(number, place)}\ttvEpisode\t{name}\t{name}\t0\t{year + place // 6}\t\\N\t45\tDrama"


def episode_rows(titles: int) -> Iterator[str]:
    """Yield the rows of title.episode."""
    for number in range(count_series(titles)):
        for place, (season, episode) in enumerate(_EPISODES, start=1):
            yield f"{_id_of(number, place)}\t{_id_of(number)}\t{season}\t{episode}"


def _id_of(number: int, place: int = 0) -> str:
    return f"tt{_FIRST_ID + number * _ID_STRIDE + place:07}"
