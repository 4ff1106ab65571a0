"""Detects fields whose place is missing on a site's pages. Pure: without a clock or a store.

A page has the place of a field when it gives a value there or states that there is none; otherwise it is silent of the field.
Values do not count: pages of unscored titles have the places of all scores. Pages are alike when they have the same page kind and
title kind, and their titles are both released or both not. Among pages alike, nearly all have a place or nearly none. A place that
nearly all have is watched.

Every title's page has the places of scores. It also has the place of each field for which some page has stated that there is no
value. Any other place may belong to a label in a list of details, which is shown only for titles with a value. Such a place is
watched after more pages, and is missing only when many pages in a row lack it.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

from moviecrawler.fields import ON_OTHER_PAGES, present_in, told_by

if TYPE_CHECKING:
    from collections.abc import Mapping

    from moviecrawler.items import Movie

Baseline = tuple[float, float, float]
"""How many pages were seen, how many were silent of a field, and how many stated that there is no value."""
Baselines = dict[str, dict[str, Baseline]]
"""Group of pages alike → field → its baseline."""

ALL_SCORES = "scores"
"""Name of the finding that pages are silent of every score, and of the baseline in `ANY` that says whether scores are expected."""
ANY = "*"
"""The group of all pages."""
KNOWN_FROM_PAGES, _LABEL_KNOWN_FROM_PAGES = 30, 200
"""Pages of a group after which it is known whether they have a place. The second number is for a place that may be a label's."""
_SILENT_SHARE, _LABEL_SILENT_SHARE = 0.02, 0.2
"""Share of a group's pages that may be silent of a field although they have its place."""
WINDOW_PAGES = 50
"""Latest pages that should have a place; they are judged together."""
_MISSING_FROM_PAGES, _LABEL_MISSING_FROM_PAGES = 15, 30
"""Silent pages in the window after which a place is missing; for a label's place, in a row."""
_LATEST_PAGES = 16
"""The last pages of the window: at least `_MISSING_AMONG_LATEST` are silent when a place goes missing, at most
`_PRESENT_AMONG_LATEST` when it is back."""
_MISSING_AMONG_LATEST, _PRESENT_AMONG_LATEST = 4, 1
GONE_AFTER_PAGES = 30
"""Title pages in a row that can't be read, or that are silent of every score: the site has changed its pages."""
_MAX_GROUPS = 64
BASELINE_PAGES = 1000.0
"""The most pages that a baseline stands for: with more, the older ones count less and less."""

NOTHING: Baseline = (0.0, 0.0, 0.0)
_VALUE: Baseline = (1.0, 0.0, 0.0)
_ABSENT: Baseline = (1.0, 0.0, 1.0)
_SILENT: Baseline = (1.0, 1.0, 0.0)
"""What a page says of a field, as it is added to a baseline."""


class Example(NamedTuple):
    """A page that is silent of something."""

    site_id: str
    url: str


@dataclass(slots=True, kw_only=True)
class Finding:
    """A field whose place is missing."""

    silent: int
    pages: int
    """Latest pages that should have the place; so many of them are silent."""
    example: Example


@dataclass(slots=True)
class Seen:
    """What some pages add to the baselines of a site."""

    pages: int = 0
    having: Counter[str] = field(default_factory=Counter)
    """Field → pages that had a value; 0 for a field that the site shows and no page had."""
    silent: Counter[str] = field(default_factory=Counter)
    """Field → pages that were silent of it."""
    baselines: Baselines = field(default_factory=dict)
    marks: dict[str, str] = field(default_factory=dict)
    """Field → a sign for each page that should have its place, in order: 1 when the page was silent of it, else 0."""
    examples: dict[str, Example] = field(default_factory=dict)
    """Field → the latest page that was silent of it."""

    def update(self, later: Seen) -> None:
        """Add later pages."""
        self.pages += later.pages
        self.having.update(later.having)
        self.silent.update(later.silent)
        for group, fields in later.baselines.items():
            known = self.baselines.setdefault(group, {})
            for name, baseline in fields.items():
                known[name] = merge(known.get(name, NOTHING), baseline)
        for name, signs in later.marks.items():
            self.marks[name] = (self.marks.get(name, "") + signs)[-WINDOW_PAGES:]
        self.examples.update(later.examples)


def merge(baseline: Baseline, more: Baseline) -> Baseline:
    """Return a baseline with pages added."""
    pages, silent, absent = baseline[0] + more[0], baseline[1] + more[1], baseline[2] + more[2]
    if pages <= BASELINE_PAGES:
        return pages, silent, absent
    weight = BASELINE_PAGES / pages
    return pages * weight, silent * weight, absent * weight


def group_of(movie: Movie) -> str:
    """Return the group of a page: `<page kind>|<title kind>|<released or not>`. The page kind is the first part of its path.

    A title whose release date and year can't be read is taken for released, as most are.
    """
    path = urlsplit(movie.fetch.url).path.split("/", 2) if movie.fetch is not None else []
    now = "" if movie.scraped_at is None else movie.scraped_at.date().isoformat()
    date = movie.release_date or ("" if movie.year is None else str(movie.year))
    is_out = not now or date <= now[: len(date)]
    return f"{path[1] if len(path) > 1 else '-'}|{movie.kind}|{'released' if is_out else 'unreleased'}"


class _Window:
    """The latest pages that should have a place."""

    __slots__ = ("_pages",)

    def __init__(self, marks: str = "") -> None:
        self._pages: deque[tuple[bool, str | None]] = deque(
            ((sign == "1", None) for sign in marks), maxlen=WINDOW_PAGES
        )
        """For each page whether it is silent, and its group if this process has read it."""

    def __len__(self) -> int:
        return len(self._pages)

    def add(self, is_silent: bool, group: str) -> str | None:
        """Add a page; return the group of the page that falls out, if that was silent and this process has read it."""
        was_silent, out = self._pages[0] if len(self._pages) == WINDOW_PAGES else (False, None)
        self._pages.append((is_silent, group))
        return out if was_silent else None

    def silent(self, latest: int = WINDOW_PAGES) -> int:
        """Return how many of the `latest` pages are silent."""
        return sum(is_silent for is_silent, _ in list(self._pages)[-latest:])

    def is_missing(self, is_everywhere: bool) -> bool:
        """Return whether the place is missing. `is_everywhere`: each page should have it, with a value or without."""
        if not is_everywhere:
            return self.silent(_LABEL_MISSING_FROM_PAGES) == _LABEL_MISSING_FROM_PAGES
        return self.silent() >= _MISSING_FROM_PAGES and self.silent(_LATEST_PAGES) >= _MISSING_AMONG_LATEST


class Places:
    """Watches the pages of one site in one process."""

    def __init__(self, baselines: Baselines | None = None, marks: Mapping[str, str] | None = None) -> None:
        """Take the baselines of earlier pages, and the signs of the latest ones as in `Seen.marks`."""
        self._baselines: Baselines = baselines or {}
        self._windows: defaultdict[str, _Window] = defaultdict(_Window)
        for name, signs in (marks or {}).items():
            self._windows[name] = _Window(signs)
        self._missing: dict[str, Finding] = {}
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
        """Pages that were silent of a field whose place pages alike have."""
        self.unread = 0
        """Current number of title pages in a row that could not be read."""

    def continue_from(self, other: Places) -> None:
        """Take over the counts of an object that was created without the baselines of earlier pages."""
        self.pages, self.partial, self.unread = other.pages, other.partial, other.unread
        self.having, self.silent, self.examples = other.having, other.silent, other.examples
        self._unsaved = other._unsaved

    def take(self, movie: Movie) -> None:
        """Count a page that could be read."""
        shown, having, silent = told_by(movie.site, movie.kind), present_in(movie), set(movie.silent)
        example = Example(movie.site_id or "", movie.fetch.url if movie.fetch is not None else movie.url or "")
        group = group_of(movie)
        if group in self._baselines or len(self._baselines) < _MAX_GROUPS:
            for name in shown | {name for name in having | silent if name.count(".") > 1}:
                sign = _SILENT if name in silent else _VALUE if name in having else _ABSENT
                self._look(group, name, sign, example)
        self.unread = 0
        self.partial += bool(silent and self.unexpected(movie))
        if any(name.startswith("scores.") and name not in silent for name in shown):
            self._scoreless = 0
            self._missing.pop(ALL_SCORES, None)
            self._learn(ANY, ALL_SCORES, _VALUE)
        else:
            self._scoreless += 1
            if self._scoreless >= GONE_AFTER_PAGES and self._expects_scores():
                self._missing[ALL_SCORES] = Finding(silent=self._scoreless, pages=self._scoreless, example=example)
        unsaved = self._unsaved
        unsaved.having.update(dict.fromkeys(shown - unsaved.having.keys(), 0))
        for count in (self, unsaved):
            count.pages += 1
            count.having.update(having)
            count.silent.update(silent)
            count.examples.update(dict.fromkeys(silent, example))

    def take_unread(self) -> None:
        """Count a page that could not be read."""
        self.unread += 1

    def unexpected(self, movie: Movie) -> list[str]:
        """Return the fields that a page is silent of, apart from those whose place pages alike don't have."""
        baselines = self._baselines.get(group_of(movie), {})
        elsewhere = ON_OTHER_PAGES[movie.site]
        return [
            name
            for name in movie.silent
            if name not in elsewhere and _has_place(name, baselines.get(name, NOTHING)) is not False
        ]

    def findings(self) -> dict[str, Finding]:
        """Return the fields whose place is missing."""
        return dict(self._missing)

    def present(self) -> set[str]:
        """Return the fields whose place the latest pages have, when enough pages were seen to know."""
        present = {
            name
            for name, window in self._windows.items()
            if name not in self._missing
            and len(window) >= _LATEST_PAGES
            and window.silent(_LATEST_PAGES) <= _PRESENT_AMONG_LATEST
        }
        return present | {ALL_SCORES} if present and not self._scoreless else present

    def learnt(self) -> Seen:
        """Return what was seen since the last call."""
        learnt, self._unsaved = self._unsaved, Seen()
        return learnt

    def return_unsaved(self, learnt: Seen) -> None:
        """Take back what `learnt` returned, as it could not be stored."""
        learnt.update(self._unsaved)
        self._unsaved = learnt

    def _look(self, group: str, name: str, sign: Baseline, example: Example) -> None:
        """Look at one field of a page.

        While a place is watched, a page without it joins the baseline only when it leaves the window and the place is not
        missing. Otherwise a missing place would become the usual case after a while.
        """
        baseline = self._baselines.get(group, {}).get(name, NOTHING)
        is_silent = sign is _SILENT
        if not _has_place(name, baseline):
            if not is_silent or name not in self._missing:
                self._learn(group, name, sign)
            return
        window = self._windows[name]
        left = window.add(is_silent, group)
        marks = self._unsaved.marks
        marks[name] = (marks.get(name, "") + ("1" if is_silent else "0"))[-WINDOW_PAGES:]
        if not is_silent:
            self._learn(group, name, sign)
            if name in self._missing and window.silent(_LATEST_PAGES) <= _PRESENT_AMONG_LATEST:
                del self._missing[name]
        elif name in self._missing or window.is_missing(_is_everywhere(name, baseline)):
            self._missing[name] = Finding(silent=window.silent(), pages=len(window), example=example)
        if left is not None and name not in self._missing:
            self._learn(left, name, _SILENT)

    def _learn(self, group: str, name: str, sign: Baseline) -> None:
        for baselines in (self._baselines, self._unsaved.baselines):
            fields = baselines.setdefault(group, {})
            fields[name] = merge(fields.get(name, NOTHING), sign)

    def _expects_scores(self) -> bool:
        """Return whether pages should have places of scores: always, unless an operator accepted that they don't, and none was seen since."""
        pages, silent, _ = self._baselines.get(ANY, {}).get(ALL_SCORES, NOTHING)
        return silent * 2 <= pages


def _is_everywhere(name: str, baseline: Baseline) -> bool:
    """Return whether each page alike should have a place, value or not; otherwise it may be a label's."""
    return name.startswith("scores.") or baseline[2] > 0


def _has_place(name: str, baseline: Baseline) -> bool | None:
    """Return whether nearly all pages alike have a place; None while that is not known."""
    pages, silent, _ = baseline
    if pages < KNOWN_FROM_PAGES:
        return None
    everywhere = _is_everywhere(name, baseline)
    if silent > pages * (_SILENT_SHARE if everywhere else _LABEL_SILENT_SHARE):
        return False
    return True if everywhere or pages >= _LABEL_KNOWN_FROM_PAGES else None
