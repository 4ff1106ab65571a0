"""Ids of titles and people, and the names of people by them, in little memory: a bit an id, and of a person the name."""

from __future__ import annotations

import re
from array import array
from itertools import accumulate
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Self

_LARGEST = 100_000_000
"""Numbers of ids from which on one is kept in a plain set; IMDb's have reached 40 million."""
_MOST_IN_PATTERN = 10_000
"""Ids that are looked for by a regular expression; to compile it takes 20 microseconds for each."""
_PAGE = 2_000
"""Bytes of the bit set that are passed by at once where there is no member in them."""
_EMPTY_PAGE = bytes(_PAGE)
_BLOCK = 64
"""Bytes of the bit set for which the members before them are counted."""


class IdSet:
    """A set of ids of one kind, such as `nm0000123` or `tt0000123`: a bit for each number."""

    def __init__(self, ids: Iterable[bytes] = ()) -> None:
        """Begin with some ids."""
        self.bits = bytearray(_LARGEST // 8)
        self.others: set[int] = set()
        """Numbers too large for `bits`."""
        for each in ids:
            self.add(each)

    def add(self, site_id: bytes) -> None:
        """Add an id."""
        number = int(site_id[2:])
        if number < _LARGEST:
            self.bits[number >> 3] |= 1 << (number & 7)
        else:
            self.others.add(number)

    def __contains__(self, site_id: object) -> bool:
        assert isinstance(site_id, bytes)  # noqa: S101 - for mypy
        number = int(site_id[2:])
        if number < _LARGEST:
            return bool(self.bits[number >> 3] >> (number & 7) & 1)
        return number in self.others

    def of(self, parts: Iterable[tuple[bytes, bytes]]) -> Iterable[tuple[bytes, bytes]]:
        """Return those of some rows, each with its id, whose id is a member."""
        bits, parts = self.bits, list(parts)
        try:
            return [part for part in parts if bits[(number := int(part[1][2:])) >> 3] >> (number & 7) & 1]
        except IndexError:  # a number too large for `bits`
            return [part for part in parts if part[1] in self]

    def pattern(self, prefix: str) -> re.Pattern[bytes] | None:
        """Return what finds the begin of a line of one of these ids, with the line break before it; None for more than some thousands."""
        if len(self) > _MOST_IN_PATTERN:
            return None
        members = [*self.others, *_numbers_in(self.bits)]
        # A tree of digits: an id that is none of them is passed by at the first digit that none has.
        return re.compile(rf"\n{prefix}0*{_tree(map(str, members))}\t".encode())

    def __len__(self) -> int:
        return int.from_bytes(self.bits, "little").bit_count() + len(self.others)

    def __ior__(self, more: IdSet) -> Self:
        both = int.from_bytes(self.bits, "little") | int.from_bytes(more.bits, "little")
        self.bits[:] = both.to_bytes(len(self.bits), "little")
        self.others |= more.others
        return self


def _numbers_in(bits: bytearray) -> Iterator[int]:
    for at in range(0, len(bits), _PAGE):
        page = bits[at : at + _PAGE]
        if page != _EMPTY_PAGE:
            yield from (
                (at + place) * 8 + bit for place, byte in enumerate(page) if byte for bit in range(8) if byte >> bit & 1
            )


def _tree(texts: Iterable[str]) -> str:
    """Return a regular expression of some texts, none of which is the begin of another or else ends there."""
    by_first: dict[str, list[str]] = {}
    for text in texts:
        by_first.setdefault(text[:1], []).append(text[1:])
    if not by_first:
        return "(?!)"
    return "(?:" + "|".join(first + (_tree(rest) if first else "") for first, rest in sorted(by_first.items())) + ")"


class Names:
    """The names of some people. All must be known before the first name is added."""

    def __init__(self, people: IdSet) -> None:
        """Keep room for the name of each of them."""
        self._bits = people.bits
        counts = (
            int.from_bytes(self._bits[at : at + _BLOCK], "little").bit_count()
            for at in range(0, len(self._bits), _BLOCK)
        )
        self._before = array("I", accumulate(counts, initial=0))
        self._starts = array("Q", bytes(8 * self._before[-1]))
        """For each person, in the order of numbers: where the name begins in `_text`, or 0 when it is not known."""
        self._text = bytearray(b"\n")
        self._others: dict[int, str] = {}

    def add(self, person: bytes, name: bytes) -> None:
        """Keep the name of one of these people."""
        number = int(person[2:])
        if number < _LARGEST:
            self._starts[self._rank(number)] = len(self._text)
            self._text += name + b"\n"
        else:
            self._others[number] = name.decode()

    def of(self, person: str) -> str | None:
        """Return somebody's name by id; None when it is not known."""
        number = int(person[2:])
        if number >= _LARGEST:
            return self._others.get(number)
        if not self._bits[number >> 3] >> (number & 7) & 1:
            return None
        start = self._starts[self._rank(number)]
        return self._text[start : self._text.index(b"\n", start)].decode() if start else None

    def _rank(self, number: int) -> int:
        """Return how many of the people have a smaller number."""
        block, bit = divmod(number, _BLOCK * 8)
        within = int.from_bytes(self._bits[block * _BLOCK : (block + 1) * _BLOCK], "little")
        return self._before[block] + (within & ((1 << bit) - 1)).bit_count()
