from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from scrapy import Request, signals
from scrapy.http import Response
from scrapy.signalmanager import SignalManager
from twisted.python.failure import Failure

from moviecrawler.extensions.completion import ItemCompletion
from moviecrawler.frontier.engine import NOT_SENT
from moviecrawler.frontier.leases import LeaseTracker
from moviecrawler.items import Miss, Movie, RawPage
from moviecrawler.signals import item_outcomes, list_missed, page_archived, store_opened

NOW = datetime(2026, 11, 1, tzinfo=UTC)
ODD = Failure(ValueError("odd"))  # type: ignore[no-untyped-call]
MOVIE = Movie(
    site="imdb", site_id="tt1", url="https://www.imdb.com/", title="Invented", kind="movie"
)
PAGE = RawPage(site="imdb", site_id="tt1", fetched_at=NOW, archive_id="urn:uuid:1", record=b"WARC")


def miss(outcome: Any) -> Miss:
    return Miss(
        site="imdb",
        site_id="tt1",
        url="https://www.imdb.com/",
        outcome=outcome,
        reason="",
        checked_at=NOW,
    )


class Crawl:
    """The lease of a request, and what Scrapy and two stores tell its tracker."""

    def __init__(self) -> None:
        self.ends: list[str] = []
        self.tracker = LeaseTracker(lambda _, how, __: self.ends.append(how))
        self.manager = SignalManager(self)  # and of no other test
        self.completion = ItemCompletion(self.manager)
        self.tracker.connect(self.manager)
        for store in ("csv", "postgres"):
            self.send(store_opened, store=store)
        self.request = Request("https://www.imdb.com/a", cb_kwargs={"site_id": "tt1"})
        self.tracker.take("a", 1, self.request)

    def send(self, signal: object, **arguments: Any) -> None:
        for _, result in self.manager.send_catch_log(signal, **arguments):
            assert not isinstance(result, Failure), result

    def tell(self, signal: object, **arguments: Any) -> None:
        """Send a signal about the answer to the request."""
        self.send(signal, response=Response(self.request.url, request=self.request), **arguments)

    def ended(self, *items: Any) -> None:
        """The request has left the engine, with such items."""
        for item in items:
            self.tell(signals.item_scraped, item=item)
        self.tracker.ended(self.request)

    def completed(self, item: Any = MOVIE, *stores: str, outcome: str = "durable") -> None:
        for store in stores or ("csv", "postgres"):
            self.send(item_outcomes, items=[item], store=store, outcome=outcome, reason=None)


@pytest.fixture
def crawl() -> Crawl:
    return Crawl()


@pytest.mark.promise(
    "A request is done only when its items are durable everywhere, and what it leads to is queued."
)
def test_request_is_done_when_its_page_is_in_the_archive_and_its_item_in_every_store(
    crawl: Crawl,
) -> None:
    crawl.tell(page_archived, item=PAGE)
    crawl.ended(MOVIE)
    crawl.completed(MOVIE, "csv")
    crawl.completed(PAGE, "archive")
    assert crawl.ends == []
    crawl.completed(MOVIE, "postgres")
    assert crawl.ends == ["done"]
    assert not crawl.completion._items


@pytest.mark.promise(
    "A request is done only when its items are durable everywhere, and what it leads to is queued."
)
@pytest.mark.parametrize("early", [False, True])
@pytest.mark.parametrize(
    ("outcome", "how"),
    [("durable", "done"), ("spooled", "back"), ("lost", "back"), ("rejected", "done")],
)
def test_what_stores_say_decides(crawl: Crawl, outcome: str, how: str, early: bool) -> None:
    if early:
        crawl.completed(MOVIE, "postgres", outcome=outcome)
    crawl.ended(MOVIE)
    crawl.completed(MOVIE, "csv")
    if not early:
        crawl.completed(MOVIE, "postgres", outcome=outcome)
    assert crawl.ends == [how]


@pytest.mark.parametrize(
    ("outcome", "how"),
    [("absent", "done"), ("failed", "done"), ("disallowed", "done"), ("blocked", "back")],
)
def test_missed_title_ends_by_why_it_was_missed(crawl: Crawl, outcome: str, how: str) -> None:
    item = miss(outcome)
    crawl.ended(item)
    crawl.completed(item)
    assert crawl.ends == [how]


def archived(crawl: Crawl) -> None:
    crawl.tell(page_archived, item=PAGE)
    crawl.completed(PAGE, "archive")


WITHOUT_ITEMS: dict[str, tuple[Callable[[Crawl], Any], str]] = {
    "nothing came of it": (lambda _: None, "dead"),
    "only a page in the archive": (archived, "dead"),
    "not sent": (lambda crawl: crawl.request.meta.update({NOT_SENT: True}), "back"),
    "dropped as invalid": (
        lambda crawl: crawl.tell(signals.item_dropped, item=MOVIE, exception=ODD),
        "done",
    ),
    "its callback failed": (lambda crawl: crawl.tell(signals.spider_error, failure=ODD), "dead"),
    "a pipeline failed": (
        lambda crawl: crawl.tell(signals.item_error, item=MOVIE, failure=ODD),
        "dead",
    ),
}


@pytest.mark.parametrize(("happens", "how"), WITHOUT_ITEMS.values(), ids=WITHOUT_ITEMS)
def test_title_without_an_item_ends_as(
    crawl: Crawl, happens: Callable[[Crawl], Any], how: str
) -> None:
    happens(crawl)
    crawl.ended()
    assert crawl.ends == [how]


def test_a_request_of_which_one_item_is_stored_and_one_broke_is_a_dead_letter(crawl: Crawl) -> None:
    crawl.tell(signals.item_error, item=miss("failed"), failure=ODD)
    crawl.ended(MOVIE)
    crawl.completed()
    assert crawl.ends == ["dead"]


def test_retry_takes_the_lease_over(crawl: Crawl) -> None:
    first = crawl.request
    crawl.request = crawl.request.copy()
    assert crawl.tracker.hand_over(crawl.request)
    crawl.tracker.ended(first)
    crawl.ended(MOVIE)
    crawl.completed()
    assert crawl.ends == ["done"]
    assert not crawl.tracker.hand_over(first.copy())


@pytest.mark.parametrize(
    ("refused", "meta", "how"),
    [(None, {}, "done"), (False, {}, "done"), (True, {}, "back"), (None, {NOT_SENT: True}, "back")],
)
def test_list_is_done_unless_it_was_refused_or_not_sent(
    crawl: Crawl, refused: bool | None, meta: dict[str, Any], how: str
) -> None:
    listed = Request("https://www.imdb.com/list", meta=meta)
    crawl.tracker.take("list", 1, listed)
    if refused is not None:
        crawl.send(list_missed, url=listed.url, reason="no list", refused=refused)
    crawl.tracker.ended(listed)
    assert crawl.ends == [how]


def test_what_was_given_back_is_not_acknowledged(crawl: Crawl) -> None:
    crawl.tell(signals.item_scraped, item=MOVIE)
    crawl.tracker.leases.clear()
    crawl.tracker.ended(crawl.request)
    crawl.completed()
    assert crawl.ends == []
