"""What a worker decides at each step, without a crawl and without a queue."""

import asyncio
import time
from itertools import count
from types import SimpleNamespace
from typing import Any
from unittest.mock import AsyncMock, MagicMock, Mock, call

import pytest
from scrapy import Request
from scrapy.exceptions import DontCloseSpider
from scrapy.statscollectors import MemoryStatsCollector
from scrapy.utils.test import get_crawler

from moviecrawler.basics.errors import (
    ConfigurationError,
    FrontierError,
    FrontierFullError,
    TransientStoreError,
)
from moviecrawler.frontier import scheduler as module
from moviecrawler.frontier.contract import (
    ARGUMENTS,
    BOOSTED,
    LISTS,
    OFF_SITE,
    TITLES,
    Account,
    Delivery,
    Reply,
    RequestIds,
)
from moviecrawler.frontier.leases import META, Lease
from moviecrawler.frontier.outbox import Outbox
from moviecrawler.frontier.scheduler import BATCH, FrontierScheduler
from moviecrawler.options import FrontierOptions
from moviecrawler.politeness.budgets import SiteReply
from moviecrawler.politeness.gate import Closure

AWAY = FrontierError("away")
URL = "https://www.imdb.com/title/tt0000001/"


def page(site: str = "imdb", **given: Any) -> Request:
    return Request(URL, meta={"site": site, "expects": "page"}, **given)


def gate(kind: Any = None, seconds: float | None = None) -> Any:
    """Return a gate that is open, or closed in a way."""
    closure = kind and Closure(site="imdb", kind=kind, reason="why")
    return Mock(
        closure=closure,
        unreachable_seconds=seconds,
        ask=AsyncMock(),
        describe_wait=Mock(return_value="why"),
    )


class Scheduler(FrontierScheduler):
    """The scheduler of a worker that has joined a run, which is not over."""

    crawler: Any
    gate: Any
    _log: Any
    _slot: Any
    _worker: Any

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        super().__init__()
        self.spider = Mock(site="imdb", plan=SimpleNamespace(is_fed=False))
        self.crawler = Mock(stats=MemoryStatsCollector(get_crawler()))
        self.crawler.engine.downloader.active = set()
        self._slot = Mock(in_progress=0)
        self._log = Mock()
        self._tracker._manager = Mock()
        self.options = FrontierOptions()
        self.backend = Mock(ids=AsyncMock(return_value=RequestIds()))
        self._worker = Mock(limit=None)
        self.outbox = Outbox(self.backend, self._worker)
        self.account = Account(requested=1, open=1)
        self._batch = BATCH
        self._is_over = False
        self.closing = False
        self.reasons: list[str] = []
        self.use(gate())
        monkeypatch.setattr(module, "is_closing", lambda _: self.closing)
        monkeypatch.setattr(module, "end_crawl", lambda _, reason, *__: self.reasons.append(reason))
        monkeypatch.setattr(module, "_POLL_SECONDS", 0)

    def use(self, own: Any, **others: Any) -> None:
        """Have these gates: that of the site, and others."""
        self.gate = own
        self.politeness = Mock(gates={"imdb": own, **others})

    def hold(self, request: Request | None, number: int = 1) -> Lease:
        """Hold the lease of a request, or of the arguments."""
        id_ = f"{ARGUMENTS if request is None else ''}{len(self._tracker.leases)}"
        return self._tracker.take(id_, number, request)

    def stat(self, name: str) -> Any:
        return self.crawler.stats.get_value(name)


@pytest.fixture
def worker(monkeypatch: pytest.MonkeyPatch) -> Scheduler:
    """Return a worker's scheduler."""
    return Scheduler(monkeypatch)


@pytest.mark.parametrize(
    ("site", "priority", "level"),
    [
        ("imdb", 100, BOOSTED),
        ("imdb", 99, LISTS),
        ("imdb", 1, LISTS),
        ("imdb", 0, TITLES),
        ("imdb-datasets", 100, OFF_SITE),
    ],
)
def test_the_level_of_a_request(spider: Any, site: str, priority: int, level: int) -> None:
    request = spider.title_request("tt0000001", None).replace(priority=priority)
    request.meta["site"] = site
    push = module._push_of(request, "imdb")
    assert (push.level, push.title) == (level, "tt0000001")


# --- How much is leased ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("batch", "changed", "active", "quota"),
    [
        (BATCH, {}, 5, 32),
        (31, {}, 5, 26),  # they wait in the downloader for the budget
        (31, {}, 32, 0),
        (BATCH, {"_ready": [page()] * 3}, 0, 29),
        (BATCH, {"options": FrontierOptions(max_pages=9), "_pages": 7}, 0, 2),
        (BATCH, {"options": FrontierOptions(max_pages=9), "_pages": 7, "_ready": [page()]}, 0, 1),
        (BATCH, {"options": FrontierOptions(max_pages=9), "_pages": 9}, 0, 0),
        (BATCH, {"options": FrontierOptions(max_pages=9), "_pages": 10}, 0, 0),
        (BATCH, {"closing": True}, 0, 0),
    ],
)
def test_how_many_requests_are_leased(
    worker: Scheduler, batch: int, changed: dict[str, Any], active: int, quota: int
) -> None:
    worker._batch = batch
    worker.crawler.engine.downloader.active = {*range(active)}
    for name, value in changed.items():
        setattr(worker, name, value)
    assert worker._lease_quota() == quota


@pytest.mark.parametrize(
    ("own", "others", "quota"),
    [
        (gate("refused"), {}, 32),  # there may be requests that are not for the site
        (gate("unreachable", 0.0), {}, 0),
        (gate(), {"imdb-datasets": gate()}, 32),
        (gate(), {"imdb-datasets": gate("refused")}, 0),
    ],
)
def test_nothing_is_leased_while_it_could_not_be_sent(
    worker: Scheduler, own: Any, others: dict[str, Any], quota: int
) -> None:
    worker.use(own, **others)
    assert worker._lease_quota() == quota


@pytest.mark.parametrize(
    ("numbers", "quota"), [([2], 32), ([3], 0), ([3, 1], 32), ([], 32)], ids=str
)
def test_a_request_that_may_have_killed_two_workers_is_alone(
    worker: Scheduler, numbers: list[int], quota: int
) -> None:
    for number in numbers:
        worker.hold(page(), number)
    worker._feeding = worker.hold(None)
    assert worker._lease_quota() == quota


@pytest.mark.parametrize(
    ("ready", "is_holding", "quiet", "lease", "want"),
    [
        (16, True, 0.0, 60.0, 16),
        (17, True, 0.0, 60.0, None),
        (17, False, 0.0, 60.0, 15),
        (32, False, 0.0, 60.0, None),
        (32, True, 4.9, 60.0, None),
        (32, True, 5.1, 60.0, 0),
        (32, True, 1.1, 4.0, 0),
    ],
)
async def test_more_is_leased_when_half_is_sent_and_a_heartbeat_is_sent_in_time(
    worker: Scheduler, ready: int, is_holding: bool, quiet: float, lease: float, want: int | None
) -> None:
    worker.options = FrontierOptions(lease=lease)
    worker._last_take = time.monotonic() - quiet
    worker._ready.extend([page()] * ready)
    if is_holding:
        worker.hold(page())
    worker._take = AsyncMock()  # type: ignore[method-assign]
    await worker._step()
    assert [told.args[0] for told in worker._take.await_args_list] == (
        [] if want is None else [want]
    )
    assert worker._slot.wake.called


@pytest.mark.parametrize(("pages", "reasons"), [(8, []), (9, ["recycled"]), (10, ["recycled"])])
async def test_a_worker_is_recycled_after_its_pages(
    worker: Scheduler, pages: int, reasons: list[str]
) -> None:
    worker.options = FrontierOptions(max_pages=9)
    worker._pages = pages
    worker._take = AsyncMock()  # type: ignore[method-assign]
    await worker._step()
    assert worker.reasons == reasons
    assert not worker._slot.wake.called


async def test_a_full_queue_is_told_that_the_worker_lives(worker: Scheduler) -> None:
    worker.outbox = Mock(send=AsyncMock(side_effect=FrontierFullError("full")))
    worker._take = AsyncMock()  # type: ignore[method-assign]
    with pytest.raises(FrontierFullError):
        await worker._step()
    worker._take.assert_awaited_once_with(0)


@pytest.mark.parametrize(
    ("changed", "numbers", "is_sent"),
    [
        ({"_was_refused_more": True}, [1], True),
        ({"closing": True}, [1], True),
        ({}, [3], True),  # it is leased alone
        ({}, [1], False),
        ({"_was_refused_more": True}, [], False),
        ({"_was_refused_more": True, "_ready": [page()]}, [1], False),
    ],
)
def test_stores_write_at_once_when_nothing_more_comes(
    worker: Scheduler, changed: dict[str, Any], numbers: list[int], is_sent: bool
) -> None:
    for name, value in changed.items():
        setattr(worker, name, value)
    for number in numbers:
        worker.hold(page(), number)
    for in_progress in (0, 1):
        worker._slot.in_progress = in_progress
        worker._hurry_stores()
    sent = worker.crawler.signals.send_catch_log.call_args_list
    assert [call.kwargs["is_all_fetched"] for call in sent] == ([True, False] if is_sent else [])


def test_the_end_of_the_last_request_has_stores_write_at_once(worker: Scheduler) -> None:
    worker._was_refused_more = True
    worker.hold(page(), 1)
    sent = worker.crawler.signals.send_catch_log
    for in_progress in (2, 1):
        assert not sent.called
        worker._slot.in_progress = in_progress
        worker._request_ended(page())
    assert sent.called


# --- When a crawl ends ----------------------------------------------------------------------------

ELSEWHERE = page("imdb-datasets")


@pytest.mark.parametrize(
    ("closed", "held", "changed", "reason"),
    [
        (gate(), [], {}, None),
        (gate("unreachable", 599.0), [], {}, None),
        (gate("unreachable", 600.0), [page()], {}, "site_unreachable"),
        (gate("unreachable", 0.0), [], {"_is_over": True}, "site_unreachable"),
        (gate("unreachable", 600.0), [], {"account": None}, None),
        (gate("refused"), [page()], {}, "site_stopped"),
        (gate("refused"), [page(), None], {}, None),
        (gate("refused"), [page(), ELSEWHERE], {}, None),
        (gate("refused"), [], {"outbox": Mock()}, None),
        (gate("refused"), [], {"account": Account(requested=1, stored=1)}, None),
        (gate("budget_spent"), [], {}, "budget_spent"),
        (gate("budget_spent"), [page()], {}, None),
        (gate("budget_spent"), [], {"outbox": Mock()}, None),
        (gate("probed"), [], {}, None),
        (gate("refused"), [], {"closing": True}, None),
    ],
)
def test_a_crawl_ends_when_its_site_is_closed_and_nothing_else_is_left(
    worker: Scheduler,
    closed: Any,
    held: list[Request | None],
    changed: dict[str, Any],
    reason: str | None,
) -> None:
    worker.use(closed)
    for request in held:
        worker.hold(request)
    for name, value in changed.items():
        setattr(worker, name, value)
    worker._check_gates()
    assert worker.reasons == ([reason] if reason else [])
    assert worker.stat("crawl/cause") == ("why" if reason else None)


def test_another_host_that_refuses_us_ends_the_crawl_and_keeps_what_waits(
    worker: Scheduler,
) -> None:
    worker.use(gate(), **{"imdb-datasets": gate("refused")})
    worker._ready.append(page())
    worker.hold(ELSEWHERE)
    worker._check_gates()
    assert worker.reasons == ["site_stopped"]
    assert len(worker._ready) == 1


def test_what_waits_for_a_closed_site_is_given_back_from_the_last(worker: Scheduler) -> None:
    worker.use(gate("budget_spent"))
    for request in (page(), page("imdb-datasets"), page()):
        worker.hold(request)
        worker._ready.append(request)
    worker._check_gates()
    assert [request.meta["site"] for request in worker._ready] == ["imdb-datasets"]
    assert [(waiting.end.id, waiting.end.kind) for waiting in worker.outbox.ends] == [
        ("2", "back"),
        ("0", "back"),
    ]
    assert worker.stat("frontier/given_back") == 2


@pytest.mark.parametrize(
    ("open_", "idle", "is_fed", "quiet", "is_over"),
    [
        (1, 0.0, False, 9.0, False),
        (0, 0.0, False, 0.1, True),
        (0, 5.0, False, 4.0, False),
        (0, 5.0, False, 6.0, True),
        (0, 5.0, True, 0.1, True),  # what feeds the run has waited already
    ],
)
async def test_a_run_is_over_when_nothing_was_open_for_long_enough(
    worker: Scheduler, open_: int, idle: float, is_fed: bool, quiet: float, is_over: bool
) -> None:
    worker.options = FrontierOptions(idle=idle)
    worker.spider.plan.is_fed = is_fed
    worker._last_busy_at = time.monotonic() - quiet
    account = Account(requested=1, open=open_)
    worker.backend.take = AsyncMock(return_value=Reply(site=SiteReply(), account=account))
    other = gate("refused")
    worker.use(gate(), **{"imdb-datasets": other})
    await worker._take(3)
    assert (worker._is_over, worker._was_refused_more, worker.account) == (is_over, True, account)
    assert other.ask.await_count == 1
    assert not worker.gate.ask.await_count
    if is_over:
        worker._spider_idle()
    else:
        with pytest.raises(DontCloseSpider):
            worker._spider_idle()


@pytest.mark.parametrize(
    ("has_new", "task", "starts"), [(1, None, 1), (1, Mock(), 0), (0, None, 0)]
)
async def test_a_file_that_may_name_more_is_read_once_unless_it_is_read_already(
    worker: Scheduler, has_new: int, task: Any, starts: int
) -> None:
    worker._may_have_new_ids = bool(has_new)
    worker._seed_task = task
    worker._queue_arguments = Mock()  # type: ignore[method-assign]
    worker._start = Mock()  # type: ignore[method-assign]
    reply = Reply(site=SiteReply(), account=Account(), new_dead_letters=["due-27-0", "x"])
    worker.backend.take = AsyncMock(return_value=reply)
    for _ in range(2):
        await worker._take(0)
    assert worker._queue_arguments.call_args_list == [call(None)] * starts
    assert worker._start.call_count == starts
    assert not worker._was_refused_more
    assert worker.stat("frontier/dead_letters") == 4
    assert worker.crawler.signals.send_catch_log.call_count == 2


# --- What is handed to it, and how that ends ------------------------------------------------------


async def test_what_can_not_be_read_is_a_dead_letter_with_the_reason(worker: Scheduler) -> None:
    worker.spider.request_of_seed = AsyncMock(side_effect=ConfigurationError("no title"))
    for id_ in ("seed-1", "due-27-0", "x"):
        await worker._receive(Delivery(id=id_, number=2, text="{"))
    ends = [waiting.end for waiting in worker.outbox.ends]
    assert [(end.id, end.kind, end.number) for end in ends] == [
        ("seed-1", "dead", 2),
        ("due-27-0", "dead", 2),
        ("x", "dead", 2),
    ]
    assert ends[0].reason == "a bad seed: no title"
    assert ends[1].reason.startswith("damaged, or written by another program")
    [told] = worker.crawler.signals.send_catch_log.call_args_list
    assert told.kwargs["note"].title_id == 27
    assert worker.stat("frontier/dead_letters") == 3
    assert worker._wake.is_set()


async def test_a_title_that_is_handed_to_it_is_counted_and_a_lease_it_still_has_goes_on(
    worker: Scheduler, spider: Any
) -> None:
    title = spider.title_request("tt0000001", None)
    worker.spider.request_of_seed = AsyncMock(side_effect=[title, page()])
    for number in (1, 2):
        await worker._receive(Delivery(id=f"seed-{number}", number=1, text="tt1"))
    await worker._receive(Delivery(id="seed-1", number=2, text="tt1"))
    assert list(worker._ready) == [title, worker._tracker.leases["seed-2"].request]
    assert title.meta[META].number == 2
    assert worker.stat("titles/requested") == 1


@pytest.mark.parametrize(
    ("kind", "is_title", "outcomes", "stats"),
    [
        ("done", True, {"stored": 1}, {"titles/stored": 1}),
        ("done", True, {}, {"titles/failed": 1}),
        ("done", False, {"stored": 7, "absent": 1}, {"titles/stored": 7, "titles/requested": 8}),
        ("dead", True, {}, {"frontier/dead_letters": 1, "titles/dead": 1}),
        ("dead", False, {}, {"frontier/dead_letters": 1, "titles/dead": None}),
        ("back", True, {}, {"frontier/given_back": 1, "titles/requested": -1}),
        ("last", False, {}, {"frontier/given_back": 1, "titles/requested": None}),
    ],
)
def test_the_end_of_a_lease_is_counted(
    worker: Scheduler, kind: Any, is_title: bool, outcomes: dict[str, int], stats: dict[str, Any]
) -> None:
    lease = worker.hold(page())
    lease.kind = kind
    lease.is_title = is_title
    lease.outcomes.update(outcomes)
    worker._tracker.end(lease)
    assert {name: worker.stat(name) for name in stats} == stats
    assert [waiting.end.kind for waiting in worker.outbox.ends] == [kind]
    assert worker._wake.is_set()  # it holds no other


def test_a_request_is_queued_or_goes_on_under_its_lease(worker: Scheduler, spider: Any) -> None:
    title = spider.title_request("tt0000001", None)
    assert worker.enqueue_request(title)  # no run is joined
    assert worker.has_pending_requests()
    assert (worker.next_request(), worker._pages) == (title, 1)
    worker._task = Mock()
    assert worker.enqueue_request(title)
    assert (len(worker), [push.title for push in worker.outbox.pushes]) == (0, ["tt0000001"])
    assert worker._wake.is_set()
    lease = worker.hold(title)
    again = title.copy()
    assert worker.enqueue_request(again)
    assert (list(worker._ready), lease.request) == ([again], again)
    worker._tracker.leases.clear()  # it was given back
    assert not worker.enqueue_request(again)
    assert worker.reasons == []
    assert not worker.enqueue_request(page(callback=worker._finish))
    assert (worker.reasons, worker._has_unqueueable) == (["frontier_failed"], True)
    worker.closing = True
    assert worker.next_request() is None


@pytest.mark.parametrize(
    ("changed", "crawled", "kind"),
    [({}, 2, "done"), ({"closing": True}, 0, "back"), ({"_has_unqueueable": True}, 2, "back")],
)
async def test_the_arguments_are_done_when_all_that_they_name_is_queued(
    worker: Scheduler, changed: dict[str, Any], crawled: int, kind: str
) -> None:
    for name, value in changed.items():
        setattr(worker, name, value)
    named = MagicMock()
    named.__aiter__.return_value = [page(), page()]
    worker.spider.requests_of_arguments.return_value = named
    await worker._queue_arguments(worker.hold(None))
    assert worker.crawler.engine.crawl.call_count == crawled
    assert [waiting.end.kind for waiting in worker.outbox.ends] == [kind]
    worker.spider.requested_ids.clear.assert_called_once_with()


@pytest.mark.parametrize(
    ("error", "told"), [(None, None), (TimeoutError(), "no reply in time"), (AWAY, "away")]
)
async def test_a_worker_that_closes_gives_back_what_it_holds(
    worker: Scheduler, error: Exception | None, told: str | None
) -> None:
    worker._task = asyncio.create_task(asyncio.sleep(0))
    worker._seed_task = Mock()
    worker._take = AsyncMock()  # type: ignore[method-assign]
    worker.backend.finish = AsyncMock(side_effect=error)
    worker.backend.leave = AsyncMock()
    worker.account = Account(requested=9, stored=3, open=1)
    request = page()
    lease = worker.hold(request)
    worker._ready.append(request)
    await worker._close()
    assert (lease.kind, len(worker._ready)) == ("back", 0)
    worker._seed_task.cancel.assert_called_once_with()
    assert worker.backend.finish.await_count == 1
    assert worker.backend.leave.await_count == worker._take.await_count == (error is None)
    assert [call.args[1] for call in worker._log.warning.call_args_list] == ([told] if told else [])
    assert (worker.stat("frontier/run/stored"), worker.stat("frontier/run/lost")) == (3, 5)
    assert worker.stat("dupefilter/filtered") == 0


# --- Feeding a run --------------------------------------------------------------------------------


def feed_of(worker: Scheduler, *steps: Any) -> Any:
    """Have a feed that gives so many requests at each step, or raises what is given."""
    feed = Mock(hold=AsyncMock(), end=AsyncMock())
    worker.spider.open_feed = Mock(return_value=feed)
    given = [[page()] * step if isinstance(step, int) else step for step in steps]
    worker.spider.due_requests = AsyncMock(side_effect=given)
    return feed


async def test_a_run_is_fed_until_nothing_is_due_and_outages_are_waited_for(
    worker: Scheduler,
) -> None:
    away = TransientStoreError("away")
    feed = feed_of(worker, 2, away, away, FrontierError("full"), 1, away, 0)
    await worker._feed()
    assert worker.crawler.engine.crawl.call_count == 3
    assert [call.args for call in worker._log.warning.call_args_list] == [
        ("Catalogue unavailable, retrying: %s", away)
    ] * 2
    assert worker.gate.note_ledger_failure.call_count == 1
    assert feed.hold.await_count == 7
    feed.end.assert_awaited_once_with()


@pytest.mark.parametrize(
    ("limit", "titles", "counts", "left"),
    [
        (None, 5, [64, 0], [None, None]),
        (None, 5, [65, 64, 0], [None, None]),
        (9, 5, [1, 0], [4, 4]),
        (9, 9, [1, 0], []),
        (9, 10, [1, 0], []),
    ],
)
async def test_little_is_open_and_no_more_is_queued_than_the_limit(
    worker: Scheduler, limit: int | None, titles: int, counts: list[int], left: list[int | None]
) -> None:
    worker._worker.limit = limit
    worker.account = Account(requested=titles, titles=titles, open=1)
    sets = [{f"due-{number}-0" for number in range(count)} for count in counts]
    worker.backend.ids.side_effect = [RequestIds(open=ids) for ids in sets]
    feed = feed_of(worker, *[0] * len(left))
    await worker._feed()
    assert [call.args[1] for call in worker.spider.due_requests.await_args_list] == left
    feed.end.assert_awaited_once_with()


async def test_what_is_on_its_way_to_the_queue_is_waited_for(
    worker: Scheduler, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_MAX_PENDING_PUSHES", 1)
    monkeypatch.setattr(module, "_COALESCE_SECONDS", 0)
    pushes: Any = worker.outbox.pushes
    named = MagicMock()
    named.__aiter__.return_value = [page()]
    worker.spider.requests_of_arguments.return_value = named
    for is_fed in (False, True):
        pushes += [1, 2]
        worker.spider.plan.is_fed = is_fed
        feed_of(worker, 0)
        asyncio.get_running_loop().call_soon(pushes.clear)
        await worker._queue_arguments(None)
        assert not pushes


async def test_a_feed_waits_for_what_may_become_due(
    worker: Scheduler, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "time", Mock(monotonic=Mock(side_effect=count())))
    worker.options = FrontierOptions(idle=3.0)
    worker.backend.ids.return_value = RequestIds(open={f"{ARGUMENTS}1"})
    feed = feed_of(worker, 0, 0, 1, 0, 0, 0)
    await worker._feed()
    assert worker.spider.due_requests.await_count == 6
    feed.end.assert_awaited_once_with()
