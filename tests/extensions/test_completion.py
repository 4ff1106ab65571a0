"""What became of items, and how titles are counted by it."""

import weakref
from datetime import UTC, datetime
from typing import Any

import pytest
from scrapy import Request, Spider, signals
from scrapy.http import Response
from scrapy.utils.test import get_crawler

from moviecrawler.extensions.completion import ItemCompletion
from moviecrawler.extensions.outcomes import TitleOutcomes
from moviecrawler.items import Miss, Movie
from moviecrawler.signals import item_completed, item_outcomes, store_opened

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def movie(source: Any = "page") -> Movie:
    return Movie(
        site="imdb",
        site_id="tt0000001",
        url="https://x.example/",
        title="A",
        kind="movie",
        source=source,
    )


class Crawl:
    """A crawl of which nothing but its signals exists, with some stores."""

    def __init__(self, *stores: str) -> None:
        self.crawler = get_crawler(Spider)
        self.completion = ItemCompletion.from_crawler(self.crawler)
        self.reported = TitleOutcomes.from_crawler(self.crawler)
        for store in stores:
            self.send(store_opened, store=store)

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

    @property
    def counted(self) -> dict[str, int]:
        stats = self.crawler.stats.get_stats()
        return {
            name.removeprefix("titles/"): n
            for name, n in stats.items()
            if name.startswith("titles/")
        }


@pytest.mark.parametrize(
    ("csv", "postgres", "title"),
    [
        ("durable", "durable", "stored"),
        ("durable", "rejected", "rejected"),
        ("spooled", "durable", "spooled"),
        ("spooled", "rejected", "rejected"),
        ("lost", "rejected", "lost"),
    ],
)
def test_worst_outcome_in_any_store_is_the_titles(csv: str, postgres: str, title: str) -> None:
    crawl = Crawl("csv", "postgres")
    item = movie()
    crawl.item(item, csv=csv)
    assert crawl.counted == {}
    crawl.send(item_outcomes, items=[item], store="postgres", outcome=postgres, reason=None)
    assert crawl.counted == {title: 1}
    assert not crawl.completion._items


def test_a_page_is_not_held_while_a_store_fills_its_batch_but_its_request_is() -> None:
    crawl = Crawl("csv")
    item = movie()
    completed = []

    def listen(request: Request | None) -> None:
        completed.append(request)

    crawl.crawler.signals.connect(listen, item_completed)
    request = Request("https://x.example/")
    response = Response("https://x.example/", request=request)
    page = weakref.ref(response)
    crawl.send(signals.item_scraped, item=item, response=response, spider=None)
    del response
    assert page() is None
    crawl.send(item_outcomes, items=[item], store="csv", outcome="durable", reason=None)
    assert completed == [request]


def test_each_item_is_counted_once_and_an_earlier_runs_or_a_dropped_one_is_not() -> None:
    crawl = Crawl("csv", "postgres")
    early = movie()
    dropped = movie()
    # Before it has passed.
    crawl.send(item_outcomes, items=[early], store="csv", outcome="durable", reason=None)
    assert crawl.counted == {}
    crawl.item(early, postgres="durable")
    crawl.item(movie(), csv="durable", postgres="durable")  # which is equal to it
    assert crawl.counted == {"stored": 2}
    crawl.item(movie(), earlier=True, csv="durable")
    crawl.send(item_outcomes, items=[dropped], store="csv", outcome="durable", reason=None)
    crawl.send(signals.item_dropped, item=dropped, response=None, exception=None)
    crawl.send(item_outcomes, items=[dropped], store="postgres", outcome="durable", reason=None)
    assert crawl.counted == {"stored": 2, "rejected": 1}
    absent = Miss(
        site="imdb", site_id="tt1", url="u", outcome="absent", reason="404", checked_at=NOW
    )
    for item in (absent, movie("list")):
        crawl.item(item, csv="durable", postgres="durable")
    assert crawl.counted == {"stored": 2, "rejected": 1, "absent": 1}
    assert not crawl.completion._items
    without_stores = Crawl()
    without_stores.item(movie())
    assert without_stores.counted == {"stored": 1}
