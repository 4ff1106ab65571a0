"""The cluster's state in Redis.

Each call is one short round trip and blocks: call it in a thread, not in the event loop.
"""

from __future__ import annotations

import threading
from collections import Counter
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from moviecrawler.basics.errors import ConfigurationError
from moviecrawler.basics.files import read_package_file
from moviecrawler.cluster import keys
from moviecrawler.cluster.jobs import Job, Outcome
from moviecrawler.frontier.redis_client import connect_blocking

if TYPE_CHECKING:
    from collections.abc import Iterable

    from moviecrawler.cluster.jobs import RunEnd
    from moviecrawler.cluster.options import NodeOptions

_ANSWER_SECONDS = 3.0
"""Seconds to connect, and seconds to get an answer."""
_SCRIPTS = ("put", "beat", "record_end", "cancel")

EVENTS = (
    "scheduled",
    "started",
    "finished",
    "cancelled",
    "died",
    "recycled",
    "handed_back",
    "gave_up",
)
"""Counters of jobs, which the scripts increment."""
NODE_LOST = "node_lost"
"""Counter of nodes whose heartbeats stopped before they left, which the scripts increment."""


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
    processes: dict[str, tuple[int, str | None]]
    """The process' id and its version, by the job's key."""
    memory: int
    """Bytes of the node itself, without its spiders."""
    spiders_memory: int = 0
    """Bytes of the node's spiders."""
    heard_seconds_ago: float = 0.0
    """Seconds since the last heartbeat, set when the node is read."""


_info = msgspec.json.Decoder(NodeInfo).decode


class Egg(msgspec.Struct, frozen=True, kw_only=True):
    """A version of a project."""

    project: str
    version: str
    sha256: str
    spiders: list[str]
    added_at: float
    """Seconds since 1970."""

    @property
    def key(self) -> str:
        """The version's field in Redis."""
        return f"{self.project}/{self.version}"


class JobStatus(msgspec.Struct, kw_only=True):
    """A job that is pending, running or finished. The scripts write it, with some more fields."""

    job: Job
    state: Literal["pending", "running", "finished"]
    queue_member: str = ""
    """The job's member in the ZSET of pending jobs."""
    starts: int = 0
    """How often the job was started."""
    node_id: str = ""
    """The node that runs the job, or ran it last."""
    started_at: float | None = None
    """When the job was last started: seconds since 1970, by Redis' clock. None for a pending
    job."""
    pid: int | None = None
    """The id of the process; None when it does not run, or when its node has not reported it
    yet."""
    running_version: str | None = None
    """The version that the process runs; None when `pid` is."""
    outcome: Outcome | None = None
    """How a finished job ended."""

    @property
    def queued_at(self) -> float:
        """When the job was queued, the same at each start: seconds since 1970, by Redis' clock."""
        return int(self.queue_member[:16]) / 1e6

    @property
    def node(self) -> str:
        """The node's name."""
        return self.node_id.rpartition(":")[0] or self.node_id

    @property
    def version(self) -> str | None:
        """The version that ran, or when that is unknown, the version that was requested."""
        ran = self.outcome.version if self.outcome else self.running_version
        return ran or self.job.version


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """The cluster at one moment."""

    changed: bytes | None = None
    """The text of `keys.CHANGED` at that moment."""
    pending: list[JobStatus] = []
    """Pending jobs, the next one first."""
    running: list[JobStatus] = []
    """Running jobs, the one started first comes first."""
    finished: list[JobStatus] = []
    """Finished jobs, the latest first."""
    eggs: list[Egg] = []
    """Versions in the order of their deployment, so that names need no order, and to roll back is
    to deploy again."""

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
        return next(
            (one for one in self.jobs if (one.job.project, one.job.id) == (project, job)), None
        )


class Beat(msgspec.Struct, frozen=True):
    """The answer to a heartbeat.

    Keys and ids come as names with a value, as Lua's JSON does not tell an empty list.
    """

    stop: dict[str, bool]
    """Keys of jobs to stop, as they are over, or another node runs them now."""
    cancels: dict[str, str]
    """The signals for jobs to cancel, by the jobs' keys."""
    dead: dict[str, bool]
    """Nodes whose lease has ended."""
    next_end: float
    """Seconds until the next lease ends."""
    taken: JobStatus | None = None
    """The job that the node takes."""


class ClusterState:
    """Jobs, nodes and versions. Each method raises redis.RedisError."""

    def __init__(self, options: NodeOptions) -> None:
        self.options = options
        self.client = self.connect(_ANSWER_SECONDS)
        common = read_package_file(__package__, "common.lua")
        self._scripts = {
            name: self.client.register_script(
                common + read_package_file(__package__, f"{name}.lua")
            )
            for name in _SCRIPTS
        }
        self._snapshot = Snapshot()
        self.seen = ContextVar("seen", default=self._snapshot)
        """The snapshot that this thread read last: all of an answer is made from one."""
        self._reading = threading.Lock()

    def connect(self, answer_seconds: float) -> Any:
        """Return a client with a time-out."""
        limits = {"socket_timeout": answer_seconds, "socket_connect_timeout": _ANSWER_SECONDS}
        return connect_blocking(self.options.redis_url, **limits)

    def _run(self, name: str, *arguments: Any) -> Any:
        return self._scripts[name](keys=keys.SCRIPT_KEYS, args=arguments)

    def now(self) -> float:
        """Return the time by Redis' clock, in seconds since 1970."""
        seconds, microseconds = self.client.time()
        return float(seconds + microseconds / 1e6)

    # --- For web services and pages ---------------------------------------------------------------

    def changed(self) -> bytes | None:
        """Return a text that is a new one after each change."""
        text: bytes | None = self.client.get(keys.CHANGED)
        return text

    def snapshot(self) -> Snapshot:
        """Return the cluster as it is now. It is read only when it has changed."""
        with self._reading:
            changed = self.changed()
            if changed is None or changed != self._snapshot.changed:
                self._snapshot = self._read()
            self.seen.set(self._snapshot)
            return self._snapshot

    def _read(self) -> Snapshot:
        pipe = (
            self.client.pipeline()
            .get(keys.CHANGED)
            .hvals(keys.JOBS)
            .hvals(keys.NODE_INFOS)
            .hvals(keys.EGGS)
        )
        changed, jobs, infos, eggs = pipe.execute()
        processes = {
            key: process for info in infos for key, process in _info(info).processes.items()
        }
        found: dict[str, list[JobStatus]] = {"pending": [], "running": [], "finished": []}
        for status in map(msgspec.json.Decoder(JobStatus).decode, jobs):
            if status.state == "running":
                status.pid, status.running_version = processes.get(status.job.key, (None, None))
            found[status.state].append(status)
        return Snapshot(
            changed=changed,
            pending=sorted(
                found["pending"], key=lambda status: (-status.job.priority, status.queue_member)
            ),
            running=sorted(found["running"], key=lambda status: status.started_at or 0.0),
            finished=sorted(
                found["finished"],
                key=lambda status: -status.outcome.ended_at if status.outcome else 0.0,
            ),
            eggs=_sorted(eggs),
        )

    def schedule(self, job: Job) -> None:
        """Queue a checked job, unless it is pending or running, as clients may repeat a request.

        Raises ConfigurationError.
        """
        answer = self._run("put", job.key, msgspec.json.encode(job), -job.priority)
        if answer == -1:
            raise ConfigurationError("100,000 jobs are pending; wait for some, or cancel them")
        if answer is not None and msgspec.json.decode(answer, type=Job) != job:
            raise ConfigurationError(
                f"job '{job.id}' is pending or running already, with other arguments; "
                "leave out jobid"
            )

    def cancel(self, project: str, job: str, signal: str = "TERM") -> str | None:
        """Cancel a job; return whether it was 'pending' or 'running', None when it was neither."""
        answer = self._run("cancel", f"{project}/{job}", signal)
        return answer and str(answer, "ascii")

    def counters(self) -> Counter[str]:
        """Return how often each event has happened."""
        return Counter(
            {
                name.decode(): int(count)
                for name, count in self.client.hgetall(keys.COUNTERS).items()
            }
        )

    def nodes(self) -> list[NodeInfo]:
        """Return the live nodes, by name."""
        pipe = (
            self.client.pipeline()
            .hgetall(keys.NODE_INFOS)
            .zrange(keys.NODES, 0, -1, withscores=True)
            .time()
        )
        infos, leases, (seconds, _) = pipe.execute()
        heard = {
            node: max(0.0, seconds + self.options.lease_seconds - end / 1000)
            for node, end in leases
        }
        found = [
            msgspec.structs.replace(_info(info), heard_seconds_ago=heard[node])
            for node, info in infos.items()
        ]
        return sorted(found, key=lambda node: node.id)

    def eggs(self) -> list[Egg]:
        """Return the versions of all projects, the latest one last."""
        return _sorted(self.client.hvals(keys.EGGS))

    # --- For nodes --------------------------------------------------------------------------------

    def beat(
        self, node: NodeInfo, jobs: Iterable[str], *, is_news: bool = True, takes: bool = False
    ) -> Beat:
        """Renew a node's lease, or add the node, and hand it the next job if it `takes` one.

        `jobs` are the keys of those that it runs.

        `is_news` says whether anything else than figures of memory has changed since the last
        heartbeat.
        """
        lease = round(self.options.lease_seconds * 1000)
        flags = int(is_news), lease, int(takes)
        answer = self._run("beat", node.id, msgspec.json.encode(node), *flags, *jobs)
        return msgspec.json.decode(answer, type=Beat)

    def record_end(self, node: str, job: Job, how: RunEnd, outcome: Outcome) -> bool:
        """Record how a node's job ended; return False when another node has the job now."""
        return bool(self._run("record_end", node, job.key, how, msgspec.json.encode(outcome)))

    def leave(self, node: str) -> None:
        """Remove a node.

        If it still has jobs, the next heartbeat of another node queues them again.
        """
        pipe = self.client.pipeline().zrem(keys.NODES, node).hdel(keys.NODE_INFOS, node)
        pipe.set(keys.CHANGED, f"{node} left").execute()


def _sorted(eggs: Iterable[bytes]) -> list[Egg]:
    return sorted(
        (msgspec.json.decode(egg, type=Egg) for egg in eggs),
        key=lambda egg: (egg.added_at, egg.version),
    )
