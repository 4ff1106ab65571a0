"""Web services: replacements of Scrapyd's that write or list more, and some of our own."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import msgspec
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector
from scrapyd.webservice import WsResource, param
from twisted.logger import Logger
from twisted.web import http
from twisted.web.error import Error, UnsupportedMethod
from twisted.web.resource import Resource

from moviecrawler.basics.credentials import redacted
from moviecrawler.basics.errors import AwayError, ConfigurationError, MovieCrawlerError
from moviecrawler.cluster.eggs import find_egg
from moviecrawler.cluster.jobs import Job
from moviecrawler.cluster.process import log_url
from moviecrawler.cluster.state import EVENTS, NODE_LOST
from moviecrawler.cluster.website import local_time, refuse

if TYPE_CHECKING:
    from collections.abc import Iterable

    from prometheus_client.metrics_core import Metric
    from twisted.web.server import Request

    from moviecrawler.cluster.state import JobStatus

journal = Logger()

_SIGNALS = {"2": "INT", "9": "KILL", "15": "TERM"}


class ClusterService(WsResource):  # type: ignore[misc]  # Scrapyd has no types
    """A web service that answers as Scrapyd's do, but logs in one line why it refused a request."""

    refused_code = http.OK
    """The status of a refusal; Scrapyd's clients expect this one."""

    def render(self, txrequest: Request) -> bytes:
        code: int = self.refused_code
        try:
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
    if status.started_at is None:
        return row
    row |= {"start_time": str(local_time(status.started_at)), "node": status.node_id}
    row |= {"log_url": log_url(job.project, job.spider, job.id), "items_url": None}
    if ended is None:
        return {**row, "pid": status.pid}
    row |= {"end_time": str(local_time(ended.ended_at)), "seconds": round(ended.seconds, 3)}
    names = ("reason", "exit_code", "items", "errors", "pages", "bytes", "summary")
    return row | {name: getattr(ended, name) for name in names}


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
    def render_POST(
        self, txrequest: Request, *, project: str, version: str | None = None
    ) -> dict[str, Any]:
        self.root.eggstorage.delete(project, version)
        return {}


class DeleteVersion(DeleteProject):
    """`delversion.json`: delete one version."""

    render_POST = param("version")(DeleteProject.render_POST)


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
    """`readyz`: this node can reach Redis, and takes jobs."""

    def render_GET(self, txrequest: Request) -> dict[str, Any]:
        launcher = self.root.node.launcher
        if launcher.draining:
            raise Error(http.SERVICE_UNAVAILABLE, b"the node is draining")
        if time.monotonic() - launcher.last_beat_at > self.root.node.options.lease_seconds:
            raise Error(http.SERVICE_UNAVAILABLE, b"Redis can't be reached")
        return {}


class Metrics(ClusterService, Collector):
    """`metrics`: the figures of the cluster and of this node's spiders, in Prometheus' format."""

    def render(self, txrequest: Request) -> bytes:
        txrequest.setHeader("Content-Type", CONTENT_TYPE_LATEST)
        return generate_latest(self)

    def collect(self) -> Iterable[Metric]:
        """Yield the metric families; it is the method of a Prometheus collector."""
        state = self.root.node.state
        jobs = self.root.node.state.seen.get()
        nodes = state.nodes()
        counters = state.counters()
        slots = sum(node.slots for node in nodes if not node.draining)
        yield GaugeMetricFamily(
            "moviecrawler_jobs_pending", "Jobs that wait for a slot.", len(jobs.pending)
        )
        yield GaugeMetricFamily("moviecrawler_jobs_running", "Jobs that run.", len(jobs.running))
        yield GaugeMetricFamily("moviecrawler_slots", "Slots of the nodes that take jobs.", slots)
        text = "Nodes that stopped sending heartbeats without having left."
        yield CounterMetricFamily("moviecrawler_nodes_lost", text, counters[NODE_LOST])
        events = CounterMetricFamily("moviecrawler_jobs", "Events of jobs.", labels=["event"])
        for event in sorted(EVENTS):
            events.add_metric([event], counters[event])
        yield events
        for name, text, figures in (
            ("jobs", "Jobs of a node.", [len(node.processes) for node in nodes]),
            (
                "memory_bytes",
                "Memory of a node without its spiders.",
                [node.memory for node in nodes],
            ),
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
        yield from self.root.node.launcher.figures().collect()
