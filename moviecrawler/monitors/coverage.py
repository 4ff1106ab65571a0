"""How often pages have each field, against how often they used to: pure figures, without a clock or a store.

Pages are compared with pages like them: of the same list, of the same kind of title, and out already or not. What is usual for
them is a `Level`, which comes from earlier pages and is kept between crawls. The latest pages stand in a window; they become a
part of the level when they leave it, unless the field is low in them: what is missing doesn't become usual by lasting.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from moviecrawler.catalogue.fields import ALL, BITS, NAMES, names_of, present

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from moviecrawler.items import Doubt, Movie

Standing = Literal["fine", "low", "collapsed"]
Levels = dict[str, dict[str, tuple[float, float]]]
"""Group → field → pages, and how many of them had it."""

WINDOW = 100
_SIZES = (8, 16, 32, 64, WINDOW)
"""Of the latest pages, those that are looked at together."""
KNOWN_FROM = 50
"""Pages of a group from which on its level says something."""
_HIGHEST = 0.97
"""Share that a field is taken to have at most: titles without a value may come one after the other."""
_USUAL_FROM = 0.1
"""Of pages, from which on it is unusual not to have a field."""
_LOW_CHANCE, _COLLAPSE_CHANCE = 1e-6, 1e-9
"""Chances of what is seen at the usual level, below which it is none: there are many fields, and pages."""
_ODD_CHANCE = 1e-3
_LOW_SHARE, _COLLAPSE_SHARE = 0.8, 0.1
"""Of the usual level. A drop of less than a fifth is no alarm, however certain; a field of which a tenth is left is gone."""
_WELL_AFTER = 16
"""Pages in which a field has to be as usual, after it was low."""
_MOST_GROUPS = 64
MOST_PAGES = 1000.0
"""That a level weighs: with more, the older ones count less and less."""


def chance_of(seen: int, pages: int, share: float) -> float:
    """Return the chance that of so many pages at most `seen` have a field that pages have at that share (0 to 1)."""
    return min(1.0, sum(math.comb(pages, n) * share**n * (1 - share) ** (pages - n) for n in range(seen + 1)))


def least_share(present: float, pages: float) -> float:
    """Return the share that a field has at least, by a sample, with a certainty of 97.5 % (Wilson's bound)."""
    if pages <= 0:
        return 0.0
    z, share = 1.96, present / pages
    centre = share + z * z / (2 * pages)
    spread = z * math.sqrt(share * (1 - share) / pages + z * z / (4 * pages * pages))
    return max(0.0, (centre - spread) / (1 + z * z / pages))


def merge(level: tuple[float, float], pages: float, having: float) -> tuple[float, float]:
    """Return a level to which pages were added."""
    pages, having = level[0] + pages, level[1] + having
    weight = min(1.0, MOST_PAGES / pages) if pages else 1.0
    return pages * weight, having * weight


def gone(levels: Levels, counted: Mapping[str, tuple[int, int]]) -> set[str]:
    """Return the fields that (nearly) none of the pages of the last days has, though a site's pages usually have them.

    counted: field → pages, and how many of them had it. That is for crawls of a few pages each, none of which sees it alone;
    they are of all groups, so that it is a reason to keep what is stored, and no alarm.
    """
    found = set()
    for name, (pages, seen) in counted.items():
        known = [fields[name] for fields in levels.values() if name in fields]
        usual = min(least_share(sum(having for _, having in known), sum(pages for pages, _ in known)), _HIGHEST)
        is_rare = pages >= _SIZES[0] and seen <= pages * usual * _COLLAPSE_SHARE
        if is_rare and usual and (pages > WINDOW or chance_of(seen, pages, usual) < _COLLAPSE_CHANCE):
            found.add(name)
    return found


def group_of(movie: Movie) -> str:
    """Return the name of the group whose pages a page is compared with.

    A title that is not out yet has no scores. One whose year can't be read is taken for an older one, as most are.
    """
    is_new = movie.year is not None and movie.scraped_at is not None and movie.year >= movie.scraped_at.year
    return f"{movie.list_name or '-'}|{movie.kind}|{'new' if is_new else 'old'}"


@dataclass(slots=True)
class Finding:
    """A field of which fewer pages have a value than usual."""

    field: str
    standing: Standing
    seen: int
    pages: int
    """The latest ones, of which `seen` had it."""
    usual: float
    """Share of pages that usually have it, at least."""


@dataclass(slots=True)
class _Group:
    levels: dict[str, tuple[float, float]]
    windows: dict[str, int] = field(default_factory=lambda: dict.fromkeys(NAMES, 0))
    """The latest pages, the last one in the lowest bit: whether each had the field."""
    pages: int = 0
    """In the windows."""
    low: dict[str, Finding] = field(default_factory=dict)
    since_low: dict[str, int] = field(default_factory=dict)
    """Pages since a field was last found to be low."""
    learnt: dict[str, tuple[float, float]] = field(default_factory=dict)
    """What was added to the levels since they were last saved."""


class Coverage:
    """Counts the pages of one site in one process."""

    def __init__(self, levels: Levels, suspected: Collection[str] = ()) -> None:
        """Take what earlier pages had, and the fields that had collapsed then and have not been seen to be well since."""
        self._groups: OrderedDict[str, _Group] = OrderedDict()
        self._levels = levels
        self._suspected = set(suspected)
        self._usual = self._find_usual()
        self.counted = dict.fromkeys(NAMES, 0)
        """Field → pages that had it, of `pages`."""
        self.pages = 0

    def continue_from(self, other: Coverage) -> None:
        """Take what was counted while the levels were not known; these pages are judged by none."""
        self.pages, self.counted = other.pages, dict(other.counted)

    def take(self, movie: Movie) -> dict[str, Doubt]:
        """Count a page; return what it lacks although pages like it have it, and what that means."""
        having = present(movie)
        group = self._group(group_of(movie))
        self._move_window(group, having)
        self.pages += 1
        for name in names_of(having):
            self.counted[name] += 1
        missing = names_of(ALL & ~having)
        for name in missing:
            self._judge(group, name)
        for name in [name for name in group.low if BITS[name] & having]:
            self._judge(group, name)
        if self.pages % WINDOW == 0:
            self._usual = self._find_usual()
        collapsed = {*self._suspected, *self.findings()}
        return {
            name: "collapsed" if name in collapsed else "unusual"
            for name in missing
            if name in collapsed or self._usual & BITS[name]
        }

    def usual(self) -> list[str]:
        """Return the fields that pages of this site usually have."""
        return names_of(self._usual)

    def findings(self) -> dict[str, Finding]:
        """Return the fields that are low or have collapsed in any group, each as it is where it is worst."""
        worst: dict[str, Finding] = {}
        for group in self._groups.values():
            for name, finding in group.low.items():
                if name not in worst or finding.standing == "collapsed":
                    worst[name] = finding
        return worst

    def well(self) -> set[str]:
        """Return the fields that are certain to be as usual: in no group low, and seen often enough in one.

        What was suspected of them is forgotten.
        """
        low = self.findings()
        well = {
            name for group in self._groups.values() for name in NAMES if name not in low and self._is_well(group, name)
        }
        self._suspected -= well
        return well

    def learnt(self, *, at_end: bool = False) -> Levels:
        """Return what was added to the levels since this was last asked; with `at_end`, the last time, what windows hold as well."""
        learnt: Levels = {}
        for key, group in self._groups.items():
            if at_end:
                for name, window in group.windows.items():
                    if name not in group.low and not self._is_odd(group, name):
                        self._learn(group, name, group.pages, window.bit_count())
            if group.learnt:
                learnt[key], group.learnt = group.learnt, {}
        return learnt

    def forget(self, name: str) -> None:
        """Forget what is usual of a field."""
        self._suspected.discard(name)
        for group in self._groups.values():
            for known in (group.levels, group.low, group.learnt):
                known.pop(name, None)
            group.windows[name] = 0
        for levels in self._levels.values():
            levels.pop(name, None)
        self._usual &= ~BITS[name]

    def _group(self, key: str) -> _Group:
        group = self._groups.get(key)
        if group is None:
            if len(self._groups) >= _MOST_GROUPS:
                self._groups.popitem(last=False)
            group = self._groups[key] = _Group(dict(self._levels.get(key, {})))
        return group

    def _move_window(self, group: _Group, having: int) -> None:
        windows, oldest = group.windows, 1 << (WINDOW - 1)
        is_full = group.pages == WINDOW
        for name, bit in BITS.items():
            window = windows[name]
            if is_full and name not in group.low:
                self._learn(group, name, 1, 1 if window & oldest else 0)
            windows[name] = (window << 1 | bool(having & bit)) & ((oldest << 1) - 1)
        group.pages = min(group.pages + 1, WINDOW)

    def _learn(self, group: _Group, name: str, pages: float, having: float) -> None:
        if pages:
            group.levels[name] = merge(group.levels.get(name, (0.0, 0.0)), pages, having)
            known = group.learnt.get(name, (0.0, 0.0))
            group.learnt[name] = known[0] + pages, known[1] + having

    def _judge(self, group: _Group, name: str) -> None:
        """Look at the latest pages of a group for a field, which the last one lacks or which is low."""
        pages, having = group.levels.get(name, (0.0, 0.0))
        usual = min(least_share(having, pages), _HIGHEST)
        if pages < KNOWN_FROM or usual <= 0 or group.pages < _SIZES[0]:
            return
        finding = self._find(group, name, usual)
        before = group.low.get(name)
        if finding is not None:
            if before is None or finding.standing == "collapsed" or before.standing != "collapsed":
                group.low[name] = finding
            group.since_low[name] = 0
        elif before is not None:
            group.since_low[name] += 1
            if group.since_low[name] >= _WELL_AFTER and self._is_well(group, name):
                del group.low[name]
                self._suspected.discard(name)

    def _find(self, group: _Group, name: str, usual: float) -> Finding | None:
        found = None
        for size in _SIZES:
            pages = min(size, group.pages)
            seen = (group.windows[name] & ((1 << pages) - 1)).bit_count()
            if seen < pages * usual * _LOW_SHARE:
                chance = chance_of(seen, pages, usual)
                if chance < _COLLAPSE_CHANCE and seen <= pages * usual * _COLLAPSE_SHARE:
                    return Finding(name, "collapsed", seen, pages, usual)
                if chance < _LOW_CHANCE and found is None:
                    found = Finding(name, "low", seen, pages, usual)
            if pages < size:
                break
        return found

    def _is_well(self, group: _Group, name: str) -> bool:
        """Return whether the latest pages have a field about as often as usual, and enough of them are there to tell."""
        pages, having = group.levels.get(name, (0.0, 0.0))
        usual = least_share(having, pages)
        latest = min(group.pages, 2 * _WELL_AFTER)
        if pages < KNOWN_FROM or latest < _WELL_AFTER:
            return False
        seen = (group.windows[name] & ((1 << latest) - 1)).bit_count()
        return seen >= latest * usual * _LOW_SHARE

    def _is_odd(self, group: _Group, name: str) -> bool:
        """Return whether a field is so rare in the window that a short crawl should not teach it as usual."""
        pages, having = group.levels.get(name, (0.0, 0.0))
        usual, seen = least_share(having, pages), group.windows[name].bit_count()
        return (
            pages >= KNOWN_FROM
            and seen < group.pages * usual * _LOW_SHARE
            and chance_of(seen, group.pages, usual) < _ODD_CHANCE
        )

    def _find_usual(self) -> int:
        """Return the bits of the fields that any group of this site usually has."""
        known: list[Mapping[str, tuple[float, float]]] = [*self._levels.values()]
        known += [group.levels for group in self._groups.values()]
        return sum(
            bit
            for name, bit in BITS.items()
            if any(
                pages >= KNOWN_FROM and least_share(having, pages) >= _USUAL_FROM
                for pages, having in (levels.get(name, (0.0, 0.0)) for levels in known)
            )
        )
