"""Which items are followed, and what is said of each once every store has an outcome of it."""

import weakref
from typing import Any

import pytest
from scrapy import Request, Spider, signals
from scrapy.http import Response
from scrapy.utils.test import get_crawler

from moviecrawler.extensions.completion import ItemCompletion
from moviecrawler.items import Fetched, RawPage
from moviecrawler.signals import item_outcomes, items_completed, store_opened, title_failed
from tests.runs import BEGIN, make_miss, make_movie


class Crawl:
    """A crawl of which nothing but its signals exists, with some stores."""

    def __init__(self, *stores: str) -> None:
        self.crawler = get_crawler(Spider)
        self.completion = ItemCompletion.from_crawler(self.crawler)
        self.completed: list[tuple[Any, frozenset[str]]] = []
        self.crawler.signals.connect(self._items_completed, items_completed)
        for store in stores:
            self.send(store_opened, store=store)

    def _items_completed(self, items: list[Any], outcomes: frozenset[str]) -> None:
        self.completed += [(item, outcomes) for item in items]

    def send(self, signal: object, **arguments: Any) -> None:
        self.crawler.signals.send_catch_log(signal, **arguments)

    def item(self, item: Any, earlier: bool = False, **outcomes: str) -> None:
        """Have an item pass, and then outcomes in some stores."""
        if not earlier:
            self.send(signals.item_scraped, item=item, response=None)
        for store, outcome in outcomes.items():
            self.send(
                item_outcomes,
                items=[item],
                store=store,
                outcome=outcome,
                reason=None,
                earlier=earlier,
            )


@pytest.mark.parametrize(
    ("csv", "postgres"),
    [
        ("durable", "durable"),
        ("durable", "rejected"),
        ("spooled", "durable"),
        ("spooled", "rejected"),
        ("lost", "rejected"),
    ],
)
def test_an_item_is_completed_with_what_every_store_said(csv: str, postgres: str) -> None:
    crawl = Crawl("csv", "postgres")
    item = make_movie(1)
    crawl.item(item, csv=csv)
    assert crawl.completed == []
    crawl.send(item_outcomes, items=[item], store="postgres", outcome=postgres, reason=None)
    assert crawl.completed == [(item, frozenset({csv, postgres}))]
    assert not crawl.completion._items


def test_a_page_is_not_held_while_a_store_fills_its_batch_but_its_request_is() -> None:
    crawl = Crawl("csv")
    item = make_movie(1)
    completed = []

    def listen(request: Request | None) -> None:
        completed.append(request)

    crawl.crawler.signals.connect(listen, items_completed)
    request = Request("https://x.example/")
    response = Response("https://x.example/", request=request)
    page = weakref.ref(response)
    crawl.send(signals.item_scraped, item=item, response=response, spider=None)
    del response
    assert page() is None
    crawl.send(item_outcomes, items=[item], store="csv", outcome="durable", reason=None)
    assert completed == [request]


def test_each_item_is_completed_once_and_an_earlier_runs_or_a_dropped_one_is_not() -> None:
    crawl = Crawl("csv", "postgres")
    early = make_movie(1)
    dropped = make_movie(1)
    # Before it has passed.
    crawl.send(item_outcomes, items=[early], store="csv", outcome="durable", reason=None)
    assert crawl.completed == []
    crawl.item(early, postgres="durable")
    equal = make_movie(1)
    crawl.item(equal, csv="durable", postgres="durable")
    assert [item for item, _ in crawl.completed] == [early, equal]
    crawl.item(make_movie(1), earlier=True, csv="durable")
    crawl.send(item_outcomes, items=[dropped], store="csv", outcome="durable", reason=None)
    crawl.send(signals.item_dropped, item=dropped, response=None, exception=None)
    crawl.send(item_outcomes, items=[dropped], store="postgres", outcome="durable", reason=None)
    assert len(crawl.completed) == 2
    for item in (make_miss(1), make_movie(1, source="list")):
        crawl.item(item, csv="durable", postgres="durable")
    assert len(crawl.completed) == 4
    assert not crawl.completion._items
    without_stores = Crawl()
    without_stores.item(make_movie(1))
    [(_, outcomes)] = without_stores.completed
    assert outcomes == frozenset()


def test_an_item_waits_for_the_stores_that_take_its_kind() -> None:
    crawl = Crawl("csv", "postgres")
    raw = RawPage(site="imdb", site_id=None, fetched_at=BEGIN, archive_id="", record=b"")
    fetched = Fetched(site="imdb", at=BEGIN, requested_id="tt0000001")
    for item, store in ((raw, "archive"), (fetched, "postgres")):
        crawl.item(item)
        assert crawl.completed == []
        crawl.send(item_outcomes, items=[item], store=store, outcome="durable", reason=None)
        assert crawl.completed.pop() == (item, frozenset({"durable"}))
    of_others = {"title": "Lamp"}
    crawl.item(of_others)
    assert crawl.completed == [(of_others, frozenset())]


def test_a_title_whose_item_a_store_rejects_has_failed_and_a_row_of_a_list_has_not() -> None:
    crawl = Crawl("csv")
    failed = []

    def note_failed(note: Fetched) -> None:
        failed.append(note)

    crawl.crawler.signals.connect(note_failed, title_failed)
    page = make_movie(1)
    page.note = Fetched(site="imdb", at=BEGIN, requested_id="tt0000001")
    stored = make_movie(2)
    stored.note = page.note
    crawl.item(stored, csv="durable")
    crawl.item(make_movie(3, source="list"), csv="rejected")
    assert failed == []
    crawl.item(page, csv="rejected")
    assert failed == [page.note]
