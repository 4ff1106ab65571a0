"""Which IMDb title each record of a list of films is, of any number of titles. Pure.

The matcher is the catalogue's: of the pairs those are made that `matching.match_titles` would make. Of the titles, only ids are kept.
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
    reasons: list[str] = field(default_factory=lambda: ["but no title is like it"])
    others: list[Other] = field(default_factory=list)
    """The likeliest first, at most five; for a record that is not accepted, the likeliest is among them."""


def link(records: Sequence[Title], titles: Iterable[Title]) -> list[Linked]:
    """Return what each record is, in their order.

    Every title has an `imdb_id`, and is read once. A title is linked to at most one record of each site; of titles that are
    given twice, the first counts.
    """
    by_key: dict[str, list[int]] = defaultdict(list)
    for number, record in enumerate(records):
        for key in set(block_keys(record)):
            by_key[key].append(number)
    used: dict[str, int] = defaultdict(int)
    ids: dict[int, str] = {}  # of titles, by numbers that follow those of the records
    known: set[str | None] = set()
    pairs: list[Pair] = []
    for title in titles:
        asking: set[int] = set()
        for key in block_keys(title):
            if found := by_key.get(key):
                used[key] += len(found)
                if used[key] <= LARGEST_BLOCK:  # what many titles share says nothing
                    asking.update(found)
        if not asking or title.imdb_id in known:
            continue
        known.add(title.imdb_id)
        place = len(records) + len(ids)
        ids[place] = str(title.imdb_id)
        for number in sorted(asking):
            match = compare(records[number], title)
            if is_rival(match):
                pairs.append(Pair(number, place, match, weight(match, records[number], title)))

    linked: dict[int, Pair] = {}
    taken: set[tuple[int, str]] = set()

    def may_match(number: int, place: int) -> bool:
        return number not in linked and (place, records[number].site) not in taken

    # What a title competes for is the record of one site, what a record competes for is a title.
    for pair in settle(pairs, lambda number: records[number].site if number < len(records) else "", may_match):
        linked[pair.a] = pair
        taken.add((pair.b, records[pair.a].site))
    candidates: dict[int, list[Pair]] = defaultdict(list)
    for pair in sorted(pairs, key=lambda pair: -pair.weight):
        candidates[pair.a].append(pair)

    def answer(number: int) -> Linked:
        """Return which title a record is, or what the likeliest title lacks to be it."""
        if not (mine := candidates[number]):
            return Linked()
        chosen, why = linked.get(number), []
        left = [pair for pair in mine if may_match(number, pair.b)]
        undecided = next((pair for pair in left if pair.match.decision != "refused"), None)
        if chosen is None and undecided is not None and undecided.match.accepted:
            why = ["but another fits about as well"]
        elif chosen is None and not left:
            why = ["but a record that fits better is that title"]
        shown = chosen or undecided or mine[0]
        return Linked(
            imdb_id=None if chosen is None else ids[chosen.b],
            decision="accepted" if chosen else "review" if undecided else "refused",
            score=shown.match.score,
            reasons=[*shown.match.reasons, *why],
            others=[Other(imdb_id=ids[pair.b], score=pair.match.score) for pair in mine if pair is not chosen][
                :_OTHERS
            ],
        )

    return [answer(number) for number in range(len(records))]
