"""Scrapyd's web root.

It reads the cluster before each response, so that Scrapyd's own services cover all nodes.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime
from hmac import compare_digest
from ipaddress import ip_address
from types import SimpleNamespace
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import redis
from scrapyd.webservice import WsResource
from scrapyd.website import File, Jobs
from scrapyd.website import Root as ScrapydRoot
from twisted.internet.defer import CancelledError
from twisted.internet.threads import deferToThread
from twisted.web import http
from twisted.web.resource import Resource
from twisted.web.server import NOT_DONE_YET
from twisted.web.static import Data

from moviecrawler.cluster.process import log_url
from moviecrawler.frontier.redis_client import state_error

if TYPE_CHECKING:
    from collections.abc import Callable

    from scrapyd.config import Config
    from twisted.internet.defer import Deferred
    from twisted.python.components import Componentized
    from twisted.python.failure import Failure
    from twisted.web.server import Request

    from moviecrawler.cluster.jobs import Job
    from moviecrawler.cluster.node import Node
    from moviecrawler.cluster.options import NodeOptions
    from moviecrawler.cluster.state import JobStatus, Snapshot

_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Cache-Control": "no-store",
}
"""Headers of all responses, also of logs, which contain text from sites and spiders."""
_PROBES = (b"healthz", b"readyz")
"""Paths that need no password: they show only whether the node is healthy."""
_WITHOUT_REDIS = (b"metrics",)
"""Paths that work while Redis is unavailable, too."""
_DEPLOYING = (b"addversion.json", b"delversion.json", b"delproject.json")


class InThread(Resource):
    """Reads a snapshot of the cluster in a thread, and calls a function there for the response.

    A function that does not need Redis is called without a snapshot, too.
    """

    isLeaf = True

    def __init__(
        self, node: Node, respond: Callable[[Request], bytes], *, needs_redis: bool = True
    ) -> None:
        super().__init__()
        self._node = node
        self._respond = respond
        self._needs_redis = needs_redis

    def render(self, request: Request) -> int:
        return respond_later(request, deferToThread(self._render, request))

    def _render(self, request: Request) -> bytes:
        try:
            if self._needs_redis:
                self._node.state.snapshot()
            content = self._respond(request)
        except redis.exceptions.RedisError as error:
            code = http.SERVICE_UNAVAILABLE
            return refuse(request, code, state_error(error), self._node.name)
        # Scrapyd sets it, so that pages of any site could read the responses.
        request.responseHeaders.removeHeader("Access-Control-Allow-Origin")
        return content


def respond_later(request: Request, responding: Deferred[bytes]) -> int:
    """Send the body when a thread returns it, unless the client is gone by then."""
    request.notifyFinish().addErrback(lambda _: responding.cancel())

    def send(content: bytes) -> None:
        request.setHeader("Content-Length", str(len(content)))
        if request.method != b"HEAD":
            request.write(content)
        request.finish()

    def fail(failure: Failure) -> None:
        if not failure.check(CancelledError):
            request.processingFailed(failure)

    responding.addCallback(send).addErrback(fail)
    return NOT_DONE_YET


def refuse(request: Request, code: int, sentence: str, node: str) -> bytes:
    """Set the status of a refused request; return the body of the response, in Scrapyd's form."""
    request.setResponseCode(code)
    request.setHeader("Content-Type", "application/json")
    if code == http.UNAUTHORIZED:
        request.setHeader("WWW-Authenticate", 'Basic realm="Scrapyd"')
    return json.dumps({"status": "error", "message": sentence, "node_name": node}).encode() + b"\n"


class _Refusal(Data):
    isLeaf = True
    render = Data.render_GET


@dataclass
class PendingQueue:
    """The pending jobs of a project."""

    jobs: list[Job]

    def count(self) -> int:
        """Return how many there are."""
        return len(self.jobs)

    def list(self) -> list[dict[str, str]]:
        """Return what Scrapyd's pages show of them."""
        return [{"name": job.spider, "_job": job.id} for job in self.jobs]


class SnapshotAdapter:
    """Adapts a snapshot to the poller and launcher that Scrapyd's services expect."""

    def __init__(self, snapshot: Snapshot) -> None:
        pending = [status.job for status in snapshot.pending]
        self.queues = {
            project: PendingQueue([job for job in pending if job.project == project])
            for project in sorted(
                {*snapshot.projects, *(status.job.project for status in snapshot.jobs)}
            )
        }
        """By project: each that has a version or a job."""
        self.processes = {status.job.key: _process(status) for status in snapshot.running}
        self.finished = [_process(status) for status in snapshot.finished]
        """The latest first."""


def _process(status: JobStatus) -> SimpleNamespace:
    """Return a job with the attributes of Scrapyd's processes."""
    ended_at = status.outcome.ended_at if status.outcome else None
    return SimpleNamespace(
        project=status.job.project,
        spider=status.job.spider,
        job=status.job.id,
        pid=status.pid,
        start_time=local_time(began_at(status)),
        end_time=None if ended_at is None else local_time(ended_at),
        log_url=log_url(status.job) if status.starts else None,
    )


def began_at(status: JobStatus) -> float:
    """Return when a job was first started, in seconds since 1970.

    Scrapyd's clients expect a time: for a job that was cancelled before, it is that of its end.
    """
    ended_at = status.outcome.ended_at if status.outcome else 0.0
    return status.first_started_at or ended_at


def local_time(seconds: float) -> datetime:
    """Return a time as Scrapyd shows it: the node's local time, without a time zone."""
    return datetime.fromtimestamp(seconds)  # noqa: DTZ006 - as Scrapyd has it


class Root(ScrapydRoot):  # type: ignore[misc]  # Scrapyd has no types
    """Scrapyd's own root, with access control and with redirects to other nodes' logs."""

    def __init__(self, config: Config, app: Componentized) -> None:
        self.node: Node = config.node
        super().__init__(config, app)
        logs = Logs(self.node.options.logs_dir, "text/plain; charset=utf-8")
        logs.childNotFound = InThread(self.node, self._answer_without_log)
        self.putChild(b"logs", logs)

    @property
    def poller(self) -> SnapshotAdapter:
        """The cluster, whose queues Scrapyd's services read here."""
        return SnapshotAdapter(self.node.state.seen)

    @property
    def launcher(self) -> SnapshotAdapter:
        """The cluster, whose processes and finished jobs Scrapyd's services read here."""
        return self.poller

    @property
    def scheduler(self) -> object:
        """The storage of eggs, as Scrapyd's services only list the scheduler's projects."""
        return self.eggstorage

    def getChildWithDefault(self, path: bytes, request: Request) -> Resource:
        # scrapyd-client puts two slashes where its URL ends in one.
        while not path and request.postpath:
            path = request.postpath.pop(0)
        for name, value in _HEADERS.items():
            request.setHeader(name, value)
        refused = refusal(self.node.options, request, path)
        if refused is not None:
            return _Refusal(refuse(request, *refused, self.node.name), "application/json")
        child: Resource = super().getChildWithDefault(path, request)
        is_service = isinstance(child, WsResource | Jobs) and path not in _PROBES
        if not is_service:
            return child
        return InThread(self.node, child.render, needs_redis=path not in _WITHOUT_REDIS)

    def get_log_url(self, job: SimpleNamespace) -> str | None:
        """Return the path of a job's log, on any node; None for a job that was never started."""
        url: str | None = job.log_url
        return url

    def _answer_without_log(self, request: Request) -> bytes:
        """Redirect to the node that has a log which is not in this node's folder, or name it."""
        path = request.path.decode("ascii", errors="replace")
        project, _, log = ["", *path.split("/")][-3:]
        cluster = self.node.state.seen
        status = cluster.find(project, log.removesuffix(".log"))
        code = http.NOT_FOUND
        sentence = "there is no such log"
        if status is not None and status.node not in {"", self.node.name}:
            sentence = f"the log is on {status.node}"
            # By its name: it has the log after a restart, too.
            if url := cluster.urls.get(status.node):
                code = http.TEMPORARY_REDIRECT
                request.setHeader("Location", url + path)
        request.setResponseCode(code)
        request.setHeader("Content-Type", "text/plain; charset=utf-8")
        return f"{sentence}\n".encode()


# --- Access ---------------------------------------------------------------------------------------


def refusal(options: NodeOptions, request: Request, service: bytes) -> tuple[int, str] | None:
    """Return status and reason when a request is refused, else None.

    `service` is the first segment of its path.
    """
    if service in _PROBES:
        return None
    if options.password:
        # All are compared, so that the time does not show which is wrong.
        password = request.getPassword()
        deploy_password = options.deploy_password or options.password
        is_named = compare_digest(options.username.encode(), request.getUser())
        is_user = is_named & compare_digest(options.password.encode(), password)
        is_deployer = is_named & compare_digest(deploy_password.encode(), password)
        if not is_user | is_deployer:
            return http.UNAUTHORIZED, "wrong user name or password"
        if service in _DEPLOYING and not is_deployer:
            return http.FORBIDDEN, "deploy password required"
    elif not _answers_to(options, request.getHeader("host") or ""):
        return (
            http.FORBIDDEN,
            "without a password, a node answers only to its own name, its address or localhost",
        )
    # Browsers send it with each form, and would add our password by themselves.
    origin = request.getHeader("Origin")
    ours = {request.getHeader("Host"), request.getHeader("X-Forwarded-Host")} - {None, ""}
    fetched = request.getHeader("Sec-Fetch-Site")
    is_foreign = (
        fetched == "cross-site" if origin is None else origin.partition("://")[2] not in ours
    )
    if request.method == b"POST" and is_foreign:
        return http.FORBIDDEN, "a page of another site sent this"
    return None


def _answers_to(options: NodeOptions, host: str) -> bool:
    """Return whether a node without a password answers requests for a host.

    Without this check the owner of any domain name could point it at this machine, and reach the
    node through a visitor's browser (DNS rebinding).
    """
    try:
        name = urlsplit(f"//{host}").hostname or ""
        return name in {
            "localhost",
            options.node_name.lower(),
            urlsplit(options.node_url).hostname,
        } or bool(ip_address(name))
    except ValueError:
        return False


# --- Logs -----------------------------------------------------------------------------------------


class Logs(File):  # type: ignore[misc]  # Scrapyd has no types
    """Scrapyd's `/logs/`.

    Every file is served as plain text, so that no log becomes a web page of the node.
    """

    contentTypes: dict[str, str] = {}  # noqa: RUF012 - as Twisted has it
    contentEncodings: dict[str, str] = {}  # noqa: RUF012

    def getChild(self, path: bytes, request: Request) -> object:
        return self.childNotFound if b"\0" in path else super().getChild(path, request)
