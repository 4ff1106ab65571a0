"""Scrapyd's web services, answered by any node for the whole cluster, and some more."""

from __future__ import annotations

import asyncio
import json
import os
import traceback
from contextlib import aclosing
from dataclasses import asdict
from functools import cached_property
from io import BytesIO
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import msgspec
import redis
from twisted.internet.threads import deferToThread
from twisted.logger import Logger
from twisted.web import http
from twisted.web.error import Error
from twisted.web.resource import Resource
from twisted.web.server import NOT_DONE_YET

from moviecrawler.cluster.components import local_time
from moviecrawler.cluster.jobs import Job, check_job
from moviecrawler.errors import MovieCrawlerError
from moviecrawler.frontier.report import read_current_runs, read_runs
from moviecrawler.redis_client import connect, redis_parameters

if TYPE_CHECKING:
    from twisted.web.server import Request

    from moviecrawler.cluster.state import Finished, NodeInfo, Running
    from moviecrawler.cluster.website import Root

journal = Logger()

_SIGNALS = {"2": "INT", "9": "KILL", "15": "TERM"}


def parameter(request: Request, name: str) -> str | None:
    """Take the first value of a parameter out of a request; None when it has none."""
    values = taken(request, name)
    return values[0] if values else None


def required(request: Request, name: str) -> str:
    """Take the first value of a parameter out of a request, or answer that it is required."""
    value = parameter(request, name)
    if value is None:
        raise wrong(f"'{name}' parameter is required")
    return value


def taken(request: Request, name: str) -> list[str]:
    """Take all values of a parameter out of a request."""
    try:
        return [value.decode() for value in (request.args or {}).pop(name.encode(), [])]
    except UnicodeDecodeError as error:
        raise wrong(f"{name} is invalid: {error}") from None


def wrong(sentence: str, code: int = http.OK) -> Error:
    """Return the error for a request that can't be met; Scrapyd's clients expect status 200 even so."""
    return Error(code, sentence.encode())


class ClusterResource(Resource):
    """A web service whose `render_GET` and `render_POST` run in a thread, and return what is to be told as JSON."""

    isLeaf = True  # noqa: N815 - Twisted's own name
    waits = True
    """Whether it asks Redis or a disk, for which the event loop must not wait."""

    def __init__(self, root: Root) -> None:
        super().__init__()
        self.root = root

    def render(self, request: Request) -> int:
        """Answer later."""
        if request.method == b"POST" and from_elsewhere(request):
            content, kind = self.encode({"status": "error", "message": "a page of another site sent this"})
            self.send(request, http.FORBIDDEN, content, kind)
            return NOT_DONE_YET
        if not self.waits:
            self.send(request, *self._answer_whole(request))
            return NOT_DONE_YET
        gone: list[Any] = []
        request.notifyFinish().addErrback(gone.append)
        answering = deferToThread(self._answer_whole, request)
        answering.addCallback(lambda answer: None if gone else self.send(request, *answer))
        answering.addErrback(lambda failure: journal.failure("An answer failed", failure))
        return NOT_DONE_YET

    def _answer_whole(self, request: Request) -> tuple[int, bytes, str]:
        code, data = self.answer(request)
        return code, *self.encode(data)

    def answer(self, request: Request) -> tuple[int, Any]:
        """Return status and content, which is plain data."""
        if request.method == b"OPTIONS":
            return http.NO_CONTENT, None
        method = "render_GET" if request.method == b"HEAD" else f"render_{request.method.decode('latin-1')}"
        handler = getattr(self, method, None)
        if handler is None:
            return http.NOT_ALLOWED, {"status": "error", "message": f"Expected one of {self.methods}"}
        try:
            return http.OK, {**msgspec.to_builtins(handler(request)), "status": "ok"}
        except Error as error:
            return int(error.status), {"status": "error", "message": (error.message or b"").decode()}
        except MovieCrawlerError as error:
            return http.OK, {"status": "error", "message": str(error)}
        except redis.exceptions.RedisError as error:
            return http.SERVICE_UNAVAILABLE, {"status": "error", "message": f"Redis can't be reached: {error}"}
        except Exception as error:  # noqa: BLE001 - a client is to hear of it, and the log to have it
            journal.error("{trace}", trace=traceback.format_exc())
            return http.INTERNAL_SERVER_ERROR, {"status": "error", "message": f"{type(error).__name__}: {error}"}

    def send(self, request: Request, code: int, content: bytes, kind: str) -> None:
        """Send the answer."""
        request.setResponseCode(code)
        request.setHeader("Content-Type", kind)
        request.setHeader("Content-Length", str(len(content)))
        request.setHeader("Cache-Control", "no-store")
        request.setHeader("X-Content-Type-Options", "nosniff")
        request.setHeader("Allow", self.methods)
        if request.method != b"HEAD":
            request.write(content)
        request.finish()

    def encode(self, data: Any) -> tuple[bytes, str]:
        """Return content and its type."""
        if data is None:
            return b"", "application/json"
        # Spaced as Scrapyd does it, as there are scripts that look for `"status": "ok"`.
        return json.dumps({**data, "node_name": self.root.node_name}).encode() + b"\n", "application/json"

    @cached_property
    def methods(self) -> str:
        """Return the methods that it takes."""
        return ", ".join(["OPTIONS", "HEAD", *(m for m in ("GET", "POST") if hasattr(self, f"render_{m}"))])

    def check_project(self, project: str | None) -> None:
        """Answer that a named project is not found when it has neither a version nor a job."""
        if project is None or project in self.root.eggs.list_projects() or self.root.state.knows_jobs_of(project):
            return
        raise wrong(f"project '{project}' not found")


def from_elsewhere(request: Request) -> bool:
    """Return whether a browser sends this for a page of another site, with the password that it knows for ours."""
    origin = request.getHeader("Origin")
    if origin is None:
        return request.getHeader("Sec-Fetch-Site") == "cross-site"
    ours = {request.getHeader("Host"), request.getHeader("X-Forwarded-Host")}
    return origin.partition("://")[2] not in ours - {None, ""}


# --- Scrapyd's -------------------------------------------------------------------------------------------------------


class Schedule(ClusterResource):
    """`schedule.json`: queue a job."""

    def render_POST(self, request: Request) -> dict[str, Any]:  # noqa: N802 - Twisted's own name
        """Answer with the job's id, once Redis has it."""
        project, spider = required(request, "project"), required(request, "spider")
        version, job_id = parameter(request, "_version"), parameter(request, "jobid")
        priority = parameter(request, "priority") or "0"
        settings = [setting.partition("=") for setting in taken(request, "setting")]
        for name, equals, _ in settings:
            if not equals:
                raise wrong(f"setting is {name[:80]!r}; give NAME=VALUE")
        try:
            arguments = {name.decode(): required(request, name.decode()) for name in list(request.args or {})}
        except UnicodeDecodeError as error:
            raise wrong(f"an argument's name is invalid: {error}") from None
        try:
            urgency = float(priority)
        except ValueError as error:
            raise wrong(f"priority is invalid: {error}") from None
        job = Job(
            project=project,
            spider=spider,
            id=job_id or uuid4().hex,
            version=version,
            settings={name: value for name, _, value in settings},
            arguments=arguments,
            priority=urgency,
        )
        check_job(job)
        if spider not in self.root.eggs.find(project, version).spiders:
            raise wrong(f"spider '{spider}' not found")
        if not self.root.state.schedule(job):
            raise wrong(f"job '{job.id}' is pending or running already, with other arguments; leave out jobid")
        return {"jobid": job.id}


class Cancel(ClusterResource):
    """`cancel.json`: take a job out of the queue, or end it on the node that runs it."""

    def render_POST(self, request: Request) -> dict[str, Any]:  # noqa: N802
        """Answer with the state that it was in."""
        project, job = required(request, "project"), required(request, "job")
        signal = (parameter(request, "signal") or "TERM").upper().removeprefix("SIG")
        signal = _SIGNALS.get(signal, signal)
        if signal not in _SIGNALS.values():
            raise wrong(f"signal is {signal[:20]!r}; give one of {', '.join(_SIGNALS.values())}")
        state = self.root.state.cancel(project, job, signal)
        if state is None:
            self.check_project(project)
        return {"prevstate": state}


class Status(ClusterResource):
    """`status.json`: whether a job is pending, running or finished."""

    def render_GET(self, request: Request) -> dict[str, Any]:  # noqa: N802
        """Answer with its state; null for a job that there is not."""
        job, project = required(request, "job"), parameter(request, "project")
        state = self.root.state.where(job, project)
        if state is None:
            self.check_project(project)
        return {"currstate": state}


class ListJobs(ClusterResource):
    """`listjobs.json`: every job of the cluster, with the node that runs or ran it."""

    def render_GET(self, request: Request) -> dict[str, Any]:  # noqa: N802
        """Answer with all, or those of a project."""
        project = parameter(request, "project")
        self.check_project(project)
        state = self.root.state
        return {
            "pending": [self._pending(job) for job in state.pending(project)],
            "running": [self._running(running) for running in state.running(project)],
            "finished": [self._finished(finished) for finished in state.finished(project)],
        }

    def _pending(self, job: Job) -> dict[str, Any]:
        return {
            "id": job.id,
            "project": job.project,
            "spider": job.spider,
            "version": job.version,
            "settings": job.settings,
            "args": job.arguments,
            "run": job.run,
            "priority": job.priority,
        }

    def _running(self, running: Running) -> dict[str, Any]:
        job = running.job
        return {
            "id": job.id,
            "project": job.project,
            "spider": job.spider,
            "pid": running.process and running.process.pid,
            "start_time": str(local_time(running.started_at)),
            "log_url": self.root.log_url(job),
            "items_url": None,
            "node": running.node,
            "version": running.version,
            "args": job.arguments,
            "run": job.run,
        }

    def _finished(self, finished: Finished) -> dict[str, Any]:
        job, outcome = finished.job, finished.outcome
        return {
            "id": job.id,
            "project": job.project,
            "spider": job.spider,
            "start_time": str(local_time(outcome.started_at / 1000)),
            "end_time": str(local_time(outcome.ended_at / 1000)),
            "log_url": self.root.log_url(job),
            "items_url": None,
            "node": outcome.node,
            "version": finished.version,
            "args": job.arguments,
            "run": job.run,
            "reason": outcome.reason,
            "items": outcome.items,
            "errors": outcome.errors,
            "pages": outcome.pages,
            "bytes": outcome.bytes,
            "seconds": round((outcome.ended_at - outcome.started_at) / 1000, 3),
        }


class DaemonStatus(ClusterResource):
    """`daemonstatus.json`: how many jobs the cluster has."""

    def render_GET(self, request: Request) -> dict[str, Any]:  # noqa: ARG002, N802
        """Answer with the numbers."""
        return self.root.state.counts()._asdict()


class ListProjects(ClusterResource):
    """`listprojects.json`."""

    def render_GET(self, request: Request) -> dict[str, Any]:  # noqa: ARG002, N802
        """Answer with the projects, by name."""
        return {"projects": self.root.eggs.list_projects()}


class ListVersions(ClusterResource):
    """`listversions.json`."""

    def render_GET(self, request: Request) -> dict[str, Any]:  # noqa: N802
        """Answer with a project's versions, the latest one last."""
        return {"versions": self.root.eggs.list(required(request, "project"))}


class ListSpiders(ClusterResource):
    """`listspiders.json`."""

    def render_GET(self, request: Request) -> dict[str, Any]:  # noqa: N802
        """Answer with the spiders of a version, the latest one if none is named."""
        project, version = required(request, "project"), parameter(request, "_version")
        return {"spiders": self.root.eggs.find(project, version).spiders}


class AddVersion(ClusterResource):
    """`addversion.json`: check an egg, and make it the latest version on all nodes."""

    def render_POST(self, request: Request) -> dict[str, Any]:  # noqa: N802
        """Answer with the number of spiders."""
        project, version = required(request, "project"), required(request, "version")
        eggs = (request.args or {}).pop(b"egg", [])
        if not eggs:
            raise wrong("'egg' parameter is required")
        egg = self.root.eggs.put(BytesIO(eggs[0]), project, version)
        journal.info("{project} {version} deployed: {size} bytes", project=project, version=version, size=egg.size)
        return {"project": project, "version": version, "spiders": len(egg.spiders)}


class DeleteVersion(ClusterResource):
    """`delversion.json`."""

    def render_POST(self, request: Request) -> dict[str, Any]:  # noqa: N802
        """Delete a version."""
        self.root.eggs.delete(required(request, "project"), required(request, "version"))
        return {}


class DeleteProject(ClusterResource):
    """`delproject.json`."""

    def render_POST(self, request: Request) -> dict[str, Any]:  # noqa: N802
        """Delete all of a project's versions."""
        self.root.eggs.delete(required(request, "project"))
        return {}


# --- Ours ------------------------------------------------------------------------------------------------------------


class Nodes(ClusterResource):
    """`nodes.json`: the nodes that live, and what each does."""

    def render_GET(self, request: Request) -> dict[str, Any]:  # noqa: ARG002, N802
        """Answer with all of them."""
        now = self.root.state.now()
        running: dict[str, list[str]] = {}
        for job in self.root.state.running():
            running.setdefault(job.node, []).append(job.job.key)
        return {"nodes": [self._told(node, now, running.get(node.id, [])) for node in self.root.state.nodes()]}

    def _told(self, node: NodeInfo, now: float, running: list[str]) -> dict[str, Any]:
        told = msgspec.to_builtins(node)
        lease = self.root.options.lease_seconds
        return {
            **{name: told[name] for name in ("id", "name", "url", "slots", "draining", "memory", "processes")},
            "running": running,
            "up_seconds": round(now - node.started_at, 1),
            "heard_seconds_ago": round(max(0.0, now - (node.dead_at - lease)), 1),
        }


class Progress(ClusterResource):
    """`progress.json`: how far the crawls are that share a frontier."""

    def render_GET(self, request: Request) -> dict[str, Any]:  # noqa: ARG002, N802
        """Answer with every run, as `scrapy progress --json` does."""
        return {"runs": self.root.runs()}


class Health(ClusterResource):
    """`healthz`: this node's event loop answers."""

    waits = False

    def render_GET(self, request: Request) -> dict[str, Any]:  # noqa: ARG002, N802
        """Answer."""
        return {}


class Ready(ClusterResource):
    """`readyz`: this node has heard from Redis lately, and takes jobs."""

    waits = False

    def render_GET(self, request: Request) -> dict[str, Any]:  # noqa: ARG002, N802
        """Answer, with 503 when it is not so."""
        trouble = self.root.trouble()
        if trouble is not None:
            raise wrong(trouble, http.SERVICE_UNAVAILABLE)
        return {}


class Forbidden(ClusterResource):
    """What those get who may not have what they ask for."""

    def __init__(self, root: Root, why: str) -> None:
        super().__init__(root)
        self._why = why

    def answer(self, request: Request) -> tuple[int, Any]:  # noqa: ARG002
        """Refuse, and say why."""
        return http.FORBIDDEN, {"status": "error", "message": self._why}


def read_frontier(url: str, *, current: bool = False) -> list[dict[str, Any]]:
    """Return the frontier's runs as plain data, or the `current` ones only. Raises redis.RedisError."""

    async def read() -> list[dict[str, Any]]:
        async with aclosing(connect(url, **redis_parameters(os.environ))) as client:
            runs = (await read_current_runs(client)).runs if current else await read_runs(client)
            return [{**asdict(run), "to_go": run.to_go} for run in runs]

    return asyncio.run(read())
