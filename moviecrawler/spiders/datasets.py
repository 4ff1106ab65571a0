"""Titles from IMDb's datasets, where its pages may not be had."""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from scrapy import Request, signals
from scrapy.exceptions import DontCloseSpider

from moviecrawler.clock import utc_now
from moviecrawler.configuration import parse_choice
from moviecrawler.datasets.downloads import DownloadError, Downloads, expect_parts, fetch, forget, version_of
from moviecrawler.datasets.joining import dataset_names, off_the_event_loop, read_chart, read_titles
from moviecrawler.datasets.names import IdSet
from moviecrawler.errors import ConfigurationError, ExtractionError
from moviecrawler.extensions.dataset_facts import DatasetFacts
from moviecrawler.extract.datasets import Damage, url_of
from moviecrawler.frontier.engine import is_closing
from moviecrawler.signals import list_missed
from moviecrawler.sites import datasets_url
from moviecrawler.spiders.base import LIST_PRIORITY, MovieSpider

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
    from datetime import datetime
    from typing import Self

    from scrapy.crawler import Crawler
    from scrapy.http import Response
    from scrapy.settings import BaseSettings
    from twisted.python.failure import Failure

    from moviecrawler.catalogue.claims import Claim
    from moviecrawler.datasets.stored_facts import Pass
    from moviecrawler.items import Movie
    from moviecrawler.spiders.plan import Found, Plan

logger = logging.getLogger(__name__)

EVERYTHING = "all"
"""The list of all titles of the datasets."""
WAYS = ("auto", "pages", "datasets")
REFUSED = frozenset({"disallowed", "blocked"})
"""Outcomes after which the datasets take over: the pages may not be had, not now or not ever."""
_NOT_THERE = "not in IMDb's datasets"
_DAMAGED = "its row in IMDb's title.basics is damaged"
_FIRST_BYTES = 65_536
"""Of the answer that a pass begins with: Scrapy holds it until the pass is over, and starts no other request while it holds 5 MB."""
_AT_A_TIME = 100
"""Movies read from the datasets between two turns of the event loop: some of these wait for room in the stores."""


class DatasetSpider(MovieSpider):
    """A spider whose titles are in IMDb's datasets, too: `via` is auto, pages or datasets.

    With `via=auto`, what robots.txt or a block keeps from us is read from the datasets, after one warning. They have no
    charts: these are then computed by IMDb's published formula, and marked as computed.
    """

    arguments = MovieSpider.arguments | {"via"}
    only_on_pages: ClassVar[frozenset[str]]
    """Lists that can't be computed."""

    via: str
    files: dict[str, Path]
    """Of the datasets that are read, by their names, such as `title.crew`."""

    @classmethod
    def parse_arguments(cls, settings: BaseSettings, arguments: Mapping[str, str]) -> Plan:
        """Return what the arguments ask for."""
        plan = super().parse_arguments(settings, arguments)
        via = parse_choice("via", arguments.get("via", "auto"), WAYS)
        if via == "datasets" and plan.list_name in cls.only_on_pages:
            raise ConfigurationError(
                f"list is {plan.list_name!r}, which IMDb's datasets don't have; use via=pages or list={cls.default_list}"
            )
        if via != "datasets" and plan.list_name == EVERYTHING:
            raise ConfigurationError(f"list is {EVERYTHING!r}, which only the datasets have; add via=datasets")
        if via == "datasets":
            datasets_url(settings)
        return plan

    @classmethod
    def from_crawler(cls, crawler: Crawler, *args: Any, **arguments: Any) -> Self:
        """Create the spider, and have it asked when nothing is left to fetch."""
        spider = super().from_crawler(crawler, *args, **arguments)
        spider.via = arguments.get("via", "auto")
        if spider.via == "auto" and "IMDB_DATASETS_URL" not in spider.hosts:
            message = "IMDB_URL is no host of IMDb's, and IMDB_DATASETS_URL is not set: what the pages refuse is not read from datasets"
            logger.info(message, extra={"spider": spider})
            spider.via = "pages"
        spider.has_other_source = spider.via == "auto"
        spider.refused_titles = {}
        spider.refused_list = None
        spider.downloads = None
        spider.pass_done = asyncio.Event()
        # What is due, or leased by a shared frontier, has to be stored to be settled, changed or not.
        is_settled_by_stores = spider.plan.lane is not None or crawler.settings.get("REDIS_URL")
        spider.stored = None if is_settled_by_stores else DatasetFacts(crawler)
        crawler.signals.connect(spider.read_refused_elsewhere, signals.spider_idle)
        crawler.signals.connect(spider.close_downloads, signals.spider_closed)
        return spider

    async def start(self) -> AsyncIterator[Request]:
        """Yield the requests for pages, or for the datasets when those alone are wanted."""
        if self.via == "datasets" and self.plan.lane is None:
            self.refused_titles = dict.fromkeys(self.plan.titles)
            self.refused_list = self.plan.list_name
            self.crawler.stats.inc_value("titles/asked", len(self.plan.titles))
            yield self.begin_pass()
        else:
            async for request in super().start():
                yield request

    refused_titles: dict[str, Found | None]
    refused_list: str | None
    downloads: Downloads | None
    """The files of the pass that has begun."""
    stored: DatasetFacts | None
    """Knows which titles the stores have as they are; None where all that is read is stored."""

    def title_missed(
        self, site_id: str, found: Found | None, outcome: str, reason: str, now: datetime
    ) -> Iterator[Any]:
        """Keep a title for the datasets when its page may not be had."""
        if self.via == "auto" and outcome in REFUSED and (not self.downloads or self.plan.lane is not None):
            self._warn(reason)
            self.refused_titles[site_id] = found
            return iter(())
        return super().title_missed(site_id, found, outcome, reason, now)

    def list_missed(self, url: str, outcome: str, reason: str) -> None:
        """Keep a list for the datasets when its page may not be had."""
        is_due = self.plan.lane is not None
        if self.via == "auto" and outcome in REFUSED and (is_due or self.plan.list_name not in self.only_on_pages):
            if not is_due:  # what is due is known without the list, and the datasets don't tell what is popular now
                self._warn(reason)
                self.refused_list = self.plan.list_name
            self.crawler.signals.send_catch_log(list_missed, url=url, reason=None, refused=False)
        else:
            super().list_missed(url, outcome, reason)

    def _warn(self, reason: str) -> None:
        if not self.refused_titles and self.refused_list is None:
            logger.warning(
                "IMDb's pages can't be had (%s); reading its datasets instead", reason, extra={"spider": self}
            )

    def read_refused_elsewhere(self) -> None:
        """Begin to read the datasets when all pages are done and some could not be had."""
        if (self.refused_titles or self.refused_list) and not self.downloads:
            self.crawler.engine.crawl(self.begin_pass())
            raise DontCloseSpider

    pass_done: asyncio.Event
    """Set when the datasets were read."""

    @property
    def reads_elsewhere(self) -> bool:
        """Whether the datasets are read instead of pages."""
        return self.via == "datasets" or bool(self.refused_titles)

    def turn_elsewhere(self, reason: str) -> bool:
        """Read the datasets, where pages are not insisted on."""
        if self.via == "auto":
            self._warn(reason)
            self.via = "datasets"
        return self.via == "datasets"

    def claim_size(self, batch: int) -> int:
        """Return how many titles to claim at once: many, when the datasets have to be read for them."""
        return self.settings.getint("CATALOGUE_DATASETS_BATCH") if self.reads_elsewhere else batch

    async def requests_of_claims(self, claims: Sequence[Claim]) -> AsyncIterator[Request]:
        """Yield the requests for pages; once these are refused, those for the datasets, and wait until they are read."""
        if not self.reads_elsewhere:
            async for request in super().requests_of_claims(claims):
                yield request
            return
        self.refused_titles.update((claim.ids[0], None) for claim in claims)
        if not self.settings.get("REDIS_URL"):
            self.crawler.stats.inc_value("titles/asked", len(claims))
        self.pass_done.clear()
        yield self.begin_pass()
        await self.pass_done.wait()

    def close_downloads(self) -> None:
        """Let other processes fetch the datasets."""
        if self.downloads is not None:
            self.downloads.close()

    def begin_pass(self) -> Request:
        """Return the request for the first part of the datasets; its callback fetches the others, and reads them."""
        home, folder = self.hosts["IMDB_DATASETS_URL"], Path(self.settings["DATA_DIR"]) / "datasets"
        self.files = {name: folder / f"{name}.tsv.gz" for name in dataset_names(self.settings["IMDB_DATASETS"])}
        expect_parts(self.crawler)
        self.downloads = Downloads(
            {f"{home}/{path.name}": path for path in self.files.values()},
            self.settings.getint("DATASET_PART"),
            site="imdb-datasets",
        )
        first = self.downloads.next_request(_FIRST_BYTES)
        return first.replace(callback=self.read_datasets, errback=self.datasets_failed, priority=LIST_PRIORITY)

    async def read_datasets(self, response: Response) -> AsyncIterator[Any]:
        """Fetch what of the datasets has changed, and yield the movies.

        Whatever goes wrong ends the pass: what waits for it would wait for ever.
        """
        assert self.downloads is not None  # noqa: S101 - the request was made with them
        tell = partial(logger.info, "IMDb's datasets: %s", extra={"spider": self})
        try:
            await self.downloads.accept(response)
            await self.downloads.finish(self._fetch, tell)
            async for found in self.movies_of_datasets():
                yield found
        except Exception as error:
            if isinstance(error, DownloadError):
                reason = str(error)
            else:
                logger.exception("IMDb's datasets can't be read", extra={"spider": self})
                self.crawler.stats.inc_value("extraction/errors/dataset")
                reason = f"{type(error).__name__}: {error}"
            for item in self._datasets_missed(reason):
                yield item
        finally:
            self.pass_done.set()  # also when the crawl is closed in the middle of it

    async def _fetch(self, request: Request) -> Response:
        self._check_running()
        return await fetch(self.crawler, request)

    def datasets_failed(self, failure: Failure) -> Iterator[Any]:
        """Account for datasets of which nothing could be fetched."""
        yield from self._datasets_missed(f"{type(failure.value).__name__}: {failure.value}")
        self.pass_done.set()

    def _datasets_missed(self, reason: str) -> Iterator[Any]:
        """Yield a Miss for each title that was not read; none when the crawl was told to end, as they stay to be done then."""
        if is_closing(self.crawler.engine):
            logger.info("IMDb's datasets are not read to their end: %s", reason, extra={"spider": self})
            return
        if self.refused_list is not None:
            super().list_missed(self.hosts["IMDB_DATASETS_URL"], "failed", reason)
        self.refused_list = None
        yield from self._titles_missed(list(self.refused_titles), "failed", f"IMDb's datasets: {reason}")
        self._end_pass()

    def _titles_missed(self, site_ids: Iterable[str], outcome: str, reason: str) -> Iterator[Any]:
        for site_id in site_ids:
            yield from super().title_missed(site_id, self.refused_titles.pop(site_id, None), outcome, reason, utc_now())

    def _end_pass(self) -> None:
        """End a pass; what was refused since it began is left to another one, when the catalogue names the titles."""
        if self.plan.lane is not None:
            self.close_downloads()
            self.downloads = None
            self.via = "datasets" if self.via == "auto" else self.via
            self.has_other_source = True

    async def movies_of_datasets(self) -> AsyncIterator[Any]:
        """Yield the movies that the datasets are to give, and a Miss for each title that they don't have."""
        damage, stats = Damage(), self.crawler.stats
        asked = dict.fromkeys(self.refused_titles)
        missing = dict(asked)
        files = self.files
        charted: dict[str, Movie] = {}
        wanted = IdSet()
        known, version = None, ""
        if self.stored is not None:
            of_files = await asyncio.to_thread(version_of, sorted(files.values()))
            version, known = self.stored.pass_of(
                of_files, [*sorted(files), repr((self.refused_list, self.plan.limit)), *asked]
            )
        if known is not None:
            for item in self._all_unchanged(known):
                yield item
            return
        count = 0
        try:
            if self.refused_list is not None:
                wanted, charted = await asyncio.to_thread(read_chart, files, self.refused_list, self.plan.limit, damage)
            for site_id in asked:
                wanted.add(site_id.encode())
            async for movies in off_the_event_loop(read_titles(files, wanted, damage, self._check_running), _AT_A_TIME):
                for movie in movies:
                    site_id = movie.site_id or ""
                    missing.pop(site_id, None)
                    found = self.refused_titles.get(site_id)
                    if found is not None:
                        movie.list_name, movie.list_rank = found["list_name"], found["list_rank"]
                    elif site_id in charted:
                        place = charted[site_id]
                        movie.list_name, movie.list_rank, movie.list_computed = place.list_name, place.list_rank, True
                    movie.scraped_at = utc_now()
                count += len(movies)
                changed = movies if self.stored is None else self.stored.changed(movies)
                for movie in movies:  # so that none is a miss if the pass breaks off later
                    self.refused_titles.pop(movie.site_id or "", None)
                stats.inc_value("titles/asked", sum(movie.site_id not in asked for movie in movies))
                stats.inc_value("titles/unchanged", len(movies) - len(changed))
                for movie in changed:
                    yield movie
        except ExtractionError as error:
            damaged_files = [name for name in files if error.url == url_of(name)] or list(files)
            for name in damaged_files:
                forget(files[name])
            for item in self._datasets_missed(f"{error}; {', '.join(damaged_files)} is fetched anew next time"):
                yield item
            return
        if damage.count:
            self.crawler.stats.inc_value("extraction/errors/dataset", damage.count)
            logger.error("%d damaged rows, the first: %s", damage.count, damage.first, extra={"spider": self})
        elif self.stored is not None:
            self.stored.end_pass(version, count, list(missing))
        for outcome, reason, is_damaged in (("failed", _DAMAGED, True), ("absent", _NOT_THERE, False)):
            titles = [site_id for site_id in missing if (site_id in damage.titles) is is_damaged]
            for item in self._titles_missed(titles, outcome, reason):
                yield item
        self._end_pass()

    def _all_unchanged(self, known: Pass) -> Iterator[Any]:
        """Account for all titles of a pass whose files and stores are as they were after it."""
        text = "IMDb's datasets are as they were, and so are the %d titles asked for; nothing is written"
        logger.info(text, known.titles, extra={"spider": self})
        self.crawler.stats.inc_value("titles/unchanged", known.titles)
        self.crawler.stats.inc_value(
            "titles/asked", max(0, known.titles + len(known.absent) - len(self.refused_titles))
        )
        yield from self._titles_missed(known.absent, "absent", _NOT_THERE)
        self._end_pass()

    def _check_running(self) -> None:
        """Raise DownloadError once the crawl was told to end: a pass over all files takes a minute, and to fetch them many."""
        if is_closing(self.crawler.engine):
            raise DownloadError("the crawl was ended before the datasets were read")
