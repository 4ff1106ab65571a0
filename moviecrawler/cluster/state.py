"""The cluster's state in Redis. Each call is one short round trip and blocks: call it in a thread, not in the event loop."""

from __future__ import annotations

import threading
from collections import Counter
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import msgspec
import redis.exceptions

from moviecrawler.cluster.jobs import Job, Outcome, QueueFullError
from moviecrawler.cluster.keys import Keys
from moviecrawler.errors import ConfigurationError, MovieCrawlerError
from moviecrawler.options import read_package_file
from moviecrawler.redis_client import connect_blocking

if TYPE_CHECKING:
    from collections.abc import Iterable

    from moviecrawler.cluster.jobs import RunEnd
    from moviecrawler.cluster.options import NodeOptions

_ANSWER_SECONDS = 3.0
"""Seconds to connect, and to get an answer."""
_MAX_CONNECTIONS = 32
_UNCLAIMED_MS = 10_000
"""Milliseconds after which a job goes back to the queue when the node that took it does not name it in its heartbeats."""
_SCRIPTS = ("put", "take", "beat", "settle", "cancel")

EVENTS = ("scheduled", "started", "finished", "cancelled", "died", "recycled", "handed_back", "gave_up")
"""Counters of jobs, which the scripts increment."""
NODE_LOST = "node_lost"
"""Counter of nodes whose heartbeats stopped before they left, which the scripts increment."""


class LeaseLostError(MovieCrawlerError):
    """The cluster does not know this node, or took it for dead."""


class Process(msgspec.Struct, frozen=True):
    """A job's process, as its node reports it."""

    pid: int
    version: str | None
    """The version that it runs."""
    memory: int
    """Bytes."""


class NodeInfo(msgspec.Struct, frozen=True, kw_only=True):
    """What a node reports of itself with each heartbeat."""

    id: str
    """Its name, and a part that is new at each start."""
    name: str
    url: str
    node_url: str = ""
    """Where clients find its logs; empty when they can't, or need not, as nodes share the folder."""
    slots: int
    started_at: float
    """Seconds since 1970."""
    draining: bool
    """Whether it takes no more jobs, as it is about to end."""
    processes: dict[str, Process]
    """By the jobs' keys."""
    memory: int
    """Bytes, without its spiders."""
    heard_seconds_ago: float = 0.0
    """Seconds since its last heartbeat, when it was read."""

    @property
    def spiders_memory(self) -> int:
        """Bytes that its spiders use."""
        return sum(process.memory for process in self.processes.values())


class Egg(msgspec.Struct, frozen=True, kw_only=True):
    """A version of a project."""

    project: str
    version: str
    sha256: str
    size: int
    """Bytes."""
    spiders: list[str]
    added_at: float
    """Seconds since 1970."""

    @property
    def key(self) -> str:
        """Its field in Redis."""
        return f"{self.project}/{self.version}"


class JobStatus(msgspec.Struct, frozen=True, kw_only=True):
    """A job that is pending, running or finished."""

    job: Job
    state: Literal["pending", "running", "finished"]
    node_id: str = ""
    """Of the node that runs it, or ran it last."""
    started_at: float | None = None
    """Its last start: seconds since 1970. None for a pending job."""
    process: Process | None = None
    """None when it does not run, or its node has not reported it yet."""
    outcome: Outcome | None = None
    """How a finished job ended."""

    @property
    def node(self) -> str:
        """The node's name."""
        return self.node_id.rpartition(":")[0] or self.node_id

    @property
    def version(self) -> str | None:
        """The version that ran, as far as that is known; else the one that was asked for."""
        ran = self.outcome or self.process
        return (ran and ran.version) or self.job.version

    @property
    def pid(self) -> int | None:
        """The process' id; None when it does not run."""
        return None if self.process is None else self.process.pid


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """What the cluster was at one moment."""

    changed: bytes | None = None
    """By which it is known whether it still is so."""
    pending: list[JobStatus] = []
    """The next one first."""
    running: list[JobStatus] = []
    """The one that has run longest first."""
    finished: list[JobStatus] = []
    """The latest first."""
    eggs: list[Egg] = []
    """The latest last, so that timestamps and tags mix and a roll-back is a deploy."""

    @property
    def jobs(self) -> list[JobStatus]:
        """Return all jobs."""
        return [*self.pending, *self.running, *self.finished]

    @property
    def projects(self) -> list[str]:
        """Return the projects that have a version."""
        return sorted({egg.project for egg in self.eggs})

    def find(self, project: str, job: str) -> JobStatus | None:
        """Return a job; None when there is no job of that id."""
        return next((one for one in self.jobs if (one.job.project, one.job.id) == (project, job)), None)


class Taken(NamedTuple):
    """A job that is leased to a node."""

    job: Job
    queued_at: float
    """Seconds since 1970, by Redis' clock: the same at each start."""
    start: int
    """The number of this start, from 1."""


class Beat(NamedTuple):
    """The answer to a heartbeat."""

    stop: list[str]
    """Keys of jobs to stop, as another node runs them now, or they are over."""
    cancels: list[tuple[str, str, int]]
    """Keys of jobs to cancel, the signals to send, and how many times somebody has asked."""
    dead: list[str]
    """Nodes that were found dead."""


def connect(options: NodeOptions, **parameters: Any) -> Any:
    """Return a client with short time-outs."""
    usual = {
        "socket_timeout": _ANSWER_SECONDS,
        "socket_connect_timeout": _ANSWER_SECONDS,
        "max_connections": _MAX_CONNECTIONS,
    }
    return connect_blocking(options.redis_url, **{**usual, **parameters})


class ClusterState:
    """Jobs, nodes, versions and outcomes. Each method raises redis.RedisError."""

    def __init__(self, options: NodeOptions) -> None:
        self.options = options
        self.keys = Keys(options.redis_prefix)
        self.client = connect(options)
        common = read_package_file(__package__, "common.lua")
        self._scripts = {
            name: self.client.register_script(common + read_package_file(__package__, f"{name}.lua"))
            for name in _SCRIPTS
        }
        self._snapshot = Snapshot()
        self._reading = threading.Lock()

    def _run(self, name: str, *arguments: Any) -> Any:
        return self._scripts[name](keys=self.keys.of_scripts, args=arguments)

    def check_server(self) -> None:
        """Raise ConfigurationError when the server belongs to a Redis Cluster. A server that can't be reached passes."""
        with suppress(redis.exceptions.RedisError):
            if self.client.info("cluster").get("cluster_enabled"):
                raise ConfigurationError(
                    "REDIS_URL names a Redis Cluster, which is not supported; set it to a single Redis or Valkey"
                )

    def now(self) -> float:
        """Return the time by Redis' clock, in seconds since 1970."""
        seconds, microseconds = self.client.time()
        return float(seconds + microseconds / 1e6)

    # --- For web services and pages ------------------------------------------------------------------------------------------------

    def changed(self) -> bytes | None:
        """Return a text that is another one after each change."""
        text: bytes | None = self.client.get(self.keys.changed)
        return text

    def snapshot(self) -> Snapshot:
        """Return what the cluster is now. It is read only when it has changed since the last time."""
        with self._reading:
            changed = self.changed()
            if changed is None or changed != self._snapshot.changed:
                self._snapshot = self._read()
            return self._snapshot

    def _read(self) -> Snapshot:
        keys = self.keys
        pipe = self.client.pipeline()
        pipe.get(keys.changed).zrange(keys.pending, 0, -1).hgetall(keys.jobs).hgetall(keys.running)
        pipe.zrange(keys.finished, 0, -1, desc=True).hgetall(keys.outcomes)
        pipe.hvals(keys.eggs).hvals(keys.node_infos)
        changed, places, specs, running, finished, outcomes, eggs, infos = pipe.execute()
        job = msgspec.json.Decoder(Job).decode
        processes = {key: process for info in infos for key, process in _info(info).processes.items()}
        started = sorted(
            ((key, msgspec.json.decode(record)) for key, record in running.items()), key=lambda one: one[1]["at"]
        )
        return Snapshot(
            changed=changed,
            pending=[JobStatus(job=job(specs[place[16:]]), state="pending") for place in places],
            running=[
                JobStatus(
                    job=job(specs[key]),
                    state="running",
                    node_id=record["node"],
                    started_at=record["at"] / 1000,
                    process=processes.get(key.decode()),
                )
                for key, record in started
            ],
            finished=[_ended(job(specs[key]), outcomes[key]) for key in finished],
            eggs=sorted(
                (msgspec.json.decode(egg, type=Egg) for egg in eggs), key=lambda egg: (egg.added_at, egg.version)
            ),
        )

    def schedule(self, job: Job) -> bool:
        """Queue a checked job; return False when another one of that id is pending or running.

        The same job again changes nothing and returns True, so that a request may be repeated. Raises QueueFullError.
        """
        answer = self._run("put", job.key, msgspec.json.encode(job), -job.priority)
        if answer < 0:
            raise QueueFullError("100,000 jobs are pending; wait for some, or cancel them")
        return bool(answer)

    def cancel(self, project: str, job: str, signal: str = "TERM") -> str | None:
        """Take a job out of the queue, or have its process signalled; return in which state it was, None for neither."""
        answer = self._run("cancel", f"{project}/{job}", signal)
        return answer and str(answer, "ascii")

    def counters(self) -> Counter[str]:
        """Return the counters, which begin with the cluster."""
        return Counter({name.decode(): int(count) for name, count in self.client.hgetall(self.keys.counters).items()})

    def nodes(self) -> list[NodeInfo]:
        """Return the live nodes, by name."""
        keys = self.keys
        pipe = self.client.pipeline().hgetall(keys.node_infos).zrange(keys.nodes, 0, -1, withscores=True).time()
        infos, leases, (seconds, _) = pipe.execute()
        heard = {node: max(0.0, seconds + self.options.lease_seconds - end / 1000) for node, end in leases}
        found = [msgspec.structs.replace(_info(info), heard_seconds_ago=heard[node]) for node, info in infos.items()]
        return sorted(found, key=lambda node: node.id)

    # --- For nodes ----------------------------------------------------------------------------------------------------

    def take(self, node: str) -> Taken | None:
        """Hand the next job to a node; None when there is none. Raises LeaseLostError."""
        try:
            answer = self._run("take", node)
        except redis.exceptions.ResponseError as error:
            if "LEASE" in str(error):
                raise LeaseLostError(str(error)) from None
            raise
        if not answer:
            return None
        spec, queued_at, start = answer
        return Taken(msgspec.json.decode(spec, type=Job), int(queued_at) / 1e6, start)

    def beat(self, node: NodeInfo, jobs: Iterable[str], *, is_news: bool = True) -> Beat:
        """Renew a node's lease, or make the node known. `jobs` are the keys of the jobs that it holds.

        `is_news`: more of what it reports has changed than memory.
        """
        lease = round(self.options.lease_seconds * 1000)
        info = msgspec.json.encode(node)
        stop, cancels, dead = self._run("beat", node.id, info, int(is_news), lease, _UNCLAIMED_MS, *jobs)
        asked = [part.decode() if isinstance(part, bytes) else part for part in cancels]
        return Beat(
            [key.decode() for key in stop],
            [(key, signal, int(number)) for key, signal, number in zip(*[iter(asked)] * 3, strict=True)],
            [name.decode() for name in dead],
        )

    def settle(self, node: str, job: Job, how: RunEnd, outcome: Outcome) -> bool:
        """Record how a node's job ended; return False when it is another node's now."""
        return bool(self._run("settle", node, job.key, how, msgspec.json.encode(outcome), outcome.reason))

    def leave(self, node: str) -> None:
        """Remove a node that has no more jobs. If it has, the next heartbeat of another node queues them again."""
        keys = self.keys
        pipe = self.client.pipeline().zrem(keys.nodes, node).hdel(keys.node_infos, node)
        pipe.set(keys.changed, f"{node} left").execute()

    # --- Versions -----------------------------------------------------------------------------------------------------

    def eggs(self, project: str) -> list[Egg]:
        """Return a project's versions, the latest one last."""
        found = [msgspec.json.decode(egg, type=Egg) for egg in self.client.hvals(self.keys.eggs)]
        own = [egg for egg in found if egg.project == project]
        return sorted(own, key=lambda egg: (egg.added_at, egg.version))


def _info(text: bytes) -> NodeInfo:
    return msgspec.json.decode(text, type=NodeInfo)


def _ended(job: Job, text: bytes) -> JobStatus:
    outcome = msgspec.json.decode(text, type=Outcome)
    return JobStatus(
        job=job, state="finished", node_id=outcome.node, started_at=outcome.started_at / 1000, outcome=outcome
    )
