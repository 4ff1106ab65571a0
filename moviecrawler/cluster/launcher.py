"""The node's launcher.

It takes jobs into free slots, records how they end, and sends the node's heartbeats.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import redis
from scrapyd.interfaces import IEggStorage, IEnvironment, IPoller
from scrapyd.launcher import Launcher
from twisted.internet.defer import Deferred, DeferredQueue
from twisted.internet.task import LoopingCall, deferLater
from twisted.internet.threads import deferToThread, deferToThreadPool
from twisted.logger import Logger
from twisted.python.threadpool import ThreadPool

from moviecrawler.basics.credentials import redacted
from moviecrawler.basics.errors import ConfigurationError
from moviecrawler.cluster.figures import Totals
from moviecrawler.cluster.fitness import Fitness
from moviecrawler.cluster.jobs import check_job
from moviecrawler.cluster.process import (
    POLL_SECONDS,
    SpiderProcess,
    last_lines,
    memory_of,
    reactor,
    spider_settings,
)
from moviecrawler.cluster.state import NodeInfo
from moviecrawler.frontier.redis_client import state_error
from moviecrawler.scrapy_internals import free_slot, run_jobs_by
from moviecrawler.sites import SITES

if TYPE_CHECKING:
    from scrapyd.config import Config

    from moviecrawler.cluster.jobs import Outcome, Result, RunEnd
    from moviecrawler.cluster.state import Beat, JobStatus

journal = Logger()

_DRAIN_SECONDS = 30.0
"""Seconds after which a node that is stopped ends. Its spiders are told to end at once, and killed
5 s before that."""
_BEATS = 3
"""Heartbeats within `lease_seconds`."""


class ClusterLauncher(Launcher):  # type: ignore[misc]  # Scrapyd has no types
    """Scrapyd's launcher with leases.

    Each job's end is recorded in Redis, and a node that ends gives its jobs to others.
    """

    def __init__(self, config: Config, app: Any) -> None:
        super().__init__(config, app)
        run_jobs_by(self, self.run_job)
        config.node.launcher = self
        self.options = config.node.options
        self.state = config.node.state
        self.node_id = f"{self.options.node_name}:{uuid4().hex[:8]}"
        self.slots: dict[int, SpiderProcess] = {}
        """This node's own jobs."""
        self._pool = ThreadPool(0, 1, "node")
        """The thread that asks Redis, so that a heartbeat waits for no web service."""
        self.draining = False
        self.last_beat_at = float("-inf")
        """When Redis accepted the last heartbeat, by the monotonic clock."""
        self._free: DeferredQueue[JobStatus] = app.getComponent(IPoller).dq
        """The queue at which Scrapyd's free slots wait for a job."""
        self._started_at = time.time()
        self.totals = Totals(SITES)
        """The figures of this node's spiders, running and ended."""
        self.fitness = Fitness(self.options)
        self._polling = LoopingCall(self._poll)
        self._seen: bytes | None = None
        """The last change of the cluster that this node has handled."""
        self._reported: Any = None
        self._next_beat = 0.0
        """When the next heartbeat is due at the latest, by the monotonic clock."""
        self.outage = "Redis has not answered yet"
        """Why Redis can't be used; empty when it answers."""
        self._outages: set[str] = set()
        """What was logged of the present outage."""

    @property
    def not_ready(self) -> list[str]:
        """Why the node takes no jobs; empty when it does as soon as a slot is free."""
        if self.draining:
            return ["the node is draining"]
        if self.outage:
            return [self.outage]
        if time.monotonic() - self.last_beat_at > self.options.lease_seconds:
            return ["Redis takes no heartbeat"]
        return list(self.fitness.faults.values())

    # --- Life -------------------------------------------------------------------------------------

    def startService(self) -> None:
        self._pool.start()
        reactor.addSystemEventTrigger("after", "shutdown", self._pool.stop)
        super().startService()
        self._polling.start(POLL_SECONDS)

    def stopService(self) -> Deferred[None]:
        """Drain the node.

        Take no more jobs, have spiders end, hand their jobs back, and leave the cluster.
        """
        return Deferred.fromCoroutine(self._drain())

    async def _drain(self) -> None:
        self.draining = True
        journal.info("Draining: {count} jobs run", count=len(self.slots))
        for process in self.slots.values():
            process.stop()
        until = time.monotonic() + _DRAIN_SECONDS
        while self.slots and time.monotonic() < until:
            await deferLater(reactor, POLL_SECONDS / 10)
        stopped: Any = self._polling.deferred
        self._polling.stop()
        await stopped  # as a heartbeat after its leaving would make the node join again
        try:
            await self.ask(self.state.leave, self.node_id)
        except redis.exceptions.RedisError as error:
            journal.warn(
                "{why}; the other nodes will take this one for dead",
                why=state_error(error),
            )

    def ask(self, function: Any, *arguments: Any, **options: Any) -> Any:
        """Call a method of the cluster's state in a thread."""
        return deferToThreadPool(reactor, self._pool, function, *arguments, **options)

    # --- A slot's job -----------------------------------------------------------------------------

    def run_job(self, message: JobStatus, slot: int) -> None:
        """Run the job that a slot has got."""
        process = SpiderProcess(message, self.totals)
        self.slots[slot] = process
        Deferred.fromCoroutine(self._run(process))

    async def _run(self, process: SpiderProcess) -> None:
        result: Result | None = None
        try:
            how, reason = await self._crawl(process)
        except ConfigurationError as error:
            how = "finished"
            reason = str(error)
            result = "usage"
        except redis.exceptions.RedisError as error:
            how = "handed_back"
            reason = state_error(error)
        except Exception as error:  # noqa: BLE001 - the disk or the system may fail
            how = "node_failed"
            reason = f"its node can't start it: {error}"
        reason = redacted(reason)
        outcome = process.report.outcome(how, reason)
        outcome.result = result or outcome.result
        process.end = how, outcome
        if how == "node_failed" or (how == "handed_back" and not process.report.stopped):
            sentence = f"a job could not be run here: {process.job.key}, {reason}"
            self.fitness.note_failure(sentence)
        journal.info(
            "{job} {how}: {reason}", job=process.job.key, how=how.replace("_", " "), reason=reason
        )

    async def _crawl(self, process: SpiderProcess) -> tuple[RunEnd, str]:
        # It is checked again, as it may come from a node with other options.
        check_job(process.job, self.options.job_settings)
        eggs = self.app.getComponent(IEggStorage)
        try:
            return await self._crawl_from(eggs, process)
        finally:
            eggs.release(process)

    async def _crawl_from(self, eggs: Any, process: SpiderProcess) -> tuple[RunEnd, str]:
        version = process.leased.version
        folder = await deferToThread(eggs.fetch, process, process.job.project, version)
        settings = self._settings(process)
        report = process.report
        if not report.cancelled and not report.stopped:
            await process.start(folder, settings)
            if report.reason is None:
                log = Path(settings["LOG_FILE"])
                report.errors = await deferToThread(last_lines, log, report.errors)
        return report.classify()

    def _settings(self, process: SpiderProcess) -> dict[str, str]:
        """Return a job's settings. Raises OSError when the folder of its log can't be made."""
        job = process.job
        message = {"_project": job.project, "_spider": job.spider, "_job": job.id}
        scrapyds = self.app.getComponent(IEnvironment).get_settings(message)
        return spider_settings(self.options, process.leased, scrapyds)

    # --- The cluster ------------------------------------------------------------------------------

    def _poll(self) -> Deferred[None]:
        exchanged: Deferred[None] = Deferred.fromCoroutine(self._exchange())
        return exchanged.addErrback(
            lambda failure: journal.failure("The exchange with the cluster failed", failure)
        )

    async def _exchange(self) -> None:
        """Record the ends of jobs, and send a heartbeat when it is time.

        A heartbeat may bring a job for a free slot. This is called each second. While nothing has
        changed, its only round trip is to read `keys.CHANGED`.
        """
        try:
            for slot, process in list(self.slots.items()):
                if process.end is not None:
                    await self._record_end(slot, process, process.end)
            changed = await self.ask(self.state.changed)
            takes = bool(self._free.waiting) and not self.draining
            is_change = (changed is None or changed != self._seen) and bool(takes or self.slots)
            is_news = self._news(self.info(), takes) != self._reported
            is_due = bool(self.outage) or time.monotonic() >= self._next_beat
            if is_change or is_news or is_due:
                await self.ask(self.fitness.look, self.state)
                info = self.info()
                await self._beat(info, takes=takes and info.takes_jobs)
            self._seen = changed
        except redis.exceptions.RedisError as error:
            self._seen = None
            self.fitness.forget_redis()
            self.outage = state_error(error)
            if self.outage not in self._outages:
                self._outages.add(self.outage)
                journal.warn(
                    "{why}; spiders go on, and the node tries again", why=redacted(self.outage)
                )

    def _news(self, info: NodeInfo, takes: bool) -> tuple[Any, ...]:
        """Return what the other nodes hear of at once."""
        state = info.draining, info.unfit, info.unreachable
        return *state, info.processes, takes and info.takes_jobs

    async def _record_end(
        self, slot: int, process: SpiderProcess, end: tuple[RunEnd, Outcome]
    ) -> None:
        """Record how a job ended, and free its slot."""
        if not await self.ask(self.state.record_end, self.node_id, process.leased, *end):
            journal.warn("{job} had already been given to another node", job=process.job.key)
        self.totals.end(process)
        del self.slots[slot]
        if not self.draining:
            free_slot(self, slot)

    def info(self) -> NodeInfo:
        """Return what a heartbeat reports of this node."""
        # A copy, as the threads of /metrics ask, too.
        running = [process for process in list(self.slots.values()) if process.pid is not None]
        return NodeInfo(
            id=self.node_id,
            name=self.options.node_name,
            url=self.options.node_url,
            slots=self.max_proc,
            started_at=self._started_at,
            draining=self.draining,
            unfit=self.fitness.faults,
            unfit_since=self.fitness.since,
            unreachable={
                site: why
                for process in running
                for site, why in (process.report.unreachable or {}).items()
            },
            memory=memory_of(),
            spiders_memory=sum(memory_of(process.pid) for process in running),
            processes={one.job.key: (one.pid or 0, one.leased.version) for one in running},
        )

    async def _beat(self, info: NodeInfo, *, takes: bool) -> None:
        """Send a heartbeat, and act on the answer."""
        own = {process.leased.queue_member: process for process in self.slots.values()}
        now = time.monotonic()
        news = self._news(info, takes)
        is_news = news != self._reported
        beat: Beat = await self.ask(self.state.beat, info, list(own), is_news=is_news, takes=takes)
        self._reported = news
        self.last_beat_at = now
        if self.outage:  # a full Redis can be read, but takes no heartbeat
            self.outage = ""
            self._outages.clear()
            journal.info("Redis answers")
        self.fitness.note_clock(beat.clock_ahead)
        # When another node's lease ends, this heartbeat queues that node's jobs again. The nearest
        # poll sends it: the next one after that time might be so late that the cluster would think
        # that Redis was away.
        self._next_beat = (
            now + min(self.options.lease_seconds / _BEATS, beat.next_end) - POLL_SECONDS / 2
        )
        for node in beat.dead:
            journal.warn("Node {node} is dead: its jobs are queued again", node=node)
        for member in beat.stop:
            if not own[member].report.stopped:
                job = own[member].job.key
                journal.warn("{job} is over, or runs elsewhere now; stopping it here", job=job)
                own[member].stop()
        for member, signal in beat.cancels.items():
            if signal != own[member].report.cancelled:
                job = own[member].job.key
                journal.info("Cancelling {job} by {signal}", job=job, signal=signal)
                own[member].cancel(signal)
        # A node that drains since drops the job. Its own next heartbeats queue it again, or another
        # node's once this one has left.
        if beat.taken is not None and not self.draining:
            self._free.put(beat.taken)
