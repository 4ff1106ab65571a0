"""What signals of a crawl make the catalogue write."""

import asyncio
import threading
from contextlib import closing
from datetime import UTC, datetime
from typing import Any, NoReturn

import pytest
from scrapy import Request, signals
from scrapy.crawler import Crawler
from scrapy.http import Response
from scrapy.settings import Settings

from moviecrawler.catalogue.loading import load
from moviecrawler.catalogue.rows import ImportRow
from moviecrawler.catalogue.store import open_catalogue
from moviecrawler.clock import utc_now
from moviecrawler.database.connection import Database
from moviecrawler.errors import ConfigurationError, MovieCrawlerError, TransientStoreError
from moviecrawler.extensions import summary
from moviecrawler.extensions.catalogue import CatalogueRecorder
from moviecrawler.extensions.completion import ItemCompletion
from moviecrawler.items import Miss, Movie
from moviecrawler.signals import item_outcomes, store_opened
from moviecrawler.spiders.imdb import ImdbSpider
from tests.services.postgres import execute
from tests.waiting import LONGEST, until

NOW = datetime(2026, 11, 1, tzinfo=UTC)
ID = "tt1000001"


class Crawl:
    """A crawl of which nothing but its signals exists."""

    def __init__(self, database_url: str) -> None:
        self.database_url = database_url
        with closing(open_catalogue(Settings({"DATABASE_URL": database_url}))) as store:
            load(
                store,
                "test",
                "1",
                [ImportRow(imdb_id=ID, title="Dune", kind="movie", year=2021)],
                1,
                NOW,
            )
        given = Settings()
        given.setmodule("moviecrawler.settings")
        given.set("DATABASE_URL", database_url)
        self.crawler = Crawler(ImdbSpider, given)
        self.recorder = CatalogueRecorder.from_crawler(self.crawler)
        self.completion = ItemCompletion.from_crawler(self.crawler)
        self.request = Request(
            "https://www.imdb.com/", cb_kwargs={"site_id": ID}, meta={"site": "imdb"}
        )
        self.response = Response("https://www.imdb.com/", request=self.request)

    def send(self, signal: object, **arguments: Any) -> None:
        self.crawler.signals.send_catch_log(signal, **arguments)

    def state(self) -> tuple[object, ...]:
        """Write what is known, and return state and failures in a row of the title."""
        asyncio.run(self.recorder.flush())
        return execute(
            self.database_url, "SELECT state::text, failures FROM title_sites WHERE site = 'imdb'"
        )[0]


@pytest.fixture
def crawl(database_url: str) -> Crawl:
    return Crawl(database_url)


def movie(source: Any = "page") -> Movie:
    return Movie(
        site="imdb", site_id=ID, url="u", title="Dune", kind="movie", scraped_at=NOW, source=source
    )


def miss(outcome: Any) -> Miss:
    return Miss(site="imdb", site_id=ID, url="u", outcome=outcome, reason="r", checked_at=NOW)


@pytest.mark.parametrize(
    ("signal", "item", "stored", "state"),
    [
        (signals.item_scraped, movie(), "durable", ("ok", 0)),
        (signals.item_scraped, movie(), None, ("never", 0)),  # a store has not written it yet
        (signals.item_scraped, movie(), "rejected", ("error", 1)),
        # This is no page of the title.
        (signals.item_scraped, movie("list"), "durable", ("never", 0)),
        (signals.item_scraped, miss("absent"), "durable", ("absent", 0)),
        (signals.item_scraped, miss("failed"), "durable", ("error", 1)),
        (signals.item_scraped, miss("disallowed"), "durable", ("error", 1)),
        (signals.item_scraped, miss("blocked"), "durable", ("blocked", 0)),
        (signals.item_dropped, movie(), None, ("error", 1)),
        (signals.item_dropped, movie("dataset"), None, ("error", 1)),
        (signals.item_error, movie("dataset"), None, ("error", 1)),
        (signals.spider_error, None, None, ("error", 1)),  # a callback failed
    ],
)
def test_outcome_of_a_title_is_what_became_of_its_item_in_all_stores(
    crawl: Crawl, signal: object, item: Any, stored: str | None, state: tuple[str, int]
) -> None:
    for store in ("csv", "postgres"):
        crawl.send(store_opened, store=store)
    no_request = isinstance(item, Movie) and item.source == "dataset"
    crawl.send(signal, item=item, response=None if no_request else crawl.response)
    for store, outcome in (("csv", "durable"), ("postgres", stored)):
        if outcome is not None:
            crawl.send(item_outcomes, items=[item], store=store, outcome=outcome, reason=None)
    assert crawl.state() == state


def refuse() -> NoReturn:
    raise ConfigurationError("DATABASE_URL leads to a database that refuses us")


@pytest.mark.parametrize(
    "away",
    [open_catalogue(Settings({"DATABASE_URL": "postgresql://a@127.0.0.1:1/b"})), Database(refuse)],
)
def test_a_database_that_is_away_or_lets_nobody_in_for_a_while_loses_nothing(
    crawl: Crawl, monkeypatch: pytest.MonkeyPatch, away: Database
) -> None:
    crawl.send(signals.item_scraped, item=movie(), response=crawl.response, spider=None)
    with monkeypatch.context() as patched:
        patched.setattr(crawl.recorder, "_database", away)
        assert crawl.state() == ("never", 0)
    assert crawl.state() == ("ok", 0)


def test_an_outcome_that_the_database_refuses_takes_no_other_with_it(
    crawl: Crawl, caplog: pytest.LogCaptureFixture
) -> None:
    for due in ({"title_id": 2**70, "ids": [], "evidence": None}, None):
        request = Request(
            "https://www.imdb.com/", cb_kwargs={"site_id": ID, "due": due}, meta={"site": "imdb"}
        )
        response = Response("https://www.imdb.com/", request=request)
        crawl.send(signals.item_scraped, item=movie(), response=response, spider=None)
    assert crawl.state() == ("ok", 0)
    assert "refused the outcome of tt1000001" in caplog.text


def test_claims_of_titles_without_an_outcome_are_not_extended(
    crawl: Crawl, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("moviecrawler.extensions.catalogue._MAX_WAITING", 1)
    recorder = crawl.recorder
    recorder.claimed([1, 2, 3, 4])
    crawl.send(store_opened, store="postgres")
    for title_id, outcome in ((1, "lost"), (2, "durable"), (3, "durable")):
        due = {"title_id": title_id, "ids": [], "evidence": None}
        request = Request(
            "https://www.imdb.com/", cb_kwargs={"site_id": ID, "due": due}, meta={"site": "imdb"}
        )
        item = movie()
        crawl.send(
            signals.item_scraped,
            item=item,
            response=Response(request.url, request=request),
            spider=None,
        )
        crawl.send(item_outcomes, items=[item], store="postgres", outcome=outcome, reason=None)
    away = open_catalogue(Settings({"DATABASE_URL": "postgresql://a@127.0.0.1:1/b"}))
    monkeypatch.setattr(recorder, "_database", away)
    asyncio.run(recorder.flush())
    # The first was lost, there was no room for the outcome of the second, and that of the third
    # still waits.
    assert (recorder.claimed_ids, len(recorder.outcomes)) == ({3, 4}, 1)


async def test_claims_are_kept_while_a_crawl_lasts_and_given_back_at_its_end(
    crawl: Crawl, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorder = crawl.recorder
    monkeypatch.setattr("moviecrawler.extensions.catalogue._WRITE_SECONDS", 0.01)
    recorder._extended_at -= recorder.options.lease
    statement = (
        "UPDATE title_sites SET claimed_by = %s, claimed_until = %s"
        " WHERE site = 'imdb' RETURNING title_id"
    )
    ((title_id,),) = execute(crawl.database_url, statement, recorder.worker, utc_now())
    assert isinstance(title_id, int)
    recorder.claimed([title_id])

    def kept() -> object:
        kept = (
            "SELECT claimed_until > now() + interval '1 hour' FROM title_sites WHERE site = 'imdb'"
        )
        return execute(crawl.database_url, kept)[0][0]

    recorder.has_claimed = True
    recorder.spider_opened()
    await until(kept)
    await recorder.spider_closed()
    assert execute(
        crawl.database_url, "SELECT count(*) FROM title_sites WHERE claimed_by IS NOT NULL"
    ) == [(0,)]


async def test_a_crawl_that_ends_in_the_middle_of_a_write_loses_no_outcome_whoever_is_cancelled(
    crawl: Crawl,
) -> None:
    is_busy = threading.Event()
    goes_on = threading.Event()

    def wait(_: Database) -> None:
        is_busy.set()
        goes_on.wait(LONGEST)

    recorder = crawl.recorder
    recorder.spider_opened()
    blocking = asyncio.create_task(recorder.call(wait))
    await asyncio.to_thread(is_busy.wait, LONGEST)
    crawl.send(signals.item_scraped, item=movie(), response=crawl.response, spider=None)
    waiting = asyncio.create_task(recorder.flush())
    await until(lambda: not recorder.outcomes)  # it was handed to the thread, which is busy
    waiting.cancel()
    closing_ = asyncio.create_task(recorder.spider_closed())
    await asyncio.sleep(0.1)
    goes_on.set()
    await asyncio.gather(blocking, closing_)
    assert execute(
        crawl.database_url, "SELECT state::text FROM title_sites WHERE site = 'imdb'"
    ) == [("ok",)]
    with pytest.raises(TransientStoreError, match="the crawl is over"):
        await recorder.call(wait)


def test_question_of_the_summary_waits_no_longer_than_it_may(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(summary, "_STATEMENT_SECONDS", 1)
    monkeypatch.setattr(summary, "_DUE", "SELECT pg_sleep(20), %s")
    with pytest.raises(MovieCrawlerError, match="statement timeout"):
        summary._ask(Settings({"DATABASE_URL": database_url}), "imdb")
