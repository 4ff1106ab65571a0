"""Scrapy's scheduler over the shared frontier.

Scrapy calls a scheduler synchronously, and Redis answers later. So a task fetches requests ahead and sends acknowledgements and
new requests in batches, while the event loop stays free.
"""

from __future__ import annotations

import asyncio
import logging
import uuid
from contextlib import suppress
from hashlib import blake2b
from typing import TYPE_CHECKING, Literal

import redis.exceptions
from scrapy import signals
from scrapy.exceptions import CloseSpider, DontCloseSpider
from scrapy.utils.defer import deferred_from_coro

from moviecrawler.clock import process_age
from moviecrawler.frontier.budgets import site_budget
from moviecrawler.frontier.circuit import SharedCircuit
from moviecrawler.frontier.dupefilter import SharedDupeFilter
from moviecrawler.frontier.engine import EngineSlot
from moviecrawler.frontier.exchanging import COALESCE_SECONDS, POLL_SECONDS, ExchangingScheduler
from moviecrawler.frontier.keys import Keys
from moviecrawler.frontier.leases import META, LeaseTracker
from moviecrawler.frontier.queue import Batch, RunGoneError, SharedQueue
from moviecrawler.frontier.seeds import Seeds
from moviecrawler.frontier.serialisation import SerialisationError
from moviecrawler.frontier.worker_queue import WorkerQueue, is_title, new_name
from moviecrawler.options import FrontierOptions
from moviecrawler.redis_client import connect, describe_error, redis_parameters
from moviecrawler.signals import nothing_queued

if TYPE_CHECKING:
    from typing import Self

    from scrapy import Request
    from scrapy.crawler import Crawler
    from scrapy.settings import BaseSettings
    from twisted.internet.defer import Deferred

    from moviecrawler.frontier.spider import SharedSpider


_CLOSE_SECONDS = 5.0
"""Seconds that a closing worker tries to reach Redis."""
_MAX_PENDING_PUSHES = 1000
"""Requests on their way to Redis above which no more are made of the arguments or of seeds."""


class FrontierScheduler(ExchangingScheduler):
    """Hands out the requests of a run to this worker, and keeps each leased until all that came of it is safe.

    scrapy-redis' scheduler, of which the parts (`server`, `queue`, `df`), how it is made from settings, and its length are kept.
    Replaced are the round trip of each call (by a task that exchanges batches), the flushing, and the classes that its settings
    name.

    Counts under `frontier/`: `round_trips`, requests `handed_out` and `given_back`, `dead_letters`, `lost` (times that all leases
    were), `errors` (exchanges that failed) and `longest` (seconds that an exchange took).
    """

    @classmethod
    def from_settings(cls, settings: BaseSettings) -> Self:
        """Read REDIS_URL and REDIS_PARAMS."""
        return cls(connect(settings["REDIS_URL"], **redis_parameters(settings)))

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Read what `from_settings` and, with its spider, `FrontierOptions` read."""
        scheduler: Self = super().from_crawler(crawler)
        scheduler.crawler = crawler
        return scheduler

    # --- Scrapy's interface -------------------------------------------------------------------------------------------

    def open(self, spider: SharedSpider) -> Deferred[None]:
        """Join the run; when Redis can't be reached, say so and have the spider closed."""
        return deferred_from_coro(self._open(spider))

    async def _open(self, spider: SharedSpider) -> None:
        settings = self.crawler.settings
        self._loop = asyncio.get_running_loop()
        self._started = self._idle_since = self._loop.time()
        self.spider = spider
        self.options = options = FrontierOptions.read(settings)
        self.budget = site_budget(settings, spider.site)
        self.keys = Keys(spider.site, options.run, options.start_urls_key)
        self.circuit = SharedCircuit(spider.site, self._wake.set)
        self._slot = EngineSlot(self.crawler.engine)
        self._slot.on_request_ended(self._request_ended)
        self.tracker = LeaseTracker(self._finish)
        self.tracker.connect(self.crawler.signals)
        self.crawler.signals.connect(self._spider_idle, signals.spider_idle)
        self.df = SharedDupeFilter(self.server, self.keys.dupefilter(0), settings.getbool("DUPEFILTER_DEBUG"))
        self.shared = SharedQueue(
            self.server,
            self.keys,
            options,
            budget=self.budget,
            worker=new_name(options.node),
            digest=blake2b(spider.seed_key.encode(), digest_size=8).hexdigest(),
            limit=spider.plan.limit,
        )
        self.queue = WorkerQueue(self.shared, options.node, spider, self.df)
        self.seeds = Seeds(self.server, self.keys, spider, self.queue, self.stats)
        try:
            await self.shared.open(uuid.uuid4().hex)
            await self._exchange(Batch())
            policy = await self.shared.eviction()
            if policy is not None:
                message = "Redis throws keys away when it is full (%s), and with them what is queued; set maxmemory-policy to noeviction"
                self._log(logging.WARNING, message, policy)
        except redis.exceptions.RedisError as error:
            why = describe_error(error, "; start it, or remove REDIS_URL")
            self._log(logging.ERROR, "Redis at REDIS_URL can't be used: %s", why)
            self.crawler.signals.connect(self._close_at_once, signals.spider_opened)
        else:
            self._task = self._loop.create_task(self._exchange_forever())
            self._listener = self._loop.create_task(self._listen_forever())

    def _close_at_once(self) -> None:
        raise CloseSpider("frontier_unreachable")

    def enqueue_request(self, request: Request) -> bool:
        """Queue a request, or keep it here: a retry or a redirect of one that is held, or one bound to this process."""
        if META in request.meta:
            if not self.tracker.hand_over(request):
                return False  # its lease is another worker's now
            self.queue.push_local(request)
        elif request.meta.get("site") != self.spider.site:
            # Such as IMDb's datasets, whose parts are files on this node.
            self._bound.add(request)
            self.queue.push_local(request)
        else:
            try:
                self.queue.push(request)
            except SerialisationError as error:
                # A fault of the spider's code; to go on would lose a page and call the crawl a success.
                self._end("frontier_failed", f"a request can't be queued: {error}")
                return False
            self._wake.set()
        return True

    def next_request(self) -> Request | None:
        """Return a request that may be sent now."""
        request = self.queue.pop() if self._ending is None or self.queue.local else None
        if request is not None and META in request.meta and request.meta[META] not in self.tracker.leases:
            self.tracker.take(request)
            self._pages += 1
            if is_title(request):
                # A worker answers for the titles that it was handed, whoever found them.
                self.stats.inc_value("titles/asked")
        if self._more_due():
            self._wake.set()
        return request

    def flush(self) -> None:
        """Refuse: it would empty queue and dupefilter of all workers."""
        raise NotImplementedError("nothing shared is flushed; a new FRONTIER_RUN begins with nothing")

    def close(self, reason: str) -> Deferred[None]:  # noqa: ARG002 - Scrapy's own signature
        """Acknowledge what is done and give back what is not. Nothing is flushed."""
        return deferred_from_coro(self._close())

    async def _close(self) -> None:
        self._closed = True
        if self._task is not None:
            self._wake.set()
            await asyncio.wait({self._task}, timeout=_CLOSE_SECONDS)
            self._task.cancel()
            self._listener.cancel()
            self._give_back_all()
            try:
                async with asyncio.timeout(_CLOSE_SECONDS):
                    while self.queue.pushes or self.queue.ends:
                        await self._exchange(Batch())
                    await self.seeds.settle()
                    await self._exchange(Batch(leave=True))
            except (redis.exceptions.RedisError, RunGoneError, TimeoutError) as error:
                self._log(
                    logging.WARNING,
                    "The last acknowledgements did not reach Redis (%s): these pages are fetched again when the leases end",
                    error,
                )
        self.stats.inc_value("frontier/given_back", self.queue.given_back)
        self.stats.set_value("frontier/round_trips", self.shared.round_trips + self.seeds.round_trips)
        await self.shared.disconnect()

    # --- What becomes of requests -------------------------------------------------------------------------------------

    def _request_ended(self, request: Request) -> None:
        self._under_way = True
        self._bound.discard(request)
        self.tracker.ended(request)

    # --- Seeding ------------------------------------------------------------------------------------------------------

    async def seeding(self) -> Literal["seed", "wait", "done"]:
        """Ask whether this worker is to queue what its arguments name; `wait` while another one does, or Redis is away."""
        if self.spider.refills:
            return "seed"
        try:
            answer = await self.shared.seeding(ago=process_age())
            if answer != "wait":
                await self._revive(answer)
        except redis.exceptions.RedisError:
            return "wait"
        if answer == "done":
            self._mark_seeded()
        return answer

    async def _revive(self, answer: str) -> None:
        """Have requests tried once more that have failed, when the run has nothing else to do."""
        assert self.queue.reply is not None  # noqa: S101 - there was an exchange when the run was opened
        if self.queue.reply.open:
            return
        revived = await self.shared.revive()
        if revived:
            self._log(logging.INFO, "Trying %d requests once more that have failed before", revived)
        elif answer == "done":
            message = "Run %r has done all of this since this crawl was asked for, so nothing is left for this worker"
            self._log(logging.INFO, message, self.options.run)

    def _mark_seeded(self) -> None:
        self._seeded_at = self._loop.time()
        # Only an exchange from now on shows whether anything is left.
        self._wakeup_received = True
        self._wake.set()

    async def seeded(self) -> None:
        """Report that all of it is queued, once it is; what only this process can do must be done, too."""
        bound = bool(self._bound)
        while self._seeded_at is None:
            await asyncio.sleep(COALESCE_SECONDS)
            if not (self.queue.pushes or self._bound or (bound and self.tracker.unsettled)):
                with suppress(redis.exceptions.RedisError):
                    if not self.spider.refills:
                        await self.shared.seeding("done")
                    self._mark_seeded()
            self._wake.set()

    async def room(self) -> None:
        """Wait while many requests are on their way to Redis."""
        while self.queue.pushes > _MAX_PENDING_PUSHES:
            await self._next_exchange()

    @property
    def waiting(self) -> int:
        """How many requests wait in the shared queue, when Redis last said so, and on the way there."""
        return self.queue.pushes + (self.queue.reply.waiting if self.queue.reply is not None else 0)

    @property
    def budget_left(self) -> int | None:
        """How many requests this worker may still queue today, beside what waits and what others queue; None for any number."""
        reply = self.queue.reply
        if reply is None or reply.left is None:
            return None
        return -(-max(0, reply.left - self.waiting) // max(1, reply.workers))

    @property
    def shut(self) -> bool:
        """Whether nothing is handed out now, because the site has refused us or the day's budget is spent."""
        return self.queue.reply is not None and self.queue.reply.shut > 0

    async def refresh(self) -> None:
        """Exchange with Redis at once, so that what waits, what is left of the budget and how many workers there are is known."""
        self._wakeup_received = True
        self._wake.set()
        await self._next_exchange()

    async def until_low(self, waiting: int) -> None:
        """Wait until fewer than so many requests wait in the shared queue: for a spider that tops it up."""
        while self.waiting >= waiting:
            await self._next_exchange()

    async def begin_round(self) -> None:
        """Have what comes of `start`, and lists, asked for whatever was queued before: for a spider that tops the queue up."""
        while not self._closed:
            try:
                await self.shared.seeding("again")
            except redis.exceptions.RedisError:  # which the exchanges tell
                await asyncio.sleep(POLL_SECONDS)
            else:
                return

    # --- Endings ------------------------------------------------------------------------------------------------------

    def _spider_idle(self) -> None:
        """Keep the spider open while the run has requests, here or on other nodes."""
        if self.queue.local:
            return  # another handler has just found something to do
        self.tracker.give_up()
        now = self._loop.time()
        nothing_left = self._nothing_left()
        if not nothing_left:
            self._idle_since = now
            if self._is_queue_empty:
                self.crawler.signals.send_catch_log(nothing_queued)
        if not nothing_left or now - self._idle_since < self.options.idle:
            raise DontCloseSpider
