"""How often pages have each field, against how often they used to: pure figures, without a clock or a store.

Pages are compared with pages like them, of the same group: of the same list, of the same kind of title, out already or not, and
as famous. What is usual in a group is its level, which comes from earlier pages and is kept between crawls; where nothing is
known of titles as famous, nothing is judged. A group may be small, so the latest pages of all groups of a section are looked at together:
each of them was to have a field by its own group's level, which makes so many pages that have it, against those that do.
"""

from __future__ import annotations

import math
from collections import defaultdict, deque
from dataclasses import dataclass, field
from itertools import accumulate
from typing import TYPE_CHECKING, Literal

from moviecrawler.catalogue.fields import ALL, COUNTS, NAMES, names_of, present
from moviecrawler.monitors.likeness import VOTES, groups_beside, observe, section_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from moviecrawler.items import Movie
    from moviecrawler.monitors.likeness import Observation

Standing = Literal["fine", "low", "collapsed"]
Levels = dict[str, dict[str, tuple[float, float]]]
"""Group → field → pages, and how many of them had it."""

WINDOW = 100
_ALL_PAGES = (1 << WINDOW) - 1
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
_VOTES_FROM = 32
"""Latest pages that are looked at for their votes, and only for whether all are gone, or of `WINDOW` nearly all: some titles,
in a row, have none."""
_RECKON_EVERY = WINDOW
"""Pages, after which it is reckoned anew what is usual."""
_MOST_SECTIONS = 64
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


@dataclass(slots=True)
class Finding:
    """A field of which fewer pages have a value than usual."""

    field: str
    standing: Standing
    seen: int
    pages: int
    """The latest ones, of which `seen` had it."""
    usual: float
    """Share of pages like these that usually have it, at least."""


class _Window:
    """The latest pages of which it was known how often pages like them have a field."""

    __slots__ = ("_having", "_usual")

    def __init__(self) -> None:
        self._usual: deque[float] = deque(maxlen=WINDOW)
        """The share of pages like each that have the field."""
        self._having = 0
        """Whether each has it, the last one in the lowest bit."""

    def __len__(self) -> int:
        return len(self._usual)

    def add(self, usual: float, has: bool) -> None:
        """Add a page."""
        self._usual.append(usual)
        self._having = (self._having << 1 | has) & _ALL_PAGES

    def latest(self, *sizes: int) -> Iterator[tuple[int, int, float]]:
        """Yield of so many latest pages how many there are, how many have the field, and the mean of what is usual.

        There may be fewer, which are the last ones that are told of.
        """
        totals = list(accumulate(reversed(self._usual)))
        for size in sizes:
            pages = min(size, len(totals))
            if pages:
                yield pages, (self._having & ((1 << pages) - 1)).bit_count(), totals[pages - 1] / pages
            if pages < size:
                return


@dataclass(slots=True)
class _Section:
    """The latest pages of a kind, famous or not."""

    windows: dict[str, _Window] = field(default_factory=lambda: defaultdict(_Window))
    pages: deque[list[Observation]] = field(default_factory=deque)
    """At most `WINDOW`, which are not a part of the levels yet."""
    low: dict[str, Finding] = field(default_factory=dict)
    since_low: dict[str, int] = field(default_factory=dict)
    """Pages since a field was last found to be low."""

    def add(self, name: str, usual: float, has: bool) -> None:
        """Add a page, and look at the latest ones for a field that it lacks or that is low."""
        window = self.windows[name]
        window.add(usual, has)
        if (has and name not in self.low) or len(window) < _SIZES[0]:
            return
        finding = _find(name, window)
        before = self.low.get(name)
        if finding is not None:
            if before is None or finding.standing == "collapsed" or before.standing != "collapsed":
                self.low[name] = finding
            self.since_low[name] = 0
        elif before is not None:
            self.since_low[name] += 1
            if self.since_low[name] >= _WELL_AFTER and self.is_well(name):
                del self.low[name]

    def is_well(self, name: str) -> bool:
        """Return whether the latest pages have a field about as often as usual, and enough of them are there to tell."""
        pages, seen, usual = next(self.windows[name].latest(2 * _WELL_AFTER), (0, 0, 0.0))
        return pages >= _WELL_AFTER and seen >= pages * usual * _LOW_SHARE

    def is_odd(self, name: str) -> bool:
        """Return whether a field is so rare in the latest pages that a short crawl should not teach it as usual."""
        if name not in self.windows:
            return False
        pages, seen, usual = next(self.windows[name].latest(WINDOW))
        return seen < pages * usual * _LOW_SHARE and chance_of(seen, pages, usual) < _ODD_CHANCE

    def forget(self, name: str) -> None:
        """Forget what is usual of a field."""
        self.windows.pop(name, None)
        self.low.pop(name, None)
        for page in self.pages:
            page[:] = [one for one in page if one.field != name]


def _find(name: str, window: _Window) -> Finding | None:
    """Return what is wrong with a field in the latest pages.

    They are of several groups. With shares that differ from page to page, so few are at most as likely as with their
    mean (Hoeffding, 1956), which the chance is of.
    """
    found = None
    for pages, seen, usual in window.latest(*_SIZES):
        if seen < pages * usual * _LOW_SHARE:
            chance = chance_of(seen, pages, usual)
            if chance < _COLLAPSE_CHANCE and seen <= pages * usual * _COLLAPSE_SHARE:
                if name != VOTES or pages == WINDOW or (pages >= _VOTES_FROM and not seen):
                    return Finding(name, "collapsed", seen, pages, usual)
            elif name != VOTES and chance < _LOW_CHANCE and found is None:
                found = Finding(name, "low", seen, pages, usual)
    return found


class Coverage:
    """Counts the pages of one site in one process."""

    def __init__(self, levels: Levels, suspected: Collection[str] = ()) -> None:
        """Take what earlier pages had, and the fields that had collapsed then and have not been seen to be well since."""
        self._levels = levels
        self._learnt: Levels = {}
        self._shares: dict[tuple[str, str], float] = {}
        """What `_usual_share` returned lately."""
        self._sections: dict[str, _Section] = {}
        self._all = _Section()
        """The pages of all sections, for fields that few titles have, or when each section has a few pages."""
        self._suspected = set(suspected)
        self._usual = self._find_usual()
        self.counted = dict.fromkeys(NAMES, 0)
        """Field → pages that had it, of `pages`."""
        self.pages = 0

    def continue_from(self, other: Coverage) -> None:
        """Take what was counted while the levels were not known; these pages are judged by none."""
        self.pages, self.counted = other.pages, dict(other.counted)

    def take(self, movie: Movie) -> dict[str, str]:
        """Count a page; return what it lacks although pages like it have it, and what that means."""
        having = present(movie)
        self.pages += 1
        for name in names_of(having):
            self.counted[name] += 1
        page = observe(movie, having)
        section = self._section(section_of(movie))
        if section is not None:
            self._compare(section, page)
        if self.pages % WINDOW == 0:
            self._usual = self._find_usual()
        collapsed = {*self._suspected, *self.findings()}
        lacking = names_of(ALL & ~having) + [one.field for one in page if one.field in COUNTS and not one.has]
        missing = [name for name in lacking if name in collapsed or name in self._usual]
        if VOTES in collapsed:
            collapsed.update(name for name in missing if name.startswith("scores."))
        return {name: "collapsed" if name in collapsed else "unusual" for name in missing}

    def usual(self) -> list[str]:
        """Return the fields that pages of this site usually have."""
        return [name for name in NAMES if name in self._usual]

    def findings(self) -> dict[str, Finding]:
        """Return the fields that are low or have collapsed in any section, each as it is where it is worst."""
        worst: dict[str, Finding] = {}
        for section in self._all_sections():
            for name, finding in section.low.items():
                if name not in worst or finding.standing == "collapsed":
                    worst[name] = finding
        return worst

    def well(self) -> set[str]:
        """Return the fields that are certain to be as usual: in no section low, and seen often enough in one.

        What was suspected of them is forgotten.
        """
        low = self.findings()
        well = {
            name
            for section in self._all_sections()
            for name in section.windows
            if name not in low and section.is_well(name)
        }
        self._suspected -= well
        return well

    def learnt(self, *, at_end: bool = False) -> Levels:
        """Return what was added to the levels since this was last asked; with `at_end`, the last time, what windows hold as well."""
        if at_end:
            for section in self._sections.values():
                odd = {name for name in section.windows if section.is_odd(name)}
                while section.pages:
                    self._learn(section, section.pages.popleft(), odd)
        learnt, self._learnt = self._learnt, {}
        return learnt

    def forget(self, name: str) -> None:
        """Forget what is usual of a field."""
        self._suspected.discard(name)
        for section in self._all_sections():
            section.forget(name)
        for levels in (*self._levels.values(), *self._learnt.values()):
            levels.pop(name, None)
        self._shares.clear()
        self._usual.discard(name)

    def _all_sections(self) -> list[_Section]:
        return [self._all, *self._sections.values()]

    def _section(self, key: str) -> _Section | None:
        """Return a section; None for one too many, which is not compared."""
        if key not in self._sections and len(self._sections) < _MOST_SECTIONS:
            self._sections[key] = _Section()
        return self._sections.get(key)

    def _compare(self, section: _Section, page: list[Observation]) -> None:
        if len(section.pages) == WINDOW:
            self._learn(section, section.pages.popleft())
        section.pages.append(page)
        if self.pages % _RECKON_EVERY == 0:
            self._shares.clear()
        for group, name, has in page:
            usual = self._shares.get((group, name))
            if usual is None:
                usual = self._shares[group, name] = self._usual_share(group, name)
            if usual > 0:
                section.add(name, usual, has)
                self._all.add(name, usual, has)

    def _usual_share(self, group: str, name: str) -> float:
        """Return the share that pages of a group have a field at, at least; 0 when that is not known.

        Where little is known of the group itself, it lies between the shares of less famous titles and of more famous ones,
        so the lower one is taken; where only one side is known, it may be anything.
        """
        sides = [self._level(name, [group])]
        if sides[0][0] < KNOWN_FROM:
            sides = [self._level(name, groups) for groups in groups_beside(group)]
        if min(pages for pages, _ in sides) < KNOWN_FROM:
            return 0.0
        return min(_HIGHEST, *(least_share(having, pages) for pages, having in sides))

    def _level(self, name: str, groups: Iterable[str]) -> tuple[float, float]:
        """Return the level of a field in some groups together."""
        known = [fields[name] for group in groups if name in (fields := self._levels.get(group, {}))]
        return sum(pages for pages, _ in known), sum(having for _, having in known)

    def _learn(self, section: _Section, page: list[Observation], odd: Collection[str] = ()) -> None:
        """Make a page a part of the levels, but for what is low: what is missing doesn't become usual by lasting."""
        for group, name, has in page:
            if name in section.low or name in self._all.low or name in odd:
                continue
            levels, learnt = self._levels.setdefault(group, {}), self._learnt.setdefault(group, {})
            levels[name] = merge(levels.get(name, (0.0, 0.0)), 1, has)
            known = learnt.get(name, (0.0, 0.0))
            learnt[name] = known[0] + 1, known[1] + has

    def _find_usual(self) -> set[str]:
        """Return the fields that any group of this site usually has."""
        return {
            name
            for fields in self._levels.values()
            for name, (pages, having) in fields.items()
            if pages >= KNOWN_FROM and least_share(having, pages) >= _USUAL_FROM
        }
