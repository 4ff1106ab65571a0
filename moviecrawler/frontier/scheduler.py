"""Scrapy's scheduler over the shared frontier.

Scrapy calls a scheduler synchronously, and Redis answers later. So a task takes requests ahead and sends acknowledgements and
new requests in batches, while the event loop stays free.
"""

from __future__ import annotations

import asyncio
import logging
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
from moviecrawler.frontier.dupefilter import SharedDupeFilter
from moviecrawler.frontier.engine import EngineSlot, is_closing
from moviecrawler.frontier.leases import META, REFUSED, LeaseTracker
from moviecrawler.frontier.outbox import Outbox
from moviecrawler.frontier.queue import BOOSTED, LISTS, SEED, TITLES, End, Push, RunRefusedError, SharedQueue
from moviecrawler.frontier.serialisation import SerialisationError, decode, encode
from moviecrawler.frontier.shared import run_name, shared_turns
from moviecrawler.frontier.turns import TURN_TAKEN
from moviecrawler.options import FrontierOptions
from moviecrawler.redis_client import describe_error
from moviecrawler.signals import nothing_queued

if TYPE_CHECKING:
    from typing import Self

    from scrapy import Request
    from scrapy.crawler import Crawler
    from scrapy.settings import BaseSettings
    from twisted.internet.defer import Deferred

    from moviecrawler.frontier.keys import Keys
    from moviecrawler.frontier.leases import Lease
    from moviecrawler.frontier.queue import Delivery, How, Reply
    from moviecrawler.frontier.spider import SharedSpider

logger = logging.getLogger(__name__)

BATCH = 32
"""Requests that a worker takes and acknowledges in one round trip, at most."""
BOOST_PRIORITY, LIST_PRIORITY = 100, 1
"""The least priorities of requests on the two upper levels."""
_POLL_SECONDS = 1.0
"""Seconds between two looks into an empty queue, and the longest that anything waits to be sent to Redis."""
_HEARTBEAT_SECONDS = 5.0
"""Seconds between two heartbeats of a worker, and two looks for seeds; less when a lease is short."""
_COALESCE_SECONDS = 0.02
"""Seconds that a step waits for more to send."""
_LATE_SECONDS = 0.1
"""Seconds after the moment that the budget has for a request, after which it is too late for it."""
_FIRST_RETRY_SECONDS, _LONGEST_RETRY_SECONDS = 0.2, 5.0
_DRAIN_SECONDS = 7.0
"""Seconds that a closing worker waits for requests in flight before it gives them back to the queue."""
_CLOSE_SECONDS = 3.0
"""Seconds that a worker which has closed tries to reach Redis."""
_MAX_PENDING_PUSHES = 1000
"""Requests on their way to Redis above which no more are made of the arguments."""


class FrontierScheduler(Scheduler):  # type: ignore[misc]  # scrapy-redis has no types
    """Hands out the requests of a run to this worker, and keeps each leased until all that came of it is safe.

    scrapy-redis' scheduler, of which `server`, `df`, `stats`, `from_crawler` and `has_pending_requests` are kept. Replaced are the
    round trip of each call, the flushing, and the classes that its settings name.

    Counts under `frontier/`: `round_trips`, requests `handed_out` and `given_back`, `dead_letters`, `errors` (steps that failed)
    and `longest` (seconds that a step took); at the end of a run its own account, as `run/total`, `run/done`, `run/dead` and
    `run/lost`.
    """

    crawler: Crawler
    spider: SharedSpider
    keys: Keys

    def __init__(self, server: Any) -> None:
        super().__init__(server, persist=True)
        self.reply: Reply | None = None
        """What Redis said last."""
        self.tracker = LeaseTracker(self._finish)
        self._ready: deque[tuple[float, int, Delivery, Request]] = (
            deque()
        )  # when each may be sent, and the day it is charged to
        self._local: deque[Request] = deque()  # what took over a lease, or what only this process can do
        self._bound: set[Request] = set()  # what only this process can do, and has not done yet
        self._wake = asyncio.Event()  # something is due
        self._tasks: list[asyncio.Task[None]] = []
        self._closed = self._was_running = self._first_request_done = False
        self._alone = ""  # the request that this worker does alone, as it may be what killed others
        self._pages = 0
        self._wrong_type = ""  # of the key of seeds
        self._drained_at: float | None = (
            None  # when what is in flight is given back; None while the worker is not closing
        )
        self._last_take = self._over_since = 0.0
        self._was_in_vain = False  # whether the last take got nothing that it asked for
        self._seeder = ""  # the claim to queue what the arguments name
        self._seeding: asyncio.Task[None] | None = None
        self._seeded = False  # whether all of it is queued under that claim, and Redis is still to be told

    @classmethod
    def from_settings(cls, settings: BaseSettings) -> Self:  # noqa: ARG003 - Scrapy's own signature
        """Leave the client to `open`: it is that of the turns."""
        return cls(None)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Read `FrontierOptions`, with the spider."""
        scheduler: Self = super().from_crawler(crawler)
        scheduler.crawler = crawler
        return scheduler

    # --- Scrapy's interface -------------------------------------------------------------------------------------------

    def open(self, spider: SharedSpider) -> Deferred[None]:
        """Join the run; when that can't be, say so and have the spider closed."""
        return deferred_from_coro(self._open(spider))

    async def _open(self, spider: SharedSpider) -> None:
        settings = self.crawler.settings
        self._loop = asyncio.get_running_loop()
        self.spider = spider
        self.options = options = FrontierOptions.read(settings)
        turns = shared_turns(self.crawler)
        self.server, self.budget, self.circuit, self._scripts = turns.client, turns.budget, turns.circuit, turns.scripts
        self._slot = EngineSlot(self.crawler.engine)
        self._slot.on_request_ended(self._request_ended)
        self.tracker.connect(self.crawler.signals)
        self.crawler.signals.connect(self._spider_idle, signals.spider_idle)
        worker = f"{'_'.join(options.node.split())}-{uuid.uuid4().hex[:12]}"
        limit = spider.plan.limit
        self.shared = SharedQueue(
            self._scripts, turns.keys, options, worker=worker, arguments=spider.seed_key, limit=limit
        )
        self.outbox = Outbox(self.shared)
        run = run_name(settings, spider)
        # A name that somebody has chosen is of one run; another is of one more each time that somebody asks for it.
        asked_at = options.asked_at or (0.0 if options.run else -max(process_age(), 0.001))
        reason = "frontier_unreachable"
        try:
            await self._check_eviction()
            over_at = await self.shared.open(run, asked_at)
            self.keys = self.shared.keys
            self.df = SharedDupeFilter(self.server, self.keys.seen)
        except redis.exceptions.RedisError as error:
            self._log(
                logging.ERROR,
                "Redis at REDIS_URL can't be used: %s",
                describe_error(error, "; start it, or remove REDIS_URL"),
            )
        except (RunRefusedError, ConfigurationError) as error:
            reason = "frontier_refused"
            self._log(logging.ERROR, "%s", error)
        else:
            if over_at is not None:
                self._log(
                    logging.INFO, "Run %r was over at %s: nothing is left for this worker", run, utc_text(over_at)
                )
            self._tasks = [self._loop.create_task(self._work())]
            return
        self._closing_reason = reason
        self.crawler.signals.connect(self._close_at_once, signals.spider_opened)

    async def _check_eviction(self) -> None:
        """Raise ConfigurationError when Redis throws keys away where it is full, and with them what is queued."""
        try:
            info = await self.server.info("memory")
        except redis.exceptions.ResponseError:
            return  # where we may not ask
        policy = info.get("maxmemory_policy", "noeviction")
        if info.get("maxmemory") and policy != "noeviction":
            raise ConfigurationError(
                f"Redis throws keys away when it is full ({policy}); set its maxmemory-policy to noeviction"
            )

    def _close_at_once(self) -> None:
        raise CloseSpider(self._closing_reason)

    def enqueue_request(self, request: Request) -> bool:
        """Queue a request, or keep it here: a retry or a redirect of one that is held, or one bound to this process."""
        if META in request.meta:
            if not self.tracker.hand_over(request):
                return False  # it was given back
            self._local.append(request)
        elif request.meta.get("site") != self.spider.site:
            # Such as IMDb's datasets, whose parts are files on this node.
            self._bound.add(request)
            self._local.append(request)
        else:
            try:
                push = self._push_of(request)
            except SerialisationError as error:
                # A fault of the spider's code; to go on would lose a page and call the crawl a success.
                self._end("frontier_failed", f"a request can't be queued: {error}")
                return False
            self.outbox.push(push)
            self._wake.set()
        return True

    def _push_of(self, request: Request) -> Push:
        level = TITLES
        if request.priority >= LIST_PRIORITY:
            level = BOOSTED if request.priority >= BOOST_PRIORITY else LISTS
        title = request.cb_kwargs.get("site_id", "")
        return Push(level, self.df.request_fingerprint(request), encode(request), not request.dont_filter, title)

    def __len__(self) -> int:
        """Return how many requests this worker may send now."""
        return len(self._local) + self._is_due()

    def _is_due(self) -> bool:
        return bool(self._ready) and self._ready[0][0] <= self._loop.time()

    def next_request(self) -> Request | None:
        """Return a request that may be sent now."""
        if self._local:
            return self._local.popleft()
        if self._drained_at is not None or not self._is_due():
            return None
        _, _, delivery, request = self._ready.popleft()
        if self.budget.per_second:
            # What is late by much would crowd what others send now: its turn is over, and it gets another one.
            late = self._loop.time() - _LATE_SECONDS
            self._give_back_ready(sum(due < late for due, *_ in self._ready))
        self.tracker.take(delivery.id, delivery.number, request)
        self._pages += 1
        if _is_title(request):
            # A worker answers for the titles that it was handed, whoever found them.
            self.stats.inc_value("titles/asked")
        if self._want() >= BATCH / 2:
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
        if self._tasks:
            self._wake.set()
            await asyncio.wait(self._tasks, timeout=_CLOSE_SECONDS)
            for task in (*self._tasks, *([self._seeding] if self._seeding is not None else [])):
                task.cancel()
            self._give_back_all()
            try:
                async with asyncio.timeout(_CLOSE_SECONDS):
                    await self.outbox.send()
                    await self._take(0)
                    await self.server.zrem(self.keys.workers, self.shared.worker)
            except (redis.exceptions.RedisError, TimeoutError) as error:
                message = "The last acknowledgements did not reach Redis (%s): these pages are fetched again when the leases end"
                self._log(logging.WARNING, message, error)
            self._give_account()
        self.stats.set_value("frontier/round_trips", self._scripts.round_trips)

    def _give_account(self) -> None:
        """Leave the figures of the whole run in the stats."""
        if (reply := self.reply) is None:
            return
        figures = {
            "total": reply.total,
            "done": reply.done,
            "dead": reply.failed,
            "lost": reply.lost,
            "open": reply.open,
        }
        for name, figure in figures.items():
            self.stats.set_value(f"frontier/run/{name}", figure)
        self.stats.set_value("dupefilter/filtered", self.outbox.filtered)
        self.stats.set_value("frontier/above_limit", self.outbox.above_limit)

    def account(self) -> str:
        """Return the account of the whole run, in words, as Redis last gave it."""
        assert self.reply is not None  # noqa: S101 - the run is joined
        reply, outbox = self.reply, self.outbox
        counts = {"wait for the next worker": reply.open, "are dead letters": reply.failed, "are lost": reply.lost}
        shown = [f"{count:,} {what}" for what, count in counts.items() if count]
        text = f"of the {reply.total:,} requests of run {self.keys.run}, {', '.join(shown) or 'all are done'}"
        if self.options.dupefilter == "bloom" and outbox.filtered:
            text += f"; {outbox.filtered:,} were taken for known here, of which about 0.1 % are not"
        return text

    # --- What becomes of requests -------------------------------------------------------------------------------------

    def _request_ended(self, request: Request) -> None:
        self._first_request_done = True
        self._bound.discard(request)
        self.tracker.ended(request)
        if self._is_holding_alone:
            # No other request will fill the batches of the stores.
            self.crawler.signals.send_catch_log(nothing_queued)

    def _finish(self, lease: Lease, how: How, reason: str = "") -> None:
        self.outbox.end(End(lease.id, how, lease.number, reason))
        if how == "dead":
            self.stats.inc_value("frontier/dead_letters")
            self._log(logging.ERROR, "Dead letter %s, %s: %s", lease.id, lease.request.url, reason)
        elif how == "back":
            self.stats.inc_value("frontier/given_back")
            if _is_title(lease.request):
                # It is asked for once more, by whichever worker: this one no longer answers for it.
                self.stats.inc_value("titles/asked", -1)
                if reason == REFUSED:
                    self.stats.inc_value("titles/blocked", -1)
        if self.outbox.ends >= BATCH or not self.tracker.leases:
            self._wake.set()

    def _give_back_ready(self, count: int | None = None) -> None:
        """Give back the first requests of those that were not sent, or all."""
        some = [self._ready.popleft() for _ in range(len(self._ready) if count is None else count)]
        for _, day, delivery, _ in reversed(some):
            self.outbox.end(End(delivery.id, "back", delivery.number, "", day))
        self.stats.inc_value("frontier/given_back", len(some))

    def _give_back_all(self) -> None:
        self._give_back_ready()
        for lease in list(self.tracker.leases.values()):
            self._finish(lease, "back")
        self.tracker.forget()

    # --- The task -----------------------------------------------------------------------------------------------------

    async def _work(self) -> None:
        failing_since: float | None = None
        pause = _FIRST_RETRY_SECONDS
        while not self._closed:
            with suppress(TimeoutError):
                async with asyncio.timeout(self._next_step_in()):
                    await self._wake.wait()
            await asyncio.sleep(_COALESCE_SECONDS)
            self._wake.clear()
            self._drain_if_closing()
            try:
                began = self._loop.time()
                await self._step()
                self.stats.max_value("frontier/longest", round(self._loop.time() - began, 4))
                failing_since, pause = None, _FIRST_RETRY_SECONDS
            except redis.exceptions.RedisError as error:
                self.stats.inc_value("frontier/errors")
                if failing_since is None:
                    failing_since = self._loop.time()
                    self._log(logging.WARNING, "Redis can't be used: %s; trying again", error)
                if self._loop.time() - failing_since >= self.options.patience:
                    self._end("frontier_unreachable", f"Redis could not be used for {self.options.patience:g} s")
                if not isinstance(error, redis.exceptions.OutOfMemoryError):
                    await self.server.aclose()
                await asyncio.sleep(pause)
                pause = min(_LONGEST_RETRY_SECONDS, 2 * pause)
            except Exception:
                logger.exception("The frontier failed", extra={"spider": self.spider})
                self._end("frontier_failed", "see the error above")
                return

    def _next_step_in(self) -> float:
        """Return the seconds until the next step, if nothing wakes the task before."""
        if self._ready and not self._is_due():
            return min(_POLL_SECONDS, self._ready[0][0] - self._loop.time())
        if self.reply is not None and self.reply.waiting and not self.reply.shut and self._want():
            return min(_POLL_SECONDS, max(0.25 if self._was_in_vain else 0.0, self.reply.start / 1000))
        return _POLL_SECONDS

    def _drain_if_closing(self) -> None:
        """Have a worker that closes, for whatever reason, take nothing more, and give back in time what it does not finish."""
        self._was_running = self._was_running or self.crawler.engine.running
        if not self._was_running or not is_closing(self.crawler.engine):
            return  # it does not run yet while stores and extensions are opened
        if self._drained_at is None:
            self._drained_at = self._loop.time() + _DRAIN_SECONDS
            if self._seeding is not None:
                self._seeding.cancel()
            self._give_back_ready()
        elif self._loop.time() >= self._drained_at:
            if self.tracker.leases:
                self._log(logging.WARNING, "Giving back %d requests in flight", len(self.tracker.leases))
                self._give_back_all()
            self._slot.abandon()

    async def _step(self) -> None:
        """Do what is due."""
        now = self._loop.time()
        if self.options.max_pages and self._pages >= self.options.max_pages:
            self._end("recycled")
        try:
            await self.outbox.send()
        except redis.exceptions.OutOfMemoryError:
            await self._take(0)  # a heartbeat, so that what is held is not done twice
            raise
        beat = min(_HEARTBEAT_SECONDS, self.options.lease / 4)
        want = self._want()
        if want >= BATCH / 2 or (want and self._is_idle()) or self._seeded or now - self._last_take >= beat:
            await self._take(want)
        if self._is_due() or self._is_over():
            self._slot.wake()

    def _want(self) -> int:
        """Return how many requests to ask for."""
        if not self._was_running or self._drained_at is not None or self._is_holding_alone:
            return 0
        want = BATCH - len(self._ready)
        if self.options.max_pages:
            want = min(want, self.options.max_pages - self._pages - len(self._ready))
        if self.budget.per_second and not self._first_request_done:
            # Others would wait with the first one for robots.txt, and then be sent all at once.
            want = min(want, 1 - self._pages - len(self._ready))
        return max(0, want)

    async def _take(self, want: int) -> None:
        is_open = self._was_running and self._drained_at is None
        seeder = (self._seeder or uuid.uuid4().hex) if is_open else ""
        held = [*self.tracker.leases, *(delivery.id for _, _, delivery, _ in self._ready)]
        self.reply = reply = await self.shared.take(
            want,
            renew=held,
            holds=bool(held),
            seeder=seeder,
            claims=not self._seeder,
            seeded=self._seeded,
            seeds=self._drained_at is None,
        )
        now = self._last_take = self._loop.time()
        self._was_in_vain = bool(want and not reply.deliveries)
        for delivery in reply.deliveries:
            self._receive(delivery, now, reply.day)
        for one in reply.buried:
            self.stats.inc_value("frontier/dead_letters")
            self._log(logging.ERROR, "Dead letter %s: `scrapy deadletters show` says why", one)
        if reply.seeds_in not in {"none", "list", "set", "zset", self._wrong_type}:
            self._wrong_type = reply.seeds_in  # so that it is told once
            message = "Seeds can't be taken from the key %r, as it is a %s; make it a list, a set or a sorted set"
            self._log(logging.WARNING, message, self.keys.site.start_urls, reply.seeds_in)
        if self._seeded:
            # Not seeded though this worker has queued all: the state was lost meanwhile, so that it begins from the front.
            self._seeded, self._seeder = False, ""
        elif reply.seeding and not self._seeder:
            self._seeder = seeder
            self._seeding = self._loop.create_task(self._seed())
        self._over_since = (self._over_since or now) if self._has_nothing_left() else 0.0
        self._apply_limits(reply)

    def _receive(self, delivery: Delivery, now: float, day: int) -> None:
        self.stats.inc_value("frontier/handed_out")
        if (lease := self.tracker.leases.get(delivery.id)) is not None:
            lease.number = delivery.number  # it was taken for lost, while this worker is still at it
            return
        if delivery.number > 2:  # noqa: PLR2004 - as in take.lua
            self._alone = delivery.id
        try:
            is_seed = delivery.id.startswith(SEED)
            request = self.spider.seed_request(delivery.body) if is_seed else decode(delivery.body, self.spider)
        except (SerialisationError, ConfigurationError) as error:
            self.outbox.end(
                End(delivery.id, "dead", delivery.number, f"a bad seed: {error}" if is_seed else str(error), day)
            )
            self.stats.inc_value("frontier/dead_letters")
            self._log(logging.ERROR, "Dead letter %s: %s", delivery.id, error)
            self._wake.set()
            return
        request.meta[TURN_TAKEN] = True
        self._ready.append((now + delivery.delay / 1000, day, delivery, request))

    def _apply_limits(self, reply: Reply) -> None:
        """Stop asking a site that has refused us or whose budget is spent; end when that takes longer than our patience.

        What was handed out before the budget was spent is a part of it, so that it is done first.
        """
        self.circuit.update(shut=reply.shut, reason=reply.reason, spent=reply.spent, probing=reply.probing)
        # What is being opened must not be closed meanwhile; the next reply says the same.
        if not reply.shut or self.circuit.probing or self.circuit.reporting or not self._was_running:
            return
        why = (
            f"{reply.reason}; nothing is handed out for {reply.shut / 3_600_000:.1f} h, and what is queued stays queued"
        )
        if not reply.spent:
            self._give_back_ready()
        if reply.shut / 1000 > self.options.patience and (not reply.spent or (self._is_idle() and reply.open)):
            self._end("budget_spent" if reply.spent else "site_stopped", why)

    # --- Queueing what the arguments name -------------------------------------------------------------------------------

    async def _seed(self) -> None:
        """Queue what the arguments name; what only this process can do of it must be done, too."""
        try:
            async for request in self.spider.start():
                self.crawler.engine.crawl(request)
                while self.outbox.pushes > _MAX_PENDING_PUSHES:  # noqa: ASYNC110 - on Redis
                    await asyncio.sleep(_COALESCE_SECONDS)
            is_bound = bool(self._bound)
            while self.outbox.pushes or self._bound or (is_bound and self.tracker.unsettled):  # noqa: ASYNC110 - on Redis
                await asyncio.sleep(_COALESCE_SECONDS)
        except Exception:
            logger.exception("What the arguments name can't be queued", extra={"spider": self.spider})
            self._end("frontier_failed", "see the error above")
            return
        self._seeded = True
        self._wake.set()

    # --- Endings ------------------------------------------------------------------------------------------------------

    @property
    def waiting(self) -> int:
        """How many requests wait in the shared queue, when Redis last said so, and on the way there."""
        return self.outbox.pushes + (self.reply.waiting if self.reply is not None else 0)

    @property
    def _is_holding_alone(self) -> bool:
        return self._alone in self.tracker.leases or any(one.id == self._alone for _, _, one, _ in self._ready)

    def _is_idle(self) -> bool:
        return not (self._ready or self._local or self.tracker.leases)

    def _has_nothing_left(self) -> bool:
        reply, outbox = self.reply, self.outbox
        return (
            reply is not None and reply.seeded and not reply.open and not (outbox.pushes or outbox.ends or self._bound)
        )

    def _is_over(self) -> bool:
        return bool(self._over_since) and self._loop.time() - self._over_since >= self.options.idle

    def _spider_idle(self) -> None:
        """Keep the spider open while the run has requests, here or on other nodes."""
        if self._local:
            return  # another handler has just found something to do
        if not self._is_over():
            if not self.waiting:
                self.crawler.signals.send_catch_log(nothing_queued)
            raise DontCloseSpider

    def _end(self, reason: str, why: str | None = None) -> None:
        if is_closing(self.crawler.engine):
            return
        if why is not None:
            self._log(logging.ERROR, "%s", why)
        self._close_task = self._loop.create_task(self.crawler.engine.close_spider_async(reason=reason))

    def _log(self, level: int, sentence: str, *arguments: object) -> None:
        logger.log(level, sentence, *arguments, extra={"spider": self.spider})


def _is_title(request: Request) -> bool:
    return "site_id" in request.cb_kwargs
