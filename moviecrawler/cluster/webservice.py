"""Web services: replacements of Scrapyd's that write or list more, and some of our own."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import uuid4

import msgspec
import redis
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector
from scrapyd.webservice import Status as ScrapydStatus
from scrapyd.webservice import WsResource, param
from twisted.logger import Logger
from twisted.web import http
from twisted.web.error import Error, UnsupportedMethod
from twisted.web.resource import Resource

from moviecrawler.basics.credentials import redacted
from moviecrawler.basics.errors import AwayError, ConfigurationError, MovieCrawlerError
from moviecrawler.cluster.eggs import find_egg
from moviecrawler.cluster.fitness import CHECKS
from moviecrawler.cluster.jobs import RESULTS, Job
from moviecrawler.cluster.process import log_url
from moviecrawler.cluster.uploads import parse_upload
from moviecrawler.cluster.website import began_at, local_time, refuse
from moviecrawler.sites import SITES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from prometheus_client.metrics_core import Metric
    from twisted.web.server import Request

    from moviecrawler.cluster.state import Counters, JobStatus, NodeInfo, Snapshot, Start

journal = Logger()

_SIGNALS = {"2": "INT", "9": "KILL", "15": "TERM"}


class ClusterService(WsResource):  # type: ignore[misc]  # Scrapyd has no types
    """A web service that answers as Scrapyd's do, but logs in one line why it refused a request."""

    refused_code = http.OK
    """The status of a refusal; Scrapyd's clients expect this one."""

    def render(self, txrequest: Request) -> bytes:
        code: int = self.refused_code
        try:
            parse_upload(txrequest)
            data: Any = Resource.render(self, txrequest)
            if data is None:  # to OPTIONS
                return b""
            txrequest.setHeader("Content-Type", "application/json")
            return (
                json.dumps({**data, "status": "ok", "node_name": self.root.node_name}).encode()
                + b"\n"
            )
        except Error as error:
            code = int(error.status)
            why = (error.message or b"").decode()
        except UnsupportedMethod:
            code = http.NOT_ALLOWED
            why = f"use one of {self.methods}"
        except AwayError as error:
            code = http.SERVICE_UNAVAILABLE
            why = str(error)
        except (MovieCrawlerError, UnicodeDecodeError) as error:
            why = str(error)
        path = txrequest.path.decode(errors="replace")
        journal.info("{path} was refused: {why}", path=path, why=redacted(why))
        return refuse(txrequest, code, why, self.root.node_name)

    def check_project(self, project: str | None) -> None:
        """Raise ConfigurationError for a project that has neither a version nor a job."""
        if project is not None and project not in self.root.poller.queues:
            raise ConfigurationError(f"project '{project}' not found")


# --- In place of Scrapyd's ------------------------------------------------------------------------


class Schedule(ClusterService):
    """`schedule.json`: queue a job."""

    @param("project")
    @param("spider")
    @param("_version", dest="version", required=False)
    @param("jobid", dest="id", required=False)
    @param("priority", required=False, default=0.0, type=lambda given: float(given or 0))
    @param("setting", dest="settings", required=False, default=list, multiple=True)
    def render_POST(
        self,
        txrequest: Request,
        *,
        id: str | None,  # noqa: A002 - as a job's field
        settings: list[str],
        **given: Any,
    ) -> dict[str, Any]:
        for setting in settings:
            if "=" not in setting:
                raise ConfigurationError(f"setting is {setting[:80]!r}; give NAME=VALUE")
        arguments = {
            name.decode(): values[0].decode() for name, values in (txrequest.args or {}).items()
        }
        made = dict(setting.split("=", 1) for setting in settings)
        job = Job(id=id or uuid4().hex, settings=made, arguments=arguments, **given)
        self.root.node.schedule(job)
        return {"jobid": job.id}


class Cancel(ClusterService):
    """`cancel.json`: remove a job from the queue, or end its process on the node that runs it."""

    @param("project")
    @param("job")
    @param("signal", required=False, default="TERM")
    def render_POST(
        self, txrequest: Request, *, project: str, job: str, signal: str
    ) -> dict[str, Any]:
        name = _SIGNALS.get(signal, signal)
        if name not in _SIGNALS.values():
            raise ConfigurationError(
                f"signal is {signal[:20]!r}; give one of {', '.join(_SIGNALS.values())}"
            )
        self.check_project(project)
        return {"prevstate": self.root.node.state.cancel(project, job, name)}


class ListJobs(ClusterService):
    """`listjobs.json`: every job of the cluster.

    Each has its arguments and settings, and the node that runs or ran it.
    """

    @param("project", required=False)
    def render_GET(self, txrequest: Request, *, project: str | None) -> dict[str, Any]:
        self.check_project(project)
        found: dict[str, list[dict[str, Any]]] = {"pending": [], "running": [], "finished": []}
        for status in self.root.node.state.seen.get().jobs:
            if project in {None, status.job.project}:
                found[status.state].append(_row(status))
        return found


def _row(status: JobStatus) -> dict[str, Any]:
    job = status.job
    ended = status.outcome
    row: dict[str, Any] = {
        "id": job.id,
        "project": job.project,
        "spider": job.spider,
        "version": status.version,
    }
    row |= {
        "args": job.arguments,
        "settings": job.settings,
        "priority": job.priority,
        "run": job.settings.get("FRONTIER_RUN"),
    }
    url = log_url(job.project, job.spider, job.id) if status.starts else None
    row["starts"] = [_start_row(start) for start in status.history]
    if status.state == "pending":
        return row
    row |= {"start_time": str(local_time(began_at(status))), "node": status.node_id}
    row |= {"log_url": url, "items_url": None}
    if ended is None:
        return {**row, "pid": status.pid}
    row |= {"end_time": str(local_time(ended.ended_at)), "seconds": round(ended.seconds, 3)}
    names = ("result", "reason", "exit_code", "items", "errors", "pages", "bytes", "summary")
    return row | {name: getattr(ended, name) for name in names}


def _start_row(start: Start) -> dict[str, Any]:
    ended = None if start.ended_at is None else str(local_time(start.ended_at))
    return {
        "number": start.number,
        "node": start.node_id,
        "start_time": str(local_time(start.started_at)),
        "end_time": ended,
        "how": start.how,
        "reason": start.reason,
    }


class Status(ScrapydStatus):  # type: ignore[misc]  # Scrapyd has no types
    """`status.json`: a job's state, and of one that is over its result and the reason."""

    def render_GET(self, txrequest: Request) -> dict[str, Any]:
        given: Any = dict(txrequest.args or {})  # Scrapyd's takes its parameters out of it
        answer: dict[str, Any] = super().render_GET(txrequest)
        if answer["currstate"] == "finished":
            job = given[b"job"][0].decode()
            project = given[b"project"][0].decode() if b"project" in given else None
            ended = next(
                status.outcome
                for status in self.root.node.state.seen.get().finished
                if status.job.id == job and project in {None, status.job.project}
            )
            answer |= {"result": ended.result, "reason": ended.reason}
        return answer


class ListSpiders(ClusterService):
    """`listspiders.json`: the spiders that were found when the version was deployed."""

    @param("project")
    @param("_version", dest="version", required=False)
    def render_GET(
        self, txrequest: Request, *, project: str, version: str | None
    ) -> dict[str, Any]:
        return {"spiders": find_egg(self.root.node.state.seen.get().eggs, project, version).spiders}


class AddVersion(ClusterService):
    """`addversion.json`: check an egg, and make it the latest version on all nodes."""

    # With status 200, as Scrapyd has it, scrapyd-deploy would exit with 0.
    refused_code = http.BAD_REQUEST

    @param("project")
    @param("version")
    @param("egg", type=bytes)
    def render_POST(
        self, txrequest: Request, *, project: str, version: str, egg: bytes
    ) -> dict[str, Any]:
        added = self.root.eggstorage.put(egg, project, version)
        journal.info("{project} {version} deployed", project=project, version=version)
        return {"project": project, "version": version, "spiders": len(added.spiders)}


class DeleteProject(ClusterService):
    """`delproject.json`: delete all versions of a project."""

    @param("project")
    def render_POST(self, txrequest: Request, *, project: str) -> dict[str, Any]:
        self.root.eggstorage.delete(project)
        return {}


class DeleteVersion(ClusterService):
    """`delversion.json`: delete one version."""

    @param("project")
    @param("version")
    def render_POST(self, txrequest: Request, *, project: str, version: str) -> dict[str, Any]:
        self.root.eggstorage.delete(project, version)
        return {}


# --- Ours -----------------------------------------------------------------------------------------


class Nodes(ClusterService):
    """`nodes.json`: the live nodes, and the processes of each."""

    def render_GET(self, txrequest: Request) -> dict[str, Any]:
        return {"nodes": msgspec.to_builtins(self.root.node.state.nodes())}


class Health(ClusterService):
    """`healthz`: this node's event loop answers."""

    def render_GET(self, txrequest: Request) -> dict[str, Any]:
        return {}


class Ready(ClusterService):
    """`readyz`: this node can use Redis, is fit, and takes jobs."""

    def render_GET(self, txrequest: Request) -> dict[str, Any]:
        # What follows a colon, such as a path or an address, is not for everybody.
        reasons = [why.partition(": ")[0] for why in self.root.node.launcher.not_ready]
        if reasons:
            raise Error(http.SERVICE_UNAVAILABLE, "; ".join(reasons).encode())
        return {}


class Metrics(ClusterService, Collector):
    """`metrics`: the figures of the cluster and of this node's spiders, in Prometheus' format."""

    def render(self, txrequest: Request) -> bytes:
        txrequest.setHeader("Content-Type", CONTENT_TYPE_LATEST)
        return generate_latest(self)

    def collect(self) -> Iterable[Metric]:
        """Yield the metric families; it is the method of a Prometheus collector."""
        launcher = self.root.node.launcher
        state = self.root.node.state
        try:
            cluster = _Cluster(state.snapshot(), state.nodes(), state.counters())
        except redis.exceptions.RedisError:
            cluster = None
        is_up = cluster is not None and not launcher.outage  # a full one can still be read
        text = "Whether this node can use Redis."
        yield GaugeMetricFamily("moviecrawler_redis_up", text, int(is_up))
        if cluster is not None:
            yield from _of_cluster(cluster)
            yield from self.of_runs()
        yield from _of_nodes([launcher.info()] if cluster is None else cluster.nodes)
        yield from launcher.totals.collect()

    def of_runs(self) -> Iterable[Metric]:
        """Yield the figures of the frontier's runs, of which a cluster has none."""
        return ()


class _Cluster(NamedTuple):
    jobs: Snapshot
    nodes: list[NodeInfo]
    counters: Counters


def _of_cluster(cluster: _Cluster) -> Iterator[Metric]:
    """Yield what any node tells of the cluster."""
    pending = len(cluster.jobs.pending)
    yield GaugeMetricFamily("moviecrawler_jobs_pending", "Jobs that wait for a slot.", pending)
    running = len(cluster.jobs.running)
    yield GaugeMetricFamily("moviecrawler_jobs_running", "Jobs that run.", running)
    slots = sum(node.slots for node in cluster.nodes if node.takes_jobs)
    yield GaugeMetricFamily("moviecrawler_slots", "Slots of the nodes that take jobs.", slots)
    text = "Nodes that stopped sending heartbeats without having left."
    yield CounterMetricFamily("moviecrawler_nodes_lost", text, cluster.counters.nodes_lost)
    text = "Jobs that ended, by result, and processes of jobs that died."
    jobs = CounterMetricFamily("moviecrawler_jobs", text, labels=["spider", "result"])
    deployed = {spider for egg in cluster.jobs.eggs for spider in egg.spiders}
    ended = {spider for spider, _ in cluster.counters.jobs}
    # Those that have not ended yet are there, too: Prometheus sees no growth to a first value.
    for spider in sorted({*SITES, *deployed, *ended}):
        for result in RESULTS:
            jobs.add_metric([spider, result], cluster.counters.jobs[spider, result])
    yield jobs


def _of_nodes(nodes: Sequence[NodeInfo]) -> Iterator[Metric]:
    """Yield the figures of each node: of this one alone when the others are unknown."""
    text = "Whether a node can run jobs, by what it has checked."
    fit = GaugeMetricFamily("moviecrawler_node_fit", text, labels=["node", "check"])
    for node in nodes:
        for check in CHECKS:
            fit.add_metric([node.name, check], int(check not in node.unfit))
    yield fit
    for name, text, figures in (
        ("jobs", "Jobs of a node.", [len(node.processes) for node in nodes]),
        ("memory_bytes", "Memory of a node without its spiders.", [node.memory for node in nodes]),
        (
            "spiders_memory_bytes",
            "Memory of a node's spiders.",
            [node.spiders_memory for node in nodes],
        ),
    ):
        family = GaugeMetricFamily(f"moviecrawler_node_{name}", text, labels=["node"])
        for node, figure in zip(nodes, figures, strict=True):
            family.add_metric([node.name], figure)
        yield family
