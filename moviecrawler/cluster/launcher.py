"""Running jobs, from a free slot to a recorded outcome, and the heartbeats by which the node keeps its jobs."""

from __future__ import annotations

import os
import platform
import time
from dataclasses import dataclass
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import redis
from scrapyd.interfaces import IJobStorage, IPoller
from scrapyd.launcher import Launcher
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
from moviecrawler.cluster.process import SpiderProcess
from moviecrawler.cluster.state import Memory, NodeInfo, Process
from moviecrawler.cluster.threads import Threads, pause, reactor
from moviecrawler.cluster.views import Processes
from moviecrawler.errors import ConfigurationError
from moviecrawler.figures import Totals
from moviecrawler.outages import Outages

if TYPE_CHECKING:
    from scrapyd.config import Config

    from moviecrawler.cluster.jobs import RunEnd
    from moviecrawler.cluster.poller import RedisPoller
    from moviecrawler.cluster.state import Beat, Taken

journal = Logger()

HANG_SECONDS = 60.0
"""Seconds that a spider's event loop may stand still, until the spider kills itself and its job is started again."""
CANCEL_SECONDS = 45.0
"""Seconds that the spider of a cancelled job may take to end, until it is killed; more than the 30 that stores have to close."""
_PACKAGES = ("moviecrawler", "scrapy", "scrapyd", "twisted")
"""Packages whose versions a node publishes."""
_BEATS = 3
"""Heartbeats within `lease_seconds`."""
_FETCH_THREADS = 2
"""Eggs that are fetched at once."""
_RETRY_SECONDS = 1.0
"""Seconds until Redis is asked again."""
_START_BACKOFF_SECONDS, _MAX_DOUBLINGS = 2.0, 4
"""Seconds for which a slot takes no job after one could not be started here, and how often they double when that happens again."""
_KILL_SECONDS = 5.0
"""Seconds that killed spiders may take to end when the node ends."""
_DRAIN_CHECK_SECONDS = 0.05
"""Seconds between two checks whether jobs still run, while the node drains."""


class _NotStartedError(Exception):
    """This node can't start a job, for a reason that has nothing to do with the job."""


@dataclass(slots=True, kw_only=True, eq=False)
class _HeldJob:
    """A job in a slot of this node."""

    taken: Taken
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

    @property
    def key(self) -> str:
        return self.taken.job.key

    @property
    def pid(self) -> int | None:
        """The process' id, while it runs."""
        return None if self.process is None or self.process.ended.called else self.process.pid


class ClusterLauncher(Launcher):  # type: ignore[misc]  # Scrapyd has no types
    """Scrapyd's launcher with leases: each job's end is recorded in Redis, and a node that ends gives its jobs to others."""

    def __init__(self, config: Config, app: Any) -> None:  # its base would count the machine's processors
        self.app = app
        self.node = config.node
        self.node.launcher = self
        self.options = self.node.options
        self.state = self.node.state
        self.max_proc = self.options.max_proc
        self.runner = "moviecrawler.cluster.runner"
        self.processes = Processes(self.node)
        self.finished = app.getComponent(IJobStorage)
        self.poller: RedisPoller = app.getComponent(IPoller)
        self.poller.on_change = self.beat
        self.slots: dict[int, _HeldJob] = {}
        """This node's own jobs."""
        self.totals = Totals()
        """The figures of this node's spiders."""
        self.draining = False
        self.beaten_at: float | None = None
        """When Redis accepted the last heartbeat, by the monotonic clock; None before the first."""
        self._started_at = time.time()
        self._versions = {**{name: version(name) for name in _PACKAGES}, "python": platform.python_version()}
        # A heartbeat names the jobs that the node holds, so no job's end may be recorded while one is being sent.
        self._beat_lock = DeferredLock()
        self._beats = LoopingCall(self.beat)
        # Separate threads, as a heartbeat must not wait for a slow fetch of an egg.
        self._fetching = Threads("eggs", _FETCH_THREADS)
        self._left = False
        self._outages = Outages()
        self._unstarted: dict[int, int] = {}

    # --- Life ---------------------------------------------------------------------------------------------------------

    def startService(self) -> None:
        self.poller.threads.start()
        self._fetching.start()
        self._beats.start(self.options.lease_seconds / _BEATS)
        Service.startService(self)
        super().startService()

    def stopService(self) -> Deferred[None]:
        """Drain: take no more jobs, have spiders end, hand their jobs back, and leave the cluster."""
        Service.stopService(self)
        return Deferred.fromCoroutine(self._drain())

    async def _drain(self) -> None:
        self.draining = True
        self.poller.stop()
        self.beat()
        journal.info("Draining: {count} jobs run", count=len(self.slots))
        for signal, seconds in (("TERM", self.options.stop_seconds), ("KILL", _KILL_SECONDS)):
            for held in self.slots.values():
                self._stop(held, signal)
            until = time.monotonic() + seconds
            while self.slots and time.monotonic() < until:
                await pause(_DRAIN_CHECK_SECONDS)
        self._beats.stop()
        self._left = True
        try:
            await self._beat_lock.run(self.poller.threads.run, self.state.leave, self.poller.node_id)
        except redis.exceptions.RedisError as error:
            journal.warn("Redis can't be reached ({error}): other nodes will find this one dead", error=error)
        journal.info("Drained")

    # --- A slot's job -------------------------------------------------------------------------------------------------

    def _spawn_process(self, message: Taken, slot: int) -> None:
        """Run the job that a slot was given, as Scrapyd's launcher does, and then ask for the next one."""
        running = Deferred.fromCoroutine(self._run(message, slot))
        running.addErrback(lambda failure: journal.failure("A slot takes no more jobs", failure))

    async def _run(self, taken: Taken, slot: int) -> None:
        held = self.slots[slot] = _HeldJob(taken=taken, started_at=time.time())
        unstarted, self._unstarted[slot] = self._unstarted.get(slot, 0), 0
        try:
            how, reason = await self._crawl(held)
        except _NotStartedError as error:
            journal.warn("{job} can't be started here: {error}", job=held.key, error=error)
            how, reason = "handed_back", "its node can't start it"
            self._unstarted[slot] = unstarted + 1
        except Exception:  # noqa: BLE001 - the slot must become free after any error
            journal.failure("Running {job} failed", job=held.key)
            how, reason = "died", "its node failed"
        await self._record_end(slot, held, how, reason)
        if self._unstarted[slot]:
            # Another node may be able to start it, or this one later: its disk may be full, or Redis unreachable.
            await pause(_START_BACKOFF_SECONDS * 2 ** min(unstarted, _MAX_DOUBLINGS))
        if not self.draining:
            self._get_message(slot)

    async def _crawl(self, held: _HeldJob) -> tuple[RunEnd, str]:
        job, run = held.taken.job, self._fetching.run
        try:
            check_job(job, self.options.job_settings)  # again, as it may come from a node with other options
            in_use = {other.sha256 for other in self.slots.values()}
            egg, path = await run(self.node.eggs.fetch, job.project, job.version, in_use)
            held.sha256, held.version = egg.sha256, egg.version
            settings = await run(spider_settings, self.options, held.taken)
        except (ConfigurationError, UnknownVersionError, BadEggError) as error:
            return "finished", str(error)
        except Exception as error:  # of Redis or the disk
            raise _NotStartedError(error) from error
        if held.cancels:
            return "cancelled", "cancelled"
        if held.stopped or self.draining:
            return "handed_back", "its node was stopped"
        environment = spider_environment(os.environ)
        process = SpiderProcess(held.taken, path, settings, environment, hang_seconds=HANG_SECONDS)
        try:
            process.start()
        except OSError as error:  # out of memory, processes or open files
            raise _NotStartedError(error) from error
        held.process = process
        await process.ended
        last_error = process.last_error
        if process.report.reason is None:
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

    async def _record_end(self, slot: int, held: _HeldJob, how: RunEnd, reason: str) -> None:
        """Record how a job ended; try until Redis can be reached."""
        process, job = held.process, held.taken.job
        outcome = Outcome(
            node=self.poller.node_id,
            version=held.version,
            started_at=held.started_at * 1000,
            ended_at=time.time() * 1000,
            reason=reason,
            exit_code=process.exit_code if process is not None else None,
            **(process.report.figures if process is not None else {}),
        )
        self.figures()
        self.totals.end(held)
        journal.info("{job} {how}: {reason}", job=held.key, how=how.replace("_", " "), reason=reason)
        settled = False
        while not settled:
            await self._beat_lock.acquire()
            try:
                known = await self.poller.threads.run(self.state.settle, self.poller.node_id, job, how, outcome)
                del self.slots[slot]
                settled = True
            except redis.exceptions.RedisError:
                known = True
            finally:
                self._beat_lock.release()
            if not settled:
                await pause(_RETRY_SECONDS)
        if not known:
            journal.warn("{job} had already been given to another node", job=held.key)

    def _stop(self, held: _HeldJob, signal: str) -> None:
        held.stopped = True
        if held.process is not None:
            held.process.send(signal)

    def _cancel(self, held: _HeldJob, signal: str, number: int) -> None:
        if number <= held.cancels:
            return
        held.cancels = number
        journal.info("Cancelling {job} by {signal}", job=held.key, signal=signal)
        if held.process is not None:
            held.process.send(signal)
            reactor.callLater(CANCEL_SECONDS, held.process.send, "KILL")

    def figures(self) -> Totals:
        """Return the figures of this node's spiders, of those that run and of those that have ended."""
        for held in self.slots.values():
            if held.process is not None:
                self.totals.update(held, held.taken.job.spider, held.process.report.stats)
        return self.totals

    # --- Heartbeats ---------------------------------------------------------------------------------------------------

    def info(self) -> NodeInfo:
        """Return what a heartbeat says of this node."""
        return NodeInfo(
            id=self.poller.node_id,
            name=self.options.node_name,
            url=self.options.url,
            node_url=self.options.node_url.rstrip("/"),
            slots=self.max_proc,
            started_at=self._started_at,
            draining=self.draining,
            processes={
                held.key: Process(held.pid, held.version) for held in self.slots.values() if held.pid is not None
            },
            versions=self._versions,
        )

    def _memory(self) -> Memory:
        pids = {held.key: held.pid for held in self.slots.values()}
        return Memory(node=memory_of(), spiders={key: memory_of(pid) for key, pid in pids.items() if pid is not None})

    def beat(self) -> Deferred[None]:
        """Send a heartbeat with the jobs that this node holds, and act on the answer."""
        beating: Deferred[None] = self._beat_lock.run(Deferred.fromCoroutine, self._beat())
        return beating.addErrback(lambda failure: journal.failure("The heartbeat failed", failure))

    async def _beat(self) -> None:
        if self._left:
            return
        run, held = self.poller.threads.run, {held.key: held for held in self.slots.values()}
        try:
            beat: Beat = await run(self.state.beat, self.info(), self._memory(), list(held))
            for key in beat.unknown:
                await run(self.state.adopt, self.poller.node_id, held[key].taken.job)
        except redis.exceptions.RedisError as error:
            if self._outages.begins():
                journal.warn("Redis can't be reached: {error}; spiders go on, and the node tries again", error=error)
            return
        if self._outages.ends():
            journal.info("Redis answers again")
        self.beaten_at = time.monotonic()
        for node in beat.dead:
            journal.warn("Node {node} is dead: its jobs are queued again", node=node)
        for key in beat.stop:
            if not held[key].stopped:
                journal.warn("{job} is now another node's; stopping it here", job=key)
                self._stop(held[key], "TERM")
                reactor.callLater(self.options.stop_seconds, self._stop, held[key], "KILL")
        for key, signal, number in beat.cancels:
            self._cancel(held[key], signal, number)
