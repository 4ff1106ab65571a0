"""The base of all spiders: arguments, lists of titles, and the outcome of every requested title."""

from __future__ import annotations

import logging
import re
from abc import abstractmethod
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar
from urllib.parse import urlsplit

import msgspec
import scrapy
from scrapy import Request
from scrapy.exceptions import UsageError
from scrapy.spidermiddlewares.httperror import HttpError

from moviecrawler.basics.clock import utc_now
from moviecrawler.basics.errors import ConfigurationError, ExtractionError
from moviecrawler.catalogue.id_lists import read_films
from moviecrawler.frontier.runs import describe_crawl, open_backend
from moviecrawler.frontier.serialisation import due_title_of, outcome_of_title
from moviecrawler.items import Fetched, Miss
from moviecrawler.matching.titles import verify
from moviecrawler.middlewares.fresh import Fresh
from moviecrawler.options import StoreOptions, add_settings
from moviecrawler.politeness.budgets import site_budget
from moviecrawler.politeness.gate import Closed, Disallowed
from moviecrawler.scrapy_internals import end_crawl
from moviecrawler.signals import list_failed, title_read, title_unread
from moviecrawler.sites import SITES
from moviecrawler.sites.hosts import check_hosts, hosts_of, user_agent
from moviecrawler.sites.identity import OTHER_TITLE, identify, redirects_of
from moviecrawler.sites.ids import id_in_url, parse_title_id, title_url
from moviecrawler.spiders.arguments import (
    KNOWN_IDS,
    Plan,
    Seed,
    as_texts,
    parse_age,
    parse_choice,
    parse_limit,
)
from moviecrawler.spiders.components import set_up
from moviecrawler.spiders.results import (
    covered,
    fetch_of,
    fetched_at,
    movie_and_seasons,
    movie_of_list,
    outcome_of,
    release_of,
)

if TYPE_CHECKING:
    from collections.abc import (
        AsyncIterator,
        Iterable,
        Iterator,
        Mapping,
        Sequence,
    )
    from datetime import datetime
    from typing import Self

    from scrapy.crawler import Crawler
    from scrapy.http import Response
    from scrapy.settings import BaseSettings
    from twisted.python.failure import Failure

    from moviecrawler.catalogue.due import Feed
    from moviecrawler.frontier.contract import Backend, RequestIds, RunName
    from moviecrawler.frontier.serialisation import DueTitle
    from moviecrawler.items import ListRow, Movie, Page, Site
    from moviecrawler.matching.facts import TitleFacts
    from moviecrawler.sites.profile import SiteProfile
    from moviecrawler.spiders.results import Result

LIST_PRIORITY = 10
BOOST_PRIORITY = 100
"""A list of several pages is read before its titles, which have priority 0. Boosted titles come
before everything else."""
DUE_BATCH = 32
"""Titles that are due and are queued at once."""


class RunSpider(scrapy.Spider):
    """A spider whose arguments name a run, which any number of workers share."""

    site: ClassVar[Site]
    plan: Plan
    described_arguments: str
    """Describes its arguments; it is the same for all workers of a run."""
    requested_ids: set[str]
    """Titles, which the limit counts."""

    @cached_property
    def backend(self) -> Backend:
        """What keeps its queue, and what all workers know of its site."""
        return open_backend(self.settings)

    async def start(self) -> AsyncIterator[Request]:
        """Join the run that the arguments name.

        The scheduler then hands out its requests. One worker of the run is handed the arguments,
        and queues what they name. A scheduler of the user's own, which knows no runs, gets that
        from here.
        """
        assert self.crawler.engine is not None  # noqa: S101 - it is what iterates over this
        join = getattr(self.crawler.engine.scheduler, "join", None)
        if join is not None:
            await join()
            return
        if self.plan.is_fed:
            why = "lane=due needs the scheduler of this project; remove the setting SCHEDULER"
            end_crawl(self.crawler, "frontier_refused", why)
        async for request in self.requests_of_arguments():
            yield request

    @abstractmethod
    def requests_of_arguments(self) -> AsyncIterator[Request]:
        """Yield the requests that the arguments name."""

    def report_failure(self, url: str, reason: str, outcome: str = "failed") -> None:
        """Account for a list page or a file that could not be read; its titles are unknown."""
        self.crawler.stats.inc_value("lists/missed")
        self.logger.error("%s %s: %s", url, outcome, reason)
        self.crawler.signals.send_catch_log(list_failed, url=url, reason=reason, refused=False)


class MovieSpider(RunSpider):
    """Fetches list pages and title pages of one site.

    Every requested title ends as a Movie, or as a Miss that says why there is none (and then as the
    Movie of what the list that led to it said, if one did).
    """

    profile: ClassVar[SiteProfile]
    arguments: ClassVar[Mapping[str, str]] = {
        "list": "A list of the site",
        "ids": "Ids or URLs of titles, with commas between them",
        "file": "Path of a file with an id or URL per line",
        "limit": "The most titles to fetch",
        "lane": "due: the titles that the catalogue says are due",
        "skip_newer_than": "Leave out titles whose record is younger, such as 7d or 12h",
    }
    """What each argument means."""

    allowed_domains: list[str]
    """On the class, the live hosts, by which Scrapy finds the spider of a URL; on a spider, those
    that it may ask."""
    given: dict[str, str]
    """Its arguments, as on a command line."""
    hosts: dict[str, str]
    """Scheme and host of each host that it may ask, by its setting."""
    home: str
    """That of the pages."""

    def __init_subclass__(cls, **given: object) -> None:
        """Name the site's hosts on the class, as Scrapy finds the spider of a URL by them."""
        super().__init_subclass__(**given)
        if "site" in vars(cls):
            cls.profile = SITES[cls.site]
            cls.allowed_domains = _hostnames(host.live for host in cls.profile.hosts)

    @classmethod
    def update_settings(cls, settings: BaseSettings) -> None:
        """Give the crawl what is ours, and name the operator to the site.

        Raises UsageError for a wrong budget, with which no command may send requests to the site.
        """
        super().update_settings(settings)
        add_settings(settings)  # of a program without our add-on
        if settings.get("SITE_BUDGETS"):
            try:
                site_budget(settings, cls.site)
            except ConfigurationError as error:
                raise UsageError(str(error), print_help=False) from error
        set_up(settings)
        settings.set("USER_AGENT", user_agent(settings), priority="spider")

    @classmethod
    def check_settings(cls, settings: BaseSettings) -> None:
        """Raise ConfigurationError when budget, readers, or the queue's place can't be right."""
        site_budget(settings, cls.site)
        open_backend(settings)  # which opens no connection
        cls.profile.check_readers()

    @classmethod
    def parse_arguments(cls, settings: BaseSettings, arguments: Mapping[str, str]) -> Plan:
        """Return what the arguments request.

        Raises ConfigurationError for what can't be right in them.
        """
        for name in arguments:
            if name not in cls.arguments and not name.startswith("_"):  # as Scrapyd's own do
                known = ", ".join(sorted(cls.arguments))
                raise ConfigurationError(f"unknown argument {name!r}; this spider takes {known}")
        for name, choices in cls.choices().items():
            if name in arguments and name != "list":
                parse_choice(name, arguments[name], choices)
        is_due = "lane" in arguments
        if is_due:
            for given in arguments.keys() & {"ids", "file", "skip_newer_than"}:
                raise ConfigurationError(
                    f"lane and {given} are given, but the catalogue says which titles are due; "
                    f"remove {given}"
                )
            # Imports Postgres' client.
            from moviecrawler.catalogue.store import open_catalogue  # noqa: PLC0415

            open_catalogue(settings)
        skip_newer_than = parse_age(arguments.get("skip_newer_than"))
        stores = StoreOptions.read(settings)
        if skip_newer_than is not None and not (stores.sqlite_enabled or stores.database_url):
            raise ConfigurationError(
                "skip_newer_than is given, and needs SQLITE_ENABLED or DATABASE_URL; remove it"
            )
        home = settings[cls.profile.home_setting]
        known_ids = arguments.get(KNOWN_IDS)  # of `scrapy crawl all`
        file = None if known_ids else arguments.get("file")
        films = read_films({cls.site: home}, known_ids or arguments.get("ids"), file)
        unnamed = [film for film in films if not film.ids]
        list_name = arguments.get("list")
        if list_name is None and not is_due and not films:
            list_name = cls.profile.default_list
        if list_name is not None:
            cls.check_list(list_name)
        return Plan(
            titles=list(dict.fromkeys(film.ids[cls.site] for film in films if film.ids)),
            note=(
                f"rows without an id or URL of {cls.site}: {len(unnamed):,} of {len(films):,},"
                f" first {unnamed[0].location}"
                if unnamed
                else ""
            ),
            list_name=list_name,
            limit=parse_limit(arguments.get("limit")),
            is_due=is_due,
            has_file="file" in arguments,
            skip_newer_than=skip_newer_than,
        )

    @classmethod
    def check_list(cls, name: str) -> None:
        """Raise ConfigurationError when the site has no such list."""
        names = cls.profile.list_names
        if names is None or not re.fullmatch(names, name):
            parse_choice("list", name, cls.choices()["list"])

    @classmethod
    def choices(cls) -> dict[str, Sequence[str]]:
        """Return the values of arguments that are known in advance, by the argument's name."""
        return {"list": [*cls.profile.lists, *cls.profile.sitemaps], "lane": ["due"]}

    @classmethod
    def describe_arguments(cls) -> list[dict[str, object]]:
        """Return each argument as a form needs it. It is called when an egg is deployed."""
        choices = cls.choices()
        return [
            {"name": name, "text": text, "choices": choices.get(name, [])}
            for name, text in cls.arguments.items()
        ]

    @classmethod
    def from_crawler(cls, crawler: Crawler, *args: object, **arguments: object) -> Self:
        """Create the spider from its arguments, none of which becomes an attribute unchecked.

        A Python program may give numbers, lists and paths. What a subclass has added to `arguments`
        goes to its constructor as it is given.
        """
        texts = as_texts(arguments)
        plan = cls.parse_arguments(crawler.settings, texts)
        theirs = {name: arguments[name] for name in arguments.keys() & cls._added_arguments()}
        spider = super().from_crawler(crawler, *args, **theirs)
        spider.plan = plan
        spider.given = texts
        if plan.note:
            spider.logger.warning("%s", plan.note)
        spider.hosts = hosts_of(cls.site, crawler.settings)
        check_hosts(cls.site, crawler.settings)
        spider.home = spider.hosts[cls.profile.home_setting]
        named = texts if cls.name == cls.site else {**texts, "spider": cls.name}
        spider.described_arguments = describe_crawl(cls.site, crawler.settings, named)
        spider.allowed_domains = _hostnames(spider.hosts.values())
        spider.requested_ids = set()
        return spider

    @classmethod
    def _added_arguments(cls) -> set[str]:
        """Return the arguments that a subclass outside of this package has added."""
        package = __name__.partition(".")[0]
        for base in cls.__mro__:
            if issubclass(base, MovieSpider) and base.__module__.startswith(f"{package}."):
                return cls.arguments.keys() - base.arguments.keys()
        return set()

    # --- What to fetch ----------------------------------------------------------------------------

    async def requests_of_arguments(self) -> AsyncIterator[Request]:
        """Yield a request for each requested title, and the list's first."""
        for request in self.title_requests(self.plan.titles):
            yield request
        if self.plan.list_name is not None:
            yield self.list_request(self.plan.list_name)

    async def reads_datasets(self) -> bool:
        """Return whether titles are read from datasets, and not from pages."""
        return False

    @abstractmethod
    def list_request(self, name: str) -> Request:
        """Return the request for the first page of a list."""

    def title_requests(self, ids: Iterable[str], found: ListRow | None = None) -> Iterator[Request]:
        """Yield the request of each title that was not requested yet, up to the limit."""
        for site_id in ids:
            if site_id in self.requested_ids:
                continue
            if self.plan.limit is not None and len(self.requested_ids) >= self.plan.limit:
                return
            try:
                parse_title_id(self.site, site_id)
            except ConfigurationError as error:  # a list may hold anything
                message = "A list names what can't be a title: %s"
                self.logger.warning(message, error)
                continue
            self.requested_ids.add(site_id)
            yield self.title_request(site_id, found)

    def title_request(
        self, site_id: str, found: ListRow | None = None, due: DueTitle | None = None
    ) -> Request:
        """Return the request of one title's page.

        One for a title that is due is queued again whenever it is due.
        """
        known: dict[str, object] = {"site_id": site_id, "found": found}
        if due is not None:
            known["due"] = due
        return Request(
            title_url(self.site, site_id, self.home),
            callback=self.parse_title,
            errback=self.title_failed,
            cb_kwargs=known,
            meta={"expects": "page", "site": self.site},
            priority=BOOST_PRIORITY if due is not None and due.boosted else 0,
            dont_filter=due is not None,
        )

    async def request_of_seed(self, seed: bytes) -> Request:
        """Return the request for a title that was pushed from outside.

        It is sent whenever the title was fetched before. Raises ConfigurationError.
        """
        # As scrapy-redis reads them.
        given = Seed.parse(seed, self.settings.get("REDIS_ENCODING") or "utf-8")
        request = self.title_request(parse_title_id(self.site, given.url, self.home), None)
        named = {"proxy_pool": given.proxy_pool, "max_retry_times": given.max_retries}
        request.meta.update({name: value for name, value in named.items() if value is not None})
        return request.replace(priority=given.priority, dont_filter=True)

    # --- What is due ------------------------------------------------------------------------------

    def open_feed(self, run: RunName) -> Feed:
        """Return what feeds the queue of a run."""
        # Imports Postgres' client.
        from moviecrawler.catalogue.due import Feed  # noqa: PLC0415
        from moviecrawler.catalogue.store import open_catalogue  # noqa: PLC0415

        return Feed(open_catalogue(self.settings), self.backend, run)

    async def due_requests(self, feed: Feed, size: int | None, ids: RequestIds) -> list[Request]:
        """Return requests for the next titles that are due.

        Args:
            feed: Selects them.
            size: How many at most; None for any number.
            ids: Those of the run's requests now, whose titles are left out.
        """
        open_titles = {title_id for id_ in ids.open | ids.died if (title_id := due_title_of(id_))}
        most = DUE_BATCH if size is None else min(size, DUE_BATCH)
        titles = await feed.select(most, open_titles)
        return [self._due_request(title) for title in titles]

    def _due_request(self, due: DueTitle) -> Request:
        """Return the request for the first id that may be a title's."""
        first, *others = due.ids
        return self.title_request(first, None, msgspec.structs.replace(due, ids=others))

    def _next_id(self, note: Fetched, due: DueTitle | None) -> Iterator[Request]:
        """Yield the request for the next id of a title, when its outcome is still open."""
        if due is not None and note.has_more_ids:
            yield self._due_request(due)

    # --- Reading titles ---------------------------------------------------------------------------

    def parse(self, response: Response, **_: object) -> Iterator[Result]:
        """Read the page of a title, as `scrapy parse` calls it."""
        yield from self.parse_title(response)

    def read_title(self, response: Response) -> Page:
        """Return what a title's page says. Raises ExtractionError."""
        return self.profile.reader("title")(response.body, response.url)

    def parse_title(
        self,
        response: Response,
        site_id: str | None = None,
        found: ListRow | None = None,
        due: DueTitle | None = None,
    ) -> Iterator[Result]:
        """Yield the Movie of a title's page, and those of the seasons that a series' page names.

        @golden

        A page of another title than the requested one is not stored. A page that was fetched for a
        title of the catalogue is also compared with that: when it turns out to be another title's,
        it is stored as that one's, and the next id is tried.
        """
        site_id = site_id or id_in_url(self.site, response.url)
        if site_id is None:
            self.logger.error("%s is not a page of a title", response.url)
            return
        now = fetched_at(response)
        try:
            movie, seasons = self._read_requested(response, site_id)
        except ExtractionError as error:
            self.report_unread(site_id, error, response)
            is_other_title = OTHER_TITLE in response.meta
            reason = error.reason if is_other_title else str(error)
            note = outcome_of_title(self.site, site_id, due, now)
            note.other_id = response.meta.get(OTHER_TITLE)
            note.has_more_ids = is_other_title and bool(due and due.ids)
            yield from self.title_missed(site_id, "failed", reason, now, note, found)
            yield from self._next_id(note, due)
            return
        movie.scraped_at = now
        self.crawler.signals.send_catch_log(title_read, movie=movie, response=response)
        movie.note = note = self._note_of(movie, site_id, due)
        if due is not None and due.expected is not None:
            self._compare(movie, due, due.expected, note)
        yield from self._next_id(note, due)
        yield self.complete(movie, response)
        for season in seasons:
            season.scraped_at = now
            season.note = covered(season, now)
            self.crawler.stats.inc_value("seasons/listed")
            yield season

    def complete(self, movie: Movie, response: Response) -> Movie | Request:  # noqa: ARG002
        """Return a title as it is stored, or the request for a further page of it."""
        return movie

    def report_unread(self, site_id: str, error: ExtractionError, response: Response) -> None:
        """Count a title's page that could not be read, and send the signal for it."""
        self.crawler.stats.inc_value(f"extraction/errors/{error.field}")
        self.crawler.signals.send_catch_log(
            title_unread, site_id=site_id, error=error, response=response
        )

    def _read_requested(self, response: Response, site_id: str) -> tuple[Movie, list[Movie]]:
        """Return the title of a page, and the seasons that it names.

        Raises ExtractionError, also when the page is not that of the requested title.
        """
        page = self.read_title(response)
        if page.movie is None:
            raise ExtractionError("page", response.url, "it is not about a single title")
        redirects = redirects_of(response.meta)
        identity = identify(page, page.movie, site_id, response.url, redirects)
        if identity.refusal is not None:
            response.meta[OTHER_TITLE] = identity.title_id
            raise ExtractionError("site_id", response.url, identity.refusal)
        movie, seasons = movie_and_seasons(page, page.movie, identity.title_id)
        movie.fetch = fetch_of(response, site_id, identity)
        return movie, seasons

    def _note_of(self, movie: Movie, requested_id: str, due: DueTitle | None = None) -> Fetched:
        """Return what the catalogue is told of a title that was read."""
        note = outcome_of_title(self.site, requested_id, due, movie.scraped_at or utc_now())
        note.page_id = movie.site_id
        note.released = release_of(movie.release_date, movie.year)
        return note

    def _compare(self, movie: Movie, due: DueTitle, expected: TitleFacts, note: Fetched) -> None:
        """Note whether a page is that of the title for which it was fetched."""
        verdict = verify(expected, movie, due.evidence)
        note.decision = verdict.decision
        note.score = verdict.score
        note.reasons = verdict.reasons
        if verdict.decision != "accepted":
            note.has_more_ids = bool(due.ids)
            message = "%s is %s for %s: %s"
            self.logger.info(
                message, movie.site_id, verdict.decision, expected.title, verdict.reasons
            )

    def title_failed(self, failure: Failure) -> Iterator[Result]:
        """Account for a title whose page could not be fetched."""
        request: Request = failure.request  # type: ignore[attr-defined]
        site_id = request.cb_kwargs["site_id"]
        found = request.cb_kwargs["found"]
        due = request.cb_kwargs.get("due")
        if isinstance(failure.value, Closed | Fresh):
            return
        outcome, reason = outcome_of(failure)
        now = fetched_at(request)
        note = outcome_of_title(self.site, site_id, due, now)
        if not isinstance(failure.value, HttpError | Disallowed):
            note.outcome = "put off"  # by the network, or by us
        note.has_more_ids = outcome == "absent" and bool(due and due.ids)
        yield from self.title_missed(site_id, outcome, reason, now, note, found)
        yield from self._next_id(note, due)

    def title_missed(
        self,
        site_id: str,
        outcome: str,
        reason: str,
        now: datetime,
        note: Fetched | None = None,
        found: ListRow | None = None,
    ) -> Iterator[Result]:
        """Yield the Miss of a title, and what the list that led to it said."""
        level = logging.INFO if outcome == "absent" else logging.WARNING
        self.logger.log(level, "%s %s: %s", site_id, outcome, reason)
        miss = Miss(
            site=self.site,
            site_id=site_id,
            url=title_url(self.site, site_id),
            outcome=outcome,  # type: ignore[arg-type]
            reason=reason,
            checked_at=now,
        )
        if note is not None and note.outcome == "ok":
            note.outcome = "absent" if outcome == "absent" else "error"
        miss.note = note
        yield miss
        movie = movie_of_list(self.site, site_id, found.entry) if found is not None else None
        if movie is not None:
            movie.scraped_at = now
            yield movie


def _hostnames(urls: Iterable[str]) -> list[str]:
    return sorted({urlsplit(url).hostname or "" for url in urls})
