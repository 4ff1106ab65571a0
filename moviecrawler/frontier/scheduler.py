"""Scrapy's scheduler over the shared frontier.

Scrapy calls a scheduler synchronously, and Redis answers later. So a task leases requests in
advance, and sends acknowledgements and new requests in batches, while the event loop stays free.
"""

from __future__ import annotations

import asyncio
import logging
import math
import uuid
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import redis.exceptions
from scrapy import signals
from scrapy.exceptions import CloseSpider, DontCloseSpider
from scrapy.utils.defer import deferred_from_coro
from scrapy_redis.scheduler import Scheduler

from moviecrawler.clock import process_age, utc_text
from moviecrawler.errors import ConfigurationError
from moviecrawler.frontier.engine import EngineSlot, end_crawl, is_closing
from moviecrawler.frontier.leases import META, REFUSED, Lease, LeaseTracker
from moviecrawler.frontier.queue import (
    ARGUMENTS,
    BOOSTED,
    LISTS,
    SEED,
    TITLES,
    End,
    Outbox,
    Push,
    SharedQueue,
)
from moviecrawler.frontier.serialisation import SerialisationError, decode, encode, request_id
from moviecrawler.frontier.shared import budget_middleware_of, run_name
from moviecrawler.options import FrontierOptions
from moviecrawler.redis_client import check_eviction, describe_error
from moviecrawler.signals import nothing_queued

if TYPE_CHECKING:
    from collections.abc import Coroutine
    from typing import Self

    from scrapy import Request
    from scrapy.crawler import Crawler
    from scrapy.settings import BaseSettings
    from twisted.internet.defer import Deferred

    from moviecrawler.frontier.queue import Delivery, How, Reply

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
"""Seconds between two heartbeats of a worker, which fetch seeds too; fewer when a lease is short."""
_COALESCE_SECONDS = 0.02
"""Seconds that a step waits, so that it sends more at once."""
_DRAIN_SECONDS = 7.0
_CLOSE_SECONDS = 3.0
"""Seconds that a closing worker gives to the requests in progress, before they go back to the
queue, and to its last step."""
_MAX_PENDING_PUSHES = 1000
"""Requests on their way to Redis, above which queueing the arguments waits."""


class FrontierScheduler(Scheduler):  # type: ignore[misc]  # scrapy-redis has no types
    """scrapy-redis' scheduler with leases: each request of the run stays leased until all of its items are durable.

    It counts `frontier/dead_letters`, `frontier/given_back` and `frontier/errors` (steps that
    failed), and at the end what is left of the whole run: `frontier/run/dead`, `frontier/run/lost`,
    `frontier/run/open`, and in words `frontier/run/account`.
    """

    crawler: Crawler
    spider: Any
    """A `MovieSpider`: `start` yields the requests that its arguments name, `seed_request` makes
    one of a seed."""

    def __init__(self, server: Any) -> None:
        super().__init__(server, persist=True)
        self._reply: Reply | None = None  # the latest state of the run
        self._tracker = LeaseTracker(self._finish)
        # Requests to send, all of them leased: also retries and redirects, which go on under their
        # request's lease.
        self._ready: deque[Request] = deque()
        self._arguments = Lease(
            "", 0, None
        )  # under which this worker queues what the arguments name
        self._pages = 0
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._seed_task: asyncio.Task[None] | None = None
        self._closed = False
        self._drain_until: float | None = None  # set when the spider begins to close
        self._last_take = 0.0
        self._busy_at = 0.0  # when the run had something open, as far as this worker knows
        self._is_over = False

    @classmethod
    def from_settings(cls, settings: BaseSettings) -> Self:  # noqa: ARG003 - Scrapy's own signature
        """Make no client: `open` takes that of BudgetMiddleware."""
        return cls(None)

    def open(self, spider: Any) -> Deferred[None]:
        """Join the run. When that fails, log why and close the spider."""
        return deferred_from_coro(self._open(spider))

    async def _open(self, spider: Any) -> None:
        self.spider = spider
        self.crawler = spider.crawler
        self.options = options = FrontierOptions.read(self.crawler.settings)
        self.budgets = budgets = budget_middleware_of(self.crawler)
        self.server = budgets.client
        self._slot = EngineSlot(self.crawler.engine)
        self._slot.on_request_ended(self._request_ended)
        self._tracker.connect(self.crawler.signals)
        self.crawler.signals.connect(self._spider_idle, signals.spider_idle)
        per_second = budgets.budget.per_second
        self._batch = (
            min(BATCH, 2 + math.ceil(_AHEAD_SECONDS * per_second)) if per_second else BATCH
        )
        worker = f"{'_'.join(options.node.split())}-{uuid.uuid4().hex[:12]}"
        given: dict[str, Any] = {
            "worker": worker,
            "arguments": spider.seed_key,
            "limit": spider.plan.limit,
        }
        self.shared = SharedQueue(budgets.scripts, budgets.keys, options, **given)
        self.outbox = Outbox(self.shared)
        run = run_name(self.crawler.settings, spider)
        # With FRONTIER_RUN there is one run of that name; without it each start begins a new one,
        # see `SharedQueue.open`.
        asked_at = options.asked_at or (0.0 if options.run else -max(process_age(), 0.001))
        try:
            await check_eviction(self.server)
            over_at = await self.shared.open(run, asked_at)
        except redis.exceptions.RedisError as error:
            why = describe_error(error, "; start it, or remove REDIS_URL")
            self._refuse("frontier_unreachable", f"Redis at REDIS_URL can't be used: {why}")
        except ConfigurationError as error:
            self._refuse("frontier_refused", str(error))
        else:
            if over_at is not None:
                message = "Run %r was over at %s: nothing is left for this worker"
                self._log(logging.INFO, message, run, utc_text(over_at))
            self._busy_at = asyncio.get_running_loop().time()
            self._task = asyncio.create_task(self._end_if_it_fails(self._work()))

    def _refuse(self, reason: str, why: str) -> None:
        self._log(logging.ERROR, "%s", why)

        def close() -> None:
            raise CloseSpider(reason)

        self.crawler.signals.connect(close, signals.spider_opened, weak=False)

    def enqueue_request(self, request: Request) -> bool:
        """Queue a request; keep it here if it goes on under a lease of this worker."""
        if META not in request.meta and request.meta.get("site") != self.spider.site:
            # IMDb's datasets: `start` names nothing else, and this node has the files.
            request.meta[META] = self._arguments
        if META in request.meta:
            if not self._tracker.hand_over(request):
                return False  # the lease was given back
            self._ready.append(request)
            return True
        level = TITLES
        title = request.cb_kwargs.get("site_id", "")
        if request.priority >= LIST_PRIORITY:
            level = BOOSTED if request.priority >= BOOST_PRIORITY else LISTS
        try:
            self.outbox.push(Push(level, request_id(request), encode(request), title))
        except SerialisationError as error:
            # The spider has a bug. To go on would lose a page, and the crawl would still end as a
            # success.
            end_crawl(self.crawler, "frontier_failed", f"a request can't be queued: {error}")
            self._arguments.how = "back"
            return False
        self._wake.set()
        return True

    def __len__(self) -> int:
        return len(self._ready)

    def next_request(self) -> Request | None:
        """Return a request that may be sent now."""
        if not self._ready or is_closing(self.crawler.engine):
            return None
        request = self._ready.popleft()
        self._pages += request.meta[META] is not self._arguments  # IMDb's datasets are no page
        if self._want() >= self._batch / 2:
            self._wake.set()
        return request

    def close(self, reason: str) -> Deferred[None]:  # noqa: ARG002 - Scrapy's own signature
        """Acknowledge what is done and give back the rest. Nothing in Redis is deleted."""
        return deferred_from_coro(self._close())

    async def _close(self) -> None:
        if self._task is None:
            return
        self._closed = True
        self._wake.set()
        # Requests that are being leased now have to be given back as well.
        await asyncio.wait([self._task], timeout=_CLOSE_SECONDS)
        for task in (self._task, self._seed_task):
            if task is not None:
                task.cancel()
        self._give_back_all()
        try:
            async with asyncio.timeout(_CLOSE_SECONDS):
                await self.outbox.send()
                await self._take(0)
                await self.server.zrem(self.shared.keys.workers, self.shared.worker)
        except (redis.exceptions.RedisError, TimeoutError) as error:
            message = (
                "The last acknowledgements did not reach Redis (%s): these pages are fetched again"
            )
            self._log(logging.WARNING, message, error)
        self.stats.set_value("dupefilter/filtered", self.outbox.filtered)
        if (reply := self._reply) is not None:
            account = (
                f"of the {reply.total:,} requests of run {self.shared.keys.run}, {reply.in_words}"
            )
            if self.options.dupefilter == "bloom" and self.outbox.filtered:
                account += f"; {self.outbox.filtered:,} were dropped as seen here, of which about 0.1 % were not"
            figures = {
                "account": account,
                "dead": reply.failed,
                "lost": reply.lost,
                "open": reply.open,
            }
            for name, figure in figures.items():
                self.stats.set_value(f"frontier/run/{name}", figure)

    def _request_ended(self, request: Request) -> None:
        self._tracker.ended(request)
        if self._is_alone():
            # No other request fills the batches of the stores meanwhile: they write at once.
            self.crawler.signals.send_catch_log(nothing_queued)

    def _finish(self, lease: Lease, how: How, reason: str = "") -> None:
        self.outbox.end(End(lease.id, how, lease.number, reason))
        if how == "dead":
            self._count_dead_letter(lease.id, f"{lease.request.url}: {reason}")
        elif how == "back":
            self.stats.inc_value("frontier/given_back")
            if _is_title(lease.request):
                # The worker that gets the title next counts it.
                self.stats.inc_value("titles/asked", -1)
                if reason == REFUSED:
                    self.stats.inc_value("titles/blocked", -1)
        if len(self.outbox.ends) >= BATCH or not self._tracker.leases:
            self._wake.set()

    def _count_dead_letter(self, id_: str, why: str) -> None:
        self.stats.inc_value("frontier/dead_letters")
        self._log(logging.ERROR, "Dead letter %s, %s", id_, why)

    def _give_back_ready(self) -> None:
        while self._ready:  # from the last one, as each goes to the front of the queue
            self._finish(self._tracker.leases.pop(self._ready.pop().meta[META].id), "back")

    def _give_back_all(self) -> None:
        self._ready.clear()
        while self._tracker.leases:
            self._finish(self._tracker.leases.popitem()[1], "back")

    async def _work(self) -> None:
        # There is no event for it.
        while not (self.crawler.engine.running or self._closed):  # noqa: ASYNC110
            await asyncio.sleep(_COALESCE_SECONDS)
        while not self._closed:
            with suppress(TimeoutError):
                async with asyncio.timeout(_POLL_SECONDS):
                    await self._wake.wait()
            await asyncio.sleep(_COALESCE_SECONDS)
            self._wake.clear()
            try:
                self._drain_if_closing()
                await self._step()
            except redis.exceptions.RedisError as error:
                self.budgets.failed(error)
                await asyncio.sleep(_POLL_SECONDS)

    async def _end_if_it_fails(self, task: Coroutine[Any, Any, None]) -> None:
        try:
            await task
        except Exception:
            logger.exception("The frontier failed", extra={"spider": self.spider})
            end_crawl(self.crawler, "frontier_failed")

    def _drain_if_closing(self) -> None:
        """Give back in time what a worker does not finish that closes."""
        now = asyncio.get_running_loop().time()
        if not is_closing(self.crawler.engine):
            return
        if self._drain_until is None:
            self._drain_until = now + _DRAIN_SECONDS
            if self._seed_task is not None:
                self._seed_task.cancel()
            self._give_back_ready()
        elif now >= self._drain_until:
            if self._tracker.leases:
                self._log(
                    logging.WARNING,
                    "Giving back %d requests in progress",
                    len(self._tracker.leases),
                )
            self._give_back_all()
            self._slot.abandon()

    async def _step(self) -> None:
        """Send what is waiting, and lease requests if it is time to."""
        now = asyncio.get_running_loop().time()
        if self.options.max_pages and self._pages >= self.options.max_pages:
            end_crawl(self.crawler, "recycled")
        try:
            await self.outbox.send()
        except redis.exceptions.ResponseError:
            await self._take(0)  # a heartbeat, so that no lease ends while Redis has no memory left
            raise
        want = self._want()
        beat = min(_HEARTBEAT_SECONDS, self.options.lease / 4)
        if (
            want >= self._batch / 2
            or (want and not self._tracker.leases)
            or now - self._last_take >= beat
        ):
            await self._take(want)
        if self._ready or self._is_over:
            self._slot.wake()

    def _want(self) -> int:
        """Return how many requests to lease."""
        if is_closing(self.crawler.engine) or self._is_alone():
            return 0
        want = self._batch - len(self._ready)
        if self._batch < BATCH:
            want -= len(
                self.crawler.engine.downloader.active
            )  # as requests wait there for the budget
        if self.options.max_pages:
            want = min(want, self.options.max_pages - self._pages - len(self._ready))
        return max(0, want)

    async def _take(self, want: int) -> None:
        self._reply = reply = await self.shared.take(want, list(self._tracker.leases))
        now = self._last_take = asyncio.get_running_loop().time()
        for delivery in reply.deliveries:
            self._receive(delivery)
        for one in reply.new_dead_letters:
            self._count_dead_letter(one, "`scrapy deadletters show` says why")
        if reply.open or self.outbox.pushes or self.outbox.ends:
            self._busy_at = now
        self._is_over = now - self._busy_at >= self.options.idle and self._busy_at < now
        self._obey_site(reply)

    def _receive(self, delivery: Delivery) -> None:
        if (lease := self._tracker.leases.get(delivery.id)) is not None:
            lease.number = delivery.number  # its lease had ended, but this worker is still at it
            return
        is_seed = delivery.id.startswith(SEED)
        try:
            if delivery.id.startswith(ARGUMENTS):
                lease = self._tracker.take(delivery.id, delivery.number, None)
                self._seed_task = asyncio.create_task(
                    self._end_if_it_fails(self._seed(lease, self._seed_task))
                )
                return
            request = (
                self.spider.seed_request(delivery.body)
                if is_seed
                else decode(delivery.body, self.spider)
            )
        except (SerialisationError, ConfigurationError) as error:
            reason = f"a bad seed: {error}" if is_seed else str(error)
            self.outbox.end(End(delivery.id, "dead", delivery.number, reason))
            self._count_dead_letter(delivery.id, reason)
            self._wake.set()
            return
        self._tracker.take(delivery.id, delivery.number, request)
        self._ready.append(request)
        if _is_title(request):
            # A worker counts the titles that it was handed, whichever worker found them.
            self.stats.inc_value("titles/asked")

    def _obey_site(self, reply: Reply) -> None:
        """Give back what is not sent while the site may not be asked; end when that lasts longer than FRONTIER_PATIENCE."""
        site = reply.site
        if self.budgets.reached(site):
            return
        self._give_back_ready()
        if site.blocked / 1000 > self.options.patience and (
            not site.spent or (reply.open and not self._tracker.leases)
        ):
            why = f"{site.reason}; nothing is handed out for {site.blocked / 3_600_000:.1f} h, and what is queued stays queued"
            end_crawl(self.crawler, "budget_spent" if site.spent else "site_stopped", why)

    async def _seed(self, lease: Lease, earlier: asyncio.Task[None] | None) -> None:
        """Queue what the arguments name.

        Their lease ends then, or goes on with the request for IMDb's datasets.
        """
        if earlier is not None:  # the state was lost meanwhile, so all is queued once more
            await earlier
        # IMDb's datasets are being read.
        while self._arguments.id in self._tracker.leases:  # noqa: ASYNC110
            await asyncio.sleep(_POLL_SECONDS)
        self._arguments = lease
        self.spider.asked.clear()
        async for request in self.spider.start():
            self.crawler.engine.crawl(request)
            while len(self.outbox.pushes) > _MAX_PENDING_PUSHES:  # noqa: ASYNC110 - on Redis
                await asyncio.sleep(_COALESCE_SECONDS)
        if lease.request is None:
            del self._tracker.leases[lease.id]
            self._finish(lease, lease.how)

    def _is_alone(self) -> bool:
        """Return whether this worker holds a request that may have killed others, and therefore no other one."""
        leases = self._tracker.leases
        # As in take.lua.
        return len(leases) == 1 and next(iter(leases.values())).number > 2  # noqa: PLR2004

    def _spider_idle(self) -> None:
        """Keep the spider open while the run has requests, here or on other nodes."""
        if not self._is_over:
            if not self.outbox.pushes and not (self._reply and self._reply.waiting):
                self.crawler.signals.send_catch_log(nothing_queued)
            raise DontCloseSpider

    def _log(self, level: int, sentence: str, *arguments: object) -> None:
        logger.log(level, sentence, *arguments, extra={"spider": self.spider})


def _is_title(request: Request | None) -> bool:
    return request is not None and "site_id" in request.cb_kwargs
