"""The people of the replica's movies, who are made on demand, too."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from moviecrawler.replica import words
from moviecrawler.replica.titles import Person

if TYPE_CHECKING:
    from random import Random

_MOVIES_PER_CAST_POOL, _NEW_PEOPLE, _CAST_POOL = 50, 60, 200
_FIRST_PERSON = 1_000_000
_NAMES = len(words.FIRST_NAMES) * len(words.LAST_NAMES)  # coprime numbers: every pair comes once


def people(first: int, end: int) -> list[Person]:
    """Return the people numbered `first` to `end` - 1, in the order of their ids."""
    return [_person(number) for number in range(first, end)]


def people_of(titles: int) -> int:
    """Return how many people can have credits in that many titles."""
    return (titles - 1) // _MOVIES_PER_CAST_POOL * _NEW_PEOPLE + _CAST_POOL


@functools.lru_cache(maxsize=4096)
def _person(number: int) -> Person:
    initials, rest = divmod(number, _NAMES)
    first = words.FIRST_NAMES[rest * 37 % len(words.FIRST_NAMES)]
    last = words.LAST_NAMES[rest * 50 % len(words.LAST_NAMES)]
    middle = ""
    while initials:
        initials, letter = divmod(initials - 1, 26)
        middle = f"{chr(ord('A') + letter)}. {middle}"
    return Person(f"nm{_FIRST_PERSON + number}", f"{first} {middle}{last}")


def some_people(rng: Random, index: int, count: int) -> tuple[Person, ...]:
    """Return so many people for a movie, out of those that it shares with its neighbours."""
    pool = index // _MOVIES_PER_CAST_POOL * _NEW_PEOPLE
    chosen: dict[int, None] = {}
    while len(chosen) < count:
        chosen[pool + int(_CAST_POOL * rng.random())] = None
    return tuple(map(_person, chosen))
