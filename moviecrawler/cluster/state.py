"""The cluster's state in Redis. Each call is one short round trip and blocks: call it in a thread, not in the event loop."""

from __future__ import annotations

import os
from collections import defaultdict
from contextlib import suppress
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar

import msgspec
import redis.exceptions
from twisted.logger import Logger

from moviecrawler.cluster.jobs import Job, Outcome, QueueFullError
from moviecrawler.cluster.keys import Keys
from moviecrawler.cluster.secrets import redacted
from moviecrawler.errors import ConfigurationError, MovieCrawlerError
from moviecrawler.package_files import read_package_file
from moviecrawler.redis_client import connect_blocking, redis_parameters

if TYPE_CHECKING:
    from collections.abc import Iterable

    from moviecrawler.cluster.jobs import RunEnd
    from moviecrawler.cluster.options import NodeOptions

journal = Logger()
T = TypeVar("T")

_ANSWER_SECONDS = 3.0
"""Seconds to connect, and to get an answer."""
_MAX_CONNECTIONS = 32
_UNCLAIMED_MS = 10_000
"""Milliseconds after which a job goes back to the queue when the node that took it does not name it in its heartbeats."""
_CANCELLED_MS = 600_000
"""Milliseconds for which it is remembered that a pending job was cancelled."""
_SCRIPTS = ("put", "take", "beat", "adopt", "settle", "cancel", "leave")

EVENTS = ("scheduled", "started", "finished", "cancelled", "died", "recycled", "handed_back", "gave_up")
"""Counters of jobs, which the scripts increment."""
NODE_LOST = "node_lost"
"""Counter of nodes whose heartbeats stopped before they left, which the scripts increment."""


class LeaseLostError(MovieCrawlerError):
    """The cluster does not know this node, or took it for dead."""


class Process(msgspec.Struct, frozen=True):
    """A job's process, as its node reports it."""

    pid: int
    memory: int
    """Bytes."""
    version: str | None = None
    """The version that it runs."""


class NodeInfo(msgspec.Struct, frozen=True, kw_only=True):
    """What a node reports of itself with each heartbeat."""

    id: str
    """Its name, and a part that is new at each start."""
    name: str
    url: str
    slots: int
    started_at: float
    """Seconds since 1970."""
    draining: bool
    """Whether it takes no more jobs, as it is about to end."""
    memory: int
    """Bytes, without its spiders."""
    processes: dict[str, Process]
    """By the jobs' keys."""
    versions: dict[str, str] = {}
    """Versions of Python and of packages, by name."""
    dead_at: float = 0.0
    """Seconds since 1970 at which its lease ends."""

    def heard_ago(self, now: float, lease_seconds: float) -> float:
        """Return seconds since its last heartbeat."""
        return max(0.0, now - (self.dead_at - lease_seconds))


class Start(msgspec.Struct, frozen=True):
    """One start of a job."""

    node: str
    """Name and id."""
    at: float
    """Milliseconds since 1970."""
    number: int
    """From 1."""


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
        return node_name(self.node_id)

    @property
    def version(self) -> str | None:
        """The version that ran or runs, as far as that is known; else the one that was asked for."""
        if self.outcome is not None:
            return self.outcome.version or self.job.version
        return self.job.version or (self.process.version if self.process is not None else None)


class Counts(NamedTuple):
    """How many jobs there are."""

    pending: int
    running: int
    finished: int


class Beat(NamedTuple):
    """The answer to a heartbeat."""

    stop: list[str]
    """Jobs to stop, as another node runs them now, or they are finished."""
    unknown: list[str]
    """Jobs that Redis does not know."""
    cancels: list[tuple[str, str, int]]
    """Jobs to cancel, the signals to send, and how many times somebody has asked."""
    dead: list[str]
    """Nodes that were found dead."""
    damaged: list[str]
    """Damaged data that was dropped."""


class _Taken(msgspec.Struct):
    node: str
    at: float
    signal: str | None = None


def connect(options: NodeOptions, **parameters: Any) -> Any:
    """Return a client with short time-outs. REDIS_PARAMS apply when nodes and spiders share a Redis."""
    usual = {
        "socket_timeout": _ANSWER_SECONDS,
        "socket_connect_timeout": _ANSWER_SECONDS,
        "max_connections": _MAX_CONNECTIONS,
    }
    shared = redis_parameters(os.environ) if options.redis_url == os.environ.get("REDIS_URL") else {}
    return connect_blocking(options.redis_url, **{**usual, **shared, **parameters})


def check_server(client: Any) -> None:
    """Raise ConfigurationError when the server belongs to a Redis Cluster. A server that can't be reached passes."""
    with suppress(redis.exceptions.RedisError):
        if client.info("cluster").get("cluster_enabled"):
            raise ConfigurationError(
                "REDIS_URL names a Redis Cluster, which is not supported; set it to a single Redis or Valkey, or to one behind "
                "Sentinel"
            )


class ClusterState:
    """Jobs, nodes and outcomes. Each method raises redis.RedisError."""

    def __init__(self, options: NodeOptions) -> None:
        self.options = options
        self.keys = Keys(options.redis_prefix)
        self.client = connect(options)
        common = read_package_file(__package__, "common.lua")
        self._scripts = {
            name: self.client.register_script(common + read_package_file(__package__, f"{name}.lua"))
            for name in _SCRIPTS
        }

    def _run(self, name: str, *arguments: Any) -> Any:
        return self._scripts[name](keys=self.keys.of_scripts, args=arguments)

    def _pipe(self) -> Any:
        return self.client.pipeline(transaction=False)

    def now(self) -> float:
        """Return the time by Redis' clock, in seconds since 1970."""
        seconds, microseconds = self.client.time()
        return float(seconds + microseconds / 1e6)

    # --- For web services and pages ------------------------------------------------------------------------------------------------

    def schedule(self, job: Job) -> bool:
        """Queue a checked job; return False when another one of that id is pending or running.

        The same job again changes nothing and returns True, so that a request may be repeated. Raises QueueFullError.
        """
        answer = self._run("put", *self._to_queue(job))
        if answer < 0:
            raise QueueFullError(f"{self.options.max_pending:,} jobs are pending; wait for some, or cancel them")
        return bool(answer)

    def _to_queue(self, job: Job) -> tuple[Any, ...]:
        return job.key, msgspec.json.encode(job), -job.priority, self.options.max_pending, self.keys.events

    def cancel(self, project: str, job: str, signal: str = "TERM") -> str | None:
        """Take a job out of the queue, or have its process signalled; return in which state it was, None for neither."""
        answer = self._run("cancel", f"{project}/{job}", signal, self.keys.events, _CANCELLED_MS)
        return answer and str(answer, "ascii")

    def state_of(self, job: str, project: str | None = None) -> str | None:
        """Return whether a job is "pending", "running" or "finished"; None when there is no such job. Without a project, of any project."""
        pipe = self._pipe()
        for hash_ in (self.keys.running, self.keys.jobs, self.keys.results):
            if project is None:
                pipe.hkeys(hash_)
            else:
                pipe.hmget(hash_, [f"{project}/{job}"])
        end = f"/{job}".encode()
        for state, found in zip(("running", "pending", "finished"), pipe.execute(), strict=True):
            if any(found) if project is not None else any(key.endswith(end) for key in found):
                return state
        return None

    def starts(self, key: str) -> list[Start]:
        """Return the starts of a job, in their order; none for a job that was not started, or is forgotten."""
        found = self.client.hget(self.keys.starts, key)
        return (decode(found, list[Start]) or []) if found else []

    def knows_jobs_of(self, project: str) -> bool:
        """Return whether a project has jobs, also when all of its versions are deleted."""
        begin = f"{project}/".encode()
        found = self._pipe().hkeys(self.keys.jobs).hkeys(self.keys.results).execute()
        return any(key.startswith(begin) for keys in found for key in keys)

    def counts(self) -> Counts:
        """Return how many jobs there are, without reading them."""
        keys = self.keys
        return Counts(*self._pipe().zcard(keys.pending).hlen(keys.running).zcard(keys.finished).execute())

    def counters(self) -> dict[str, int]:
        """Return the counters, which begin with the cluster."""
        return {
            name.decode(): int(count) if count.isdigit() else 0
            for name, count in self.client.hgetall(self.keys.counters).items()
        }

    def pending(self, project: str | None = None, first: int = 0, count: int | None = None) -> list[JobStatus]:
        """Return pending jobs, the next one first: all, those of a project, or `count` of them from place `first` on."""
        places = self.client.zrange(self.keys.pending, first, _last(first, count))
        keys = _of_project([place[16:] for place in places], project)
        specs = self.client.hmget(self.keys.jobs, keys) if keys else []
        jobs = [job for spec in specs if spec and (job := decode(spec, Job)) is not None]
        return [JobStatus(job=job, state="pending") for job in jobs]

    def running(self, project: str | None = None) -> list[JobStatus]:
        """Return running jobs, the one that has run longest first."""
        records = self.client.hgetall(self.keys.running)
        keys = _of_project(list(records), project)
        if not keys:
            return []
        processes = {key: process for node in self.nodes() for key, process in node.processes.items()}
        jobs = []
        for key, spec in zip(keys, self.client.hmget(self.keys.jobs, keys), strict=True):
            taken, job = decode(records[key], _Taken), decode(spec, Job) if spec else None
            if taken is not None and job is not None:
                process = processes.get(key.decode())
                started = taken.at / 1000
                jobs.append(
                    JobStatus(job=job, state="running", node_id=taken.node, started_at=started, process=process)
                )
        return sorted(jobs, key=lambda status: status.started_at or 0.0)

    def finished(self, project: str | None = None, first: int = 0, count: int | None = None) -> list[JobStatus]:
        """Return finished jobs, the latest first: all, those of a project, or `count` of them from place `first` on."""
        keys = _of_project(self.client.zrange(self.keys.finished, first, _last(first, count), desc=True), project)
        results = self.client.hmget(self.keys.results, keys) if keys else []
        return [done for result in results if result and (done := _read_result(result)) is not None]

    def find(self, project: str, job: str) -> JobStatus | None:
        """Return a job; None when there is no job of that id."""
        key = f"{project}/{job}"
        pipe = self._pipe().hget(self.keys.jobs, key).hexists(self.keys.running, key).hget(self.keys.results, key)
        spec, is_running, result = pipe.execute()
        if spec and is_running:
            for status in self.running(project):
                if status.job.key == key:
                    return status
        if spec:
            known = decode(spec, Job)
            return None if known is None else JobStatus(job=known, state="pending")
        return _read_result(result) if result else None

    def nodes(self) -> list[NodeInfo]:
        """Return the live nodes, by name."""
        pipe = self._pipe().hgetall(self.keys.node_infos).zrange(self.keys.nodes, 0, -1, withscores=True)
        infos, leases = pipe.execute()
        ends: dict[bytes, float] = defaultdict(float, leases)
        nodes = [
            msgspec.structs.replace(found, dead_at=ends[node] / 1000)
            for node, info in infos.items()
            if (found := decode(info, NodeInfo)) is not None
        ]
        return sorted(nodes, key=lambda node: node.id)

    # --- For nodes ----------------------------------------------------------------------------------------------------

    def take(self, node: str) -> Job | None:
        """Hand the next job to a node; None when there is none. Raises LeaseLostError."""
        try:
            answer = self._run("take", node)
        except redis.exceptions.ResponseError as error:
            if "LEASE" in str(error):
                raise LeaseLostError(str(error)) from None
            raise
        if not answer:
            return None
        key, spec, queued_at, start = answer
        job = decode(spec, Job)
        if job is None:
            # No node can run it. If it stayed, each node would get it first, again and again.
            for known in (self.keys.jobs, self.keys.running, self.keys.places, self.keys.deaths):
                self.client.hdel(known, key)
            return self.take(node)
        return msgspec.structs.replace(job, queued_at=int(queued_at) / 1e6 if queued_at.isdigit() else 0.0, start=start)

    def beat(self, node: NodeInfo, jobs: Iterable[str]) -> Beat:
        """Renew a node's lease, or make the node known. `jobs` are the keys of the jobs that it holds."""
        given = {
            "node": node.id,
            "info": msgspec.json.encode(node).decode(),
            "lease": round(self.options.lease_seconds * 1000),
            "forgotten": _UNCLAIMED_MS,
            "jobs": list(jobs),
            "max_deaths": self.options.max_deaths,
            "keep": self.options.finished_to_keep,
        }
        stop, unknown, cancels, dead, damaged = self._run("beat", msgspec.json.encode(given), self.keys.events)
        asked = [part.decode() if isinstance(part, bytes) else part for part in cancels]
        return Beat(
            [key.decode() for key in stop],
            [key.decode() for key in unknown],
            [(key, signal, int(number)) for key, signal, number in zip(*[iter(asked)] * 3, strict=True)],
            [name.decode() for name in dead],
            [what.decode(errors="replace") for what in damaged],
        )

    def adopt(self, node: str, job: Job) -> None:
        """Make a job known again: a node runs it, and Redis has lost it."""
        spec = msgspec.json.encode(msgspec.structs.replace(job, queued_at=0.0, start=0))
        self._run("adopt", node, job.key, spec, -job.priority)

    def settle(self, node: str, job: Job, how: RunEnd, outcome: Outcome) -> bool:
        """Record how a node's job ended; return False when it is another node's now."""
        options = self.options
        return bool(
            self._run(
                *("settle", node, job.key, how, msgspec.json.encode(outcome)),
                *(options.max_deaths, options.finished_to_keep, self.keys.events),
            )
        )

    def leave(self, node: str) -> None:
        """Remove a node; the jobs that it still holds go back to the queue."""
        self._run("leave", node, self.keys.events, self.options.finished_to_keep)


def node_name(node: str) -> str:
    """Return the name in a node's id."""
    return node.rpartition(":")[0] or node


@lru_cache(maxsize=1000)
def _log_damaged(text: bytes, kind: str) -> None:
    """Log once that data in Redis is damaged."""
    shown = redacted(text[:200].decode(errors="replace"))
    journal.error("Redis holds a damaged {kind}, which is ignored: {text}", kind=kind, text=shown)


def decode(text: bytes, kind: type[T]) -> T | None:
    """Return decoded JSON of Redis; None when it is damaged, which is logged once."""
    try:
        return msgspec.json.decode(text, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        _log_damaged(text, getattr(kind, "__name__", str(kind)).strip("_"))
        return None


def _read_result(result: bytes) -> JobStatus | None:
    """Return a finished job; None when its data is damaged."""
    first, _, spec = result.partition(b"\n")
    outcome, job = decode(first, Outcome), decode(spec, Job)
    if outcome is None or job is None:
        return None
    started = outcome.started_at / 1000
    return JobStatus(job=job, state="finished", node_id=outcome.node, started_at=started, outcome=outcome)


def _of_project(keys: list[bytes], project: str | None) -> list[bytes]:
    return keys if project is None else [key for key in keys if key.startswith(f"{project}/".encode())]


def _last(first: int, count: int | None) -> int:
    return -1 if count is None else first + count - 1
