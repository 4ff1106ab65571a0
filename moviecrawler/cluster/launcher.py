"""Running jobs, from a free slot to a recorded outcome, and the heartbeats by which the node keeps its jobs."""

from __future__ import annotations

import os
import time
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
from moviecrawler.cluster.state import NodeInfo, Process
from moviecrawler.cluster.threads import Threads, pause, reactor
from moviecrawler.cluster.views import Processes
from moviecrawler.errors import ConfigurationError, Outages
from moviecrawler.figures import Totals

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
_BEATS = 3
"""Heartbeats within `lease_seconds`."""
_FETCH_THREADS = 2
"""Eggs that are fetched at once."""
_RETRY_SECONDS = 1.0
"""Seconds until Redis is asked again."""
_UNSTARTED_SECONDS = 10.0
"""Seconds for which a slot takes no job after one could not be started here."""
_KILL_SECONDS = 5.0
"""Seconds that killed spiders may take to end when the node ends."""
_DRAIN_CHECK_SECONDS = 0.05
"""Seconds between two checks whether jobs still run, while the node drains."""


class _NotStartedError(Exception):
    """This node can't start a job, for a reason that has nothing to do with the job."""


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
        self.slots: dict[int, SpiderProcess] = {}
        """This node's own jobs."""
        self._totals = Totals()
        self.draining = False
        self.beaten_at: float | None = None
        """When Redis accepted the last heartbeat, by the monotonic clock; None before the first."""
        self._started_at = time.time()
        # A heartbeat names the jobs that the node holds, so no job's end may be recorded while one is being sent.
        self._beat_lock = DeferredLock()
        self._beats = LoopingCall(self.beat)
        # Separate threads, as a heartbeat must not wait for a slow fetch of an egg.
        self._fetching = Threads("eggs", _FETCH_THREADS)
        self._reported: Any = None
        self._left = False
        self._outages = Outages()

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
            for process in self.slots.values():
                self._stop(process, signal)
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
        process = self.slots[slot] = SpiderProcess(taken)
        could_start = True
        try:
            how, reason = await self._crawl(process)
        except _NotStartedError as error:
            journal.warn("{job} can't be started here: {error}", job=taken.job.key, error=error)
            how, reason, could_start = "handed_back", "its node can't start it", False
        except Exception:  # noqa: BLE001 - the slot must become free after any error
            journal.failure("Running {job} failed", job=taken.job.key)
            how, reason = "died", "its node failed"
        await self._record_end(slot, process, how, reason)
        if not could_start:
            # Another node may be able to start it, or this one later: its disk may be full, or Redis unreachable.
            await pause(_UNSTARTED_SECONDS)
        if not self.draining:
            self._get_message(slot)

    async def _crawl(self, process: SpiderProcess) -> tuple[RunEnd, str]:
        job, run = process.job, self._fetching.run
        try:
            check_job(job, self.options.job_settings)  # again, as it may come from a node with other options
            in_use = {other.egg.sha256 for other in self.slots.values() if other.egg is not None}
            process.egg, folder = await run(self.node.eggs.fetch, job.project, job.version, in_use)
            settings = await run(spider_settings, self.options, process.taken)
        except (ConfigurationError, UnknownVersionError, BadEggError) as error:
            return "finished", str(error)
        except Exception as error:  # of Redis or the disk
            raise _NotStartedError(error) from error
        if process.cancels:
            return "cancelled", "cancelled"
        if process.stopped or self.draining:
            return "handed_back", "its node was stopped"
        try:
            ended = process.start(folder, settings, spider_environment(os.environ), HANG_SECONDS)
        except OSError as error:  # out of memory, processes or open files
            raise _NotStartedError(error) from error
        await ended
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
            cancelled=bool(process.cancels),
            stopped=process.stopped or self.draining,
            hung=bool(process.traceback),
        )

    async def _record_end(self, slot: int, process: SpiderProcess, how: RunEnd, reason: str) -> None:
        """Record how a job ended; try until Redis can be reached."""
        outcome = Outcome(
            node=self.poller.node_id,
            version=None if process.egg is None else process.egg.version,
            started_at=process.started_at * 1000,
            ended_at=time.time() * 1000,
            reason=reason,
            exit_code=process.exit_code,
            **process.report.figures,
        )
        key, run = process.job.key, self.poller.threads.run
        journal.info("{job} {how}: {reason}", job=key, how=how.replace("_", " "), reason=reason)
        while slot in self.slots:
            await self._beat_lock.acquire()
            try:
                if not await run(self.state.settle, self.poller.node_id, process.job, how, outcome):
                    journal.warn("{job} had already been given to another node", job=key)
                self.figures().end(process)
                del self.slots[slot]
            except redis.exceptions.RedisError:
                await pause(_RETRY_SECONDS)
            finally:
                self._beat_lock.release()

    def _stop(self, process: SpiderProcess, signal: str) -> None:
        process.stopped = True
        process.send(signal)

    def _cancel(self, process: SpiderProcess, signal: str, number: int) -> None:
        if number > process.cancels:
            process.cancels = number
            journal.info("Cancelling {job} by {signal}", job=process.job.key, signal=signal)
            process.send(signal)
            reactor.callLater(CANCEL_SECONDS, process.send, "KILL")

    def figures(self) -> Totals:
        """Return the figures of this node's spiders, of those that run and of those that have ended."""
        for process in self.slots.values():
            self._totals.update(process, process.job.spider, process.report.stats)
        return self._totals

    # --- Heartbeats ---------------------------------------------------------------------------------------------------

    def info(self) -> NodeInfo:
        """Return what a heartbeat says of this node."""
        processes = {
            one.job.key: Process(one.pid, None if one.egg is None else one.egg.version, memory_of(one.pid))
            for one in self.slots.values()
            if one.pid is not None
        }
        return NodeInfo(
            id=self.poller.node_id,
            name=self.options.node_name,
            url=self.options.url,
            node_url=self.options.node_url.rstrip("/"),
            slots=self.max_proc,
            started_at=self._started_at,
            draining=self.draining,
            memory=memory_of(),
            processes=processes,
        )

    def beat(self) -> Deferred[None]:
        """Send a heartbeat with the jobs that this node holds, and act on the answer."""
        beating: Deferred[None] = self._beat_lock.run(Deferred.fromCoroutine, self._beat())
        return beating.addErrback(lambda failure: journal.failure("The heartbeat failed", failure))

    async def _beat(self) -> None:
        if self._left:
            return
        run, held = self.poller.threads.run, {process.job.key: process for process in self.slots.values()}
        try:
            info = self.info()
            news = info.draining, {key: process.pid for key, process in info.processes.items()}
            beat: Beat = await run(self.state.beat, info, list(held), is_news=news != self._reported)
            self._reported = news
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
