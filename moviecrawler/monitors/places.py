"""Whether pages still have the place of each field: pure figures, without a clock or a store.

A page has the place of a field when it gives a value there or states that there is none; else the page is silent of the field. Values have no say:
a list of unscored titles has the places of all scores. Of pages alike, which are of one page kind and title kind, released or not, nearly all have
a place or nearly none. Where nearly all have it, the place is watched.

Scores have a place on every title's page. So has a field of which a page has ever stated that there is none. Of any other field it can't be told whether its place
is on every page or only where there is a value, as a label in a list of details is; such a place is watched after more pages, and only its absence
from many pages in a row is a finding.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from dataclasses import dataclass, field
from enum import Enum, auto
from operator import add
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

from moviecrawler.fields import ON_OTHER_PAGES, present_in, told_by

if TYPE_CHECKING:
    from collections.abc import Mapping

    from moviecrawler.items import Movie

Baseline = tuple[float, float, float]
"""How many pages were seen, how many of them were silent of a field, and how many stated that there is none."""
Baselines = dict[str, dict[str, Baseline]]
"""Group of pages alike → field → its baseline."""

ALL_SCORES = "scores"
"""The name of the finding that pages are silent of every score, and of the baseline in `ANY` that says whether any is expected."""
ANY = "*"
"""The group of all pages."""
KNOWN_FROM, KNOWN_OF_LABELS_FROM = 30, 200
"""Pages of a group from which on it is known whether they have a place: one that is on every page, and one that may be a label's."""
_SILENT_AT_MOST, _SILENT_OF_LABELS_AT_MOST = 0.02, 0.2
"""Share of a group's pages that may be silent of a field whose place they have."""
WINDOW = 50
"""Of the latest pages that were to have a place, those that are looked at together."""
_LOW_FROM, _LOW_OF_LABELS_FROM = 15, 30
"""Silent pages that are a finding: so many among them; for what may be a label's place, so many in a row."""
_LATEST = 16
"""Of these, the very latest: the finding begins only while some of them are silent, and ends when none or one is."""
_LOW_AMONG_LATEST, _WELL_AMONG_LATEST = 4, 1
GONE_AFTER = 30
"""Title pages in a row that can't be read, or that are silent of every score: the site has changed its pages."""
_MOST_GROUPS = 64
MOST_PAGES = 1000.0
"""That a baseline weighs: with more, the older ones count less and less."""

NOTHING: Baseline = (0.0, 0.0, 0.0)


class Example(NamedTuple):
    """A page that is silent of something."""

    site_id: str
    url: str


@dataclass(slots=True, kw_only=True)
class Finding:
    """A field of which pages are silent that were to have its place."""

    silent: int
    pages: int
    """The latest ones, of which so many are silent."""
    example: Example


@dataclass(slots=True)
class Seen:
    """What a number of pages add to what is known of a site."""

    pages: int = 0
    having: Counter[str] = field(default_factory=Counter)
    """Field → pages that had a value. A field that the site tells of is there with 0, too."""
    silent: Counter[str] = field(default_factory=Counter)
    """Field → pages that were silent of it."""
    baselines: Baselines = field(default_factory=dict)
    marks: dict[str, str] = field(default_factory=dict)
    """Field → a sign for each page that was to have its place, in order: 1 when the page was silent of it, else 0."""
    examples: dict[str, Example] = field(default_factory=dict)
    """Field → the latest page that was silent of it."""

    def update(self, later: Seen) -> None:
        """Add what was seen later."""
        self.pages += later.pages
        self.having.update(later.having)
        self.silent.update(later.silent)
        for group, fields in later.baselines.items():
            known = self.baselines.setdefault(group, {})
            for name, baseline in fields.items():
                known[name] = merge(known.get(name, NOTHING), baseline)
        for name, signs in later.marks.items():
            self.marks[name] = (self.marks.get(name, "") + signs)[-WINDOW:]
        self.examples.update(later.examples)


def merge(baseline: Baseline, more: Baseline) -> Baseline:
    """Return a baseline to which pages were added."""
    pages, silent, absent = map(add, baseline, more)
    weight = min(1.0, MOST_PAGES / pages) if pages else 1.0
    return pages * weight, silent * weight, absent * weight


def group_of(movie: Movie) -> str:
    """Return what a page is alike to: `<page kind>|<title kind>|<released or not>`. The page kind is the first part of its path.

    A title whose release date and year can't be read is taken for released, as most are.
    """
    path = urlsplit(movie.fetch.url).path.split("/", 2) if movie.fetch is not None else []
    now = "" if movie.scraped_at is None else movie.scraped_at.date().isoformat()
    date = movie.release_date or ("" if movie.year is None else str(movie.year))
    is_out = not now or date <= now[: len(date)]
    return f"{path[1] if len(path) > 1 else '-'}|{movie.kind}|{'released' if is_out else 'unreleased'}"


class Sign(Enum):
    """What a page tells of a field."""

    VALUE = auto()
    ABSENT = auto()
    SILENT = auto()


class _Window:
    """The latest pages that were to have a place."""

    __slots__ = ("_groups", "_signs")

    def __init__(self, marks: str = "") -> None:
        self._signs = deque((sign == "1" for sign in marks[-WINDOW:]), maxlen=WINDOW)
        self._groups: deque[str | None] = deque([None] * len(self._signs), maxlen=WINDOW)
        """Of the pages that this process has seen itself."""

    def __len__(self) -> int:
        return len(self._signs)

    def add(self, is_silent: bool, group: str) -> str | None:
        """Add a page; return the group of the page that falls out, when it was silent and this process has seen it."""
        out = self._groups[0] if len(self._signs) == WINDOW and self._signs[0] else None
        self._signs.append(is_silent)
        self._groups.append(group)
        return out

    def silent(self, latest: int = WINDOW) -> int:
        """Return how many of so many latest pages are silent."""
        return sum(list(self._signs)[-latest:])

    def is_low(self, is_certain: bool) -> bool:
        """Return whether silent pages are a finding; `is_certain`: whether the place is on every page, by what is known."""
        if not is_certain:
            return self.silent(_LOW_OF_LABELS_FROM) == _LOW_OF_LABELS_FROM
        return self.silent() >= _LOW_FROM and self.silent(_LATEST) >= _LOW_AMONG_LATEST


class Places:
    """Watches the pages of one site in one process."""

    def __init__(self, baselines: Baselines | None = None, marks: Mapping[str, str] | None = None) -> None:
        """Take what is known of earlier pages: their baselines, and the signs of the latest ones as in `Seen.marks`."""
        self._baselines: Baselines = baselines or {}
        self._windows: defaultdict[str, _Window] = defaultdict(_Window)
        for name, signs in (marks or {}).items():
            self._windows[name] = _Window(signs)
        self._low: dict[str, Finding] = {}
        self._unsaved = Seen()
        self._scoreless = 0
        self.pages = 0
        self.having: Counter[str] = Counter()
        """Field → pages that had a value."""
        self.silent: Counter[str] = Counter()
        """Field → pages that were silent of it."""
        self.examples: dict[str, Example] = {}
        """Field → the latest of these."""
        self.partial = 0
        """Pages that were silent of something that pages alike tell."""
        self.unread = 0
        """Title pages in a row that could not be read, until now."""

    def continue_from(self, other: Places) -> None:
        """Take over what was counted while nothing was known of earlier pages."""
        self.pages, self.partial, self.unread = other.pages, other.partial, other.unread
        self.having, self.silent, self.examples = other.having, other.silent, other.examples
        self._unsaved = other._unsaved

    def take(self, movie: Movie) -> None:
        """Count a page that could be read."""
        told, having, silent = told_by(movie.site, movie.kind), present_in(movie), set(movie.silent)
        example = Example(movie.site_id or "", movie.fetch.url if movie.fetch is not None else movie.url or "")
        new = Seen(1, Counter(dict.fromkeys(told, 0)), Counter(silent), examples=dict.fromkeys(silent, example))
        new.having.update(having)
        group = group_of(movie)
        if group in self._baselines or len(self._baselines) < _MOST_GROUPS:
            for name in told | {name for name in having | silent if name.endswith(".count")}:
                sign = Sign.SILENT if name in silent else Sign.VALUE if name in having else Sign.ABSENT
                self._look(group, name, sign, example, new)
        self.unread = 0
        self.partial += bool(self.unexpected(movie))
        if any(name.startswith("scores.") and name not in silent for name in told):
            self._scoreless = 0
            self._low.pop(ALL_SCORES, None)
            self._learn(new, ANY, ALL_SCORES, Sign.VALUE)
        else:
            self._scoreless += 1
            if self._scoreless >= GONE_AFTER and self._expects_scores():
                self._low[ALL_SCORES] = Finding(silent=self._scoreless, pages=self._scoreless, example=example)
        self.pages += 1
        self.having.update(having)
        self.silent.update(silent)
        self.examples.update(new.examples)
        self._unsaved.update(new)

    def take_unread(self) -> None:
        """Count a page that could not be read."""
        self.unread += 1

    def unexpected(self, movie: Movie) -> list[str]:
        """Return what a page is silent of although pages alike have its place, or too few of them were seen to tell."""
        baselines = self._baselines.get(group_of(movie), {})
        elsewhere = ON_OTHER_PAGES[movie.site]
        return [
            name
            for name in movie.silent
            if name not in elsewhere and _has_place(name, baselines.get(name, NOTHING)) is not False
        ]

    def findings(self) -> dict[str, Finding]:
        """Return the fields whose place is missing."""
        return dict(self._low)

    def well(self) -> set[str]:
        """Return the fields whose place the latest pages have, when enough of them were seen to tell."""
        well = {
            name
            for name, window in self._windows.items()
            if name not in self._low and len(window) >= _LATEST and window.silent(_LATEST) <= _WELL_AMONG_LATEST
        }
        return well | {ALL_SCORES} if well and not self._scoreless else well

    def learnt(self) -> Seen:
        """Return what was seen since this was last asked."""
        learnt, self._unsaved = self._unsaved, Seen()
        return learnt

    def return_unsaved(self, learnt: Seen) -> None:
        """Take back what `learnt` returned, as it could not be kept."""
        learnt.update(self._unsaved)
        self._unsaved = learnt

    def _look(self, group: str, name: str, sign: Sign, example: Example, new: Seen) -> None:
        """Look at one field of a page.

        While a place is watched, a page that lacks it becomes a part of the baseline only when it leaves the window and nothing was found:
        what is missing doesn't become usual by lasting.
        """
        baseline = self._baselines.get(group, {}).get(name, NOTHING)
        if not _has_place(name, baseline):
            if sign is not Sign.SILENT or name not in self._low:
                self._learn(new, group, name, sign)
            return
        window = self._windows[name]
        left = window.add(sign is Sign.SILENT, group)
        new.marks[name] = "1" if sign is Sign.SILENT else "0"
        if sign is not Sign.SILENT:
            self._learn(new, group, name, sign)
            if name in self._low and window.silent(_LATEST) <= _WELL_AMONG_LATEST:
                del self._low[name]
        elif name in self._low or window.is_low(_is_certain(name, baseline)):
            self._low[name] = Finding(silent=window.silent(), pages=len(window), example=example)
        if left is not None and name not in self._low:
            self._learn(new, left, name, Sign.SILENT)

    def _learn(self, new: Seen, group: str, name: str, sign: Sign) -> None:
        more = (1.0, float(sign is Sign.SILENT), float(sign is Sign.ABSENT))
        for baselines in (self._baselines, new.baselines):
            fields = baselines.setdefault(group, {})
            fields[name] = merge(fields.get(name, NOTHING), more)

    def _expects_scores(self) -> bool:
        """Return whether pages are to have places of scores: always, unless an operator has said otherwise and none was seen since."""
        pages, silent, _ = self._baselines.get(ANY, {}).get(ALL_SCORES, NOTHING)
        return silent * 2 <= pages


def _is_certain(name: str, baseline: Baseline) -> bool:
    """Return whether a place is on every page that is alike, whether there is a value or not."""
    return name.startswith("scores.") or baseline[2] > 0


def _has_place(name: str, baseline: Baseline) -> bool | None:
    """Return whether nearly all pages alike have a place, as far as that is known; None for not."""
    pages, silent, _ = baseline
    certain = _is_certain(name, baseline)
    if pages < KNOWN_FROM:
        return None
    if silent > pages * (_SILENT_AT_MOST if certain else _SILENT_OF_LABELS_AT_MOST):
        return False
    return True if certain or pages >= KNOWN_OF_LABELS_FROM else None
