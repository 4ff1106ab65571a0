from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from scrapy import Request, signals
from scrapy.http import Response
from scrapy.signalmanager import SignalManager
from twisted.python.failure import Failure

from moviecrawler.extensions.settlement import Settlement
from moviecrawler.frontier.engine import NOT_SENT
from moviecrawler.frontier.leases import LeaseTracker
from moviecrawler.items import Miss, Movie, RawPage
from moviecrawler.signals import item_settled, list_missed, page_archived, store_opened

NOW = datetime(2026, 11, 1, tzinfo=UTC)


def movie(site_id: str = "tt1") -> Movie:
    return Movie(site="imdb", site_id=site_id, url="https://www.imdb.com/", title="Invented", kind="movie")


def miss(outcome: Any) -> Miss:
    return Miss(site="imdb", site_id="tt1", url="https://www.imdb.com/", outcome=outcome, reason="", checked_at=NOW)


class Crawl:
    """A tracker, and what Scrapy and two stores tell it."""

    def __init__(self) -> None:
        self.ends: list[tuple[str, str]] = []
        self.tracker = LeaseTracker(lambda lease, how, _: self.ends.append((lease.id, how)))
        self.manager = SignalManager(self)  # and of no other test
        self.settlement = Settlement(self.manager)
        self.tracker.connect(self.manager)
        for store in ("csv", "postgres"):
            self.send(store_opened, store=store)

    def send(self, signal: object, **arguments: Any) -> None:
        for _, result in self.manager.send_catch_log(signal, **arguments):
            assert not isinstance(result, Failure), result

    def take(self, lease: str = "a", site_id: str | None = "tt1") -> Request:
        known = {} if site_id is None else {"site_id": site_id}
        request = Request(f"https://www.imdb.com/{lease}", cb_kwargs=known)
        self.tracker.take(lease, 1, request)
        return request

    def passed(self, item: Any, request: Request | None) -> None:
        self.send(signals.item_scraped, item=item, response=request and Response(request.url, request=request))

    def ended(self, item: Any, request: Request) -> None:
        """A request has left the engine, with an item."""
        self.passed(item, request)
        self.tracker.ended(request)

    def settled(self, item: Any, *stores: str, outcome: str = "durable") -> None:
        for store in stores or ("csv", "postgres"):
            self.send(item_settled, item=item, store=store, outcome=outcome, reason=None)


@pytest.fixture
def crawl() -> Crawl:
    return Crawl()


@pytest.mark.promise("A request is done only when its items are durable in every store.")
def test_request_is_done_when_its_item_is_safe_in_every_store(crawl: Crawl) -> None:
    request, item = crawl.take(), movie()
    crawl.ended(item, request)
    crawl.settled(item, "csv")
    assert crawl.ends == []
    crawl.settled(item, "postgres")
    assert crawl.ends == [("a", "done")]
    assert not crawl.tracker._lease_of_item


def archived(crawl: Crawl, request: Request) -> RawPage:
    """Have a request's page pass to the archive."""
    page = RawPage(site="imdb", site_id="tt1", fetched_at=NOW, archive_id="urn:uuid:1", record=b"WARC")
    crawl.send(page_archived, item=page, response=Response(request.url, request=request))
    return page


def test_request_is_done_when_its_page_is_in_the_archive_too(crawl: Crawl) -> None:
    request, item = crawl.take(), movie()
    page = archived(crawl, request)
    crawl.ended(item, request)
    crawl.settled(item)
    assert crawl.ends == []
    crawl.settled(page, "archive")
    assert crawl.ends == [("a", "done")]
    assert not crawl.settlement._items


def test_a_page_in_the_archive_is_no_answer_to_what_was_asked(crawl: Crawl) -> None:
    request = crawl.take()
    crawl.settled(archived(crawl, request), "archive")
    crawl.tracker.ended(request)
    assert crawl.ends == [("a", "dead")]


def test_request_that_was_not_sent_goes_back(crawl: Crawl) -> None:
    request = crawl.take()
    request.meta[NOT_SENT] = True
    crawl.tracker.ended(request)
    assert crawl.ends == [("a", "back")]


@pytest.mark.promise("A request is done only when its items are durable in every store.")
@pytest.mark.parametrize("early", [False, True])
@pytest.mark.parametrize(
    ("outcome", "how"), [("durable", "done"), ("spooled", "back"), ("lost", "back"), ("rejected", "done")]
)
def test_what_stores_say_decides(crawl: Crawl, outcome: str, how: str, early: bool) -> None:
    request, item = crawl.take(), movie()
    if early:
        crawl.settled(item, "postgres", outcome=outcome)
    crawl.ended(item, request)
    crawl.settled(item, "csv")
    if not early:
        crawl.settled(item, "postgres", outcome=outcome)
    assert crawl.ends == [("a", how)]


@pytest.mark.parametrize(
    ("outcome", "how"), [("absent", "done"), ("failed", "done"), ("disallowed", "done"), ("blocked", "back")]
)
def test_missed_title_ends_by_why_it_was_missed(crawl: Crawl, outcome: str, how: str) -> None:
    request, item = crawl.take(), miss(outcome)
    crawl.ended(item, request)
    crawl.settled(item)
    assert crawl.ends == [("a", how)]


def test_title_whose_item_was_dropped_is_done(crawl: Crawl) -> None:
    request = crawl.take()
    crawl.send(
        signals.item_dropped, item=movie(), response=Response(request.url, request=request), exception=ValueError()
    )
    crawl.tracker.ended(request)
    assert crawl.ends == [("a", "done")]


@pytest.mark.parametrize(("signal", "given"), [(signals.spider_error, {}), (signals.item_error, {"item": movie()})])
def test_exception_makes_a_dead_letter(crawl: Crawl, signal: object, given: dict[str, Any]) -> None:
    request, stored = crawl.take(), movie("tt2")
    crawl.passed(stored, request)  # what else came of the page is stored all the same
    crawl.send(
        signal,
        **given,
        failure=Failure(ValueError("odd")),  # type: ignore[no-untyped-call]
        response=Response(request.url, request=request),
    )
    crawl.tracker.ended(request)
    crawl.settled(stored)
    assert crawl.ends == [("a", "dead")]


def test_retry_takes_the_lease_over(crawl: Crawl) -> None:
    request, item = crawl.take(), movie()
    retry = request.copy()
    assert crawl.tracker.hand_over(retry)
    crawl.tracker.ended(request)
    crawl.ended(item, retry)
    crawl.settled(item)
    assert crawl.ends == [("a", "done")]
    assert not crawl.tracker.hand_over(retry.copy())


def test_list_is_done_when_it_was_read(crawl: Crawl) -> None:
    crawl.tracker.ended(crawl.take(site_id=None))
    assert crawl.ends == [("a", "done")]


@pytest.mark.parametrize(("refused", "how"), [(False, "done"), (True, "back")])
def test_list_that_was_refused_goes_back(crawl: Crawl, refused: bool, how: str) -> None:
    request = crawl.take(site_id=None)
    crawl.send(list_missed, url=request.url, reason="no list", refused=refused)
    crawl.tracker.ended(request)
    assert crawl.ends == [("a", how)]


def test_what_was_given_back_is_not_acknowledged(crawl: Crawl) -> None:
    request, item = crawl.take(), movie()
    crawl.passed(item, request)
    crawl.tracker.leases.clear()
    crawl.tracker.ended(request)
    crawl.settled(item)
    assert crawl.ends == []
    assert not crawl.tracker._lease_of_item
