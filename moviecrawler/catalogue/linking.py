"""Which IMDb title each record of a list of films is, of any number of titles. Pure.

The matcher is the catalogue's: records and titles are compared as pages and titles are, and of the pairs those are made
that `matching.join` would make. Only titles that have something in common with a record are kept in memory.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from moviecrawler.catalogue.comparing import compare, weight
from moviecrawler.catalogue.forms import block_keys
from moviecrawler.catalogue.matching import LARGEST_BLOCK, Pair, is_rival, settle

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from moviecrawler.catalogue.comparing import Decision
    from moviecrawler.catalogue.forms import Title

_OTHERS = 5
"""Runners-up that are named."""
_NOTHING = "but no title is like it"


@dataclass(slots=True, kw_only=True)
class Other:
    """A title that a record was compared with and is not said to be."""

    imdb_id: str
    score: float


@dataclass(slots=True, kw_only=True)
class Linked:
    """What was found for one record."""

    imdb_id: str | None = None
    """None unless accepted."""
    decision: Decision = "refused"
    score: float = 0.0
    """Of the title that was accepted, or of the likeliest."""
    reasons: list[str] = field(default_factory=lambda: [_NOTHING])
    others: list[Other] = field(default_factory=list)
    """The likeliest first, at most five; for a record that is not accepted, the likeliest is among them."""


def link(records: Sequence[Title], titles: Iterable[Title]) -> list[Linked]:
    """Return what each record is, in their order.

    Every title has an `imdb_id`, and is read once. A title is linked to at most one record of each site; of titles that are
    given twice, the first counts.
    """
    asked = _Asked(records)
    kept: list[Title] = []
    pairs: list[Pair] = []
    known: set[str | None] = set()
    for title in titles:
        numbers = asked.by(title)
        if not numbers or title.imdb_id in known:
            continue
        known.add(title.imdb_id)
        found = [(number, compare(records[number], title)) for number in sorted(numbers)]
        found = [(number, match) for number, match in found if is_rival(match)]
        if found:
            place = len(records) + len(kept)
            kept.append(title)
            pairs += [Pair(number, place, match, weight(match, records[number], title)) for number, match in found]
    return _decide(records, kept, pairs)


class _Asked:
    """The keys that records ask for."""

    def __init__(self, records: Sequence[Title]) -> None:
        self._by_key: dict[str, list[int]] = defaultdict(list)
        self._used: dict[str, int] = defaultdict(int)
        for number, record in enumerate(records):
            for key in set(block_keys(record)):
                self._by_key[key].append(number)

    def by(self, title: Title) -> set[int]:
        """Return the numbers of the records that a title is to be compared with."""
        numbers: set[int] = set()
        for key in block_keys(title):
            found = self._by_key.get(key)
            if found is not None:
                numbers.update(self._rare(key, found))
        return numbers

    def _rare(self, key: str, found: list[int]) -> list[int]:
        """Return what was found by a key, unless that many titles have it that it says nothing."""
        self._used[key] += len(found)
        return found if self._used[key] <= LARGEST_BLOCK else []


def _decide(records: Sequence[Title], titles: Sequence[Title], pairs: Sequence[Pair]) -> list[Linked]:
    linked_to: dict[int, Pair] = {}
    taken: set[tuple[int, str]] = set()

    def may_join(number: int, place: int) -> bool:
        return number not in linked_to and (place, records[number].site) not in taken

    def site_of(number: int) -> str:
        # What a title competes for is the record of one site, what a record competes for is a title.
        return records[number].site if number < len(records) else ""

    for pair in settle(pairs, site_of, may_join):
        linked_to[pair.a] = pair
        taken.add((pair.b, records[pair.a].site))

    candidates: dict[int, list[Pair]] = defaultdict(list)
    for pair in sorted(pairs, key=lambda pair: -pair.weight):
        candidates[pair.a].append(pair)

    def linked(number: int) -> Linked:
        """Return which title a record is, or what the likeliest title lacks to be it."""
        mine, chosen = candidates[number], linked_to.get(number)
        if not mine:
            return Linked()
        left = [pair for pair in mine if may_join(number, pair.b)]
        undecided = next((pair for pair in left if pair.match.decision != "refused"), None)
        decision: Decision
        if chosen is not None:
            pair, decision, why = chosen, "accepted", []
        elif undecided is not None:
            pair, decision = undecided, "review"
            why = ["but another fits about as well"] if pair.match.accepted else []
        else:
            pair, decision = mine[0], "refused"
            why = [] if left else ["but a record that fits better is that title"]
        others = [Other(imdb_id=imdb_id(other), score=other.match.score) for other in mine if other is not chosen]
        return Linked(
            imdb_id=None if chosen is None else imdb_id(chosen),
            decision=decision,
            score=pair.match.score,
            reasons=[*pair.match.reasons, *why],
            others=others[:_OTHERS],
        )

    def imdb_id(pair: Pair) -> str:
        return str(titles[pair.b - len(records)].imdb_id)

    return [linked(number) for number in range(len(records))]
