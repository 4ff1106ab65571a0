"""Scrapy's scheduler over the shared frontier.

Scrapy calls a scheduler synchronously; Redis answers later. So requests are fetched ahead, and what there is to tell is
collected: a task exchanges both with Redis in batches, while the event loop stays free.
"""

from __future__ import annotations

import asyncio
import logging
import uuid
from contextlib import suppress
from hashlib import blake2b
from math import inf
from typing import TYPE_CHECKING, Any, Literal

import redis.exceptions
from scrapy import signals
from scrapy.exceptions import CloseSpider, DontCloseSpider
from scrapy.utils.defer import deferred_from_coro
from scrapy_redis.scheduler import Scheduler

from moviecrawler.clock import process_age
from moviecrawler.frontier.circuit import SharedCircuit
from moviecrawler.frontier.dupefilter import SharedDupeFilter
from moviecrawler.frontier.engine import EngineSlot
from moviecrawler.frontier.keys import Keys
from moviecrawler.frontier.leases import META, REFUSED, LeaseTracker
from moviecrawler.frontier.queue import Batch, RunGoneError, SharedQueue
from moviecrawler.frontier.seeds import Seeds
from moviecrawler.frontier.serialisation import SerialisationError
from moviecrawler.frontier.site_budgets import site_budget
from moviecrawler.frontier.worker_queue import WorkerQueue, is_title, new_name
from moviecrawler.options import FrontierOptions
from moviecrawler.redis_client import connect, describe_error, redis_parameters
from moviecrawler.signals import lease_ended

if TYPE_CHECKING:
    from typing import Self

    from scrapy import Request
    from scrapy.crawler import Crawler
    from scrapy.settings import BaseSettings
    from twisted.internet.defer import Deferred

    from moviecrawler.frontier.leases import How, Lease
    from moviecrawler.frontier.queue import Reply
    from moviecrawler.frontier.spider import SharedSpider

logger = logging.getLogger(__name__)

_POLL_SECONDS = 1.0
"""Seconds between two looks for seeds and into a queue that holds nothing for now, and the longest that anything waits to be told."""
_LISTENING_POLL_SECONDS = 5.0
"""Seconds between two looks into an empty queue by a worker that hears when something comes in."""
_HEARTBEAT_SECONDS = 10.0
"""Seconds between two heartbeats of a worker with nothing to tell; less when a lease is short."""
_EMPTY_POLL_SECONDS = 0.25
"""The shortest time between two looks of which the first brought nothing, though requests were waiting."""
_COALESCE_SECONDS = 0.02
"""Seconds that an exchange waits for more to tell."""
_SEEDS_POLL_SECONDS = 5.0
"""Seconds between two looks for seeds from outside, by a worker that is not idle."""
_FIRST_RETRY_SECONDS, _LONGEST_RETRY_SECONDS = 0.2, 5.0
_DRAIN_SECONDS = 7.0
"""Seconds after the start of an ending after which what is still in flight goes back to the queue, and is not waited for."""
_CLOSE_SECONDS = 5.0
"""Seconds that a closing worker tries to reach Redis."""
_MAX_PENDING_PUSHES = 1000
"""Requests on their way to Redis above which no more are made of the arguments or of seeds."""


class FrontierScheduler(Scheduler):  # type: ignore[misc]  # scrapy-redis has no types
    """Hands out the requests of a run to this worker, and keeps each leased until all that came of it is safe.

    scrapy-redis' scheduler, of which the parts (`server`, `queue`, `df`), how it is made from settings, and its length are kept.
    Replaced are the round trip of each call (by a task that exchanges batches), the flushing, and the classes that its settings
    name.

    Counts under `frontier/`: `round_trips`, requests `handed_out` and `given_back`, `dead_letters`, `lost` (times that all leases
    were), `errors` (exchanges that failed) and `longest` (seconds that an exchange took).
    """

    crawler: Crawler
    spider: SharedSpider
    queue: WorkerQueue
    df: SharedDupeFilter

    def __init__(self, server: Any) -> None:
        super().__init__(server, persist=True)
        self._bound: set[Request] = set()  # requests that only this process can do, and has not done yet
        self._seeded_at: float | None = None  # when this worker heard that what the arguments name is queued
        self._asked_at = 0.0  # when the last reply was asked for
        self._wake = asyncio.Event()  # something is due
        self._exchanged = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._ending: str | None = None
        self._closed = False
        self._pages = 0
        self._under_way = False  # whether any request has ended
        self._wakeup_received = False  # whether to ask Redis at once, as there may be something for a worker that waits
        self._listening = False
        self._in_vain = False  # whether the last exchange asked for requests, and got none
        self._was_running = False
        self._last_exchange = 0.0
        self._last_seeds = -inf  # when the last look for seeds from outside began
        self._no_seeds_at = -inf  # when the last one began that found none
        self._done_since: float | None = None  # when the run was last found to have nothing to do; None while it has

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
        self.budget = site_budget(settings, spider.home)
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
                told = "Redis throws keys away when it is full (%s), and with them what is queued; set maxmemory-policy to noeviction"
                self._log(logging.WARNING, told, policy)
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
        """Tell Redis what is done and give back what is not. Nothing is flushed."""
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
                    logging.WARNING, "Redis could not be told the rest (%s): it is done again when leases end", error
                )
        self.stats.inc_value("frontier/given_back", self.queue.given_back)
        self.stats.set_value("frontier/round_trips", self.shared.round_trips + self.seeds.round_trips)
        await self.shared.disconnect()

    # --- What becomes of requests -------------------------------------------------------------------------------------

    def _request_ended(self, request: Request) -> None:
        self._under_way = True
        self._bound.discard(request)
        self.tracker.ended(request)

    def _finish(self, lease: Lease, how: How, reason: str = "") -> None:
        self.queue.end(lease.id, how, reason)
        if how == "dead":
            self.stats.inc_value("frontier/dead_letters")
            self._log(logging.ERROR, "Dead letter %s: %s", lease.id, reason)
        elif how == "back":
            self.stats.inc_value("frontier/given_back")
            if is_title(lease.request):
                # It is asked for once more, by whichever worker: this one no longer answers for it.
                self.stats.inc_value("titles/asked", -1)
                if reason == REFUSED:
                    self.stats.inc_value("titles/blocked", -1)
        self.crawler.signals.send_catch_log(lease_ended, request=lease.request, how=how, reason=reason)
        if self.queue.ends >= self.options.batch or not self.tracker.leases:
            self._wake.set()

    def _give_back_all(self) -> None:
        self.queue.give_back_ready()
        for lease in list(self.tracker.leases.values()):
            self._finish(lease, "back")
        self.tracker.forget()

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
            told = "Run %r has done all of this since this crawl was asked for, so nothing is left for this worker"
            self._log(logging.INFO, told, self.options.run)

    def _mark_seeded(self) -> None:
        self._seeded_at = self._loop.time()
        # Whether anything is left, only what is asked from now on tells.
        self._wakeup_received = True
        self._wake.set()

    async def seeded(self) -> None:
        """Tell that it is queued, once it is; what only this process can do must be done, too."""
        bound = bool(self._bound)
        while self._seeded_at is None:
            await asyncio.sleep(_COALESCE_SECONDS)
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

    async def until_low(self, waiting: int) -> None:
        """Wait until fewer than so many requests wait in the shared queue: for a spider that tops it up."""
        while self.waiting >= waiting:
            await self._next_exchange()

    async def _next_exchange(self) -> None:
        self._exchanged.clear()
        await self._exchanged.wait()

    async def begin_round(self) -> None:
        """Have what comes of `start`, and lists, asked for whatever was queued before: for a spider that tops the queue up."""
        while not self._closed:
            try:
                await self.shared.seeding("again")
            except redis.exceptions.RedisError:  # which the exchanges tell
                await asyncio.sleep(_POLL_SECONDS)
            else:
                return

    def _seeds_due(self, now: float) -> bool:
        if self._ending is not None:
            return False
        if self._done_since is not None and self._last_seeds < self._done_since:
            return True  # this crawl is over unless there are some
        return now - self._last_seeds >= (_POLL_SECONDS if self._is_idle() else _SEEDS_POLL_SECONDS)

    async def _take_seeds(self) -> None:
        """Queue what others have pushed."""
        began = self._last_seeds = self._loop.time()
        taken, others = await self.seeds.look(self.options.lease)
        if not taken and not others:
            self._no_seeds_at = began
        while self.queue.pushes:
            await self._exchange(Batch())
        await self.seeds.settle()
        if taken:
            self._last_seeds = -inf  # there may be more
            self._wake.set()

    # --- Exchange with Redis ------------------------------------------------------------------------------------------

    async def _exchange_forever(self) -> None:
        failing_since: float | None = None
        pause = _FIRST_RETRY_SECONDS
        while not self._closed:
            with suppress(TimeoutError):
                async with asyncio.timeout(self._next_look()):
                    await self._wake.wait()
            await asyncio.sleep(_COALESCE_SECONDS)
            self._wake.clear()
            try:
                await self._turn()
                failing_since, pause = None, _FIRST_RETRY_SECONDS
            except RunGoneError as error:
                self._end("frontier_gone", f"{error}: what this crawl had queued is lost; start it again")
            except redis.exceptions.RedisError as error:
                self.stats.inc_value("frontier/errors")
                if failing_since is None:
                    failing_since = self._loop.time()
                    self._log(logging.WARNING, "Redis can't be used: %s; trying again", error)
                if self._loop.time() - failing_since >= self.options.patience:
                    self._end("frontier_unreachable", f"Redis could not be used for {self.options.patience:g} s")
                await self.shared.disconnect()
                await asyncio.sleep(pause)
                pause = min(_LONGEST_RETRY_SECONDS, 2 * pause)
            except Exception:
                logger.exception("The frontier failed", extra={"spider": self.spider})
                self._end("frontier_failed", "see the error above")
                return

    async def _listen_forever(self) -> None:
        while True:
            # It is only sooner told so than found by looking: what Redis is missing, the exchanges say.
            with suppress(redis.exceptions.RedisError, OSError):
                await self.shared.listen(self._heard)
            self._listening = False
            await asyncio.sleep(_LONGEST_RETRY_SECONDS)

    def _heard(self) -> None:
        self._listening = True
        if self._is_idle():
            self._wakeup_received = True
            self._wake.set()

    def _next_look(self) -> float:
        """Return the seconds until something is due without being told."""
        if self.queue.ready:
            wait = self.queue.next_due - self._loop.time()
            return (
                min(_POLL_SECONDS, wait) if wait > 0 else _POLL_SECONDS
            )  # what is due is taken when the engine has room
        return min(_POLL_SECONDS, self._poll())

    def _poll(self) -> float:
        """Return the seconds between two looks into the queue, which has nothing for this worker now."""
        reply = self.queue.reply
        if reply is not None and not reply.waiting and self._listening:
            return _LISTENING_POLL_SECONDS
        if reply is None or reply.shut or not reply.waiting:
            return _POLL_SECONDS
        return max(_EMPTY_POLL_SECONDS if self._in_vain else _COALESCE_SECONDS, min(_POLL_SECONDS, reply.start / 1000))

    async def _turn(self) -> None:
        """Do what is due."""
        now = self._loop.time()
        if self.crawler.engine.running:
            self._was_running = True  # it is not yet while stores and extensions are opened
        elif self._was_running and self._ending is None:
            self._ending, self._drained_at = "shutdown", now + _DRAIN_SECONDS
        if self._ending is not None:
            self.queue.give_back_ready()
            if now >= self._drained_at:
                if self.tracker.leases:
                    self._log(logging.WARNING, "Giving back %d requests in flight", len(self.tracker.leases))
                    self._give_back_all()
                self._slot.abandon()
        elif self._too_old(now):
            self._end("recycled")
        if self._exchange_due(now):
            await self._exchange(Batch(want=self._want(), regardless=self.spider.has_other_source))
        if self.queue.due:
            self._slot.wake()
        if self._seeds_due(now):
            await self._take_seeds()
        if self._nothing_left() or self.queue.due:
            self._slot.wake()

    def _want(self) -> int:
        if self._ending is not None or self.queue.suspects:
            return 0
        if self._starting:
            return max(0, 1 - self._pages - self.queue.ready)
        want = self.options.batch - self.queue.ready
        if self.options.max_pages:
            want = min(want, self.options.max_pages - self._pages - self.queue.ready)
        return max(0, want)

    @property
    def _starting(self) -> bool:
        """Whether one request is enough: others would wait with it for robots.txt, and then be sent all at once."""
        return self.shared.spaced and not self._under_way

    def _more_due(self) -> bool:
        """Return whether it is worth a round trip to ask for more requests."""
        most = min(self.options.batch, self.options.max_pages - self._pages or self.options.batch)
        if self._want() < (1 if self._starting else most / 2):
            return False
        reply = self.queue.reply
        nothing = reply is not None and (not reply.waiting or reply.shut or reply.start or self._in_vain)
        return not nothing or self._loop.time() - self._last_exchange >= self._poll()

    def _exchange_due(self, now: float) -> bool:
        beat = min(self._poll() if self._is_idle() else _HEARTBEAT_SECONDS, self.options.lease / 4)
        to_tell = self.queue.pushes or self.queue.ends or self.circuit.tell_refusal or self.circuit.tell_answered
        return bool(to_tell) or self._wakeup_received or self._more_due() or now - self._last_exchange >= beat

    async def _exchange(self, batch: Batch) -> None:
        circuit = self.circuit
        batch.refusal, batch.answered = circuit.tell_refusal, circuit.tell_answered
        began = self._loop.time()
        self._wakeup_received = False
        reply = await self.queue.exchange(batch)
        now = self._last_exchange = self._loop.time()
        self.stats.max_value("frontier/longest", round(now - began, 4))
        if circuit.tell_refusal is batch.refusal:
            circuit.tell_refusal = None
        circuit.tell_answered = circuit.tell_answered and not batch.answered
        self._asked_at, self._in_vain = began, bool(batch.want and not reply.handed_out)
        if reply.open:
            self._done_since = None
        elif self._done_since is None:
            self._done_since = now
        self._exchanged.set()
        for what in reply.damaged:
            logger.error("Redis held something damaged, which was dropped: %s", what, extra={"spider": self.spider})
        if reply.lost:
            self.stats.inc_value("frontier/lost")
            # Other workers answer for these titles now.
            held = sum(is_title(lease.request) for lease in self.tracker.leases.values())
            self.stats.inc_value("titles/asked", -held)
            self.tracker.forget()
        self.stats.inc_value("frontier/handed_out", len(reply.handed_out))
        self.stats.inc_value("dupefilter/filtered", reply.dropped)
        self._heed(reply)
        for worker in reply.gone:
            back, dead = await self.shared.reap(worker)
            if back or dead:
                told = "Worker %s is gone: %d of its requests are queued again, %d are dead letters"
                self._log(logging.WARNING, told, worker, back, dead)
        if self.queue.pushes or reply.lost:
            self._wake.set()

    def _heed(self, reply: Reply) -> None:
        """Stop asking a site that has refused us or whose budget is spent; end when that takes longer than our patience.

        What was handed out before the budget was spent is a part of it, so that it is done first.
        """
        circuit = self.circuit
        if circuit.tell_refusal is not None or circuit.tell_answered:
            return  # Redis does not know yet what we know
        refused = bool(reply.shut) and not (reply.spent or reply.probing)
        circuit.probing, circuit.reason = reply.probing, reply.reason if refused else None
        if not reply.shut or reply.probing or (refused and self.spider.has_other_source):
            return
        if not self._was_running:
            return  # what is being opened must not be closed meanwhile; the next reply says the same
        why = (
            f"{reply.reason}; nothing is handed out for {reply.shut / 3_600_000:.1f} h, and what is queued stays queued"
        )
        if reply.spent:
            patience = max(self.options.patience, self.spider.idle_timeout)
            if reply.shut / 1000 > patience and self._is_idle() and not self._nothing_left():
                # Of what is due, as much was done as may be.
                self._end("budget_spent", why, logging.INFO if self.spider.refills else logging.ERROR)
            return
        self.queue.give_back_ready()
        if reply.shut / 1000 > self.options.patience:
            self._end("site_stopped", why)

    # --- Endings ------------------------------------------------------------------------------------------------------

    def _is_idle(self) -> bool:
        return not (self.queue.ready or self.queue.local or self.tracker.leases)

    def _nothing_left(self) -> bool:
        """Return whether the run is done."""
        if self._done_since is None or self.queue.pushes or self.queue.ends:
            return False
        if self._no_seeds_at < self._done_since:
            return False  # it may go on with seeds from outside
        # What was asked before may be from a time when nothing was queued yet.
        return self._seeded_at is not None and self._asked_at > self._seeded_at

    def _too_old(self, now: float) -> bool:
        pages, seconds = self.options.max_pages, self.options.max_seconds
        return bool((pages and self._pages >= pages) or (seconds and now - self._started >= seconds))

    def _end(self, reason: str, why: str | None = None, level: int = logging.ERROR) -> None:
        if self._ending is not None:
            return
        self._ending, self._drained_at = reason, self._loop.time() + _DRAIN_SECONDS
        if why is not None:
            self._log(level, "%s", why)
        self._close_task = self._loop.create_task(self.crawler.engine.close_spider_async(reason=reason))

    def _spider_idle(self) -> None:
        """Keep the spider open while the run has requests, here or on other nodes."""
        if self.queue.local:
            return  # another handler has just found something to do
        self.tracker.give_up()
        now = self._loop.time()
        if not self._nothing_left():
            self._idle_since = now
        if not self._nothing_left() or now - self._idle_since < self.options.idle:
            raise DontCloseSpider

    def _log(self, level: int, sentence: str, *arguments: object) -> None:
        logger.log(level, sentence, *arguments, extra={"spider": self.spider})
