"""The node's launcher.

It takes jobs into free slots, records how they end, and sends the node's heartbeats.
"""

from __future__ import annotations

import secrets
import time
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, ParamSpec, TypeVar

import redis
from msgspec.structs import replace
from scrapyd.interfaces import IEggStorage, IEnvironment
from twisted.application.service import Service
from twisted.internet.defer import Deferred
from twisted.internet.task import LoopingCall, deferLater
from twisted.internet.threads import deferToThread, deferToThreadPool
from twisted.logger import Logger
from twisted.python.threadpool import ThreadPool

from moviecrawler.basics.credentials import redacted
from moviecrawler.basics.errors import ConfigurationError
from moviecrawler.cluster.figures import Totals
from moviecrawler.cluster.fitness import Fitness
from moviecrawler.cluster.jobs import WRONG_USAGE, check_job
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
from moviecrawler.sites import SITES

if TYPE_CHECKING:
    from collections.abc import Callable

    from scrapyd.config import Config
    from twisted.python.components import Componentized

    from moviecrawler.cluster.jobs import Outcome, RunEnd

journal = Logger()
P = ParamSpec("P")
T = TypeVar("T")

_DRAIN_SECONDS = 30.0
"""Seconds after which a node that is stopped ends. Its spiders get SIGTERM at once, and are killed
5 s before that."""
_BEATS = 3
"""Heartbeats within `lease_seconds`."""


class _News(NamedTuple):
    """What a heartbeat reports to the other nodes at once."""

    info: NodeInfo
    """What the node reports, without its memory."""
    takes: bool
    """Whether it takes a job now."""


class ClusterLauncher(Service):
    """Runs jobs in place of Scrapyd's launcher, which has no leases.

    Each job's end is recorded in Redis, and a node that ends gives its jobs to others.
    """

    name = "launcher"

    def __init__(self, config: Config, app: Componentized) -> None:
        self.app = app
        config.node.launcher = self
        self.options = config.node.options
        self.state = config.node.state
        self.node_id = f"{self.options.node_name}:{secrets.token_hex(4)}"
        self.jobs: list[SpiderProcess] = []
        """This node's own jobs, one in each slot that is not free."""
        self._pool = ThreadPool(0, 1, "node")
        """The thread that calls Redis, so that a heartbeat waits for no web service."""
        self.draining = False
        self.last_beat_at = float("-inf")
        """When Redis accepted the last heartbeat, by the monotonic clock."""
        self._started_at = time.time()
        self.totals = Totals(SITES)
        """The figures of this node's spiders, running and ended."""
        self.fitness = Fitness(self.options)
        self._polling = LoopingCall(self._poll)
        self._stopped: Deferred[LoopingCall]
        """Fires when the last poll has ended; it is there once the service has started."""
        self._seen: bytes | None = None
        """The last change of the cluster that this node has handled."""
        self._reported: _News | None = None
        self._next_beat = 0.0
        """When the next heartbeat is due at the latest, by the monotonic clock."""
        self.outage = "Redis has not replied yet"
        """Why Redis is unavailable; empty when it is not."""

    @property
    def unready_reasons(self) -> list[str]:
        """Why the node takes no jobs; empty when it does as soon as a slot is free."""
        if self.draining:
            return ["the node is draining"]
        if self.outage:
            return [self.outage]
        if time.monotonic() - self.last_beat_at > self.options.lease_seconds:
            return ["Redis accepts no heartbeat"]
        return list(self.fitness.faults.values())

    # --- Life -------------------------------------------------------------------------------------

    def startService(self) -> None:
        self._pool.start()
        reactor.addSystemEventTrigger("after", "shutdown", self._pool.stop)
        self._stopped = self._polling.start(POLL_SECONDS)
        journal.info("Started with {slots} slots", slots=self.options.max_proc)

    def stopService(self) -> Deferred[None]:
        """Drain the node.

        Take no more jobs, have spiders end, hand their jobs back, and leave the cluster.
        """
        return Deferred.fromCoroutine(self._drain())

    async def _drain(self) -> None:
        self.draining = True
        journal.info("Draining, with {count} running jobs", count=len(self.jobs))
        for process in self.jobs:
            process.stop()
        until = time.monotonic() + _DRAIN_SECONDS
        while self.jobs and time.monotonic() < until:
            await deferLater(reactor, POLL_SECONDS / 10)
        self._polling.stop()
        await self._stopped  # as a heartbeat after its leaving would make the node join again
        try:
            await self.call(self.state.leave, self.node_id)
        except redis.exceptions.RedisError as error:
            journal.warn(
                "{why}; the other nodes will count this one as lost",
                why=state_error(error),
            )

    def call(
        self, function: Callable[P, T], *arguments: P.args, **options: P.kwargs
    ) -> Deferred[T]:
        """Call a method of the cluster's state in a thread."""
        return deferToThreadPool(reactor, self._pool, function, *arguments, **options)

    # --- A job ------------------------------------------------------------------------------------

    async def _run(self, process: SpiderProcess) -> None:
        """Run a job, and note how it ended."""
        report = process.report
        try:
            how, reason = await self._crawl(process)
        except ConfigurationError as error:
            how = "finished"
            reason = str(error)
            report.exit_code = WRONG_USAGE
        except redis.exceptions.RedisError as error:
            how = "handed_back"
            reason = state_error(error)
        except Exception as error:  # noqa: BLE001 - the disk or the system may fail
            how = "node_failed"
            reason = f"its node can't start it: {error}"
        reason = redacted(reason)
        process.end = how, report.outcome(how, reason)
        if how == "node_failed" or (how == "handed_back" and not report.stopped):
            sentence = f"a job could not be run here: {process.job.key}, {reason}"
            self.fitness.note_failure(sentence)
        journal.info(
            "{job} {how}: {reason}", job=process.job.key, how=how.replace("_", " "), reason=reason
        )

    async def _crawl(self, process: SpiderProcess) -> tuple[RunEnd, str]:
        # It is checked again, as it may come from a node with other options.
        check_job(process.job, self.options.job_settings)
        eggs = self.app.getComponent(IEggStorage)
        report = process.report
        project = process.job.project
        try:
            folder = await deferToThread(eggs.fetch, process, project, process.leased.version)
            settings = self._settings(process)
            if not report.cancelled and not report.stopped:
                await process.start(folder, settings)
                if report.reason is None:
                    log = Path(settings["LOG_FILE"])
                    report.errors = await deferToThread(last_lines, log, report.errors)
            return report.classify()
        finally:
            eggs.release(process)

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

        A heartbeat may bring a job. This is called each second. While nothing has
        changed, its only round trip is to read `keys.STATE_VERSION`.
        """
        try:
            for process in list(self.jobs):
                if process.end is not None:
                    await self._record_end(process, process.end)
            version = await self.call(self.state.version)
            is_changed = version is None or version != self._seen
            is_concerned = self._has_free_slot or bool(self.jobs)
            is_due = bool(self.outage) or time.monotonic() >= self._next_beat
            if is_due or (is_changed and is_concerned) or self._news(self.info()) != self._reported:
                await self.call(self.fitness.check, self.state)
                await self._beat()
            self._seen = version
        except redis.exceptions.RedisError as error:
            self._seen = None
            outage = state_error(error)
            if outage != self.outage:
                journal.warn("{why}; spiders continue, and the node retries", why=redacted(outage))
            self.outage = outage

    @property
    def _has_free_slot(self) -> bool:
        return len(self.jobs) < self.options.max_proc and not self.draining

    def _news(self, info: NodeInfo) -> _News:
        takes = self._has_free_slot and info.takes_jobs
        return _News(replace(info, memory=0, spiders_memory=0), takes)

    async def _record_end(self, process: SpiderProcess, end: tuple[RunEnd, Outcome]) -> None:
        """Record how a job ended, and free its slot."""
        how, outcome = end
        if not await self.call(self.state.record_end, self.node_id, process.leased, how, outcome):
            journal.warn("{job} had already been given to another node", job=process.job.key)
        self.totals.end(process)
        self.jobs.remove(process)

    def info(self) -> NodeInfo:
        """Return what a heartbeat reports of this node."""
        # A copy, as the threads of /metrics call this, too.
        running = [process for process in list(self.jobs) if process.pid is not None]
        return NodeInfo(
            id=self.node_id,
            name=self.options.node_name,
            url=self.options.node_url,
            slots=self.options.max_proc,
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
            processes={
                process.job.key: (process.pid or 0, process.leased.version) for process in running
            },
        )

    async def _beat(self) -> None:
        """Send a heartbeat, and act on the reply."""
        info = self.info()
        news = self._news(info)
        own = {process.leased.queue_member: process for process in self.jobs}
        now = time.monotonic()
        beat = await self.call(
            self.state.beat, info, list(own), is_news=news != self._reported, takes=news.takes
        )
        self._reported = news
        self.last_beat_at = now
        if self.outage:  # a full Redis can be read, but accepts no heartbeat
            self.outage = ""
            journal.info("Redis is available again")
        self.fitness.note_clock(beat.clock_ahead)
        # When another node's lease ends, this heartbeat queues that node's jobs again. The nearest
        # poll sends it: the next one after that time might be so late that the cluster would think
        # that Redis was unavailable.
        self._next_beat = (
            now + min(self.options.lease_seconds / _BEATS, beat.next_end) - POLL_SECONDS / 2
        )
        for node in beat.dead:
            journal.warn("Node {node} is lost: its jobs are requeued", node=node)
        for member in beat.stop:
            if not own[member].report.stopped:
                job = own[member].job.key
                journal.warn("{job} has finished, or runs elsewhere now; stopping it here", job=job)
                own[member].stop()
        for member, signal in beat.cancels.items():
            if signal != own[member].report.cancelled:
                job = own[member].job.key
                journal.info("Cancelling {job} by {signal}", job=job, signal=signal)
                own[member].cancel(signal)
        # A node that drains since drops the job. Its own next heartbeats queue it again, or another
        # node's once this one has left.
        if beat.taken is not None and not self.draining:
            process = SpiderProcess(beat.taken, self.totals)
            self.jobs.append(process)
            Deferred.fromCoroutine(self._run(process))
