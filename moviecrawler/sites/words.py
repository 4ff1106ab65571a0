"""The invented words and people of the replica, and its random numbers."""

from __future__ import annotations

import re
import tomllib
from random import Random
from typing import TYPE_CHECKING, Any, TypeVar

from anyascii import anyascii

from moviecrawler.basics.files import read_package_file

if TYPE_CHECKING:
    from collections.abc import Sequence

_T = TypeVar("_T")


WORDS: dict[str, Any] = {
    name: words.split() if isinstance(words, str) else words
    for name, words in tomllib.loads(read_package_file("moviecrawler.sites", "words.toml")).items()
}


class Dice(Random):
    """Random numbers that are the same for the same parts of a seed, on every version of Python."""

    def __init__(self, *seed: object) -> None:
        super().__init__(" ".join(map(str, seed)))

    def chance(self, share: float) -> bool:
        """Return True with the probability `share`."""
        return self.random() < share

    def below(self, end: float) -> int:
        """Return a whole number from 0 to below `end`."""
        return int(end * self.random())

    def pick(self, options: Sequence[_T]) -> _T:
        """Return one of some options."""
        return options[self.below(len(options))]

    def word(self, name: str) -> Any:
        """Return one word of a list of `words.toml`."""
        return self.pick(WORDS[name])

    def near(self, rating: float) -> int:
        """Return a score of 0 to 100 near a rating of 1 to 10."""
        return min(100, max(0, round(rating * 10 + 20 * (2 * self.random() - 1))))

    def day_in(self, year: int | None) -> str:
        """Return a day in a year."""
        return f"{year:04}-{1 + self.below(10):02}-{1 + self.below(28):02}"


def slugify(text: str, separator: str) -> str:
    """Return a text as the sites' slugs have it.

    It is in ASCII and lower case, punctuation is dropped, and words are joined.
    """
    plain = anyascii(text).lower().replace("'", "")
    return separator.join(re.findall("[a-z0-9]+", plain))


def person_name(number: int) -> str:
    """Return the name of a person; of 27,000 in a row no two have the same."""
    first = WORDS["first_names"]
    last = WORDS["last_names"]
    # The numbers of first and last names have no common divisor, so every pair comes once.
    return f"{first[number * 37 % len(first)]} {last[number * 50 % len(last)]}"
