"""What a crawl's items and signals make the Postgres store tell the catalogue, and when."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from scrapy import Request, signals
from scrapy.crawler import Crawler
from scrapy.http import Response
from scrapy.settings import Settings
from scrapy.statscollectors import MemoryStatsCollector

from moviecrawler.basics.errors import MovieCrawlerError
from moviecrawler.catalogue.loading import load
from moviecrawler.catalogue.rows import ImportRow
from moviecrawler.catalogue.store import open_catalogue
from moviecrawler.extensions import summary
from moviecrawler.extensions.completion import ItemCompletion
from moviecrawler.items import CoveredBySeries, Fetched, Miss, Movie
from moviecrawler.pipelines.postgres import PostgresPipeline, PostgresStore
from moviecrawler.signals import (
    item_outcomes,
    items_completed,
    items_passed,
    store_opened,
    title_failed,
    titles_listed,
    worker_idle,
)
from moviecrawler.spiders.imdb import ImdbSpider
from tests.services.postgres import execute
from tests.waiting import until

NOW = datetime(2026, 11, 1, tzinfo=UTC)
ID = "tt1000001"
STATE = "SELECT state::text, failures FROM title_sites WHERE site = 'imdb'"


@dataclass
class Running:
    """A crawl of which nothing exists but its signals and its Postgres pipeline."""

    crawler: Any
    pipeline: PostgresPipeline
    completion: ItemCompletion
    url: str

    def __post_init__(self) -> None:
        self.passed: list[Any] = []
        self.completed: list[tuple[Any, Request | None]] = []
        self.crawler.signals.connect(self._passed, items_passed)
        self.crawler.signals.connect(self._completed, items_completed)

    def _passed(self, items: list[Any]) -> None:
        self.passed += items

    def _completed(self, items: list[Any], request: Request | None) -> None:
        self.completed += [(item, request) for item in items]

    def tell(self, signal: object, **arguments: Any) -> None:
        self.crawler.signals.send_catch_log(signal, **arguments)

    async def settled(self) -> Any:
        """Wait until all is written, and return state and failures of the title."""
        self.tell(worker_idle)
        await until(lambda: len(self.completed) >= len(self.passed))
        return execute(self.url, STATE)[0]


@asynccontextmanager
async def crawling(url: str, data: Path) -> AsyncIterator[Running]:
    given = Settings()
    given.setmodule("moviecrawler.settings")
    given.setdict({"DATABASE_URL": url, "DATA_DIR": str(data)})
    with closing(open_catalogue(given)) as catalogue:
        row = ImportRow(imdb_id=ID, title="Dune", kind="movie", year=2021)
        load(catalogue, "test", "1", [row], 1, NOW)
    crawler: Any = Crawler(ImdbSpider, given)
    crawler.stats = MemoryStatsCollector(crawler)
    crawler.engine = type("Engine", (), {"running": True, "spider": None})()
    completion = ItemCompletion.from_crawler(crawler)
    pipeline = PostgresPipeline.from_crawler(crawler)
    await pipeline.open_spider()
    yield Running(crawler, pipeline, completion, url)
    await pipeline.close_spider()


def request_of(**known: Any) -> Request:
    known = {"site_id": ID, **known}
    return Request("https://www.imdb.com/", cb_kwargs=known, meta={"site": "imdb"})


def fetched(**fields: Any) -> Fetched:
    return Fetched(**{"site": "imdb", "at": NOW, "requested_id": ID, "page_id": ID, **fields})


def movie(note: Fetched | CoveredBySeries | None, **fields: Any) -> Movie:
    made = Movie(
        site="imdb",
        site_id=ID,
        url=f"https://www.imdb.com/title/{ID}/",
        imdb_id=ID,
        title="Dune",
        kind="movie",
        scraped_at=NOW,
        **fields,
    )
    made.note = note
    return made


def miss(outcome: Any, noted: str) -> Miss:
    made = Miss(site="imdb", site_id=ID, url="u", outcome=outcome, reason="r", checked_at=NOW)
    made.note = fetched(outcome=noted)
    return made


async def scrape(running: Running, item: Any, request: Request | None) -> None:
    await running.pipeline.process_item(item)
    response = None if request is None else Response(request.url, request=request)
    running.tell(signals.item_scraped, item=item, response=response)


@pytest.mark.parametrize(
    ("item", "state"),
    [
        (movie(fetched()), ("ok", 0)),
        (movie(None), ("never", 0)),  # of an archive, or of an earlier crawl's spool
        (movie(None, source="list"), ("never", 0)),  # which is no page of the title
        (miss("absent", "absent"), ("absent", 0)),
        (miss("failed", "error"), ("error", 1)),
        (miss("failed", "put off"), ("never", 0)),
    ],
)
async def test_when_a_title_is_due_again_is_stored_with_its_item(
    database_url: str, tmp_path: Path, item: Any, state: tuple[str, int]
) -> None:
    async with crawling(database_url, tmp_path) as running:
        await scrape(running, item, request_of())
        assert await running.settled() == state
        assert [each for each, _ in running.completed] == [item]


async def test_an_item_that_another_store_rejects_or_the_checks_drop_is_an_error_once(
    database_url: str, tmp_path: Path
) -> None:
    async with crawling(database_url, tmp_path) as running:
        running.tell(store_opened, store="csv")
        item = movie(fetched())
        request = request_of()
        await scrape(running, item, request)
        rejected = {"store": "csv", "outcome": "rejected", "reason": "odd"}
        running.tell(item_outcomes, items=[item], **rejected)
        assert await running.settled() == ("error", 1)
        # The title's request waits for what the catalogue is told.
        assert [each for _, each in running.completed] == [request, request]
        response = Response(request.url, request=request)
        dropped = {"item": movie(fetched()), "response": response, "exception": None}
        running.tell(signals.item_dropped, **dropped)
        assert await running.settled() == ("error", 1)
        dropped["response"] = None
        running.tell(signals.item_dropped, **dropped)
        assert await running.settled() == ("error", 2)


async def test_a_dead_letter_is_an_error_and_a_season_of_a_list_none(
    database_url: str, tmp_path: Path
) -> None:
    async with crawling(database_url, tmp_path) as running:
        ((title_id,),) = execute(database_url, "SELECT title_id FROM titles")
        letter = fetched(requested_id=None, page_id=None, title_id=title_id)
        running.tell(title_failed, note=letter, request=None)
        assert await running.settled() == ("error", 1)
        season = movie(CoveredBySeries(site="imdb", at=NOW, requested_id=ID), source="list")
        running.tell(signals.item_dropped, item=season, response=None, exception=None)
        assert await running.settled() == ("error", 1)


async def test_what_lists_name_is_written_and_what_is_refused_takes_nothing_with_it(
    database_url: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with crawling(database_url, tmp_path) as running:
        running.tell(titles_listed, site="rottentomatoes", list_name="new", entries=[], ids=["m/a"])
        running.tell(title_failed, note=fetched(title_id=2**70), request=None)
        await scrape(running, movie(fetched()), request_of())
        assert await running.settled() == ("ok", 0)
        assert execute(database_url, "SELECT site_id FROM listed_ids") == [("m/a",)]
        assert f"rejected imdb {ID}" in caplog.text


async def test_what_a_database_that_is_away_was_not_told_is_told_by_the_next_crawl(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with crawling(database_url, tmp_path) as running:
        store = running.pipeline.store
        assert isinstance(store, PostgresStore)
        store.close()
        monkeypatch.setattr(store._database, "_url", "postgresql://a@127.0.0.1:1/b")
        running.tell(title_failed, note=fetched(), request=None)
        running.pipeline._writer.begin_closing()
        running.pipeline._writer._deadline = 0.0
    assert execute(database_url, STATE) == [("never", 0)]
    async with crawling(database_url, tmp_path) as running:
        await until(lambda: execute(database_url, STATE) == [("error", 1)])


def test_question_of_the_summary_waits_no_longer_than_it_may(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(summary, "_STATEMENT_SECONDS", 1)
    monkeypatch.setattr(summary, "_DUE", "SELECT pg_sleep(20), %s")
    with pytest.raises(MovieCrawlerError, match="statement timeout"):
        summary._count_due(Settings({"DATABASE_URL": database_url}), "imdb")
