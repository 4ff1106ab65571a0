"""Web services: replacements of Scrapyd's that write or list more, and the state of nodes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING
from uuid import uuid4

import msgspec
from msgspec.structs import asdict
from scrapyd.webservice import WsResource, param
from twisted.logger import Logger
from twisted.web import http
from twisted.web.error import Error, UnsupportedMethod
from twisted.web.resource import Resource

from moviecrawler.basics.credentials import redacted
from moviecrawler.basics.errors import ConfigurationError, MovieCrawlerError, UnavailableError
from moviecrawler.cluster.eggs import find_egg
from moviecrawler.cluster.jobs import Job
from moviecrawler.cluster.process import log_url
from moviecrawler.cluster.website import began_at, local_time, refuse

if TYPE_CHECKING:
    from twisted.web.server import Request

    from moviecrawler.cluster.state import JobStatus, Start
    from moviecrawler.cluster.uploads import GuardedRequest

journal = Logger()

Reply = Mapping[str, object]
"""What a service replies, before it is encoded as JSON."""
_SIGNALS = {"2": "INT", "9": "KILL", "15": "TERM"}


class ClusterService(WsResource):  # type: ignore[misc]  # Scrapyd has no types
    """A web service that replies as Scrapyd's do, but logs in one line why it refused a request."""

    refused_code = http.OK
    """The status of a refusal; Scrapyd's clients expect this one."""

    def render(self, txrequest: GuardedRequest) -> bytes:
        code: int = self.refused_code
        try:
            txrequest.parse_upload()
            data: Reply | None = Resource.render(self, txrequest)
            if data is None:  # to OPTIONS
                return b""
            txrequest.setHeader("Content-Type", "application/json")
            reply = {**data, "status": "ok", "node_name": self.root.node_name}
            return json.dumps(reply).encode() + b"\n"
        except Error as error:
            code = int(error.status)
            why = (error.message or b"").decode()
        except UnsupportedMethod:
            code = http.NOT_ALLOWED
            why = f"use one of {self.methods}"
        except UnavailableError as error:
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
    @param("priority", required=False, default=0.0, type=lambda text: float(text or 0))
    @param("setting", dest="settings", required=False, default=list, multiple=True)
    def render_POST(
        self,
        txrequest: Request,
        *,
        id: str | None,  # noqa: A002 - as a job's field
        settings: list[str],
        project: str,
        spider: str,
        version: str | None,
        priority: float,
    ) -> Reply:
        for setting in settings:
            if "=" not in setting:
                raise ConfigurationError(f"setting is {setting[:80]!r}; give NAME=VALUE")
        arguments = {
            name.decode(): values[0].decode() for name, values in (txrequest.args or {}).items()
        }
        job = Job(
            project=project,
            spider=spider,
            id=id or uuid4().hex,
            version=version,
            settings=dict(setting.split("=", 1) for setting in settings),
            arguments=arguments,
            priority=priority,
        )
        self.root.node.schedule(job)
        return {"jobid": job.id}


class Cancel(ClusterService):
    """`cancel.json`: remove a job from the queue, or end its process on the node that runs it."""

    @param("project")
    @param("job")
    @param("signal", required=False, default="TERM")
    def render_POST(self, txrequest: Request, *, project: str, job: str, signal: str) -> Reply:
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
    def render_GET(self, txrequest: Request, *, project: str | None) -> Reply:
        self.check_project(project)
        rows: dict[str, list[Reply]] = {"pending": [], "running": [], "finished": []}
        for status in self.root.node.state.seen.jobs:
            if project in {None, status.job.project}:
                rows[status.state].append(_row(status))
        return rows


def _row(status: JobStatus) -> Reply:
    job = status.job
    row: dict[str, object] = {
        "id": job.id,
        "project": job.project,
        "spider": job.spider,
        "version": status.version,
        "args": job.arguments,
        "settings": job.settings,
        "priority": job.priority,
        "run": job.settings.get("FRONTIER_RUN"),
        "starts": [_start_row(start) for start in status.history],
    }
    if status.state == "pending":
        return row
    row |= {
        "start_time": _time(began_at(status)),
        "node": status.node_id,
        "log_url": log_url(job) if status.starts else None,
        "items_url": None,
    }
    if status.outcome is None:
        return {**row, "pid": status.pid}
    ended = asdict(status.outcome)
    row["end_time"] = _time(ended.pop("ended_at"))
    return row | ended | {"seconds": round(status.outcome.seconds, 3)}


def _start_row(start: Start) -> Reply:
    return {
        "number": start.number,
        "node": start.node_id,
        "start_time": _time(start.started_at),
        "end_time": _time(start.ended_at),
        "how": start.how,
        "reason": start.reason,
    }


def _time(seconds: float | None) -> str | None:
    return None if seconds is None else str(local_time(seconds))


class Status(ClusterService):
    """`status.json`: a job's state, and of a finished one its result and the reason."""

    @param("job")
    @param("project", required=False)
    def render_GET(self, txrequest: Request, *, job: str, project: str | None) -> Reply:
        self.check_project(project)
        for status in self.root.node.state.seen.jobs:
            if status.job.id == job and project in {None, status.job.project}:
                ended = status.outcome
                result = {"result": ended.result, "reason": ended.reason} if ended else {}
                return {"currstate": status.state, **result}
        return {"currstate": None}


class ListSpiders(ClusterService):
    """`listspiders.json`: the spiders that were found when the version was deployed."""

    @param("project")
    @param("_version", dest="version", required=False)
    def render_GET(self, txrequest: Request, *, project: str, version: str | None) -> Reply:
        return {"spiders": find_egg(self.root.node.state.seen.eggs, project, version).spiders}


class AddVersion(ClusterService):
    """`addversion.json`: check an egg, and make it the latest version on all nodes."""

    # With status 200, as Scrapyd has it, scrapyd-deploy would exit with 0.
    refused_code = http.BAD_REQUEST

    @param("project")
    @param("version")
    @param("egg", type=bytes)
    def render_POST(self, txrequest: Request, *, project: str, version: str, egg: bytes) -> Reply:
        added = self.root.eggstorage.put(egg, project, version)
        journal.info("{project} {version} deployed", project=project, version=version)
        return {"project": project, "version": version, "spiders": len(added.spiders)}


class DeleteProject(ClusterService):
    """`delproject.json`: delete all versions of a project."""

    @param("project")
    def render_POST(self, txrequest: Request, *, project: str) -> Reply:
        self.root.eggstorage.delete(project)
        return {}


class DeleteVersion(ClusterService):
    """`delversion.json`: delete one version."""

    @param("project")
    @param("version")
    def render_POST(self, txrequest: Request, *, project: str, version: str) -> Reply:
        self.root.eggstorage.delete(project, version)
        return {}


# --- Ours -----------------------------------------------------------------------------------------


class Nodes(ClusterService):
    """`nodes.json`: the live nodes, and the processes of each."""

    def render_GET(self, txrequest: Request) -> Reply:
        return {"nodes": msgspec.to_builtins(self.root.node.state.seen.nodes)}


class Health(ClusterService):
    """`healthz`: this node's event loop runs."""

    def render_GET(self, txrequest: Request) -> Reply:
        return {}


class Ready(ClusterService):
    """`readyz`: this node can use Redis, is fit, and takes jobs."""

    def render_GET(self, txrequest: Request) -> Reply:
        # What follows a colon, such as a path or an address, is not for everybody.
        reasons = [why.partition(": ")[0] for why in self.root.node.launcher.unready_reasons]
        if reasons:
            raise Error(http.SERVICE_UNAVAILABLE, "; ".join(reasons).encode())
        return {}
