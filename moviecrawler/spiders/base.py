"""What the three spiders share: arguments, lists that lead to titles, and an account of every title asked for."""

from __future__ import annotations

import logging
from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import urlsplit

import msgspec
import scrapy
from scrapy import Request
from scrapy.exceptions import IgnoreRequest
from scrapy.spidermiddlewares.httperror import HttpError

from moviecrawler.clock import utc_now
from moviecrawler.configuration import check_argument_names, check_settings, parse_limit, parse_title_ids
from moviecrawler.errors import ExtractionError
from moviecrawler.items import Entry, Fetch, Listing, Miss, Movie, Page
from moviecrawler.middlewares.blocks import SiteStopped
from moviecrawler.middlewares.compression import wire_size
from moviecrawler.pipelines.base import check_stores
from moviecrawler.pipelines.files import check_data_dir
from moviecrawler.urls import title_url

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
    from datetime import datetime
    from typing import Self

    from scrapy.crawler import Crawler
    from scrapy.http import Response
    from scrapy.settings import BaseSettings
    from twisted.python.failure import Failure

    from moviecrawler.items import Site

logger = logging.getLogger(__name__)

LIST_PRIORITY = 10
"""Above that of titles, so that a list of several pages is known whole before its titles are fetched."""

NO_SUCH_TITLE = frozenset({404, 410})
"""Statuses by which a site says that it has no such title."""

Found = dict[str, Any]
"""What the list that led to a title says of it: `list_name`, `list_rank`, and `entry` (an `Entry` as plain data, so that
it can travel with the request through any queue)."""


@dataclass(slots=True, kw_only=True)
class Plan:
    """What a spider's arguments ask for."""

    titles: list[str]
    """Ids, in the order given."""
    list_name: str | None
    limit: int | None
    """The most titles to ask for."""


class MovieSpider(scrapy.Spider):
    """Fetches list pages and title pages of one site.

    Every title asked for ends as a Movie, or as a Miss that says why there is none (and then as the Movie of what the
    list that led to it said, if one did).
    """

    site: ClassVar[Site]
    home_setting: ClassVar[str]
    """The setting with the site's scheme and host."""
    default_list: ClassVar[str]
    """The list that is crawled when the arguments name no title and no list."""
    arguments: ClassVar[frozenset[str]] = frozenset({"list", "ids", "file", "limit"})

    allowed_domains: list[str]
    plan: Plan
    home: str

    @classmethod
    def update_settings(cls, settings: BaseSettings) -> None:
        """Tell the site how to reach the operator."""
        super().update_settings(settings)
        if settings["CONTACT"]:
            settings.set("USER_AGENT", f"{settings['USER_AGENT']} (+{settings['CONTACT']})", priority="spider")

    @classmethod
    def check(cls, settings: BaseSettings, arguments: Mapping[str, str]) -> Plan:
        """Return what the arguments ask for. Raises ConfigurationError for what can't be right in them or in settings."""
        check_settings(settings)
        check_data_dir(settings["DATA_DIR"])
        check_stores(settings)
        check_argument_names(arguments, cls.arguments)
        titles = parse_title_ids(cls.site, arguments.get("ids"), arguments.get("file"))
        name = arguments.get("list", None if titles else cls.default_list)
        if name is not None:
            cls.check_list(name)
        return Plan(titles=titles, list_name=name, limit=parse_limit(arguments.get("limit")))

    @classmethod
    @abstractmethod
    def check_list(cls, name: str) -> None:
        """Raise ConfigurationError when the site has no such list."""

    @classmethod
    def from_crawler(cls, crawler: Crawler, *args: Any, **arguments: Any) -> Self:
        """Create the spider from its arguments, none of which becomes an attribute unchecked."""
        plan = cls.check(crawler.settings, arguments)
        spider = super().from_crawler(crawler, *args)
        spider.plan = plan
        spider.home = crawler.settings[cls.home_setting]
        spider.allowed_domains = sorted(
            {urlsplit(crawler.settings[name]).hostname or "" for name in cls.home_settings()}
        )
        spider.asked = set()
        return spider

    @classmethod
    def home_settings(cls) -> tuple[str, ...]:
        """Return the settings that name hosts which this spider may ask."""
        return (cls.home_setting,)

    asked: set[str]

    # --- What to fetch ------------------------------------------------------------------------------------------------

    async def start(self) -> AsyncIterator[Request]:
        """Yield a request for each title asked for, and the list's first."""
        for request in self.title_requests((site_id, None) for site_id in self.plan.titles):
            yield request
        if self.plan.list_name is not None:
            yield self.list_request(self.plan.list_name)

    @abstractmethod
    def list_request(self, name: str) -> Request:
        """Return the request for the first page of a list."""

    def title_requests(self, titles: Iterable[tuple[str, Found | None]]) -> Iterator[Request]:
        """Yield the request of each title that was not asked for yet, up to the limit."""
        for site_id, found in titles:
            if site_id in self.asked:
                continue
            if self.limit_reached():
                return
            self.asked.add(site_id)
            self.crawler.stats.inc_value("titles/asked")
            yield self.title_request(site_id, found)

    def title_request(self, site_id: str, found: Found | None) -> Request:
        """Return the request of one title's page."""
        return Request(
            title_url(self.site, site_id, self.home),
            callback=self.parse_title,
            errback=self.title_failed,
            cb_kwargs={"site_id": site_id, "found": found},
            meta={"expects": "page", "site": self.site},
        )

    def limit_reached(self) -> bool:
        """Return whether as many titles were asked for as the arguments allow."""
        return self.plan.limit is not None and len(self.asked) >= self.plan.limit

    # --- Reading lists ------------------------------------------------------------------------------------------------

    def requests_of(self, listing: Listing, name: str, before: int = 0) -> Iterator[Request]:
        """Yield the requests of a list page's titles; `before` is how many entries the list has on earlier pages."""
        for place, entry in enumerate(listing.entries, before + 1):
            found = {"list_name": name, "list_rank": entry.rank or place, "entry": msgspec.to_builtins(entry)}
            yield from self.title_requests([(entry.site_id, found)])

    def list_failed(self, failure: Failure) -> Iterator[Any]:
        """Account for a list page that could not be fetched."""
        yield from self.list_missed(failure.request.url, *_outcome(failure))  # type: ignore[attr-defined]

    def list_missed(self, url: str, outcome: str, reason: str) -> Iterator[Any]:
        """Account for a list page that could not be read; its titles are unknown."""
        self.crawler.stats.inc_value("lists/missed")
        logger.error("List page %s %s: %s", url, outcome, reason, extra={"spider": self})
        return iter(())

    # --- Reading titles -----------------------------------------------------------------------------------------------

    @abstractmethod
    def read_title(self, response: Response) -> Page:
        """Return what a title's page says. Raises ExtractionError."""

    def parse_title(self, response: Response, site_id: str, found: Found | None) -> Iterator[Any]:
        """Yield the Movie of a title's page."""
        try:
            movie = self.read_title(response).movie
        except ExtractionError as error:
            self.crawler.stats.inc_value(f"extraction/errors/{error.field}")
            yield from self.title_missed(site_id, found, "failed", str(error), fetched_at(response.meta))
            return
        if movie is None:
            reason = "the page is about no single title"
            yield from self.title_missed(site_id, found, "failed", reason, fetched_at(response.meta))
            return
        if found is not None:
            movie.list_name, movie.list_rank = found["list_name"], found["list_rank"]
        movie.scraped_at = fetched_at(response.meta)
        movie.fetch = Fetch(
            url=response.url,
            status=response.status,
            attempts=1 + response.meta.get("retry_times", 0),
            wire_bytes=wire_size(response),
            body_bytes=len(response.body),
            archive_id=response.meta.get("archive_id"),
        )
        yield movie

    def title_failed(self, failure: Failure) -> Iterator[Any]:
        """Account for a title whose page could not be fetched."""
        request: Request = failure.request  # type: ignore[attr-defined]
        known = request.cb_kwargs
        yield from self.title_missed(known["site_id"], known["found"], *_outcome(failure), fetched_at(request.meta))

    def title_missed(
        self, site_id: str, found: Found | None, outcome: str, reason: str, now: datetime
    ) -> Iterator[Any]:
        """Yield the Miss of a title, and what the list that led to it said."""
        level = logging.INFO if outcome == "absent" else logging.WARNING
        logger.log(level, "%s %s: %s", site_id, outcome, reason, extra={"spider": self})
        url = title_url(self.site, site_id)
        yield Miss(site=self.site, site_id=site_id, url=url, outcome=outcome, reason=reason, checked_at=now)  # type: ignore[arg-type]
        movie = self.movie_of_list(site_id, found) if found is not None else None
        if movie is not None:
            movie.scraped_at = now
            yield movie

    def movie_of_list(self, site_id: str, found: Found) -> Movie | None:
        """Return what a list page says of a title; None when that doesn't include what kind of title it is."""
        entry = msgspec.convert(found["entry"], Entry)
        if entry.kind is None:
            return None
        return Movie(
            site=self.site,
            site_id=site_id,
            url=title_url(self.site, site_id),
            imdb_id=site_id if self.site == "imdb" else None,
            title=entry.title,
            kind=entry.kind,
            year=entry.year,
            release_date=entry.release_date,
            scores=entry.scores,
            list_name=found["list_name"],
            list_rank=found["list_rank"],
            source="list",
        )


def fetched_at(meta: Mapping[str, Any]) -> datetime:
    """Return when the archive got a page, by the `meta` of its request; now, where pages are not archived."""
    return meta.get("fetched_at") or utc_now()


def _outcome(failure: Failure) -> tuple[str, str]:
    """Return how a request ended, in the words of `Miss`, and one line of why."""
    error = failure.value
    if isinstance(error, HttpError):
        status = error.response.status
        return ("absent" if status in NO_SUCH_TITLE else "failed"), f"HTTP status {status}"
    if isinstance(error, SiteStopped):
        return "blocked", str(error)
    # Scrapy has no exception of its own for this.
    if isinstance(error, IgnoreRequest) and str(error) == "Forbidden by robots.txt":
        return "disallowed", "by robots.txt"
    return "failed", f"{type(error).__name__}: {error}".strip(": ").splitlines()[0]
