"""The cluster's state in Redis.

Each call is one short round trip and blocks: call it in a thread, not in the event loop.
"""

from __future__ import annotations

import threading
import time
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Literal

import msgspec
import redis

from moviecrawler.basics.clock import TOLERANCE
from moviecrawler.basics.errors import ConfigurationError
from moviecrawler.basics.files import read_package_file
from moviecrawler.cluster import keys
from moviecrawler.cluster.jobs import RESULTS, Job, Outcome, Result, RunEnd
from moviecrawler.frontier.redis_client import Client, connect_blocking, eviction_fault

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from moviecrawler.cluster.options import NodeOptions

_REPLY_SECONDS = 3.0
"""Seconds to connect, and seconds to get a reply."""
_SCRIPTS = ("put", "beat", "record_end", "cancel")

_TOLERANCE_MS = TOLERANCE / timedelta(milliseconds=1)


class NodeInfo(msgspec.Struct, frozen=True, kw_only=True):
    """What a node reports of itself with each heartbeat."""

    id: str
    """The node's name, and a part that is new at each start."""
    name: str
    url: str
    """The URL at which clients find the node's logs; empty when they don't, or when the nodes share
    the folder."""
    slots: int
    started_at: float
    """Seconds since 1970."""
    draining: bool
    """Whether the node takes no more jobs, as it is about to end."""
    unfit: dict[str, str] = {}
    """Why jobs would fail on the node now, such as that its disk is full: a sentence for each check
    that failed (see `CHECKS`). It takes none then."""
    unfit_since: float | None = None
    """Since when a check fails: seconds since 1970."""
    unreachable: dict[str, str] = {}
    """Why its spiders can't reach a site, by the site."""
    processes: dict[str, tuple[int, str | None]]
    """The process' id and its version, by the job's key."""
    memory: int
    """Bytes of the node itself, without its spiders."""
    spiders_memory: int = 0
    """Bytes of the node's spiders."""
    heartbeat_age_seconds: float = 0.0
    """Seconds since the last heartbeat, set when the node is read."""

    @property
    def takes_jobs(self) -> bool:
        """Whether the node takes a job when it has a free slot."""
        return not self.draining and not self.unfit


class Argument(msgspec.Struct, frozen=True, kw_only=True):
    """An argument that a spider takes."""

    name: str
    text: str
    """What it means."""
    choices: list[str] = []
    """Values that are known in advance."""


class Egg(msgspec.Struct, frozen=True, kw_only=True):
    """A version of a project."""

    project: str
    version: str
    sha256: str
    spiders: list[str]
    added_at: float
    """Seconds since 1970."""
    arguments: dict[str, list[Argument]] = {}
    """The arguments of those spiders that name theirs."""

    @property
    def key(self) -> str:
        """The version's field in Redis."""
        return f"{self.project}/{self.version}"


class Start(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A start of a job: where and when it ran, and how that ended. Times are of Redis' clock."""

    number: int
    """1 for the job's first start."""
    node_id: str
    started_at: float
    """Seconds since 1970."""
    ended_at: float | None = None
    """Seconds since 1970; None while it runs."""
    how: RunEnd | None = None
    """How its process ended; None while it runs."""
    reason: str = ""

    @property
    def node(self) -> str:
        """The node's name."""
        return name_of(self.node_id)


class JobStatus(msgspec.Struct, kw_only=True, omit_defaults=True):
    """A job that is pending, running or finished. The scripts write it, with some more fields."""

    job: Job
    state: Literal["pending", "running", "finished"]
    queue_member: str = ""
    """The job's member in the ZSET of pending jobs. A job that is queued anew under the id of one
    that is over has another one."""
    starts: int = 0
    """How often the job was started."""
    history: list[Start] = []
    """Its first start, and the latest ones."""
    version: str | None = None
    """The version that the job runs at each start: the requested one, or the latest one at its
    first start. None before that."""
    node_id: str = ""
    """The node that runs the job, or ran it last."""
    started_at: float | None = None
    """When the job was last started: seconds since 1970, by Redis' clock. None for a pending
    job."""
    pid: int | None = None
    """The id of the process; None when it does not run, or when its node has not reported it
    yet."""
    outcome: Outcome | None = None
    """How a finished job ended."""

    @property
    def queued_at(self) -> float:
        """When the job was queued, the same at each start: seconds since 1970, by Redis' clock."""
        return int(self.queue_member[:16]) / 1e6

    @property
    def first_started_at(self) -> float | None:
        """When the job was first started: seconds since 1970; None when it never was."""
        return self.history[0].started_at if self.history else self.started_at

    @property
    def node(self) -> str:
        """The node's name."""
        return name_of(self.node_id)


def name_of(node_id: str) -> str:
    """Return the name of a node, which its id begins with.

    >>> name_of("node1:0a1b2c3d")
    'node1'
    """
    return node_id.rpartition(":")[0] or node_id


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """The cluster at one moment."""

    pending: list[JobStatus] = []
    """Pending jobs, the next one first."""
    running: list[JobStatus] = []
    """Running jobs, the one started first comes first."""
    finished: list[JobStatus] = []
    """Finished jobs, the latest first."""
    eggs: list[Egg] = []
    """Versions, oldest deployment first; the last one of a project is current. Roll back by
    redeploying."""
    nodes: list[NodeInfo] = []
    """The live nodes, by name."""
    lost: dict[str, float] = {}
    """The nodes that were lost in the last day and are not back: by name, with the time of the
    loss in seconds since 1970."""
    nodes_lost: int = 0
    """Nodes whose heartbeats stopped before they left, ever."""
    results: dict[tuple[str, Result], int] = {}
    """How many jobs have ended, by spider and result."""

    @property
    def jobs(self) -> list[JobStatus]:
        """Return all jobs."""
        return [*self.pending, *self.running, *self.finished]

    @property
    def projects(self) -> list[str]:
        """Return the projects that have a version."""
        return sorted({egg.project for egg in self.eggs})

    @property
    def urls(self) -> dict[str, str]:
        """The URLs at which clients reach nodes for their logs, by the names of the nodes."""
        return {node.name: node.url.rstrip("/") for node in self.nodes if node.url}

    def find(self, project: str, job: str) -> JobStatus | None:
        """Return a job; None when there is no job of that id."""
        key = f"{project}/{job}"
        return next((status for status in self.jobs if status.job.key == key), None)


class Beat(msgspec.Struct, frozen=True):
    """The reply to a heartbeat. A job is named by its `queue_member`.

    Sets are encoded as `{name: true}`: Lua's JSON does not distinguish an empty list from an empty
    object.
    """

    stop: dict[str, bool]
    """Jobs to stop, as they are over, or another node runs them now."""
    cancels: dict[str, str]
    """The signals for jobs to cancel."""
    dead: dict[str, bool]
    """Nodes whose lease has ended."""
    next_end: float
    """Seconds until the next lease ends."""
    clock_ahead: float
    """Seconds by which the node's clock is ahead of that of Redis."""
    taken: JobStatus | None = None
    """The job that the node takes."""


_info = msgspec.json.Decoder(NodeInfo).decode
_status = msgspec.json.Decoder(JobStatus).decode


class _Seen(threading.local):
    snapshot = Snapshot()


class ClusterState:
    """Jobs, nodes and versions. Each method raises redis.RedisError."""

    def __init__(self, options: NodeOptions) -> None:
        self.options = options
        self.client = self.connect(_REPLY_SECONDS)
        common = read_package_file(__package__, "common.lua")
        self._scripts = {
            name: self.client.register_script(
                common + read_package_file(__package__, f"{name}.lua")
            )
            for name in _SCRIPTS
        }
        self._seen = _Seen()

    def connect(self, reply_seconds: float) -> Client:
        """Return a client with a time-out."""
        return connect_blocking(
            self.options.redis_url,
            socket_timeout=reply_seconds,
            socket_connect_timeout=_REPLY_SECONDS,
        )

    def _run(self, name: str, *arguments: object) -> Any:
        # Redis' reply to a script has no type.
        return self._scripts[name](keys=keys.SCRIPT_KEYS, args=arguments)

    def now(self) -> float:
        """Return the time by Redis' clock, in seconds since 1970."""
        seconds, microseconds = self.client.time()
        return float(seconds + microseconds / 1e6)

    # --- For web services and pages ---------------------------------------------------------------

    def version(self) -> bytes | None:
        """Return the text of `keys.STATE_VERSION`."""
        version: bytes | None = self.client.get(keys.STATE_VERSION)
        return version

    @property
    def seen(self) -> Snapshot:
        """The snapshot that this thread read last: all of a reply is made from one."""
        return self._seen.snapshot

    def snapshot(self) -> Snapshot:
        """Return the cluster as it is now."""
        # Not as a transaction, which a full Redis refuses.
        pipe = (
            self.client.pipeline(transaction=False)
            .hvals(keys.JOBS)
            .hvals(keys.EGGS)
            .hgetall(keys.NODE_INFOS)
            .zrange(keys.NODES, 0, -1, withscores=True)
            .zrange(keys.LOST, 0, -1, withscores=True)
            .hgetall(keys.COUNTERS)
            .time()
        )
        jobs, eggs, infos, leases, lost, counters, (seconds, _) = pipe.execute()
        nodes = self._nodes(infos, dict(leases), seconds)
        pids = {key: pid for node in nodes for key, (pid, _) in node.processes.items()}
        found: dict[str, list[JobStatus]] = {"pending": [], "running": [], "finished": []}
        for status in map(_status, jobs):
            if status.state == "running":
                status.pid = pids.get(status.job.key)
            found[status.state].append(status)
        results = {}
        for name, count in counters.items():
            result, _, spider = name.decode().partition("/")
            if result in RESULTS:
                results[spider, result] = int(count)
        self._seen.snapshot = Snapshot(
            pending=sorted(
                found["pending"], key=lambda status: (-status.job.priority, status.queue_member)
            ),
            running=sorted(found["running"], key=lambda status: status.started_at or 0.0),
            finished=sorted(
                found["finished"],
                key=lambda status: -status.outcome.ended_at if status.outcome else 0.0,
            ),
            eggs=_sorted(eggs),
            nodes=nodes,
            lost={name.decode(): at / 1000 for name, at in lost},
            nodes_lost=int(counters.get(b"node_lost", 0)),
            results=results,
        )
        return self.seen

    def _nodes(
        self, infos: Mapping[bytes, bytes], leases: Mapping[bytes, float], now: float
    ) -> list[NodeInfo]:
        nodes = []
        for node, info in infos.items():
            if node in leases:  # else it has just left
                beat_at = leases[node] / 1000 - self.options.lease_seconds
                age = max(0.0, now - beat_at)
                nodes.append(msgspec.structs.replace(_info(info), heartbeat_age_seconds=age))
        return sorted(nodes, key=lambda node: node.id)

    def schedule(self, job: Job) -> None:
        """Queue a checked job, unless it is pending or running, as clients may repeat a request.

        Raises ConfigurationError.
        """
        reply = self._run("put", job.key, msgspec.json.encode(job), -job.priority)
        if reply == -1:
            raise ConfigurationError("100,000 jobs are pending; wait for some, or cancel them")
        if reply is not None and msgspec.json.decode(reply, type=Job) != job:
            raise ConfigurationError(
                f"job '{job.id}' is pending or running already, with other arguments; "
                "leave out jobid"
            )

    def cancel(self, project: str, job: str, signal: str = "TERM") -> str | None:
        """Cancel a job; return whether it was 'pending' or 'running', None when it was neither."""
        reply = self._run("cancel", f"{project}/{job}", signal)
        return reply and str(reply, "ascii")

    def eggs(self) -> list[Egg]:
        """Return the versions of all projects, the latest one last."""
        return _sorted(self.client.hvals(keys.EGGS))

    # --- For nodes --------------------------------------------------------------------------------

    def beat(
        self, node: NodeInfo, jobs: Iterable[str], *, is_news: bool = True, takes: bool = False
    ) -> Beat:
        """Renew a node's lease, or add the node, and hand it the next job if it `takes` one.

        Args:
            node: What the node reports of itself.
            jobs: The jobs that it runs, by their `queue_member`.
            is_news: Whether anything but metrics of memory has changed since the last
                heartbeat.
            takes: Whether it has a free slot. It gets no job while its clock is wrong.
        """
        lease = round(self.options.lease_seconds * 1000)
        clock = round(time.time() * 1000)
        flags = int(is_news), lease, int(takes), clock, _TOLERANCE_MS
        reply = self._run("beat", node.id, msgspec.json.encode(node), *flags, *jobs)
        return msgspec.json.decode(reply, type=Beat)

    def record_end(self, node: str, leased: JobStatus, how: RunEnd, outcome: Outcome) -> bool:
        """Record how a node's job ended, which it took as `leased`.

        Return False when another node has the job now, or the job was queued anew under its id.
        """
        job = msgspec.json.encode(leased)
        ended = msgspec.json.encode(outcome)
        return bool(self._run("record_end", node, leased.queue_member, how, ended, job))

    def eviction_fault(self) -> str:
        """Return a sentence if Redis evicts keys when it is full; otherwise nothing."""
        try:
            return eviction_fault(self.client.info("memory"))
        except redis.exceptions.ResponseError:
            return ""  # INFO is not permitted

    def leave(self, node: str) -> None:
        """Remove a node.

        If it still has jobs, the next heartbeat of another node queues them again.
        """
        pipe = self.client.pipeline().zrem(keys.NODES, node).hdel(keys.NODE_INFOS, node)
        pipe.set(keys.STATE_VERSION, f"{node} left").execute()


def _sorted(eggs: Iterable[bytes]) -> list[Egg]:
    return sorted(
        (msgspec.json.decode(egg, type=Egg) for egg in eggs),
        key=lambda egg: (egg.added_at, egg.version),
    )
