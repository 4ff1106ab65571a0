"""Compares names of people: family name first or last, one of two family names, initials. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moviecrawler.matching.normalise import similar_words, split_words

if TYPE_CHECKING:
    from collections.abc import Sequence

_NOT_IN_NAMES = frozenset(
    ["the", "brothers", "brother", "bros", "sisters", "junior", "senior", "jr", "sr", "ii", "iii"]
)
_COMMON = 5
"""Letters from which a family name and an initial identify a person; shorter names are too
common."""
_SHORTEST_ALONE = 4
"""Letters that a single name, such as an artist's, needs to match a word of a longer name."""

Name = list[str]
"""The words of a person's name, in small letters."""


def name_words(name: str) -> Name:
    """Return the words of a person's name.

    >>> name_words("Bong, Joon-ho"), name_words("The Levin Brothers")
    (['bong', 'joon', 'ho'], ['levin'])
    """
    words = split_words(name)
    return [word for word in words if word not in _NOT_IN_NAMES] or words


def same_person(ours: Sequence[Name], theirs: Sequence[Name]) -> bool | None:
    """Return whether two lists of names share a person.

    None when one is empty, or when that is unknown.

    >>> same_person([["min", "ji", "seo"]], [["seo", "min", "ji"]])
    True
    >>> same_person([["ridley", "levin"]], [["tony", "brandt"]])
    False
    """
    unsure = not ours or not theirs
    for one in ours:
        for other in theirs:
            same = _same(one, other)
            if same:
                return True
            unsure = unsure or same is None
    return None if unsure else False


def _same(one: Name, other: Name) -> bool | None:
    if one == other:
        return True
    if any(word.isdigit() for word in (*one, *other)):
        return set(one) == set(other)  # an id in place of an unknown name
    if "".join(one).isascii() != "".join(other).isascii():
        return None  # names in different scripts can't be compared
    if sorted("".join(one)) == sorted("".join(other)) and set(one) & set(other):
        return True  # in another order, or joined: "Bong Joon Ho", "Joon-ho Bong", "Bong Joonho"
    shorter, longer = sorted((one, other), key=len)
    if len(shorter) == 1:
        word = shorter[0]
        alone = len(word) >= _SHORTEST_ALONE and any(similar_words(word, each) for each in longer)
        return alone or False
    if _initials_fit(shorter, longer):
        return True  # one of two family names, a middle name, an initial
    return _same_family(one, other)


def _initials_fit(shorter: Name, longer: Name) -> bool:
    """Return whether each word of a name is in a longer one.

    The last word must be there whole, the others at least by initial.
    """
    left = list(longer)
    for word in reversed(shorter):
        found = next((each for each in left if each == word), None)
        if found is None and word is not shorter[-1]:
            found = next(
                (each for each in left if min(len(each), len(word)) == 1 and each[0] == word[0]),
                None,
            )
        if found is None:
            return False
        left.remove(found)
    return True


def _same_family(one: Name, other: Name) -> bool | None:
    """Return whether names share a family name and a given name.

    None when the given names only share an initial.
    """
    for ours, theirs in ((one, other), (one, other[1:] + other[:1]), (one[1:] + one[:1], other)):
        if similar_words(ours[-1], theirs[-1]):
            if ours[0][0] == theirs[0][0] and (
                len(ours[-1]) >= _COMMON
                or similar_words(ours[0], theirs[0])
                or 1 in {len(ours[0]), len(theirs[0])}
            ):
                return True
            return None if ours[0][0] == theirs[0][0] else False
    return False
