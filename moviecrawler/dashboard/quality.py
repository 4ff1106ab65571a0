"""The page on the quality of extraction: alarms, coverage of fields, pages that could not be read or only in part, matches to review."""

from __future__ import annotations

from collections import Counter
from contextlib import closing
from datetime import date, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple, cast, get_args
from urllib.parse import urlencode

from moviecrawler.catalogue.figures import ReviewPlace, reviews
from moviecrawler.catalogue.store import open_catalogue
from moviecrawler.clock import utc_now, utc_text
from moviecrawler.dashboard.pages import Page, PageRequest, RefusedError
from moviecrawler.dashboard.sql import read_sql
from moviecrawler.errors import AwayError, TransientStoreError
from moviecrawler.items import Site
from moviecrawler.sites import SITES

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import datetime

    from moviecrawler.catalogue.figures import Review
    from moviecrawler.monitors.alarm_store import Day, Event
    from moviecrawler.monitors.places import Example

_ERRORS = read_sql("unreadable_pages.sql")
_DAYS = 30
"""Days of coverage that are shown."""
_ERRORS_OF = timedelta(days=7)
_MAX_ERRORS = 5000
_MAX_PARTIAL = 50
_ROWS = 25
_EVENTS = 20


class Coverage(NamedTuple):
    """How many pages of a site have a field."""

    field: str
    share: float
    """Share of the pages of the latest day with pages."""
    before: float | None
    """Share of the pages of all earlier days; None when there are none."""
    pages: int
    """Pages of the latest day."""
    silent: int
    """How many of these pages are silent of the field."""


class Unreadable(NamedTuple):
    """Pages that could not be read, as a field is missing. Fields that only a database has are None without one."""

    site: str
    field: str
    number: int
    latest: datetime | None = None
    site_id: str | None = None
    reason: str | None = None


class Partial(NamedTuple):
    """Pages that were read and are silent of a field."""

    site: Site
    field: str
    number: int
    pages: int
    """All pages that were read in these days."""
    example: Example | None


class Quality(Page):
    """`/quality`."""

    template = "quality.html"
    title = in_menu = "Quality"

    def show(self, request: PageRequest) -> dict[str, Any] | bytes:
        if request.path:
            return self._sample(request)
        sources = self.sources
        after = request.place("after", ReviewPlace.parse)
        today = utc_now().date()
        since = today - timedelta(days=_DAYS - 1)
        coverage: dict[Site, list[Coverage]] = {}
        partial: list[Partial] = []
        history: list[Event] = []
        if sources.has_alarm_store:
            for site in SITES:
                days, examples = request.attempt(self._pages, site, since, today, otherwise=([], {}))
                coverage[site] = coverage_of(days)
                partial += partial_of(site, days, today - _ERRORS_OF + timedelta(days=1), examples)
            history = request.attempt(sources.ask_alarms, lambda store: store.history(_EVENTS), otherwise=[])
        errors: Sequence[Unreadable] = []
        review: list[Review] = []
        if self.node.has_database:
            errors = request.attempt(self._errors, otherwise=[])
            review = request.attempt(reviews, self.node.database, _ROWS + 1, after, otherwise=[])
        elif self.node.has_frontier:
            errors = request.attempt(self._errors_counted, today, otherwise=[])
        return {
            "alarms": request.attempt(sources.alarms, otherwise=[]),
            "history": history,
            "coverage": coverage,
            "days": _DAYS,
            "errors": errors,
            "partial": sorted(partial, key=lambda one: -one.number)[:_MAX_PARTIAL],
            "error_days": _ERRORS_OF.days,
            "samples": request.attempt(sources.samples, otherwise=()),
            "reviews": review[:_ROWS],
            "after": _query(after),
            "to_more": _query(review[_ROWS - 1].place) if len(review) > _ROWS else None,
        }

    def _sample(self, request: PageRequest) -> bytes:
        """Return a stored page that could not be read: `/quality/sample?site=…&field=…`. Raises RefusedError."""
        name = f"{request.value('site')}/{request.value('field')}"
        found = self.sources.sample(name) if request.path == ("sample",) else None
        if found is None:
            raise RefusedError("there is no such sample; they are kept for 7 days", 404)
        sample, page = found
        about = (sample.url, sample.reason, f"{sample.size:,} bytes, {utc_text(sample.at)}", "", "")
        return "\n".join(about).encode() + page

    def _pages(self, site: Site, since: date, today: date) -> tuple[list[Day], dict[str, Example]]:
        """Return a site's counted pages by day, and the latest page that was silent of each field."""
        days = self.sources.ask_alarms(lambda store: store.coverage(site, since.isoformat(), today.isoformat()))
        return days, self.sources.ask_alarms(lambda store: store.examples(site))

    def _errors(self) -> list[Unreadable]:
        with self.node.database.transaction() as cursor:
            cursor.execute(_ERRORS, {"since": utc_now() - _ERRORS_OF, "most": _MAX_ERRORS})
            return [Unreadable(*row) for row in cursor.fetchall()]

    def _errors_counted(self, today: date) -> list[Unreadable]:
        days = [(today - timedelta(days=number)).isoformat() for number in range(_ERRORS_OF.days)]
        names = ((name.partition("/"), number) for name, number in self.sources.unreadable(days).most_common())
        return [Unreadable(site, field, number) for (site, _, field), number in names]

    def do_normal(self, request: PageRequest) -> tuple[str, str]:
        ended = self.sources.ask_alarms(lambda store: store.accept(request.value("alarm"), utc_now().timestamp()))
        return "/quality", "new-normal" if ended is not None else "no-review"

    def do_accept(self, request: PageRequest) -> tuple[str, str]:
        return self._decide(request, accept=True)

    def do_refuse(self, request: PageRequest) -> tuple[str, str]:
        return self._decide(request, accept=False)

    def _decide(self, request: PageRequest, *, accept: bool) -> tuple[str, str]:
        after, site = request.place("after", ReviewPlace.parse), request.value("site")
        if site not in get_args(Site):
            raise RefusedError("there is no such site")
        match = request.value("imdb_id"), cast("Site", site), request.value("site_id")
        with closing(open_catalogue(self.sources.settings)) as store:
            try:
                decided = store.decide(*match, accept=accept, now=utc_now())
            except TransientStoreError as error:
                raise AwayError(f"the catalogue can't be changed now: {error}") from None
        return f"/quality{_query(after)}", ("accepted" if accept else "refused") if decided else "no-review"


def _query(after: ReviewPlace | None) -> str:
    """Return the query of the page that begins after a match; none for the first page."""
    return "" if after is None else f"?{urlencode({'after': str(after)})}"


def coverage_of(days: Sequence[Day]) -> list[Coverage]:
    """Return the coverage of each field; fields whose coverage fell most come first."""
    by_field: dict[str, list[Day]] = {}
    for day in sorted(days, key=lambda day: day.day):
        if day.pages:
            by_field.setdefault(day.field, []).append(day)
    found = []
    for field, (*earlier, latest) in by_field.items():
        pages = sum(day.pages for day in earlier)
        before = sum(day.present for day in earlier) / pages if pages else None
        found.append(Coverage(field, latest.present / latest.pages, before, latest.pages, latest.silent))
    return sorted(found, key=lambda one: (-_drop(one), one.field))


def partial_of(site: Site, days: Iterable[Day], since: date, examples: Mapping[str, Example]) -> list[Partial]:
    """Return the fields that pages were silent of since a day."""
    silent, pages = Counter[str](), Counter[str]()
    for day in days:
        if day.day >= since.isoformat():
            silent[day.field] += day.silent
            pages[day.field] += day.pages
    return [
        Partial(site, field, number, pages[field], examples.get(field)) for field, number in silent.items() if number
    ]


def _drop(one: Coverage) -> float:
    """Return by how much a field's coverage has fallen; 0 when it has not."""
    fallen = (one.before or 0.0) - one.share
    return round(fallen, 2) if fallen > 0.02 else 0.0  # noqa: PLR2004 - less is chance
