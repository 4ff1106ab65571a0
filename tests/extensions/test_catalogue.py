"""What signals of a crawl make the catalogue write."""

from __future__ import annotations

import asyncio
from contextlib import closing
from datetime import UTC, datetime
from typing import Any

import pytest
from scrapy import Request, signals
from scrapy.crawler import Crawler
from scrapy.http import Response
from scrapy.settings import Settings

from moviecrawler.catalogue.loading import load
from moviecrawler.catalogue.rows import ImportRow
from moviecrawler.extensions.catalogue import CatalogueRecorder
from moviecrawler.items import Miss, Movie
from moviecrawler.pipelines.catalogue import open_catalogue
from moviecrawler.signals import item_settled, lease_ended, site_refused, store_opened
from moviecrawler.spiders.imdb import ImdbSpider
from tests.services.postgres import execute

NOW = datetime(2026, 11, 1, tzinfo=UTC)
ID = "tt1000001"


class Crawl:
    """A crawl of which nothing but its signals exists."""

    def __init__(self, database_url: str) -> None:
        self.database_url = database_url
        with closing(open_catalogue(Settings({"DATABASE_URL": database_url}))) as store:
            load(store, "test", "1", [ImportRow(imdb_id=ID, title="Dune", kind="movie", year=2021)], 1, NOW)
        given = Settings()
        given.setmodule("moviecrawler.settings")
        given.set("DATABASE_URL", database_url)
        self.crawler = Crawler(ImdbSpider, given)
        self.recorder = CatalogueRecorder.from_crawler(self.crawler)
        self.request = Request("https://www.imdb.com/", cb_kwargs={"site_id": ID}, meta={"site": "imdb"})
        self.response = Response("https://www.imdb.com/", request=self.request)

    def send(self, signal: object, **arguments: Any) -> None:
        self.crawler.signals.send_catch_log(signal, **arguments)

    def state(self) -> tuple[object, ...]:
        """Write what is known, and return state and failures in a row of the title."""
        asyncio.run(self.recorder.flush())
        return execute(self.database_url, "SELECT state::text, failures FROM title_sites WHERE site = 'imdb'")[0]


@pytest.fixture
def crawl(database_url: str) -> Crawl:
    return Crawl(database_url)


def movie(**fields: Any) -> Movie:
    return Movie(site="imdb", site_id=ID, url="u", title="Dune", kind="movie", scraped_at=NOW, **fields)


def test_a_title_is_fetched_when_every_store_has_its_movie(crawl: Crawl) -> None:
    item = movie()
    for store in ("csv", "postgres"):
        crawl.send(store_opened, store=store)
    crawl.send(item_settled, item=item, store="csv", outcome="durable", reason=None)
    crawl.send(signals.item_scraped, item=item, response=crawl.response, spider=None)
    assert crawl.state() == ("never", 0)
    crawl.send(item_settled, item=item, store="postgres", outcome="durable", reason=None)
    assert crawl.state() == ("ok", 0)


def test_a_movie_that_a_store_refuses_is_a_failure(crawl: Crawl) -> None:
    item = movie()
    crawl.send(store_opened, store="postgres")
    crawl.send(signals.item_scraped, item=item, response=crawl.response, spider=None)
    crawl.send(item_settled, item=item, store="postgres", outcome="rejected", reason="too long")
    assert crawl.state() == ("error", 1)


def test_a_row_of_a_list_is_no_page_of_the_title(crawl: Crawl) -> None:
    crawl.send(signals.item_scraped, item=movie(source="list"), response=crawl.response, spider=None)
    assert crawl.state() == ("never", 0)


@pytest.mark.parametrize(
    ("missed", "state"),
    [("absent", ("absent", 0)), ("failed", ("error", 1)), ("disallowed", ("error", 1)), ("blocked", ("blocked", 0))],
)
def test_a_miss_tells_why(crawl: Crawl, missed: Any, state: tuple[str, int]) -> None:
    item = Miss(site="imdb", site_id=ID, url="u", outcome=missed, reason="r", checked_at=NOW)
    crawl.send(signals.item_scraped, item=item, response=crawl.response, spider=None)
    assert crawl.state() == state


def test_an_item_that_does_not_pass_is_a_failure(crawl: Crawl) -> None:
    crawl.send(signals.item_dropped, item=movie(), response=crawl.response, exception=None, spider=None)
    assert crawl.state() == ("error", 1)


def test_a_callback_that_breaks_is_one_failure_however_many_tell(crawl: Crawl) -> None:
    crawl.send(signals.spider_error, failure=None, response=crawl.response, spider=None)
    crawl.send(lease_ended, request=crawl.request, how="dead", reason="its callback failed")
    assert crawl.state() == ("error", 1)


def test_a_request_that_the_queue_sets_aside_is_a_failure(crawl: Crawl) -> None:
    crawl.send(lease_ended, request=crawl.request, how="done", reason="")
    assert crawl.state() == ("never", 0)
    crawl.send(lease_ended, request=crawl.request, how="dead", reason="ended without an item")
    assert crawl.state() == ("error", 1)


def test_a_refusal_pauses_the_site_for_everybody(crawl: Crawl) -> None:
    crawl.send(site_refused, site="imdb", reason="imdb refused us", pause=3600.0)
    crawl.send(site_refused, site="imdb-datasets", reason="no site of ours", pause=3600.0)
    crawl.state()
    assert execute(crawl.database_url, "SELECT site::text, reason, until > now() FROM site_pauses") == [
        ("imdb", "imdb refused us", True)
    ]


def test_a_database_that_is_away_loses_nothing(crawl: Crawl, monkeypatch: pytest.MonkeyPatch) -> None:
    item = movie()
    crawl.send(store_opened, store="postgres")
    crawl.send(signals.item_scraped, item=item, response=crawl.response, spider=None)
    crawl.send(item_settled, item=item, store="postgres", outcome="durable", reason=None)
    away = open_catalogue(Settings({"DATABASE_URL": "postgresql://a@127.0.0.1:1/b"}))
    with monkeypatch.context() as patched:
        patched.setattr(crawl.recorder, "_store", away)
        assert crawl.state() == ("never", 0)
    assert crawl.state() == ("ok", 0)
