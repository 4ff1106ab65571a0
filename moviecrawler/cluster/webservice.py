"""Scrapyd's web services, answered by any node for the whole cluster, and some more."""

from __future__ import annotations

import json
import traceback
from dataclasses import asdict
from datetime import UTC, datetime
from functools import cached_property
from io import BytesIO
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import uuid4

import msgspec
import redis
from scrapyd.webservice import param
from twisted.internet.threads import deferToThread
from twisted.logger import Logger
from twisted.web import http
from twisted.web.error import Error
from twisted.web.resource import Resource
from twisted.web.server import NOT_DONE_YET

from moviecrawler.cluster.jobs import BadEggError, Job
from moviecrawler.cluster.secrets import redacted
from moviecrawler.errors import AwayError, ConfigurationError, MovieCrawlerError
from moviecrawler.frontier.report import read_runs

if TYPE_CHECKING:
    from collections.abc import Mapping

    from twisted.internet.defer import Deferred
    from twisted.web.server import Request

    from moviecrawler.cluster.node import Node
    from moviecrawler.cluster.state import JobStatus, NodeInfo

journal = Logger()

_SIGNALS = {"2": "INT", "9": "KILL", "15": "TERM"}


def error_response(sentence: str, code: int = http.OK) -> Error:
    """Return the error to raise for a request that can't be done. Scrapyd's clients expect status 200 even then."""
    return Error(code, sentence.encode())


def error_data(sentence: str) -> dict[str, str]:
    """Return the content of an answer that is an error."""
    return {"status": "error", "message": sentence}


class Answer(NamedTuple):
    """What is sent to a client."""

    code: int
    content: bytes
    headers: Mapping[str, str]


def send(request: Request, answer: Answer) -> None:
    """Send an answer; without its content, when HEAD asks for it."""
    request.setResponseCode(answer.code)
    for name, value in answer.headers.items():
        request.setHeader(name, value)
    request.setHeader("Content-Length", str(len(answer.content)))
    if request.method != b"HEAD":
        request.write(answer.content)
    request.finish()


def send_later(request: Request, answering: Deferred[Answer]) -> int:
    """Send the answer that a thread is about to return, unless the client has gone by then."""
    gone: list[Any] = []
    request.notifyFinish().addErrback(gone.append)
    sending: Deferred[Any] = answering.addCallback(lambda answer: None if gone else send(request, answer))
    sending.addErrback(lambda failure: journal.failure("An answer failed", failure))
    return NOT_DONE_YET


class ClusterResource(Resource):
    """A web service whose `render_GET` and `render_POST` run in a thread and return what is answered as JSON."""

    isLeaf = True
    waits = True
    """Whether its answer waits for Redis or a disk, so that it is made in a thread."""

    def __init__(self, node: Node) -> None:
        super().__init__()
        self.node = node

    def render(self, request: Request) -> int:
        if self.waits:
            return send_later(request, deferToThread(self.answer_whole, request))
        send(request, self.answer_whole(request))
        return NOT_DONE_YET

    def answer_whole(self, request: Request) -> Answer:
        """Return the answer to a request, whatever happens; what was not done is logged, with the reason."""
        code, data = self.answer(request)
        if request.method == b"POST" and data["status"] == "error":
            what = {"path": request.path.decode(errors="replace"), "why": redacted(data["message"])}
            journal.warn("POST {path} was refused: {why}", **what)
        return self.encode(code, data)

    def answer(self, request: Request) -> tuple[int, Any]:
        """Return status and content, which is plain data."""
        if request.method == b"OPTIONS":
            return http.NO_CONTENT, None
        method = "render_GET" if request.method == b"HEAD" else f"render_{request.method.decode('latin-1')}"
        handler = getattr(self, method, None)
        if handler is None:
            return http.NOT_ALLOWED, error_data(f"Expected one of {self.methods}")
        if request.method == b"POST" and is_cross_site(request):
            return http.FORBIDDEN, error_data("a page of another site sent this")
        try:
            return http.OK, {**msgspec.to_builtins(handler(request)), "status": "ok"}
        except Error as error:
            return int(error.status), error_data((error.message or b"").decode())
        except AwayError as error:
            return http.SERVICE_UNAVAILABLE, error_data(str(error))
        except MovieCrawlerError as error:
            return http.OK, error_data(str(error))
        except redis.exceptions.RedisError as error:
            return http.SERVICE_UNAVAILABLE, error_data(f"Redis can't be reached: {error}")
        except Exception as error:  # noqa: BLE001 - the client gets an answer, the log the traceback
            journal.error("{trace}", trace=traceback.format_exc())
            return http.INTERNAL_SERVER_ERROR, error_data(f"{type(error).__name__}: {error}")

    def encode(self, code: int, data: Any) -> Answer:
        """Return plain data as JSON."""
        # With spaces as Scrapyd has them: scripts look for `"status": "ok"`.
        content = b"" if data is None else json.dumps({**data, "node_name": self.node.name}).encode() + b"\n"
        return self.with_headers(code, content, "application/json")

    def with_headers(self, code: int, content: bytes, kind: str) -> Answer:
        """Return an answer with the headers that all answers have."""
        usual = {"Cache-Control": "no-store", "Allow": self.methods}
        return Answer(code, content, {"Content-Type": kind, **usual})

    @cached_property
    def methods(self) -> str:
        """Return the HTTP methods that are allowed."""
        return ", ".join(["OPTIONS", "HEAD", *(m for m in ("GET", "POST") if hasattr(self, f"render_{m}"))])

    def check_project(self, project: str | None) -> None:
        """Raise the answer "not found" for a project that has neither a version nor a job."""
        if project is None or project in self.node.eggs.list_projects() or self.node.state.knows_jobs_of(project):
            return
        raise error_response(f"project '{project}' not found")


def is_cross_site(request: Request) -> bool:
    """Return whether a page of another site made a browser send this: a browser adds our password by itself."""
    origin = request.getHeader("Origin")
    if origin is None:
        return request.getHeader("Sec-Fetch-Site") == "cross-site"
    ours = {request.getHeader("Host"), request.getHeader("X-Forwarded-Host")}
    return origin.partition("://")[2] not in ours - {None, ""}


def local_time(seconds: float) -> datetime:
    """Return a time as Scrapyd shows it: the node's local time, without a time zone."""
    return datetime.fromtimestamp(seconds, UTC).astimezone().replace(tzinfo=None)


# --- Scrapyd's -------------------------------------------------------------------------------------------------------


class Schedule(ClusterResource):
    """`schedule.json`: queue a job."""

    @param("project")
    @param("spider")
    @param("_version", dest="version", required=False)
    @param("jobid", required=False)
    @param("priority", required=False, default=0.0, type=lambda given: float(given or 0))
    @param("setting", dest="settings", required=False, default=list, multiple=True)
    def render_POST(
        self,
        request: Request,
        *,
        project: str,
        spider: str,
        version: str | None,
        jobid: str | None,
        priority: float,
        settings: list[str],
    ) -> dict[str, Any]:
        for setting in settings:
            if "=" not in setting:
                raise error_response(f"setting is {setting[:80]!r}; give NAME=VALUE")
        arguments = {}
        for name, values in (request.args or {}).items():
            try:
                arguments[name.decode()] = values[0].decode()
            except UnicodeDecodeError as error:
                raise error_response(f"argument {name.decode(errors='replace')} is invalid: {error}") from None
        job = Job(
            project=project,
            spider=spider,
            id=jobid or uuid4().hex,
            version=version,
            settings=dict(setting.split("=", 1) for setting in settings),
            arguments=arguments,
            priority=priority,
        )
        self.node.schedule(job)
        return {"jobid": job.id}


class Cancel(ClusterResource):
    """`cancel.json`: take a job out of the queue, or end its process on the node that runs it."""

    @param("project")
    @param("job")
    @param("signal", required=False)
    def render_POST(self, request: Request, *, project: str, job: str, signal: str | None) -> dict[str, Any]:
        signal = (signal or "TERM").upper().removeprefix("SIG")
        signal = _SIGNALS.get(signal, signal)
        if signal not in _SIGNALS.values():
            raise error_response(f"signal is {signal[:20]!r}; give one of {', '.join(_SIGNALS.values())}")
        state = self.node.state.cancel(project, job, signal)
        if state is None:
            self.check_project(project)
        return {"prevstate": state}


class Status(ClusterResource):
    """`status.json`: whether a job is pending, running or finished."""

    @param("job")
    @param("project", required=False)
    def render_GET(self, request: Request, *, job: str, project: str | None) -> dict[str, Any]:
        state = self.node.state.state_of(job, project)
        if state is None:
            self.check_project(project)
        return {"currstate": state}


class ListJobs(ClusterResource):
    """`listjobs.json`: every job of the cluster, with the node that runs or ran it."""

    @param("project", required=False)
    def render_GET(self, request: Request, *, project: str | None) -> dict[str, Any]:
        self.check_project(project)
        state = self.node.state
        return {
            "pending": [self._row(job) for job in state.pending(project)],
            "running": [self._row(job) for job in state.running(project)],
            "finished": [self._row(job) for job in state.finished(project)],
        }

    def _row(self, status: JobStatus) -> dict[str, Any]:
        job, ran = status.job, status.outcome
        row: dict[str, Any] = {"id": job.id, "project": job.project, "spider": job.spider, "version": status.version}
        row |= {"args": job.arguments, "run": job.run}
        if status.started_at is None:
            return {**row, "settings": job.settings, "priority": job.priority}
        row |= {"start_time": str(local_time(status.started_at)), "node": status.node_id}
        row |= {"log_url": self.node.log_url(job), "items_url": None}
        if ran is None:
            return {**row, "pid": status.process and status.process.pid}
        figures = {name: getattr(ran, name) for name in ("reason", "items", "errors", "pages", "bytes")}
        return {**row, "end_time": str(local_time(ran.ended_at / 1000)), **figures, "seconds": round(ran.seconds, 3)}


class DaemonStatus(ClusterResource):
    """`daemonstatus.json`: how many jobs the cluster has."""

    def render_GET(self, request: Request) -> dict[str, Any]:
        return self.node.state.counts()._asdict()


class ListProjects(ClusterResource):
    """`listprojects.json`."""

    def render_GET(self, request: Request) -> dict[str, Any]:
        return {"projects": self.node.eggs.list_projects()}


class ListVersions(ClusterResource):
    """`listversions.json`."""

    @param("project")
    def render_GET(self, request: Request, *, project: str) -> dict[str, Any]:
        return {"versions": self.node.eggs.list(project)}


class ListSpiders(ClusterResource):
    """`listspiders.json`."""

    @param("project")
    @param("_version", dest="version", required=False)
    def render_GET(self, request: Request, *, project: str, version: str | None) -> dict[str, Any]:
        return {"spiders": self.node.eggs.find(project, version).spiders}


class AddVersion(ClusterResource):
    """`addversion.json`: check an egg, and make it the latest version on all nodes."""

    @param("project")
    @param("version")
    @param("egg", type=bytes)
    def render_POST(self, request: Request, *, project: str, version: str, egg: bytes) -> dict[str, Any]:
        # A deploy that is interrupted meanwhile looks for the version to delete it, so it must not come later.
        try:
            added = self.node.eggs.put(BytesIO(egg), project, version, is_wanted=lambda: request.channel is not None)
        except (BadEggError, ConfigurationError) as error:
            # With status 200, as Scrapyd has it, scrapyd-deploy would exit with 0.
            raise error_response(str(error), http.BAD_REQUEST) from None
        journal.info("{project} {version} deployed: {size} bytes", project=project, version=version, size=added.size)
        return {"project": project, "version": version, "spiders": len(added.spiders)}


class DeleteProject(ClusterResource):
    """`delproject.json`."""

    @param("project")
    def render_POST(self, request: Request, *, project: str, version: str | None = None) -> dict[str, Any]:
        self.node.eggs.delete(project, version)
        return {}


class DeleteVersion(DeleteProject):
    """`delversion.json`."""

    render_POST = param("version")(DeleteProject.render_POST)


# --- Ours ------------------------------------------------------------------------------------------------------------


class Nodes(ClusterResource):
    """`nodes.json`: the live nodes, and the jobs of each."""

    def render_GET(self, request: Request) -> dict[str, Any]:
        now = self.node.state.now()
        running: dict[str | None, list[str]] = {}
        for status in self.node.state.running():
            running.setdefault(status.node_id, []).append(status.job.key)
        return {"nodes": [self._node(node, now, running.get(node.id, [])) for node in self.node.state.nodes()]}

    def _node(self, node: NodeInfo, now: float, running: list[str]) -> dict[str, Any]:
        facts = msgspec.to_builtins(node)
        return {
            **{name: facts[name] for name in ("id", "name", "url", "slots", "draining", "memory", "processes")},
            "running": running,
            "up_seconds": round(now - node.started_at, 1),
            "heard_seconds_ago": round(node.heard_ago(now, self.node.options.lease_seconds), 1),
        }


class Progress(ClusterResource):
    """`progress.json`: how far the runs of the shared frontier are."""

    def render_GET(self, request: Request) -> dict[str, Any]:
        return {"runs": [{**asdict(run), "to_go": run.to_go} for run in self.node.ask_frontier(read_runs)]}


class Health(ClusterResource):
    """`healthz`: this node's event loop answers."""

    waits = False

    def render_GET(self, request: Request) -> dict[str, Any]:
        return {}


class Ready(ClusterResource):
    """`readyz`: this node has heard from Redis lately, and takes jobs."""

    waits = False

    def render_GET(self, request: Request) -> dict[str, Any]:
        why = self.node.why_not_ready()
        if why is not None:
            raise error_response(why, http.SERVICE_UNAVAILABLE)
        return {}
