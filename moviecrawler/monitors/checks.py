"""Decides which figures of a crawl are an alarm. Pure."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from math import sqrt
from typing import TYPE_CHECKING, NamedTuple

from moviecrawler.monitors.places import ALL_SCORES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from moviecrawler.monitors.alarm_store import Kind
    from moviecrawler.monitors.places import Finding, Places
    from moviecrawler.options import AlarmOptions

_LEAST_PAGES = 20
"""Fewest pages or answers for a share to be judged."""
_WINDOW_PAGES = 200
"""Fewest latest pages or answers that a share is taken of, once there are so many."""
_DEVIATIONS = 3
"""Standard deviations above the allowed share from which on chance is ruled out."""
_FAILED_TRIES = 3
"""Failures of a store in a row, without a batch written, that are an alarm."""
_DEAD_LETTER_SECONDS = 600.0
"""Seconds without a new dead letter after which the alarm ends."""
_LEAST_TITLES = 20
"""Fewest titles for a share of the catalogue to be judged."""


class Verdict(NamedTuple):
    """Whether an alarm stands. There is no verdict when too little was seen."""

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
    """Figures of a crawl at one moment."""

    now: float
    """Seconds, by a clock that never goes back."""
    stats: Mapping[str, object]
    is_due: bool
    """Whether there is a request that may be sent now."""
    dead_letters: int | None = None
    """Dead letters in the shared frontier; None without one."""
    overdue: tuple[int, int] | None = None
    """How many of the site's titles that were fetched before are overdue, and how many there are."""

    def total(self, prefix: str, suffix: str = "") -> int:
        """Return the sum of the stats whose names begin and end so."""
        return sum(
            int(value)
            for name, value in self.stats.items()
            if name.startswith(prefix) and name.endswith(suffix) and isinstance(value, int | float)
        )


_REFUSALS = ("challenge", "refusal", "rate_limit", "throttle")
"""The kinds of refusals, as `extract/blocks.py` has them."""


class Checks:
    """The checks of one site's crawl, apart from those of its pages' places. They remember earlier figures.

    A check returns why its alarm stands, an empty text when all is well, and None when too little was seen.
    """

    def __init__(self, site: str, options: AlarmOptions) -> None:
        self._site = site
        self._options = options
        self._errors = _Share(options.extraction_errors)
        self._blocks = _Share(options.blocks)
        self._answers = -1
        self._answered_at = 0.0
        self._stores: dict[str, tuple[int, int]] = {}
        """Store → its batches and retries when it wrote a batch last."""
        self._dead_letter_count: int | None = None
        self._dead_letter_at = float("-inf")

    def look(self, figures: Figures) -> list[Verdict]:
        """Return the verdicts by the figures of this moment."""
        found: dict[Kind, str | None] = {
            "extraction_errors": self._unreadable(figures),
            "blocks": self._refused(figures),
            "stalled": self._stall(figures),
            "dead_letters": self._dead_letters(figures),
            "freshness": self._overdue(figures),
        }
        verdicts = [Verdict(f"{kind}/{self._site}", kind, text) for kind, text in found.items() if text is not None]
        stores = sorted({name.split("/")[1] for name in figures.stats if name.startswith("store/")})
        for store in stores:
            text = self._store(store, figures)
            if text is not None:
                verdicts.append(Verdict(f"store/{self._site}/{store}", "store", text))
        return verdicts

    def _unreadable(self, figures: Figures) -> str | None:
        errors = figures.total("extraction/errors/")
        names = sorted(name.rpartition("/")[2] for name in figures.stats if name.startswith("extraction/errors/"))
        return self._errors.look(
            errors, errors + figures.total("coverage/pages"), "pages can't be read: " + ", ".join(names)
        )

    def _refused(self, figures: Figures) -> str | None:
        stopped = figures.stats.get(f"blocks/{self._site}/stopped")
        if stopped:
            return str(stopped)
        refusals = figures.total(f"blocks/{self._site}/")
        # Through proxies, refusals are outcomes of attempts.
        refusals += sum(figures.total(f"proxy/{self._site}/", f"/{kind}") for kind in _REFUSALS)
        return self._blocks.look(refusals, figures.total("downloader/response_count"), "answers are refusals")

    def _stall(self, figures: Figures) -> str | None:
        answers, before = figures.total("downloader/response_count"), self._answers
        if answers != before or not figures.is_due:
            self._answers, self._answered_at = answers, figures.now
            return "" if 0 <= before < answers else None
        silent = figures.now - self._answered_at
        if silent < self._options.stalled:
            return None
        return f"nothing was fetched for {silent:,.0f} s, although there is something to fetch"

    def _store(self, store: str, figures: Figures) -> str | None:
        batches, retries = figures.total(f"store/{store}/batches"), figures.total(f"store/{store}/retries")
        spooled, lost = figures.total(f"store/{store}/spooled"), figures.total(f"store/{store}/lost")
        if lost:
            return f"{lost} items for {store} are lost, as the disk is full; ask for their titles again"
        if spooled:
            return f"{store} did not take {spooled} items in time; they are kept in files for the next crawl"
        before = self._stores.get(store)
        if before is None or batches > before[0]:
            self._stores[store] = batches, retries
            return "" if batches else None
        failed = retries - before[1]
        return f"{store} has failed {failed} times in a row, and takes nothing" if failed >= _FAILED_TRIES else None

    def _dead_letters(self, figures: Figures) -> str | None:
        rejected = figures.total("items/rejected") - figures.total("items/rejected/")
        rejected += figures.total("store/", "/rejected")
        set_aside = figures.dead_letters or 0
        # Dead letters from before this crawl are not new; items that it rejected itself are.
        if rejected + set_aside > (set_aside if self._dead_letter_count is None else self._dead_letter_count):
            self._dead_letter_at = figures.now
        self._dead_letter_count = rejected + set_aside
        if figures.now - self._dead_letter_at < _DEAD_LETTER_SECONDS:
            return f"{rejected} items were rejected, and {set_aside} requests are set aside"
        return "" if figures.total("coverage/pages") >= _LEAST_PAGES else None

    def _overdue(self, figures: Figures) -> str | None:
        overdue, titles = figures.overdue or (0, 0)
        goal = self._options.freshness
        if not goal or titles < _LEAST_TITLES:
            return None
        fresh = 1 - overdue / titles
        if fresh >= goal:
            return ""
        return f"{fresh:.1%} of {titles:,} titles are fresh, and {goal:.0%} are meant to be: {overdue:,} are overdue"


class _Share:
    """Judges whether too many of the latest pages are bad."""

    def __init__(self, allowed: float) -> None:
        self._allowed = allowed
        self._marks: deque[tuple[int, int]] = deque([(0, 0)], maxlen=1000)

    def look(self, bad: int, pages: int, what: str) -> str | None:
        """Take totals; return as a check does."""
        self._marks.append((bad, pages))
        while len(self._marks) > 1 and pages - self._marks[1][1] >= _WINDOW_PAGES:
            self._marks.popleft()
        some, most = bad - self._marks[0][0], pages - self._marks[0][1]
        if most < _LEAST_PAGES:
            return None
        expected = most * self._allowed
        too_many = min(some, most) > expected + _DEVIATIONS * sqrt(expected * (1 - self._allowed))
        return f"{min(some, most)} of the latest {most} {what}" if too_many else ""


def place_verdicts(site: str, places: Places) -> list[Verdict]:
    """Return the verdicts on the fields of a site's pages."""
    findings = places.findings()
    verdicts = [
        Verdict(f"coverage/{site}/{name}", "coverage", _describe(name, one)) for name, one in sorted(findings.items())
    ]
    return verdicts + [Verdict(f"coverage/{site}/{name}", "coverage", "") for name in sorted(places.present())]


def _describe(name: str, finding: Finding) -> str:
    example = f"such as {finding.example.site_id} ({finding.example.url})"
    if name == ALL_SCORES:
        return f"{finding.pages} pages in a row are silent of every score, {example}"
    return f"{finding.silent} of the latest {finding.pages} pages that should have a place for {name} are silent of it, {example}"
