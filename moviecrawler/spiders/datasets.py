"""Titles from the datasets of a site: one request is a pass over them."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from scrapy import Request

from moviecrawler.basics import progress
from moviecrawler.basics.clock import utc_now
from moviecrawler.basics.errors import ConfigurationError, InterruptedReadError, MovieCrawlerError
from moviecrawler.frontier.contract import holds_none
from moviecrawler.items import Batch, EncodedMovie, Fetched, Unchanged
from moviecrawler.middlewares.fresh import find_fresh
from moviecrawler.politeness.gate import Closed, Disallowed, UnreachableError
from moviecrawler.politeness.meta import CLOSED_META
from moviecrawler.politeness.middleware import politeness_of
from moviecrawler.scrapy_internals import is_closing
from moviecrawler.signals import list_failed, titles_fresh
from moviecrawler.sites.hosts import datasets_url
from moviecrawler.spiders.base import LIST_PRIORITY
from moviecrawler.spiders.lists import ListSpider
from moviecrawler.spiders.results import outcome_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence

    from scrapy.http import Response
    from scrapy.settings import BaseSettings
    from twisted.python.failure import Failure

    from moviecrawler.catalogue.due import Feed
    from moviecrawler.datasets.known import StoredTimes
    from moviecrawler.datasets.passes import DatasetPass
    from moviecrawler.datasets.titles import MissingTitle
    from moviecrawler.frontier.contract import RequestIds
    from moviecrawler.spiders.arguments import Plan
    from moviecrawler.spiders.results import Result

EVERYTHING = "all"
"""The list of all titles of the datasets."""
SOURCES = ("auto", "pages", "datasets")
_WITH_EPISODES = ("no", "yes")
_PASS_SIZE = 100_000
"""Titles that are due, for one pass over the datasets, which takes the same time for any number."""
_ANY_STATUS = list(range(200, 600))
_CHECKS = "moviecrawler.pipelines.validate.ValidatePipeline"
_EMBEDDED = "moviecrawler.pipelines.sqlite.SqlitePipeline"


class DatasetSpider(ListSpider):
    """A spider whose site has datasets, which are read where its pages may not be fetched."""

    arguments: ClassVar[Mapping[str, str]] = {
        **ListSpider.arguments,
        "via": "Whether titles are read from their pages or from the datasets",
        "episodes": "Whether the episodes of series are read from the datasets, too",
    }
    only_on_pages: ClassVar[tuple[str, ...]] = ()
    """Lists that can't be computed from the datasets."""

    uses_datasets: bool | None = None
    """Whether titles are read from the datasets; None until that is decided."""

    @property
    def via(self) -> str:
        """One of SOURCES."""
        return self.given.get("via", "auto")

    @cached_property
    def deciding(self) -> asyncio.Lock:
        """Held while it is decided whether titles are read from the datasets."""
        return asyncio.Lock()

    @classmethod
    def parse_arguments(cls, settings: BaseSettings, arguments: Mapping[str, str]) -> Plan:
        """Return what the arguments request."""
        plan = super().parse_arguments(settings, arguments)
        via = arguments.get("via", "auto")
        if via == "datasets" and plan.list_name in cls.only_on_pages:
            others = f"use via=pages or list={cls.profile.default_list}"
            raise ConfigurationError(
                f"list is {plan.list_name!r}, which IMDb's datasets don't have; {others}"
            )
        if via != "datasets" and plan.list_name == EVERYTHING:
            raise ConfigurationError(
                f"list is {EVERYTHING!r}, which only the datasets have; add via=datasets"
            )
        if via != "datasets" and arguments.get("episodes") == "yes":
            raise ConfigurationError(
                "episodes is 'yes', which only the datasets have; add via=datasets"
            )
        if via == "datasets":
            datasets_url(settings)
        return plan

    async def requests_of_arguments(self) -> AsyncIterator[Request]:
        """Yield the requests for pages, or the one for a pass over the datasets."""
        if await self.reads_datasets() and not self.plan.is_due:
            yield self.datasets_request()
            return
        async for request in super().requests_of_arguments():
            yield request

    async def request_of_seed(self, seed: bytes) -> Request:
        """Return the request for a title that was pushed from outside, as for one of `ids`."""
        request = await super().request_of_seed(seed)
        if await self.reads_datasets():
            return self.datasets_request([request.cb_kwargs["site_id"]])
        return request

    async def reads_datasets(self) -> bool:
        """Return whether titles are read from the datasets; it is decided once."""
        async with self.deciding:
            if self.uses_datasets is None:
                self.uses_datasets = await self._needs_datasets()
        return self.uses_datasets

    async def _needs_datasets(self) -> bool:
        """Return whether `via` says so, or robots.txt keeps title pages from us.

        Without datasets the pages are requested all the same.
        """
        if self.via != "auto" or self.plan.list_name in self.only_on_pages:
            return self.via == "datasets"
        gate = politeness_of(self.crawler).gate
        try:
            await gate.check_robots(self.title_request("tt0000001").url, self.home)
        except (Closed, Disallowed, UnreachableError) as error:
            has_datasets = "IMDB_DATASETS_URL" in self.hosts
            instead = "reading its datasets instead"
            if not has_datasets:
                instead = (
                    "for its datasets set IMDB_DATASETS_URL, as IMDB_URL is not a host of IMDb's"
                )
            self.logger.warning("IMDb's pages are not accessible (%s); %s", error, instead)
            return has_datasets
        return False

    @classmethod
    def choices(cls) -> dict[str, Sequence[str]]:
        """Return the values of arguments that are known in advance, by the argument's name."""
        lists = [*cls.profile.lists, EVERYTHING]
        own = {"list": lists, "via": SOURCES, "episodes": _WITH_EPISODES}
        return {**super().choices(), **own}

    # --- What is due ------------------------------------------------------------------------------

    async def due_requests(self, feed: Feed, size: int | None, ids: RequestIds) -> list[Request]:
        """Return requests for pages, or the one for a pass over the datasets.

        It is for all titles that are due, once the pass before it has finished.
        """
        if not await self.reads_datasets():
            return await super().due_requests(feed, size, ids)
        if not holds_none(ids.open | ids.died):
            return []
        most = _PASS_SIZE if size is None else min(size, _PASS_SIZE)
        titles = await feed.select(most, ())
        return [self.datasets_request([title.ids[0] for title in titles])] if titles else []

    # --- A pass over the datasets -----------------------------------------------------------------

    def datasets_request(self, titles: list[str] | None = None) -> Request:
        """Return the request whose callback fetches and reads the datasets.

        As any request, it is leased and obeys robots.txt.

        Args:
            titles: Ids of the titles to read; None for what the arguments name.
        """
        return Request(
            f"{self.hosts['IMDB_DATASETS_URL']}/title.basics.tsv.gz",
            method="HEAD",
            callback=self.read_datasets,
            errback=self.datasets_failed,
            cb_kwargs={"titles": titles},
            meta={
                "expects": "other",
                "site": "imdb-datasets",
                "handle_httpstatus_list": _ANY_STATUS,
            },
            priority=LIST_PRIORITY,
            dont_filter=True,
        )

    async def read_datasets(
        self, response: Response, titles: list[str] | None
    ) -> AsyncIterator[Result]:
        """Fetch what has changed of the datasets, and yield their movies.

        It yields a Miss for each title that they don't have.
        """
        datasets = self._dataset_pass()
        list_name = self.plan.list_name if titles is None else None
        missing = dict.fromkeys(self.plan.titles if titles is None else titles)
        for site_id in await self._fresh(response, missing):
            del missing[site_id]
        if not missing and list_name is None:
            return
        reading = datasets.read(
            list(missing), list_name, self.plan.limit, lambda: is_closing(self.crawler.engine)
        )
        async with aclosing(reading):
            try:
                async for batch in reading:
                    for title in batch:
                        if isinstance(title, Unchanged):
                            for site_id in title.site_ids:
                                missing.pop(site_id, None)
                        else:
                            missing.pop(title.site_id, None)
                    for item in self._items_of(batch, response):
                        yield item
                if datasets.ranks:
                    yield datasets.chart(str(list_name), self.plan.limit, utc_now())
                self._report_damage(datasets, response.url)
            except InterruptedReadError as error:
                self.logger.info("IMDb's datasets were not read to their end: %s", error)
                # The request goes back to the queue.
                self.crawler.signals.send_catch_log(
                    list_failed, url=response.url, reason=str(error), refused=True
                )
            except Exception as error:  # else the titles that wait for the pass would wait for ever
                reason = str(error)
                if not isinstance(error, MovieCrawlerError):
                    reason = f"{type(error).__name__}: {error}"
                    self.logger.exception("IMDb's datasets can't be read")
                    self.crawler.stats.inc_value("extraction/errors/dataset")
                for item in self._pass_failed(response.url, missing, list_name, reason):
                    yield item

    async def _fresh(self, response: Response, ids: Iterable[str]) -> set[str]:
        """Return the ids that `skip_newer_than` leaves out, which are counted."""
        age = self.plan.skip_newer_than
        if age is None:
            return set()
        fresh = await find_fresh(self.settings, self.site, list(ids), age)
        self.crawler.signals.send_catch_log(
            titles_fresh, request=response.request, count=len(fresh)
        )
        return fresh

    def _dataset_pass(self) -> DatasetPass:
        # DuckDB takes 50 MB, and most crawls read pages.
        from moviecrawler.datasets.files import FileClient  # noqa: PLC0415
        from moviecrawler.datasets.passes import DatasetPass  # noqa: PLC0415

        client = FileClient(
            self.settings["USER_AGENT"],
            lambda line: progress.log(f"IMDb's datasets: {line}"),
            obey_robots=self.settings.getbool("ROBOTSTXT_OBEY"),
        )
        return DatasetPass(
            self.hosts["IMDB_DATASETS_URL"],
            Path(self.settings["DATA_DIR"]) / "datasets",
            self.settings["IMDB_DATASETS"],
            client,
            with_episodes=self.given.get("episodes") == "yes",
            stored=self._stored_times(),
        )

    def _stored_times(self) -> StoredTimes | None:
        """Return what reads which titles are stored, if nothing else is to get them again."""
        paths = self._pipeline_paths()
        if (
            self.settings.get("FEEDS")
            or not paths <= {_CHECKS, _EMBEDDED}
            or _EMBEDDED not in paths
        ):
            return None
        from moviecrawler.pipelines.sqlite import read_times  # noqa: PLC0415 - imported by Scrapy

        return partial(read_times, Path(self.settings["DATA_DIR"]), self.site)

    def _items_of(
        self, titles: Iterable[EncodedMovie | MissingTitle | Unchanged], response: Response
    ) -> Iterator[Result]:
        """Yield the Movies, the Misses, and what is unchanged, of titles of the datasets."""
        now = utc_now()
        found = []
        for title in titles:
            if isinstance(title, EncodedMovie):
                found.append(title)
            elif isinstance(title, Unchanged):
                yield title
            else:
                site_id = title.site_id
                note = Fetched(site=self.site, at=now, requested_id=site_id)
                yield from self.title_missed(site_id, title.outcome, title.reason, now, note)
        if self._takes_batches:
            yield Batch(unchecked=found, note_of=self._note_of, response=response)
            return
        for title in found:
            movie = title.movie()
            movie.note = self._note_of(movie, title.site_id)
            yield movie

    @cached_property
    def _takes_batches(self) -> bool:
        """Whether all pipelines take a Batch; those of others take movies."""
        return all(path.startswith("moviecrawler.") for path in self._pipeline_paths())

    def _pipeline_paths(self) -> set[str]:
        found = self.settings.get_component_priority_dict_with_base("ITEM_PIPELINES")
        return {str(path) for path, order in found.items() if order is not None}

    def _report_damage(self, datasets: DatasetPass, url: str) -> None:
        """Account for damaged rows, and for a list that may lack titles because of them."""
        if datasets.damaged:
            self.crawler.stats.inc_value("extraction/errors/dataset", datasets.damaged_rows)
            self.logger.error("%s", datasets.describe_damage())
        if datasets.list_damage:
            self.report_failure(url, datasets.list_damage)

    def datasets_failed(self, failure: Failure) -> Iterator[Result]:
        """Account for datasets that may not be fetched."""
        request: Request = failure.request  # type: ignore[attr-defined]
        if is_closing(self.crawler.engine):  # others may try again
            request.meta.setdefault(CLOSED_META, Closed("the crawl ends"))
        if CLOSED_META in request.meta:
            return  # it is queued again
        titles = request.cb_kwargs["titles"]
        list_name = self.plan.list_name if titles is None else None
        missing = self.plan.titles if titles is None else titles
        yield from self._pass_failed(request.url, missing, list_name, outcome_of(failure)[1])

    def _pass_failed(
        self, url: str, missing: Iterable[str], list_name: str | None, reason: str
    ) -> Iterator[Result]:
        """Account for all that a pass was to give, by no fault of a title."""
        if list_name is not None:
            self.report_failure(url, reason)
        for site_id in missing:
            note = Fetched(site=self.site, at=utc_now(), requested_id=site_id, outcome="put off")
            why = f"IMDb's datasets: {reason}"
            yield from self.title_missed(site_id, "failed", why, note.at, note)
