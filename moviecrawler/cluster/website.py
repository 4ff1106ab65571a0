"""Scrapyd's web root. It reads the cluster before each answer, so that Scrapyd's own services answer for all nodes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import redis
from scrapyd.webservice import WsResource
from scrapyd.website import File, Jobs
from scrapyd.website import Root as ScrapydRoot
from twisted.internet.threads import deferToThread
from twisted.logger import Logger
from twisted.web import http
from twisted.web.resource import Resource
from twisted.web.server import NOT_DONE_YET

from moviecrawler.cluster.access import PROBES, Access
from moviecrawler.cluster.environment import log_path

if TYPE_CHECKING:
    from collections.abc import Sequence

    from scrapyd.config import Config
    from twisted.internet.defer import Deferred
    from twisted.web.server import Request

    from moviecrawler.cluster.node import Node

journal = Logger()

_HEADERS = {"X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY", "Cache-Control": "no-store"}
"""Headers of all answers, also of logs, which contain text from sites and spiders."""
_LOG_PATH_PARTS = 3
"""Parts of a log's path: project, spider and job."""


class InThread(Resource):
    """Reads a snapshot of the cluster in a thread, and lets a resource answer there."""

    isLeaf = True

    def __init__(self, resource: Resource, node: Node) -> None:
        super().__init__()
        self._resource = resource
        self._node = node

    def render(self, request: Request) -> int:
        return answer_later(request, deferToThread(self._render, request))

    def _render(self, request: Request) -> bytes:
        try:
            self._node.refresh()
            content: bytes = self._resource.render(request)
        except redis.exceptions.RedisError as error:
            return refuse(request, http.SERVICE_UNAVAILABLE, f"Redis can't be reached: {error}", self._node.name)
        # Scrapyd sets it, so that pages of any site could read the answers.
        request.responseHeaders.removeHeader("Access-Control-Allow-Origin")
        return content


def answer_later(request: Request, answering: Deferred[bytes]) -> int:
    """Send the content when a thread returns it, unless the client is gone by then."""
    gone: list[Any] = []
    request.notifyFinish().addErrback(gone.append)

    def send(content: bytes) -> None:
        if gone:
            return
        request.setHeader("Content-Length", str(len(content)))
        if request.method != b"HEAD":
            request.write(content)
        request.finish()

    def fail(failure: Any) -> None:
        journal.failure("An answer failed", failure)
        if not gone:
            request.setResponseCode(http.INTERNAL_SERVER_ERROR)
            request.finish()

    answering.addCallback(send).addErrback(fail)
    return NOT_DONE_YET


def refuse(request: Request, code: int, sentence: str, node: str) -> bytes:
    """Set the status of a refused request; return the content of the answer, in Scrapyd's form."""
    request.setResponseCode(code)
    request.setHeader("Content-Type", "application/json")
    if code == http.UNAUTHORIZED:
        request.setHeader("WWW-Authenticate", 'Basic realm="Scrapyd"')
    return json.dumps({"status": "error", "message": sentence, "node_name": node}).encode() + b"\n"


class _Refusal(Resource):
    isLeaf = True

    def __init__(self, code: int, sentence: str, node: str) -> None:
        super().__init__()
        self._answer = code, sentence, node

    def render(self, request: Request) -> bytes:
        return refuse(request, *self._answer)


class Root(ScrapydRoot):  # type: ignore[misc]  # Scrapyd has no types
    """Scrapyd's own root, with access control and with redirects to other nodes' logs."""

    def __init__(self, config: Config, app: Any) -> None:
        self.node: Node = config.node
        self._access = Access(self.node.options)
        super().__init__(config, app)
        self.putChild(b"logs", Logs(self.node.options.logs_dir))

    def getChildWithDefault(self, path: bytes, request: Any) -> Any:
        while not path and request.postpath:  # scrapyd-client puts two slashes where its URL ends in one
            path = request.postpath.pop(0)
        for name, value in _HEADERS.items():
            request.setHeader(name, value)
        refused = self._access.refusal(request, path)
        if refused is not None:
            return _Refusal(*refused, self.node.name)
        if path == b"logs" and (missing := missing_log(self.node, request.postpath)):
            request.postpath.clear()
            return InThread(missing, self.node)
        child = super().getChildWithDefault(path, request)
        return InThread(child, self.node) if isinstance(child, WsResource | Jobs) and path not in PROBES else child

    def get_log_url(self, job: Any) -> str:
        """Return the path of a job's log; any node serves it or redirects."""
        return quote(f"/logs/{job.project}/{job.spider}/{job.job}.log")


class Logs(File):  # type: ignore[misc]  # Scrapyd has no types
    """Scrapyd's `/logs/`. Every file is served as plain text, so that no log becomes a web page of the node."""

    contentTypes: dict[str, str] = {}  # noqa: RUF012 - as Twisted has it
    contentEncodings: dict[str, str] = {}  # noqa: RUF012

    def __init__(self, path: str, *more: Any) -> None:
        super().__init__(path, "text/plain; charset=utf-8")

    def getChild(self, path: bytes, request: Any) -> Any:
        return self.childNotFound if b"\0" in path else super().getChild(path, request)


class MissingLog(Resource):
    """A job's log that is not in this node's folder. It redirects to the node that has the log, or names it."""

    isLeaf = True

    def __init__(self, node: Node, project: str, job: str) -> None:
        super().__init__()
        self._node = node
        self._job = project, job

    def render(self, request: Request) -> bytes:
        status = self._node.snapshot.find(*self._job)
        code, sentence = http.NOT_FOUND, "there is no such log"
        if status is not None and status.node not in {"", self._node.name}:
            url = next((one.url for one in self._node.state.nodes() if one.id == status.node_id), "")
            sentence = f"the log is on {status.node}"
            if url:
                code = http.TEMPORARY_REDIRECT
                request.setHeader("Location", f"{url.rstrip('/')}{request.path.decode('ascii', errors='replace')}")
        request.setResponseCode(code)
        request.setHeader("Content-Type", "text/plain; charset=utf-8")
        return f"{sentence}\n".encode()


def missing_log(node: Node, path: Sequence[bytes]) -> MissingLog | None:
    """Return the resource for a path below `/logs/`; None when the file is here, or when the path is not that of a log."""
    names = [name.decode(errors="replace") for name in path]
    if (
        len(names) != _LOG_PATH_PARTS
        or not names[2].endswith(".log")
        or any("\0" in name or "/" in name for name in names)
    ):
        return None
    project, spider, job = *names[:2], names[2].removesuffix(".log")
    if {"", ".", ".."} & {project, spider, job} or log_path(node.options, project, spider, job).exists():
        return None
    return MissingLog(node, project, job)
