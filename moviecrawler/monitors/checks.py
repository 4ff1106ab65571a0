"""What is an alarm: decided from the figures of a crawl, without a clock or a store."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from moviecrawler.monitors.places import ALL_SCORES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from moviecrawler.monitors.alarm_store import Kind
    from moviecrawler.monitors.places import Finding, Places

_SAMPLE = 20
"""Pages or answers from which on a share says something."""
_WINDOW = 200
"""Latest pages or answers that a share is of, at least."""
_TOO_MANY = 1e-3
"""Chance of what is seen, if the allowed share were the true one, below which it is not."""
_FAILED_TRIES = 3
"""Of a store in a row, without a batch that was written."""
_QUIET = 600.0
"""Seconds without a new dead letter after which all is well."""
_FEW_TITLES = 20
"""Below which a share of the catalogue says nothing."""


class Verdict(NamedTuple):
    """What was found of one alarm; nothing is said where too little was seen to tell."""

    name: str
    kind: Kind
    text: str
    """Why it stands; empty when all is well."""

    @property
    def stands(self) -> bool:
        """Whether it is an alarm."""
        return bool(self.text)


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """A crawl at one moment."""

    now: float
    """Seconds, by a clock that never goes back."""
    stats: Mapping[str, object]
    is_due: bool
    """Whether there is something that may be asked for now."""
    dead_letters: int | None = None
    """In the shared queue; None without one."""
    overdue: tuple[int, int] | None = None
    """Of the site's titles that were fetched before, how many are overdue, and how many there are."""

    def total(self, prefix: str, suffix: str = "") -> int:
        """Return the sum of the stats whose names begin and end so."""
        return sum(
            int(value)
            for name, value in self.stats.items()
            if name.startswith(prefix) and name.endswith(suffix) and isinstance(value, int | float)
        )


class Checks:
    """All checks of one site's crawl but of its pages' places; they remember what they saw before."""

    def __init__(self, site: str, *, extraction_errors: float, blocks: float, stalled: float, freshness: float) -> None:
        self._site = site
        self._errors = _Share(extraction_errors)
        self._blocks = _Share(blocks)
        self._stalled = stalled
        self._freshness = freshness
        self._answers = -1
        self._answered_at = 0.0
        self._stores: dict[str, tuple[int, int]] = {}
        self._letters: int | None = None
        self._letter_at = float("-inf")

    def look(self, figures: Figures) -> list[Verdict]:
        """Return what is to be said now."""
        return [
            *self._extraction_errors(figures),
            *self._refusals(figures),
            *self._stall(figures),
            *self._stores_failing(figures),
            *self._dead_letters(figures),
            *self._overdue(figures),
        ]

    def _extraction_errors(self, figures: Figures) -> list[Verdict]:
        errors = figures.total("extraction/errors/")
        pages = errors + figures.total("coverage/pages")
        found = self._errors.look(errors, pages)
        if found is None:
            return []
        some, most = found
        fields = sorted(name.rpartition("/")[2] for name in figures.stats if name.startswith("extraction/errors/"))
        text = f"{some} of the latest {most} pages can't be read: {', '.join(fields)}" if self._errors.stands else ""
        return [self._verdict("extraction_errors", text)]

    def _refusals(self, figures: Figures) -> list[Verdict]:
        stopped = figures.stats.get(f"blocks/{self._site}/stopped")
        if stopped:
            return [self._verdict("blocks", str(stopped))]
        refusals = figures.total(f"blocks/{self._site}/") + figures.total(f"identity/{self._site}/", "/banned")
        found = self._blocks.look(refusals, figures.total("downloader/response_count"))
        if found is None:
            return []
        text = f"{found[0]} of the latest {found[1]} answers are refusals" if self._blocks.stands else ""
        return [self._verdict("blocks", text)]

    def _stall(self, figures: Figures) -> list[Verdict]:
        answers = figures.total("downloader/response_count")
        if answers != self._answers or not figures.is_due:
            is_first = self._answers < 0
            is_answered = answers > max(self._answers, 0)
            self._answers, self._answered_at = answers, figures.now
            return [] if is_first or not is_answered else [self._verdict("stalled", "")]
        silent = figures.now - self._answered_at
        if silent < self._stalled:
            return []
        return [
            self._verdict("stalled", f"nothing was fetched for {silent:,.0f} s, although there is something to fetch")
        ]

    def _stores_failing(self, figures: Figures) -> list[Verdict]:
        verdicts = []
        stores = {name.split("/")[1] for name in figures.stats if name.startswith("store/")}
        for store in sorted(stores):
            batches, retries = figures.total(f"store/{store}/batches"), figures.total(f"store/{store}/retries")
            spooled, lost = figures.total(f"store/{store}/spooled"), figures.total(f"store/{store}/lost")
            before = self._stores.get(store)
            name = f"store/{self._site}/{store}"
            if lost:
                text = f"{lost} items for {store} are lost, as the disk is full; ask for their titles again"
                verdicts.append(Verdict(name, "store", text))
            elif spooled:
                text = f"{store} did not take {spooled} items in time; they are kept in files for the next crawl"
                verdicts.append(Verdict(name, "store", text))
            elif before is None or batches > before[0]:
                self._stores[store] = batches, retries
                if batches:
                    verdicts.append(Verdict(name, "store", ""))
            elif retries - before[1] >= _FAILED_TRIES:
                text = f"{store} has failed {retries - before[1]} times in a row, and takes nothing"
                verdicts.append(Verdict(name, "store", text))
        return verdicts

    def _dead_letters(self, figures: Figures) -> list[Verdict]:
        rejected = figures.total("items/rejected") - figures.total("items/rejected/")
        rejected += figures.total("store/", "/rejected")
        letters = rejected + (figures.dead_letters or 0)
        if self._letters is None:
            # What was there before this crawl is no news; what it has refused itself is.
            self._letters = figures.dead_letters or 0
        if letters > self._letters:
            self._letter_at = figures.now
        self._letters = letters
        if figures.now - self._letter_at < _QUIET:
            text = f"{rejected} items were rejected, and {figures.dead_letters or 0} requests are set aside"
            return [self._verdict("dead_letters", text)]
        return [self._verdict("dead_letters", "")] if figures.total("coverage/pages") >= _SAMPLE else []

    def _overdue(self, figures: Figures) -> list[Verdict]:
        if figures.overdue is None or not self._freshness or figures.overdue[1] < _FEW_TITLES:
            return []
        overdue, titles = figures.overdue
        fresh = 1 - overdue / titles
        if fresh >= self._freshness:
            return [self._verdict("freshness", "")]
        text = f"{fresh:.1%} of {titles:,} titles are fresh, and {self._freshness:.0%} are meant to be: {overdue:,} are overdue"
        return [self._verdict("freshness", text)]

    def _verdict(self, kind: Kind, text: str) -> Verdict:
        return Verdict(f"{kind}/{self._site}", kind, text)


class _Share:
    """Whether too many of the latest pages are bad."""

    def __init__(self, allowed: float) -> None:
        self._allowed = allowed
        self._marks: deque[tuple[int, int]] = deque([(0, 0)], maxlen=1000)
        self.stands = False

    def look(self, bad: int, pages: int) -> tuple[int, int] | None:
        """Take totals, and return the latest bad ones and of how many; None when these are too few to tell."""
        self._marks.append((bad, pages))
        while len(self._marks) > 1 and pages - self._marks[1][1] >= _WINDOW:
            self._marks.popleft()
        some, most = bad - self._marks[0][0], pages - self._marks[0][1]
        if most < _SAMPLE:
            return None
        some = min(some, most)
        # As many bad ones or more, that is at most so many good ones.
        self.stands = some > most * self._allowed and _chance_of(most - some, most, 1 - self._allowed) < _TOO_MANY
        return some, most


def place_verdicts(site: str, places: Places) -> list[Verdict]:
    """Return what is to be said of the fields of a site's pages."""
    findings = places.findings()
    verdicts = [
        Verdict(f"coverage/{site}/{name}", "coverage", _told(name, one)) for name, one in sorted(findings.items())
    ]
    return verdicts + [Verdict(f"coverage/{site}/{name}", "coverage", "") for name in sorted(places.well())]


def _told(name: str, finding: Finding) -> str:
    example = f"such as {finding.example.site_id} ({finding.example.url})"
    if name == ALL_SCORES:
        return f"{finding.pages} pages in a row are silent of every score, {example}"
    return f"{finding.silent} of the latest {finding.pages} pages that should have a place for {name} are silent of it, {example}"


def _chance_of(seen: int, pages: int, share: float) -> float:
    """Return the chance that of so many pages at most `seen` are good when pages are at that share (0 to 1)."""
    return min(1.0, sum(math.comb(pages, n) * share**n * (1 - share) ** (pages - n) for n in range(seen + 1)))
