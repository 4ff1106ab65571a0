from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from scrapy import Request, signals
from scrapy.http import Response
from scrapy.signalmanager import SignalManager
from twisted.python.failure import Failure

from moviecrawler.extensions.completion import ItemCompletion
from moviecrawler.frontier.leases import Lease, LeaseTracker
from moviecrawler.items import Miss, Movie, RawPage
from moviecrawler.politeness.gate import Closed
from moviecrawler.politeness.meta import CLOSED_META
from moviecrawler.signals import item_outcomes, list_failed, page_archived, store_opened

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
        self.outcomes: list[dict[str, int]] = []
        self.tracker = LeaseTracker(self.finish)
        self.manager = SignalManager(self)  # and of no other test
        self.completion = ItemCompletion(self.manager)
        self.tracker.connect(self.manager)
        for store in ("csv", "postgres"):
            self.send(store_opened, store=store)
        self.request = Request(
            "https://www.imdb.com/a", cb_kwargs={"site_id": "tt1"}, meta={"site": "imdb"}
        )
        self.tracker.take("a", 1, self.request)

    def finish(self, lease: Lease) -> None:
        end = lease.end()
        self.ends.append(end.kind)
        self.outcomes.append(end.outcomes)

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
    """Return a crawl that holds leases."""
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
    ("csv", "postgres", "how", "outcomes"),
    [
        ("durable", "rejected", "done", {"failed": 1}),
        ("spooled", "durable", "back", {}),
        ("spooled", "rejected", "back", {}),
        ("lost", "rejected", "back", {}),
    ],
)
def test_the_worst_that_a_store_says_is_the_titles(
    crawl: Crawl, csv: str, postgres: str, how: str, outcomes: dict[str, int]
) -> None:
    crawl.ended(MOVIE)
    crawl.completed(MOVIE, "csv", outcome=csv)
    crawl.completed(MOVIE, "postgres", outcome=postgres)
    assert crawl.ends == [how]
    assert crawl.outcomes == [outcomes]


def archived(crawl: Crawl) -> None:
    crawl.tell(page_archived, item=PAGE)
    crawl.completed(PAGE, "archive")


def closed(*, is_put_last: bool = False) -> dict[str, Any]:
    """Return the meta of a request that was not sent."""
    return {CLOSED_META: Closed("why", is_put_last=is_put_last)}


WITHOUT_ITEMS: dict[str, tuple[Callable[[Crawl], Any], str]] = {
    "nothing came of it": (lambda _: None, "dead"),
    "only a page in the archive": (archived, "dead"),
    "not sent": (lambda crawl: crawl.request.meta.update(closed()), "back"),
    "not sent, as the site is away": (
        lambda crawl: crawl.request.meta.update(closed(is_put_last=True)),
        "last",
    ),
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
    assert crawl.tracker.transfer(crawl.request)
    crawl.tracker.ended(first)
    crawl.ended(MOVIE)
    crawl.completed()
    assert crawl.ends == ["done"]
    assert not crawl.tracker.transfer(first.copy())


@pytest.mark.parametrize(
    ("refused", "meta", "how", "outcomes"),
    [
        (None, {}, "done", {"read": 1}),
        (False, {}, "done", {"unread": 1}),
        (True, {}, "back", {}),
        (None, closed(), "back", {}),
    ],
)
def test_list_is_read_or_unread_unless_it_was_refused_or_not_sent(
    crawl: Crawl, refused: bool | None, meta: dict[str, Any], how: str, outcomes: dict[str, int]
) -> None:
    listed = Request("https://www.imdb.com/list", meta=meta)
    crawl.tracker.take("list", 1, listed)
    if refused is not None:
        crawl.send(list_failed, url=listed.url, reason="no list", refused=refused)
    crawl.tracker.ended(listed)
    assert crawl.ends == [how]
    assert crawl.outcomes == [outcomes]


def test_what_was_given_back_is_not_acknowledged(crawl: Crawl) -> None:
    crawl.tell(signals.item_scraped, item=MOVIE)
    crawl.tracker.leases.clear()
    crawl.tracker.ended(crawl.request)
    crawl.completed()
    assert crawl.ends == []


@pytest.mark.parametrize(
    ("items", "store_says", "outcomes"),
    [
        ([MOVIE], "durable", {"stored": 1}),
        ([MOVIE], "rejected", {"failed": 1}),
        ([miss("absent")], "durable", {"absent": 1}),
        ([miss("disallowed")], "durable", {"disallowed": 1}),
        ([miss("failed")], "durable", {"failed": 1}),
        ([miss("absent")], "rejected", {"failed": 1}),
        ([MOVIE, replace(MOVIE, source="list", kind="season")], "durable", {"stored": 1}),
    ],
)
def test_a_title_has_one_outcome(
    crawl: Crawl, items: list[Any], store_says: str, outcomes: dict[str, int]
) -> None:
    crawl.ended(*items)
    for item in items:
        crawl.completed(item, outcome=store_says)
    assert crawl.ends == ["done"]
    assert crawl.outcomes == [outcomes]


def test_a_title_whose_item_did_not_pass_the_checks_has_failed(crawl: Crawl) -> None:
    crawl.tell(signals.item_dropped, item=MOVIE, exception=ODD)
    crawl.ended()
    assert crawl.outcomes == [{"failed": 1}]


def test_a_pass_over_datasets_has_the_outcomes_of_all_its_titles(crawl: Crawl) -> None:
    request = Request("https://datasets.example/title.basics.tsv.gz", cb_kwargs={"titles": None})
    crawl.request = request
    crawl.tracker.take("pass", 1, request)
    rejected = replace(MOVIE, site_id="tt2")
    absent = miss("absent")
    crawl.ended(MOVIE, rejected, absent)
    crawl.completed(MOVIE)
    crawl.completed(rejected, outcome="rejected")
    crawl.completed(absent)
    assert crawl.outcomes == [{"stored": 1, "failed": 1, "absent": 1, "read": 1}]
