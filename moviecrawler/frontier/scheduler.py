"""Scrapy's scheduler over the frontier, for every `MovieSpider`.

Scrapy calls a scheduler synchronously, and the frontier's backend answers later. So a task leases
requests in advance, and sends acknowledgements and new requests in batches, while the event loop
stays free.
"""

from __future__ import annotations

import asyncio
import logging
import math
import secrets
import time
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec
from scrapy import signals
from scrapy.core.scheduler import BaseScheduler
from scrapy.exceptions import DontCloseSpider
from scrapy.utils.defer import deferred_from_coro

from moviecrawler.basics.clock import process_age, utc_now, utc_text
from moviecrawler.basics.errors import (
    ClockError,
    ConfigurationError,
    FrontierError,
    FrontierFullError,
    TransientStoreError,
)
from moviecrawler.basics.outages import Outage
from moviecrawler.frontier.contract import (
    ARGUMENTS,
    BOOSTED,
    LISTS,
    OFF_SITE,
    SEED,
    TERMS,
    TITLE_OUTCOMES,
    TITLES,
    End,
    Push,
    Worker,
    holds_none,
)
from moviecrawler.frontier.leases import META, LeaseTracker
from moviecrawler.frontier.outbox import Outbox
from moviecrawler.frontier.runs import run_name
from moviecrawler.frontier.serialisation import (
    DUE,
    SerialisationError,
    decode,
    due_title_of,
    encode,
    request_id,
)
from moviecrawler.items import Fetched
from moviecrawler.options import FrontierOptions
from moviecrawler.politeness.middleware import politeness_of
from moviecrawler.scrapy_internals import EngineSlot, end_crawl, is_closing
from moviecrawler.signals import title_failed, worker_idle

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from scrapy import Request, Spider
    from twisted.internet.defer import Deferred

    from moviecrawler.frontier.contract import Account, Delivery
    from moviecrawler.frontier.leases import Lease
    from moviecrawler.politeness.gate import Gate

logger = logging.getLogger(__name__)

BATCH = 32
"""Requests that a worker leases in advance, at most."""
BOOST_PRIORITY = 100
LIST_PRIORITY = 1
"""The lowest priorities of requests on the two upper levels."""
_AHEAD_SECONDS = 10
"""Seconds of a site's budget for which a worker leases requests in advance, so that some are left
for others."""
_POLL_SECONDS = 0.5
"""Seconds between two steps without an event, and after an error."""
_HEARTBEAT_SECONDS = 5.0
"""Seconds between two heartbeats of a worker, which fetch seeds too; fewer when a lease is
short."""
_COALESCE_SECONDS = 0.02
"""Seconds that a step waits, so that it sends more at once."""
_HURRY_SECONDS = 2.0
"""Seconds after the last delivery, and after the stores wrote at once, until they do so (again)
while requests are in progress that could bring a few more items."""
_DRAIN_SECONDS = 7.0
"""Seconds that a closing worker gives to the requests in progress, before they go back to the
queue."""
_CLOSE_SECONDS = 3.0
"""Seconds that it gives to its last step."""
_MAX_PENDING_PUSHES = 1000
"""Requests on their way to the queue, above which queueing the arguments waits."""
_MAX_FED = 64
"""Open requests, below which what is due is queued."""


class FrontierScheduler(BaseScheduler):
    """A scheduler with leases: each request stays leased until all of its items are durable.

    A run is joined when `MovieSpider.start` begins. Until then, as in `scrapy shell` and `fetch`,
    requests are kept in memory and nothing is joined.

    It counts what became of the titles that this process was handed, in `titles/requested` and
    `titles/<outcome>`; `frontier/dead_letters`, `frontier/given_back` and `frontier/errors` (steps
    that failed); and at the end it sets `frontier/run/<figure>` to the account of the whole run.
    """

    spider: Any
    """A `MovieSpider`: `requests_of_arguments` yields what its arguments name, and
    `requests_of_seed` what a seed represents."""

    _has_joined_one: ClassVar[bool] = False
    """Whether a crawl of this process has joined a run."""

    def __init__(self) -> None:
        self.account: Account | None = None
        """What became of the requests of the run so far; None when no run is joined."""
        self._made_at = time.monotonic()
        self._was_refused_more = False  # whether it wanted requests, and was handed none
        self._tracker = LeaseTracker(self._finish)
        # Requests to send. Those of a run are leased: also retries and redirects, which go on under
        # their request's lease.
        self._ready: deque[Request] = deque()
        self._pages = 0
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._seed_task: asyncio.Task[None] | None = None
        # The lease of the arguments, while this worker feeds the run with what is due.
        self._feeding: Lease | None = None
        # Whether the file of the arguments may name ids that it did not name when the run began.
        self._may_have_new_ids = False
        self._has_unqueueable = False  # whether the arguments name what can't be queued
        self._is_closed = False
        self._drain_until: float | None = None  # set when the spider begins to close
        self._last_take = 0.0
        self._hurried_at = 0.0
        self._last_busy_at = 0.0  # when the run had something open, as far as this worker knows
        self._is_over = True  # nothing is joined yet
        self._remarks: set[str] = set()  # those that are logged

    def open(self, spider: Spider) -> None:
        """Prepare to serve a spider; no run is joined yet."""
        self.spider = spider
        self.crawler = spider.crawler
        self._log = logging.LoggerAdapter(logger, {"spider": spider})
        self._slot = EngineSlot(self.crawler.engine)
        self._slot.on_request_ended(self._request_ended)
        self._tracker.connect(self.crawler.signals)
        self.crawler.signals.connect(self._spider_idle, signals.spider_idle)

    # --- Joining a run ----------------------------------------------------------------------------

    async def join(self) -> None:
        """Join the run that the spider's arguments name. When that fails, end the crawl."""
        settings = self.crawler.settings
        self.options = FrontierOptions.read(settings)
        self.politeness = politeness_of(self.crawler)
        self.politeness.has_joined = True
        self.gate = self.politeness.gate
        self.backend = self.spider.backend
        spider = self.spider
        self._worker = Worker(
            run=run_name(spider.site, settings, spider.described_arguments),
            name=f"{self.options.node}-{secrets.token_hex(6)}",
            arguments=spider.described_arguments,
            is_once=bool(self.options.run),
            limit=spider.plan.limit,
            budget=self.gate.terms.budget,
            lease_seconds=self.options.lease,
            deliveries=self.options.deliveries,
            has_bloom_filter=self.options.dupefilter == "bloom",
        )
        per_second = self._worker.budget.per_second or BATCH
        self._batch = min(BATCH, 2 + math.ceil(_AHEAD_SECONDS * per_second))
        self.outbox = Outbox(self.backend, self._worker)
        await self._end_if_it_fails(self._open_run())

    async def _open_run(self) -> None:
        # A crawl is requested when its process begins, or when it is made in one of several crawls.
        age = time.monotonic() - self._made_at
        if not FrontierScheduler._has_joined_one:
            age = process_age()
        FrontierScheduler._has_joined_one = True
        opened = await self.backend.open(self._worker, self.options.asked_at or None, age)
        self._log_remarks(opened.remarks)
        if opened.over_at is not None:
            self._log.info(
                "Run %r finished at %s; nothing to do",
                self._worker.run.name,
                utc_text(opened.over_at),
            )
        else:
            self._may_have_new_ids = self.spider.plan.has_file
        self._last_busy_at = time.monotonic()
        self._is_over = False
        self._wake.set()
        self._task = self._start(self._work())

    # --- What Scrapy asks -------------------------------------------------------------------------

    def enqueue_request(self, request: Request) -> bool:
        """Queue a request; keep it here if it goes on under a lease of this worker."""
        is_leased = META in request.meta
        if is_leased and not self._tracker.transfer(request):
            return False  # the lease was given back
        if is_leased or self._task is None:
            self._ready.append(request)
            return True
        try:
            push = _push_of(request, self.spider.site)
        except SerialisationError as error:
            # The spider has a bug. To go on would lose a page, and the crawl would still end as a
            # success.
            self._has_unqueueable = True
            end_crawl(self.crawler, "frontier_failed", f"a request can't be queued: {error}")
            return False
        self.outbox.push(push)
        self._wake.set()
        return True

    def has_pending_requests(self) -> bool:
        """Return whether a request may be sent now."""
        return bool(self._ready)

    def __len__(self) -> int:
        return len(self._ready)

    def next_request(self) -> Request | None:
        """Return a request that may be sent now."""
        if self._is_closing or not self._ready:
            return None
        self._pages += 1
        request = self._ready.popleft()
        if self._task is not None and self._lease_quota() >= self._batch / 2:
            self._wake.set()
        return request

    def close(self, reason: str) -> Deferred[None]:  # noqa: ARG002 - Scrapy's own signature
        """Acknowledge what is done and requeue the rest. Nothing that is queued is deleted."""
        return deferred_from_coro(self._close())

    async def _close(self) -> None:
        self._is_closed = True
        if self._task is None:
            return
        self._wake.set()
        # Requests that are being leased now have to be given back as well.
        await asyncio.wait([self._task], timeout=_CLOSE_SECONDS)
        self._task.cancel()
        if self._seed_task is not None:
            self._seed_task.cancel()
        self._give_back(list(self._tracker.leases.values()))
        try:
            async with asyncio.timeout(_CLOSE_SECONDS):
                await self.outbox.send()
                await self._take(0)
                await self.backend.leave(self._worker)
        except (FrontierError, TimeoutError) as error:
            self._log.warning(
                "Queue unavailable, last acknowledgements lost (%s); rerun fetches them again",
                str(error) or "no reply in time",
            )
        stats = self.crawler.stats
        stats.set_value("dupefilter/filtered", self.outbox.dropped)
        if self.account is not None:
            for figure, number in msgspec.structs.asdict(self.account).items():
                stats.set_value(f"frontier/run/{figure}", number)
            stats.set_value("frontier/run/lost", self.account.lost)

    # --- Ends of leases ---------------------------------------------------------------------------

    def _request_ended(self, request: Request) -> None:
        self._tracker.ended(request)
        if self._slot.in_progress <= 1:  # this one
            self._hurry_stores()

    def _finish(self, lease: Lease) -> None:
        end = lease.end()
        self.outbox.end(end)
        stats = self.crawler.stats
        if end.kind == "dead":
            url = getattr(lease.request, "url", "")
            self._count_dead_letter(lease.id, f"{url}: {lease.reason}")
            if lease.is_title:
                stats.inc_value("titles/dead")
        elif end.kind in {"back", "last"}:
            stats.inc_value("frontier/given_back")
            if lease.is_title:
                stats.inc_value("titles/requested", -1)  # the worker that gets it next counts it
        for outcome in TITLE_OUTCOMES:
            if number := end.outcomes.get(outcome, 0):
                stats.inc_value(f"titles/{outcome}", number)
                if not lease.is_title:  # a title of a pass over datasets
                    stats.inc_value("titles/requested", number)
        if len(self.outbox.ends) >= BATCH or not self._held:
            self._wake.set()

    def _count_dead_letter(self, id_: str, why: str) -> None:
        self.crawler.stats.inc_value("frontier/dead_letters")
        self._log.error("Dead letter %s, %s", id_, why)

    def _tell_failed(self, letter_id: str) -> None:
        """Tell the catalogue of a title that became a dead letter while nobody was at it."""
        title_id = due_title_of(letter_id)
        if title_id is not None:
            note = Fetched(
                site=self.spider.site, at=utc_now(), requested_id=None, title_id=title_id
            )
            self.crawler.signals.send_catch_log(title_failed, note=note, request=None)

    def _give_back(self, leases: list[Lease]) -> None:
        """Requeue requests, from the last, as each goes to the queue's front."""
        for lease in reversed(leases):
            if lease.request is not None and lease.request in self._ready:
                self._ready.remove(lease.request)
            lease.kind = "back"
            self._tracker.end(lease)

    def _is_for_site(self, request: Request) -> bool:
        return bool(request.meta.get("site") == self.spider.site)

    def _hurry_stores(self) -> None:
        """Have the stores write at once when nothing can come that would fill their batches.

        This worker holds leases, which wait for stores, and is handed nothing more: the queue is
        empty, or the site is closed, or the next request is one that is leased alone.
        """
        is_ending = self._was_refused_more or self._is_closing
        if self._held and not self._ready and (is_ending or self._is_isolated()):
            self._hurried_at = time.monotonic()
            self.crawler.signals.send_catch_log(
                worker_idle, is_all_fetched=not self._slot.in_progress
            )

    # --- The task ---------------------------------------------------------------------------------

    async def _work(self) -> None:
        while not self._is_closed:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._wake.wait(), _POLL_SECONDS)
            await asyncio.sleep(_COALESCE_SECONDS)
            self._wake.clear()
            try:
                self._drain_if_closing()
                await self._step()
            except FrontierError as error:
                self.gate.note_ledger_failure(error)
                await asyncio.sleep(_POLL_SECONDS)
            for gate in self.politeness.gates.values():
                gate.log_long_wait()

    def _start(self, work: Awaitable[None]) -> asyncio.Task[None]:
        return asyncio.create_task(self._end_if_it_fails(work))

    async def _end_if_it_fails(self, work: Awaitable[None]) -> None:
        try:
            await work
        except FrontierError as error:
            end_crawl(self.crawler, "frontier_unreachable", str(error))
        except ConfigurationError as error:
            reason = "clock_wrong" if isinstance(error, ClockError) else "frontier_refused"
            end_crawl(self.crawler, reason, str(error))
        except Exception as error:  # noqa: BLE001 - it is logged, and ends the crawl
            self._log.exception("The frontier failed")
            why = f"a bug, which the log shows, ended the crawl: {error!r}"
            end_crawl(self.crawler, "frontier_failed", why)

    def _drain_if_closing(self) -> None:
        """Requeue in time what a worker does not finish that closes."""
        now = time.monotonic()
        if not self._is_closing:
            return
        if self._drain_until is None:
            self._drain_until = now + _DRAIN_SECONDS
            if self._seed_task is not None:
                self._seed_task.cancel()
            self._give_back([request.meta[META] for request in self._ready])
        elif now >= self._drain_until:
            if leases := list(self._tracker.leases.values()):
                self._log.warning("Giving back %d requests in progress", len(leases))
                self._give_back(leases)
            self._slot.abandon()

    async def _step(self) -> None:
        """Send what is waiting, and lease requests if it is time to."""
        now = time.monotonic()
        if self.options.max_pages and self._pages >= self.options.max_pages:
            end_crawl(self.crawler, "recycled")
        try:
            await self.outbox.send()
        except FrontierFullError:
            await self._take(0)  # a heartbeat, so that no lease ends while there is no room
            raise
        want = self._lease_quota()
        heartbeat = min(_HEARTBEAT_SECONDS, self.options.lease / 4)
        is_time = now - self._last_take >= heartbeat
        if want >= self._batch / 2 or (want and not self._held) or is_time:
            await self._take(want)
        self._check_gates()
        if not self._slot.in_progress or now - self._hurried_at >= _HURRY_SECONDS:
            self._hurry_stores()
        if self._ready or self._is_over:
            self._slot.wake()

    def _lease_quota(self) -> int:
        """Return how many requests to lease."""
        is_away = self.gate.unreachable_seconds is not None
        is_other_closed = any(gate.closure for gate in self._other_gates)
        if self._is_closing or self._is_isolated() or is_away or is_other_closed:
            return 0
        want = self._batch - len(self._ready)
        if self._batch < BATCH:
            # Requests wait in the downloader for the budget.
            want -= len(self.crawler.engine.downloader.active)
        if self.options.max_pages:
            want = min(want, self.options.max_pages - self._pages - len(self._ready))
        return max(0, want)

    async def _take(self, want: int) -> None:
        reply = await self.backend.take(self._worker, want, list(self._tracker.leases))
        self.account = reply.account
        now = time.monotonic()
        if want:
            self._was_refused_more = not reply.deliveries
        if reply.deliveries:
            self._hurried_at = now
        self._last_take = now
        self.gate.update(reply.site)
        for gate in self._other_gates:
            if gate.closure is not None:
                await gate.ask()
        self._log_remarks(reply.remarks)
        for delivery in reply.deliveries:
            await self._receive(delivery)
        if self._may_have_new_ids and self._seed_task is None:
            self._seed_task = self._start(self._queue_arguments(None))
        self._may_have_new_ids = False
        for letter_id in reply.new_dead_letters:
            self._count_dead_letter(letter_id, "`scrapy deadletters show` says why")
            self._tell_failed(letter_id)
        if reply.account.open or self.outbox:
            self._last_busy_at = now
        # What feeds the run has waited for more already.
        idle_seconds = 0 if self.spider.plan.is_fed else self.options.idle
        self._is_over = now - self._last_busy_at >= idle_seconds and self._last_busy_at < now

    # --- What is handed to this worker ------------------------------------------------------------

    async def _receive(self, delivery: Delivery) -> None:
        lease = self._tracker.leases.get(delivery.id)
        if lease is not None:
            lease.number = delivery.number  # its lease had ended, but this worker is still at it
        elif delivery.id.startswith(ARGUMENTS):
            lease = self._tracker.take(delivery.id, delivery.number, None)
            self._seed_task = self._start(self._queue_arguments(lease, self._seed_task))
        else:
            try:
                if delivery.id.startswith(SEED):
                    request = await self.spider.request_of_seed(delivery.body)
                else:
                    request = decode(delivery.body, self.spider)
            except SerialisationError as error:
                self._bury(delivery, str(error))
            except ConfigurationError as error:
                self._bury(delivery, f"a bad seed: {error}")
            else:
                lease = self._tracker.take(delivery.id, delivery.number, request)
                self._ready.append(request)
                if lease.is_title:
                    # A worker counts the titles that it was handed, whichever worker found them.
                    self.crawler.stats.inc_value("titles/requested")

    def _bury(self, delivery: Delivery, reason: str) -> None:
        self.outbox.end(End(id=delivery.id, kind="dead", number=delivery.number, reason=reason))
        self._count_dead_letter(delivery.id, reason)
        self._tell_failed(delivery.id)
        self._wake.set()

    async def _queue_arguments(
        self, lease: Lease | None, earlier: asyncio.Task[None] | None = None
    ) -> None:
        """Queue what the arguments name, and end their lease.

        Args:
            lease: The lease; None to queue only what they did not name when the run began, which
                the pass has not seen.
            earlier: What queues them already, as the state was lost meanwhile; they are queued once
                more after that.
        """
        if earlier is not None:
            await earlier
        self.spider.requested_ids.clear()
        if self.spider.plan.is_fed:
            self._feeding = lease
            await self._feed()
        else:
            async for request in self.spider.requests_of_arguments():
                if self._is_closing:
                    break
                self.crawler.engine.crawl(request)
                while len(self.outbox.pushes) > _MAX_PENDING_PUSHES:  # noqa: ASYNC110 - no event
                    await asyncio.sleep(_COALESCE_SECONDS)
        if lease is not None:
            if self._has_unqueueable or self._is_closing:
                lease.kind = "back"
            self._tracker.end(lease)

    async def _feed(self) -> None:
        """Queue what is due while little is open, until nothing is due for FRONTIER_IDLE.

        The catalogue may be away meanwhile.
        """
        feed = self.spider.open_feed(self._worker.run)
        fed_at = time.monotonic()
        outage = Outage()
        while True:
            requests: list[Request] = []
            try:
                await feed.hold()
                while self.outbox.pushes:  # noqa: ASYNC110 - no event for it
                    await asyncio.sleep(_COALESCE_SECONDS)
                ids = await self.backend.ids(self._worker.run)
                left = self._worker.limit
                if left is not None and self.account is not None:
                    left = max(0, left - self.account.titles)
                if len(ids.open) <= _MAX_FED and left != 0:
                    requests = await self.spider.due_requests(feed, left, ids)
                outage.mark_up()
                if requests or not holds_none(ids.open):
                    fed_at = time.monotonic()
                elif left == 0 or time.monotonic() - fed_at >= self.options.idle:
                    await feed.end()
                    return
            except FrontierError as error:
                self.gate.note_ledger_failure(error)
            except TransientStoreError as error:
                if outage.mark_down():
                    self._log.warning("Catalogue unavailable, retrying: %s", error)
            for request in requests:
                self.crawler.engine.crawl(request)
            if not requests:
                await asyncio.sleep(_POLL_SECONDS)

    @property
    def _is_closing(self) -> bool:
        return is_closing(self.crawler.engine)

    def _is_isolated(self) -> bool:
        """Return whether this worker holds a request that may have killed others, and no other."""
        return len(self._held) == 1 and self._held[0].number > TERMS.deliveries_alone

    @property
    def _held(self) -> list[Lease]:
        """The leases of this worker, but that of a run that it feeds, which lasts as long."""
        leases = self._tracker.leases.values()
        return [lease for lease in leases if lease is not self._feeding]

    # --- The gates --------------------------------------------------------------------------------

    @property
    def _other_gates(self) -> list[Gate]:
        """The gates of hosts outside of the site: that of IMDb's datasets."""
        return [gate for gate in self.politeness.gates.values() if gate is not self.gate]

    def _check_gates(self) -> None:
        """Requeue what is not sent while the site is closed; end when that is for long."""
        if self.gate.closure is not None:
            pages = filter(self._is_for_site, self._ready)
            self._give_back([page.meta[META] for page in pages])
        for gate in self.politeness.gates.values():
            reason = self._reason_to_end(gate)
            if reason is not None and not self._is_closing:
                self.crawler.stats.set_value("crawl/cause", gate.describe_wait())
                end_crawl(self.crawler, reason)

    def _reason_to_end(self, gate: Gate) -> str | None:
        """Return the crawl's finish reason when it ends because a gate is closed.

        A refusal ends it at once, if nothing is left but pages of the site; the budget of the day
        when what was sent is done; an unreachable site after FRONTIER_PATIENCE, or when others have
        done all. The response to another worker's probe is waited for.
        """
        closure = gate.closure
        if closure is None or self.account is None:
            return None
        if closure.kind == "unreachable":
            is_enough = (gate.unreachable_seconds or 0.0) >= self.options.patience
            return "site_unreachable" if is_enough or self._is_over else None
        if self.account.open == 0:
            return None
        # This worker may be at the run's arguments, or at a pass over datasets.
        has_work_off_site = self.outbox or any(
            lease.request is None or not self._is_for_site(lease.request) for lease in self._held
        )
        if closure.kind == "refused" and not (gate is self.gate and has_work_off_site):
            return "site_stopped"
        if closure.kind == "budget_spent" and not (self._held or self.outbox):
            return "budget_spent"
        return None

    def _spider_idle(self) -> None:
        """Keep the spider open while the run has requests, here or on other nodes."""
        if not self._is_over:
            raise DontCloseSpider

    # --- The log ----------------------------------------------------------------------------------

    def _log_remarks(self, remarks: list[str]) -> None:
        """Log what the backend has to say, each sentence once."""
        for remark in remarks:
            if remark not in self._remarks:
                self._remarks.add(remark)
                self._log.warning("%s", remark)


def _push_of(request: Request, site: str) -> Push:
    """Return a request as it is queued. Raises SerialisationError."""
    if request.meta.get("site") != site:
        level = OFF_SITE
    elif request.priority >= BOOST_PRIORITY:
        level = BOOSTED
    elif request.priority >= LIST_PRIORITY:
        level = LISTS
    else:
        level = TITLES
    due = request.cb_kwargs.get("due")
    title = request.cb_kwargs.get("site_id", "")
    return Push(
        level=level,
        id=request_id(request),
        body=encode(request),
        title=title if due is None else f"{DUE}{due.title_id}",  # which may have several ids
        is_repeatable=request.dont_filter,
    )
