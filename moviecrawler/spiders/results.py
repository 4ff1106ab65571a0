"""Makes items of answers: how a page was fetched, how a title ended, and what a list says of it."""

from __future__ import annotations

from calendar import monthrange
from datetime import date
from typing import TYPE_CHECKING, get_args

from scrapy import Request
from scrapy.spidermiddlewares.httperror import HttpError

from moviecrawler.basics.clock import utc_now
from moviecrawler.basics.errors import LONGEST_REASON
from moviecrawler.items import Batch, CoveredBySeries, Fetch, ListPage, Miss, Movie, Role, Unchanged
from moviecrawler.middlewares.compression import sent_size
from moviecrawler.politeness.gate import Disallowed
from moviecrawler.politeness.meta import DIRECT, POOL_META
from moviecrawler.scrapy_internals import describe_error
from moviecrawler.sites import ID_SITE, SCOREBOARD_KINDS
from moviecrawler.sites.fields import column_of, unknown_fields_of
from moviecrawler.sites.ids import title_url

if TYPE_CHECKING:
    from datetime import datetime

    from scrapy.http import Response
    from twisted.python.failure import Failure

    from moviecrawler.items import Entry, Page, Site
    from moviecrawler.sites.identity import Identity

Result = Movie | Miss | ListPage | Batch | Unchanged | Request
"""What a spider's callback yields."""
_NO_SUCH_TITLE = (404, 410)


def fetched_at(page: Request | Response) -> datetime:
    """Return when the archive got a page, by its `meta`.

    Where pages are not archived, that is now.
    """
    return page.meta.get("fetched_at") or utc_now()


def release_of(release_date: str | None, year: int | None) -> date | None:
    """Return a title's day of release, or the last day of its month or year.

    None when nothing is known. `release_date` is as in `Movie`. The last day is safe: the title is
    never taken for older than it is.

    >>> release_of("2026-02", 2026), release_of(None, 1999)
    (datetime.date(2026, 2, 28), datetime.date(1999, 12, 31))
    """
    if release_date is None:
        return None if year is None else date(year, 12, 31)
    if len(release_date) == len("YYYY-MM-DD"):
        return date.fromisoformat(release_date)
    year, month = map(int, release_date.split("-"))
    return date(year, month, monthrange(year, month)[1])


def covered(season: Movie, at: datetime) -> CoveredBySeries:
    """Return that a season's own page need not be fetched for the scores of its series' page."""
    return CoveredBySeries(
        site=season.site,
        at=at,
        requested_id=str(season.site_id),
        released=release_of(season.release_date, season.year),
        lacks_scores=any(
            column_of(f"scores.{kind}") in season.unknown_fields for kind in SCOREBOARD_KINDS
        ),
    )


def fetch_of(response: Response, requested_id: str, identity: Identity) -> Fetch:
    """Return how a page came to us."""
    return Fetch(
        url=response.url,
        requested_id=None if requested_id == identity.title_id else requested_id,
        is_alias=identity.is_alias,
        status=response.status,
        attempts=1 + response.meta.get("retry_times", 0),
        wire_bytes=sent_size(response),
        body_bytes=len(response.body),
        pool=response.meta.get(POOL_META, DIRECT),
        archive_id=response.meta.get("archive_id"),
    )


def outcome_of(failure: Failure) -> tuple[str, str]:
    """Return how a request ended, in the words of `Miss`, and one line of why."""
    error = failure.value
    if isinstance(error, HttpError):
        status = error.response.status
        return ("absent" if status in _NO_SUCH_TITLE else "failed"), f"HTTP status {status}"
    if isinstance(error, Disallowed):
        return "disallowed", str(error)
    assert error is not None  # noqa: S101 - Scrapy's failures have one
    # The error of an answer that is no HTTP may contain the whole answer.
    return "failed", describe_error(error)[:LONGEST_REASON]


def movie_and_seasons(page: Page, movie: Movie, title_id: str) -> tuple[Movie, list[Movie]]:
    """Return the title of a page, and the seasons that it names.

    A site may have no page for a series with one season, and redirect to that season's: then
    `title_id` is the series', and the page gives the series' name and year, and the season.
    """
    if movie.site_id == title_id:
        return movie, page.seasons
    season = movie
    series = Movie(
        site=season.site,
        site_id=title_id,
        url=title_url(season.site, title_id),
        title=season.series_title or season.title,
        kind="series",
        year=season.year if season.season == 1 else None,
    )
    series.unknown_fields = unknown_fields_of(series)
    season.source = "list"  # one title was requested
    return series, [season]


def with_credits(movie: Movie, full: Movie) -> Movie:
    """Return a title with the people of its page of full credits, where that has a role."""
    roles = {credit.role for credit in full.credits}
    kept = [credit for credit in movie.credits if credit.role not in roles]
    order = get_args(Role)
    movie.credits = sorted([*kept, *full.credits], key=lambda credit: order.index(credit.role))
    known = {column_of(f"credits.{role}") for role in roles}
    movie.unknown_fields = [name for name in movie.unknown_fields if name not in known]
    return movie


def movie_of_list(site: Site, site_id: str, entry: Entry | None) -> Movie | None:
    """Return what a list page says of a title; None when that doesn't include its kind."""
    if entry is None or entry.kind is None:
        return None
    movie = Movie(
        site=site,
        site_id=site_id,
        url=title_url(site, site_id),
        imdb_id=site_id if site == ID_SITE else None,
        title=entry.title,
        kind=entry.kind,
        year=entry.year,
        release_date=entry.release_date,
        scores=entry.scores,
        source="list",
    )
    movie.unknown_fields = unknown_fields_of(movie)
    return movie
