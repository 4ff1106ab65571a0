"""Running jobs, from a free slot to a recorded outcome, and the heartbeats by which the node keeps its jobs."""

from __future__ import annotations

import os
import platform
import time
from dataclasses import dataclass
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import redis
from twisted.application.service import Service
from twisted.internet.defer import Deferred, DeferredLock
from twisted.internet.task import LoopingCall
from twisted.logger import Logger

from moviecrawler.cluster.environment import (
    append_log_line,
    last_line,
    log_path,
    memory_of,
    spider_environment,
    spider_settings,
)
from moviecrawler.cluster.jobs import BadEggError, Outcome, UnknownVersionError, check_job, classify_end
from moviecrawler.cluster.poller import Poller
from moviecrawler.cluster.process import SpiderProcess
from moviecrawler.cluster.state import NodeInfo, Process
from moviecrawler.cluster.threads import Threads, pause, reactor
from moviecrawler.errors import ConfigurationError
from moviecrawler.outages import Outages

if TYPE_CHECKING:
    from collections.abc import Callable

    from moviecrawler.cluster.eggs import EggStore
    from moviecrawler.cluster.jobs import Job, RunEnd
    from moviecrawler.cluster.state import Beat, ClusterState

journal = Logger()

_PACKAGES = ("moviecrawler", "scrapy", "scrapyd", "twisted")
"""Packages whose versions a node publishes."""
_BEATS = 4
"""Heartbeats within `lease_seconds`."""
_FETCH_THREADS = 2
"""Eggs that are fetched at once."""
_RETRY_SECONDS = 1.0
"""Seconds until Redis is asked again."""
_UNSTARTED_SECONDS, _DOUBLINGS = 2.0, 4
"""Seconds for which a slot takes no job after one could not be started here, and how often they double when that happens again."""
_LEAVE_SECONDS = 5.0
"""Seconds that killed spiders may take to end when the node ends."""
_DRAIN_CHECK_SECONDS = 0.05
"""Seconds between two checks whether jobs still run, while the node drains."""
_BEAT_SOON_SECONDS = 0.2
"""Seconds after a change until the next heartbeat reports it."""


class _NotStartedError(Exception):
    """This node can't start a job, for a reason that has nothing to do with the job."""


@dataclass(slots=True, kw_only=True, eq=False)
class _HeldJob:
    """A job that this node holds."""

    job: Job
    started_at: float
    """Seconds since 1970."""
    sha256: str = ""
    """The hash of the egg that the process uses."""
    version: str | None = None
    """That egg's."""
    process: SpiderProcess | None = None
    cancels: int = 0
    """How often its cancellation was requested."""
    stopped: bool = False
    """Whether this node has signalled its process to end."""


class ClusterLauncher(Service):
    """Keeps every slot busy with a job, and records in Redis how each ended."""

    def __init__(self, state: ClusterState, eggs: EggStore) -> None:
        self.options = state.options
        self.state = state
        self.poller = Poller(state, self._beat_soon)
        self.eggs = eggs
        self.draining = False
        self.beaten_at: float | None = None
        """When Redis accepted the last heartbeat, by the monotonic clock; None before the first."""
        self._started_at = time.time()
        self._versions = {**{name: version(name) for name in _PACKAGES}, "python": platform.python_version()}
        self._held: dict[str, _HeldJob] = {}
        # A heartbeat names the jobs that the node holds, so no job's end may be recorded while one is being sent.
        self._beat_lock = DeferredLock()
        self._beats = LoopingCall(self.beat)
        self._polls = LoopingCall(self.poller.poll)
        # Separate threads, as a heartbeat must not wait for a slow fetch of an egg.
        self._fetching = Threads("eggs", _FETCH_THREADS)
        self._left = False
        self._outages = Outages()
        self._retry: Any = None

    # --- Life ---------------------------------------------------------------------------------------------------------

    def startService(self) -> None:
        super().startService()
        self.poller.threads.start()
        self._fetching.start()
        self._beats.start(self.options.lease_seconds / _BEATS)
        self._polls.start(self.options.poll_interval)
        for _ in range(self.options.max_proc):
            filling = Deferred.fromCoroutine(self._fill_slot())
            filling.addErrback(lambda failure: journal.failure("A slot takes no more jobs", failure))
        journal.info("Node {node}: {slots} slots", node=self.poller.node, slots=self.options.max_proc)

    def stopService(self) -> Deferred[None]:
        """Drain: take no more jobs, let spiders end within the limits, hand the other jobs back, and leave the cluster."""
        super().stopService()
        return Deferred.fromCoroutine(self._drain())

    async def _drain(self) -> None:
        self.draining = True
        self.poller.stop()
        self._beat_soon()
        journal.info("Draining: {count} jobs run", count=len(self._held))
        if not await self._ended_within(self.options.drain_seconds):
            for signal, seconds in (("TERM", self.options.stop_seconds), ("KILL", _LEAVE_SECONDS)):
                for held in self._held.values():
                    self._stop(held, signal)
                if await self._ended_within(seconds):
                    break
        self._beats.stop()
        self._polls.stop()
        self._left = True
        try:
            await self._beat_lock.run(self.poller.threads.run, self.state.leave, self.poller.node)
        except redis.exceptions.RedisError as error:
            journal.warn("Redis can't be reached ({error}): other nodes will find this one dead", error=error)
        journal.info("Drained")

    async def _ended_within(self, seconds: float) -> bool:
        """Wait until no job runs here; return False when that takes longer."""
        until = time.monotonic() + seconds
        while self._held and time.monotonic() < until:
            await pause(_DRAIN_CHECK_SECONDS)
        return not self._held

    # --- A slot's job -------------------------------------------------------------------------------------------------

    async def _fill_slot(self) -> None:
        """Run one job after the other, until the node is stopped."""
        unstarted = 0
        while not self.draining:
            if await self._run(await self.poller.next()):
                unstarted = 0
            elif not self.draining:
                # Another node may be able to start it, or this one later: its disk may be full, or Redis unreachable.
                await pause(_UNSTARTED_SECONDS * 2 ** min(unstarted, _DOUBLINGS))
                unstarted += 1

    async def _run(self, job: Job) -> bool:
        """Run a job and record its end; return False when it could not be started here."""
        held = self._held[job.key] = _HeldJob(job=job, started_at=time.time())
        could_start = True
        try:
            how, reason = await self._crawl(held)
        except _NotStartedError as error:
            journal.warn("{job} can't be started here: {error}", job=job.key, error=error)
            how, reason, could_start = "handed_back", "its node can't start it", False
        except Exception:  # noqa: BLE001 - the slot must become free after any error
            journal.failure("Running {job} failed", job=job.key)
            how, reason = "died", "its node failed"
        await self._record_end(held, how, reason)
        return could_start

    async def _crawl(self, held: _HeldJob) -> tuple[RunEnd, str]:
        job, run = held.job, self._fetching.run
        try:
            check_job(job)  # again, as another version of a node, or a client of Redis, may have queued it
            in_use = {other.sha256 for other in self._held.values()}
            egg, path = await run(self.eggs.fetch, job.project, job.version, in_use)
            held.sha256, held.version = egg.sha256, egg.version
            settings = await run(spider_settings, self.options, job)
        except (ConfigurationError, UnknownVersionError, BadEggError) as error:
            return "finished", str(error)
        except Exception as error:  # of Redis or the disk
            raise _NotStartedError(error) from error
        if held.cancels:
            return "cancelled", "cancelled"
        if held.stopped or self.draining:
            return "handed_back", "its node was stopped"
        process = SpiderProcess(
            *(job, path, settings, spider_environment(os.environ)),
            hang_seconds=self.options.hang_seconds,
        )
        try:
            process.start()
        except OSError as error:  # out of memory, processes or open files
            raise _NotStartedError(error) from error
        held.process = process
        self._beat_soon()
        await process.ended
        last_error = process.last_error
        if process.report is None:
            log = log_path(self.options, job.project, job.spider, job.id)
            if why := process.traceback or last_error:
                await run(append_log_line, log, why)
            else:
                last_error = await run(last_line, log)
        return classify_end(
            process.report,
            signal=process.signal,
            exit_code=process.exit_code,
            last_error=last_error,
            cancelled=bool(held.cancels),
            stopped=held.stopped or self.draining,
            hung=bool(process.traceback),
        )

    async def _record_end(self, held: _HeldJob, how: RunEnd, reason: str) -> None:
        """Record how a job ended; try until Redis can be reached."""
        report = held.process.report if held.process is not None else None
        figures = {} if report is None else {n: getattr(report, n) for n in ("items", "errors", "pages", "bytes")}
        outcome = Outcome(
            node=self.poller.node,
            version=held.version,
            started_at=held.started_at * 1000,
            ended_at=time.time() * 1000,
            reason=reason,
            **figures,
        )
        journal.info("{job} {how}: {reason}", job=held.job.key, how=how.replace("_", " "), reason=reason)
        while True:
            try:
                await self._beat_lock.run(Deferred.fromCoroutine, self._settle(held, how, outcome))
            except redis.exceptions.RedisError:
                await pause(_RETRY_SECONDS)
            else:
                break
        self._beat_soon()

    async def _settle(self, held: _HeldJob, how: RunEnd, outcome: Outcome) -> None:
        key = held.job.key
        known = await self.poller.threads.run(self.state.settle, self.poller.node, held.job, how, outcome)
        # The job may be queued again, and a free slot of this node may have taken it already.
        if self._held.get(key) is held:
            del self._held[key]
        if not known:
            journal.warn("{job} had already been given to another node", job=key)

    def _stop(self, held: _HeldJob, signal: str) -> None:
        held.stopped = True
        if held.process is not None:
            held.process.send(signal)

    def _cancel(self, key: str, signal: str, number: int) -> None:
        held = self._held.get(key)
        if held is None or number <= held.cancels:
            return
        held.cancels = number
        journal.info("Cancelling {job} by {signal}", job=key, signal=signal)
        if held.process is not None:
            held.process.send(signal)
            reactor.callLater(self.options.cancel_seconds, held.process.send, "KILL")

    # --- Heartbeats ---------------------------------------------------------------------------------------------------

    def info(self) -> NodeInfo:
        """Return what a heartbeat says of this node."""
        options = self.options
        return NodeInfo(
            id=self.poller.node,
            name=options.node_name,
            url=options.url,
            slots=self.options.max_proc,
            started_at=self._started_at,
            draining=self.draining,
            memory=memory_of(),
            versions=self._versions,
            processes={
                key: Process(held.process.pid, memory_of(held.process.pid), held.version)
                for key, held in self._held.items()
                if held.process is not None and held.process.pid is not None and not held.process.ended.called
            },
        )

    def _beat_soon(self) -> None:
        reactor.callLater(_BEAT_SOON_SECONDS, self.beat)

    def beat(self) -> Deferred[None]:
        """Send a heartbeat with the jobs that this node holds, and act on the answer."""
        beating: Deferred[None] = self._beat_lock.run(Deferred.fromCoroutine, self._beat())
        return beating.addErrback(lambda failure: journal.failure("The heartbeat failed", failure))

    async def _beat(self) -> None:
        if self._left:
            return
        run: Callable[..., Any] = self.poller.threads.run
        try:
            beat: Beat = await run(self.state.beat, self.info(), list(self._held))
            for key in beat.unknown:
                await run(self.state.adopt, self.poller.node, self._held[key].job)
        except redis.exceptions.RedisError as error:
            if self._outages.begins():
                journal.warn("Redis can't be reached: {error}; spiders go on, and the node tries again", error=error)
            # One retry for all heartbeats that fail, or there would be more of them with each.
            if self._retry is None or not self._retry.active():
                self._retry = reactor.callLater(_RETRY_SECONDS, self.beat)
            return
        if self._outages.ends():
            journal.info("Redis answers again")
        self.beaten_at = time.monotonic()
        for what in beat.damaged:
            journal.error("Redis held something damaged, which was dropped: {what}", what=what)
        for node in beat.dead:
            journal.warn("Node {node} is dead: its jobs are queued again", node=node)
        for key in beat.stop:
            held = self._held.get(key)
            if held is not None and not held.stopped:
                journal.warn("{job} is now another node's; stopping it here", job=key)
                self._stop(held, "TERM")
                reactor.callLater(self.options.stop_seconds, self._stop, held, "KILL")
        for key, signal, number in beat.cancels:
            self._cancel(key, signal, number)
        if not self.draining:
            self.poller.start()
