"""The task that exchanges batches with Redis: new requests and acknowledgements go out, leased requests come in."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from math import inf
from typing import TYPE_CHECKING, Any

import redis.exceptions
from scrapy_redis.scheduler import Scheduler

from moviecrawler.frontier.leases import REFUSED, LeaseTracker
from moviecrawler.frontier.queue import Batch, RunGoneError, SharedQueue
from moviecrawler.frontier.worker_queue import WorkerQueue, is_title
from moviecrawler.signals import lease_ended

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.crawler import Crawler

    from moviecrawler.frontier.circuit import SharedCircuit
    from moviecrawler.frontier.dupefilter import SharedDupeFilter
    from moviecrawler.frontier.leases import How, Lease
    from moviecrawler.frontier.queue import Reply
    from moviecrawler.frontier.seeds import Seeds
    from moviecrawler.frontier.spider import SharedSpider
    from moviecrawler.options import FrontierOptions

logger = logging.getLogger(__name__)

POLL_SECONDS = 1.0
"""Seconds between two looks for seeds and into an empty queue, and the longest that anything waits to be sent to Redis."""
_LISTENING_POLL_SECONDS = 5.0
"""Seconds between two looks into an empty queue by a worker that is subscribed to new requests."""
_HEARTBEAT_SECONDS = 10.0
"""Seconds between two heartbeats of a worker that has nothing to send; less when a lease is short."""
_EMPTY_POLL_SECONDS = 0.25
"""The shortest time until the next look after one that brought nothing although requests were waiting."""
COALESCE_SECONDS = 0.02
"""Seconds that an exchange waits for more to send."""
_SEEDS_POLL_SECONDS = 5.0
"""Seconds between two looks for seeds from outside, by a worker that is not idle."""
_FIRST_RETRY_SECONDS, _LONGEST_RETRY_SECONDS = 0.2, 5.0
_DRAIN_SECONDS = 7.0
"""Seconds that an ending worker waits for requests in flight before it gives them back to the queue."""


class ExchangingScheduler(Scheduler):  # type: ignore[misc]  # scrapy-redis has no types
    """The part of the scheduler that talks with Redis: when it does, what it sends, and when it ends the crawl."""

    crawler: Crawler
    spider: SharedSpider
    queue: WorkerQueue
    df: SharedDupeFilter
    options: FrontierOptions
    shared: SharedQueue
    tracker: LeaseTracker
    circuit: SharedCircuit
    seeds: Seeds

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
        self._is_queue_empty = False  # as of the last exchange
        self._done_since: float | None = None  # when the run was last found to have nothing to do; None while it has

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

    # --- The task -----------------------------------------------------------------------------------------------------

    async def _exchange_forever(self) -> None:
        failing_since: float | None = None
        pause = _FIRST_RETRY_SECONDS
        while not self._closed:
            with suppress(TimeoutError):
                async with asyncio.timeout(self._next_look()):
                    await self._wake.wait()
            await asyncio.sleep(COALESCE_SECONDS)
            self._wake.clear()
            try:
                await self._step()
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
            # Pub/sub only shortens the wait; the exchange itself reports Redis errors.
            with suppress(redis.exceptions.RedisError, OSError):
                await self.shared.listen(self._woken)
            self._listening = False
            await asyncio.sleep(_LONGEST_RETRY_SECONDS)

    def _woken(self) -> None:
        self._listening = True
        if self._is_idle():
            self._wakeup_received = True
            self._wake.set()

    def _next_look(self) -> float:
        """Return the seconds until the next step, if nothing wakes the task before."""
        if self.queue.ready:
            wait = self.queue.next_due - self._loop.time()
            return (
                min(POLL_SECONDS, wait) if wait > 0 else POLL_SECONDS
            )  # what is due is taken when the engine has room
        return min(POLL_SECONDS, self._poll())

    def _poll(self) -> float:
        """Return the seconds between two looks into the queue, which has nothing for this worker now."""
        reply = self.queue.reply
        if reply is not None and not reply.waiting and self._listening:
            return _LISTENING_POLL_SECONDS
        if reply is None or reply.shut or not reply.waiting:
            return POLL_SECONDS
        return max(_EMPTY_POLL_SECONDS if self._in_vain else COALESCE_SECONDS, min(POLL_SECONDS, reply.start / 1000))

    async def _step(self) -> None:
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
        elif self._is_recyclable(now):
            self._end("recycled")
        if self._exchange_due(now):
            await self._exchange(Batch(want=self._want()))
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
        to_send = self.queue.pushes or self.queue.ends or self.circuit.pending_refusal or self.circuit.pending_answer
        return bool(to_send) or self._wakeup_received or self._more_due() or now - self._last_exchange >= beat

    async def _exchange(self, batch: Batch) -> None:
        circuit = self.circuit
        batch.refusal, batch.answered = circuit.pending_refusal, circuit.pending_answer
        began = self._loop.time()
        self._wakeup_received = False
        reply = await self.queue.exchange(batch)
        now = self._last_exchange = self._loop.time()
        self.stats.max_value("frontier/longest", round(now - began, 4))
        if circuit.pending_refusal is batch.refusal:
            circuit.pending_refusal = None
        circuit.pending_answer = circuit.pending_answer and not batch.answered
        self._asked_at, self._in_vain = began, bool(batch.want and not reply.handed_out)
        self._is_queue_empty = not reply.waiting
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
        self._apply_limits(reply)
        for worker in reply.gone:
            back, dead = await self.shared.reap(worker)
            if back or dead:
                message = "Worker %s is gone: %d of its requests are queued again, %d are dead letters"
                self._log(logging.WARNING, message, worker, back, dead)
        if self.queue.pushes or reply.lost:
            self._wake.set()

    async def _next_exchange(self) -> None:
        self._exchanged.clear()
        await self._exchanged.wait()

    def _apply_limits(self, reply: Reply) -> None:
        """Stop asking a site that has refused us or whose budget is spent; end when that takes longer than our patience.

        What was handed out before the budget was spent is a part of it, so that it is done first.
        """
        circuit = self.circuit
        if circuit.pending_refusal is not None or circuit.pending_answer:
            return  # Redis does not know yet what we know
        refused = bool(reply.shut) and not (reply.spent or reply.probing)
        circuit.probing, circuit.reason = reply.probing, reply.reason if refused else None
        if not reply.shut or reply.probing:
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

    # --- Seeds from outside ---------------------------------------------------------------------------------------------

    def _seeds_due(self, now: float) -> bool:
        if self._ending is not None:
            return False
        if self._done_since is not None and self._last_seeds < self._done_since:
            return True  # this crawl is over unless there are some
        return now - self._last_seeds >= (POLL_SECONDS if self._is_idle() else _SEEDS_POLL_SECONDS)

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

    def _is_recyclable(self, now: float) -> bool:
        pages, seconds = self.options.max_pages, self.options.max_seconds
        return bool((pages and self._pages >= pages) or (seconds and now - self._started >= seconds))

    def _end(self, reason: str, why: str | None = None, level: int = logging.ERROR) -> None:
        if self._ending is not None:
            return
        self._ending, self._drained_at = reason, self._loop.time() + _DRAIN_SECONDS
        if why is not None:
            self._log(level, "%s", why)
        self._close_task = self._loop.create_task(self.crawler.engine.close_spider_async(reason=reason))

    def _log(self, level: int, sentence: str, *arguments: object) -> None:
        logger.log(level, sentence, *arguments, extra={"spider": self.spider})
