"""Finds the IMDb title of each film of a list among any number of titles. Pure.

It accepts the pairs that `matching.match_titles` would. Of the titles it keeps only the ids, so
that they need not fit into memory.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from moviecrawler.matching.comparing import Decision, compare
from moviecrawler.matching.forms import Title, block_keys, maker_keys
from moviecrawler.matching.titles import LARGEST_BLOCK, Pair, is_rival, surest_pairs

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


_MAX_OTHERS = 5
"""Other candidates that are named in the result."""


@dataclass(slots=True, kw_only=True)
class Other:
    """A candidate that was not accepted."""

    imdb_id: str
    score: float


@dataclass(slots=True, kw_only=True)
class Linked:
    """The result for one record."""

    imdb_id: str | None = None
    """None unless the decision is `accepted`."""
    decision: Decision = "refused"
    score: float = 0.0
    """Points of the accepted title, or of the likeliest candidate."""
    reasons: list[str] = field(default_factory=lambda: ["but no title is like it"])
    others: list[Other] = field(default_factory=list)
    """At most five candidates, the likeliest first; without an accepted title, all of these are
    here."""


def link(records: Sequence[Title], titles: Iterable[Title]) -> list[Linked]:
    """Return the result of each record, in their order.

    Every title must have an `imdb_id`, and is read once; of titles that are given twice, the first
    counts. A title is linked to at most one record of each site.
    """
    by_key: dict[str, list[int]] = defaultdict(list)
    for number, record in enumerate(records):
        for key in {*block_keys(record), *maker_keys(record)}:
            by_key[key].append(number)
    used: dict[str, int] = defaultdict(int)
    ids: dict[int, str] = {}  # of titles; they are numbered after the records
    known: set[str | None] = set()
    pairs: list[Pair] = []
    for title in titles:
        asking: set[int] = set()
        for key in (*block_keys(title), *maker_keys(title)):
            if found := by_key.get(key):
                used[key] += len(found)
                if used[key] <= LARGEST_BLOCK:  # a key that many share is no evidence
                    asking.update(found)
        if not asking or title.imdb_id in known:
            continue
        known.add(title.imdb_id)
        title_number = len(records) + len(ids)
        ids[title_number] = str(title.imdb_id)
        for number in sorted(asking):
            match = compare(records[number], title)
            if is_rival(match) or match.decision == "review":
                pairs.append(Pair(number, title_number, match))

    linked: dict[int, Pair] = {}
    taken: set[tuple[int, str]] = set()

    def may_match(number: int, title_number: int) -> bool:
        return number not in linked and (title_number, records[number].site) not in taken

    # A title gets one record of each site, and a record gets one title (the site "").
    for pair in surest_pairs(
        [pair for pair in pairs if is_rival(pair.match)],
        lambda number: records[number].site if number < len(records) else "",
        may_match,
    ):
        linked[pair.a] = pair
        taken.add((pair.b, records[pair.a].site))
    candidates: dict[int, list[Pair]] = defaultdict(list)
    for pair in sorted(pairs, key=lambda pair: -pair.match.weight):
        candidates[pair.a].append(pair)

    def result_of(number: int) -> Linked:
        """Return the result of a record, with the reasons for or against the likeliest title."""
        if not (mine := candidates[number]):
            return Linked()
        chosen = linked.get(number)
        why = []
        left = [pair for pair in mine if may_match(number, pair.b)]
        undecided = next((pair for pair in left if pair.match.decision != "refused"), None)
        if chosen is None and undecided is not None and undecided.match.accepted:
            why = ["but another fits about as well"]
        elif chosen is None and not left:
            why = ["but a record that fits better is that title"]
        shown = chosen or undecided or mine[0]
        decision: Decision = "review" if undecided else "refused"
        if chosen:
            decision = "accepted"
        return Linked(
            imdb_id=None if chosen is None else ids[chosen.b],
            decision=decision,
            score=shown.match.score,
            reasons=[*shown.match.reasons, *why],
            others=[
                Other(imdb_id=ids[pair.b], score=pair.match.score)
                for pair in mine
                if pair is not chosen
            ][:_MAX_OTHERS],
        )

    return [result_of(number) for number in range(len(records))]
