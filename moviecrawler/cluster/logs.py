"""The logs of all nodes, from any of them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from scrapyd.website import File
from twisted.internet.protocol import Protocol
from twisted.protocols.policies import TimeoutMixin
from twisted.web import http
from twisted.web.client import Agent
from twisted.web.http_headers import Headers
from twisted.web.pages import notFound
from twisted.web.resource import Resource

from moviecrawler.cluster.environment import log_path
from moviecrawler.cluster.threads import reactor
from moviecrawler.cluster.webservice import ClusterResource, wrong

if TYPE_CHECKING:
    from twisted.python.failure import Failure
    from twisted.web.iweb import IResponse
    from twisted.web.server import Request

    from moviecrawler.cluster.website import Root

_ADDRESS = "text/uri-list"
"""Type of what is not sent itself, but what is there."""
_CONNECT_WITHIN = 3.0  # seconds
_SILENT = 30.0
"""Seconds for which another node may send nothing of a log."""


class Logs(Resource):
    """`/logs/`: this node's log files, and those of other nodes by way of this one."""

    def __init__(self, root: Root) -> None:
        super().__init__()
        self._root = root
        self._files = File(root.options.logs_dir, "text/plain")

    def getChild(self, path: bytes, request: Any) -> Any:  # noqa: N802 - Twisted's own name
        """Return this node's file or folder, or what asks another node for it."""
        names = [name.decode(errors="replace") for name in (path, *request.postpath)]
        if len(names) == 3 and names[2].endswith(".log"):  # noqa: PLR2004 - project, spider and job
            project, spider, job = *names[:2], names[2].removesuffix(".log")
            inside = not any(name in {"", ".", ".."} or "/" in name for name in (project, spider, job))
            if inside and not log_path(self._root.options, project, spider, job).exists():
                request.postpath.clear()
                return RemoteLog(self._root, project, spider, job)
        if any("\0" in name for name in names):
            return notFound()
        Path(self._root.options.logs_dir).mkdir(parents=True, exist_ok=True)
        self._files.restat(False)
        return self._files.getChildWithDefault(path, request)

    def render_GET(self, request: Any) -> Any:  # noqa: N802
        """Redirect to the folder."""
        Path(self._root.options.logs_dir).mkdir(parents=True, exist_ok=True)
        return File(self._root.options.logs_dir, "text/plain").render_GET(request)


class RemoteLog(ClusterResource):
    """A log that this node doesn't have."""

    def __init__(self, root: Root, project: str, spider: str, job: str) -> None:
        super().__init__(root)
        self._project, self._spider, self._job = project, spider, job

    def render_GET(self, request: Request) -> dict[str, Any]:  # noqa: ARG002, N802
        """Find out which node has it."""
        key = f"{self._project}/{self._job}"
        state = self.root.state
        nodes = {running.node for running in state.running(self._project) if running.job.key == key}
        nodes |= {done.outcome.node for done in state.finished(self._project) if done.job.key == key}
        names = {node.rpartition(":")[0] for node in nodes} - {self.root.node_name}
        for node in state.nodes():
            if node.name in names:
                return {"url": f"{node.url}/logs/{quote(f'{self._project}/{self._spider}/{self._job}.log')}"}
        sentence = f"the log is on {', '.join(sorted(names))}, which is down" if names else "there is no such log"
        raise wrong(sentence, http.NOT_FOUND)

    def encode(self, data: Any) -> tuple[bytes, str]:
        """Return the address, if there is one."""
        return (data["url"].encode(), _ADDRESS) if "url" in data else super().encode(data)

    def send(self, request: Request, code: int, content: bytes, kind: str) -> None:
        """Send what the node at that address has."""
        if kind != _ADDRESS:
            super().send(request, code, content, kind)
            return
        # Nodes share their user names and passwords.
        headers = Headers({name: [value] for name in ("Authorization", "Range") if (value := request.getHeader(name))})
        asked = Agent(reactor, connectTimeout=_CONNECT_WITHIN).request(b"GET", content, headers)
        asked.addCallback(self._relay, request)
        asked.addErrback(self._failed, request)

    def _relay(self, response: IResponse, request: Request) -> None:
        answer: Any = response
        request.setResponseCode(answer.code)
        for name in (b"Content-Type", b"Content-Length", b"Content-Range"):
            for value in answer.headers.getRawHeaders(name, []):
                request.setHeader(name, value)
        if answer.length and isinstance(answer.length, int):
            request.setHeader(b"Content-Length", b"%d" % answer.length)
        answer.deliverBody(_Relay(request))

    def _failed(self, failure: Failure, request: Request) -> None:
        if not request.startedWriting and not request._disconnected:  # noqa: SLF001 - Twisted has no name for it
            sentence = f"the node that has the log can't be reached: {failure.getErrorMessage()}"
            super().send(request, http.BAD_GATEWAY, *super().encode({"status": "error", "message": sentence}))


class _Relay(Protocol, TimeoutMixin):
    """Passes a body on, no faster than it is taken."""

    def __init__(self, request: Request) -> None:
        self._request = request
        self._gone = False
        request.notifyFinish().addErrback(self._left)

    def _left(self, _: Failure) -> None:
        self._gone = True
        self._end()

    def _end(self) -> None:
        self.setTimeout(None)
        transport: Any = self.transport
        if transport is not None:
            transport.loseConnection()

    def connectionMade(self) -> None:  # noqa: N802 - Twisted's own name
        self.setTimeout(_SILENT)
        self._request.registerProducer(self.transport, streaming=True)

    def dataReceived(self, data: bytes) -> None:  # noqa: N802
        self.resetTimeout()
        self._request.write(data)

    def timeoutConnection(self) -> None:  # noqa: N802
        self._end()

    def connectionLost(self, reason: Any = None) -> None:  # noqa: ARG002, N802
        self.setTimeout(None)
        if not self._gone:
            self._request.unregisterProducer()
            self._request.finish()
