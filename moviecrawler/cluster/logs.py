"""The logs of all nodes, from any of them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote

from scrapyd.website import File
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IPushProducer
from twisted.internet.protocol import Protocol
from twisted.internet.threads import deferToThread
from twisted.logger import Logger
from twisted.protocols.policies import TimeoutMixin
from twisted.web import http, static
from twisted.web.client import Agent
from twisted.web.http_headers import Headers
from twisted.web.pages import notFound
from twisted.web.resource import Resource
from twisted.web.server import NOT_DONE_YET
from zope.interface import implementer

from moviecrawler.cluster.environment import START, log_path
from moviecrawler.cluster.state import name_of
from moviecrawler.cluster.threads import reactor
from moviecrawler.cluster.webservice import ClusterResource, parameter, wrong

if TYPE_CHECKING:
    from twisted.web.server import Request

    from moviecrawler.cluster.website import Root

journal = Logger()

_CONNECT_WITHIN = 3.0  # seconds
_SILENT = 30.0
"""Seconds for which another node may send nothing of a log."""
_CHUNK = 64 * 1024
"""Bytes of a log that are read at once."""
_LONGEST_LINE = 1024
"""Bytes of the line that tells of a start, and more."""
_OWN = "part"
"""Parameter of a request for what is on the asked node's disk alone: the first and the last start, with a hyphen; 0-0 for all."""


class _Part(NamedTuple):
    """A part of a job's log: what one node has of some starts in a row."""

    node: str
    """Its name."""
    url: str | None
    """None when the node is this one, or is not there."""
    first: int
    last: int
    """0 for all that the node has."""


def ranges(path: Path, first: int, last: int) -> list[tuple[int, int]]:
    """Return where the lines of some starts stand in a log: their beginning and end, in bytes. Raises OSError.

    What stands before the first line that tells of a start is of the first one.
    """
    found = [(0, 1)]
    place, rest = 0, b""
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            text = rest + chunk
            found += [(place + match.start(), int(match[1])) for match in START.finditer(text)]
            # A line may be cut here; one that was found whole is not found again.
            cut = max(text.rfind(b"\n") + 1, len(text) - _LONGEST_LINE)
            place, rest = place + cut, text[cut:]
        size = file.tell()
    ends = [begin for begin, _ in found[1:]] + [size]
    return [
        (begin, end) for (begin, start), end in zip(found, ends, strict=True) if first <= start <= last and begin < end
    ]


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
            if inside:
                request.postpath.clear()
                return JobLog(self._root, project, spider, job)
        if any("\0" in name for name in names):
            return notFound()
        Path(self._root.options.logs_dir).mkdir(parents=True, exist_ok=True)
        self._files.restat(False)
        return self._files.getChildWithDefault(path, request)

    def render_GET(self, request: Any) -> Any:  # noqa: N802
        """Redirect to the folder."""
        Path(self._root.options.logs_dir).mkdir(parents=True, exist_ok=True)
        return File(self._root.options.logs_dir, "text/plain").render_GET(request)


class JobLog(ClusterResource):
    """The log of a job, from whatever nodes it ran on, in order."""

    def __init__(self, root: Root, project: str, spider: str, job: str) -> None:
        super().__init__(root)
        self._project, self._spider, self._job = project, spider, job
        self._path = log_path(root.options, project, spider, job)

    def render(self, request: Request) -> int:
        """Answer later."""
        answering = Deferred.fromCoroutine(self._answer_log(request))
        answering.addErrback(lambda failure: journal.failure("A log could not be sent", failure))
        return NOT_DONE_YET

    async def _answer_log(self, request: Request) -> None:
        flow = _Flow(request)
        code, found = await deferToThread(self.answer, request)
        if flow.gone:
            return
        if "parts" not in found:
            self.send(request, code, *self.encode(found))
            return
        parts = [_Part(*part) for part in found["parts"]]
        if parts[0].last == 0 and parts[0].node == self.root.node_name:
            self._send_file(request)
            return
        if parts[0].last == 0:
            await self._send_whole(parts[0], request, flow)
            return
        request.setHeader("Content-Type", "text/plain")
        request.setHeader("X-Content-Type-Options", "nosniff")
        if request.method != b"HEAD":
            request.registerProducer(flow, streaming=True)
            for part in parts:
                await self._send_part(part, request, flow)
            if flow.gone:
                return
            request.unregisterProducer()
        request.finish()

    def _send_file(self, request: Request) -> None:
        """Send all of this node's file, or the bytes of it that are asked for."""
        file = static.File(str(self._path), "text/plain")
        try:
            request.render(file)
        except (OSError, ValueError):
            # Twisted can't give an end that is longer than the file; all of it is what HTTP has for that.
            for name in (b"range", b"content-range"):
                request.requestHeaders.removeHeader(name)
                request.responseHeaders.removeHeader(name)
            request.setResponseCode(http.OK)
            request.render(file)

    def render_GET(self, request: Request) -> dict[str, Any]:  # noqa: N802 - Twisted's own name
        """Find out which nodes have it."""
        here = self._path.is_file()
        own = parameter(request, _OWN)
        if own is not None:
            first, _, last = own.partition("-")
            if not here or not first.isdecimal() or not last.isdecimal():
                raise wrong("there is no such log", http.NOT_FOUND)
            return {"parts": [_Part(self.root.node_name, None, int(first), int(last))]}
        state = self.root.state
        starts = state.starts(f"{self._project}/{self._job}")
        names = [(name_of(start.node), start.number) for start in starts]
        if not names or {name for name, _ in names} == {self.root.node_name}:
            if not here:
                raise wrong("there is no such log", http.NOT_FOUND)
            return {"parts": [_Part(self.root.node_name, None, 0, 0)]}
        urls = {node.name: node.url for node in state.nodes()}
        if len({name for name, _ in names}) == 1:
            name = names[0][0]
            if name not in urls:
                raise wrong(f"the log is on {name}, which is down", http.NOT_FOUND)
            return {"parts": [_Part(name, urls[name], 0, 0)]}
        parts: list[_Part] = []
        for name, number in names:
            if parts and parts[-1].node == name:
                parts[-1] = parts[-1]._replace(last=number)
            else:
                parts.append(_Part(name, urls.get(name), number, number))
        return {"parts": parts}

    async def _send_part(self, part: _Part, request: Request, flow: _Flow) -> None:
        try:
            if part.node == self.root.node_name:
                await self._send_own(part, request, flow)
            elif part.url is None:
                raise _AwayError(f"{part.node}, which is down")  # noqa: TRY301 - as other ways to be away
            else:
                await self._send_remote(part, request, flow)
        except (_AwayError, OSError) as error:
            if not flow.gone:
                request.write(f"[start {part.first} to {part.last} of this log: on {error}]\n".encode())

    async def _send_own(self, part: _Part, request: Request, flow: _Flow) -> None:
        for begin, end in await deferToThread(ranges, self._path, part.first, part.last):
            with self._path.open("rb") as file:
                file.seek(begin)
                while begin < end and not flow.gone:
                    chunk = await deferToThread(file.read, min(_CHUNK, end - begin))
                    if not chunk:
                        break
                    begin += len(chunk)  # noqa: PLW2901 - how far it is
                    await flow.ready()
                    if not flow.gone:
                        request.write(chunk)

    async def _send_whole(self, part: _Part, request: Request, flow: _Flow) -> None:
        """Send all of a log that one other node has, or the bytes of it that are asked for."""
        try:
            response = await self._ask(part, request, ("Authorization", "Range"))
        except _AwayError as error:
            if not flow.gone:
                sentence = f"the log is on {error}"
                self.send(request, http.BAD_GATEWAY, *self.encode({"status": "error", "message": sentence}))
            return
        if flow.gone:
            return
        request.setResponseCode(response.code)
        for name in (b"Content-Type", b"Content-Range"):
            for value in response.headers.getRawHeaders(name, []):
                request.setHeader(name, value)
        if isinstance(response.length, int):
            request.setHeader(b"Content-Length", b"%d" % response.length)
        if request.method != b"HEAD":
            request.registerProducer(flow, streaming=True)
            await self._relay(response, request, flow)
            if flow.gone:
                return
            request.unregisterProducer()
        request.finish()

    async def _send_remote(self, part: _Part, request: Request, flow: _Flow) -> None:
        response = await self._ask(part, request, ("Authorization",))
        if response.code == http.NOT_FOUND:
            return  # nothing was written there, or it was removed as others are newer
        if response.code != http.OK:
            raise _AwayError(f"{part.node}, which answers with status {response.code}")
        await self._relay(response, request, flow)

    async def _ask(self, part: _Part, request: Request, passed_on: tuple[str, ...]) -> Any:
        # Nodes share their user names and passwords.
        headers = Headers({name: [value] for name in passed_on if (value := request.getHeader(name))})
        path = quote(f"{self._project}/{self._spider}/{self._job}.log")
        url = f"{part.url}/logs/{path}?{_OWN}={part.first}-{part.last}"
        try:
            return await Agent(reactor, connectTimeout=_CONNECT_WITHIN).request(b"GET", url.encode(), headers)
        except Exception as error:  # whatever Twisted raises of a connection
            raise _AwayError(f"{part.node}, which can't be reached: {error}") from error

    async def _relay(self, response: Any, request: Request, flow: _Flow) -> None:
        relay = _Relay(request, flow)
        response.deliverBody(relay)
        await relay.ended


class _AwayError(Exception):
    """A part of a log can't be had: the node that has it, and why."""


@implementer(IPushProducer)
class _Flow:
    """Sends no faster than the client takes it."""

    def __init__(self, request: Request) -> None:
        self.gone = False
        self.source: Any = None
        """The connection that sends now, when it is another node's."""
        self._paused: Deferred[None] | None = None
        request.notifyFinish().addErrback(lambda _: self.stopProducing())

    async def ready(self) -> None:
        """Wait until the client takes more."""
        if self._paused is not None:
            await self._paused

    def pauseProducing(self) -> None:  # noqa: N802 - Twisted's own name
        """Send no more for now."""
        self._paused = self._paused or Deferred()
        if self.source is not None:
            self.source.pauseProducing()

    def resumeProducing(self) -> None:  # noqa: N802 - Twisted's own name
        """Send on."""
        if self.source is not None:
            self.source.resumeProducing()
        waiting, self._paused = self._paused, None
        if waiting is not None:
            waiting.callback(None)

    def stopProducing(self) -> None:  # noqa: N802 - Twisted's own name
        """Send no more, as the client is gone."""
        self.gone = True
        if self.source is not None:
            self.source.loseConnection()
        self.resumeProducing()


class _Relay(Protocol, TimeoutMixin):
    """Passes a body on, no faster than it is taken."""

    def __init__(self, request: Request, flow: _Flow) -> None:
        self.ended: Deferred[None] = Deferred()
        self._request = request
        self._flow = flow

    def connectionMade(self) -> None:  # noqa: N802 - Twisted's own name
        self._flow.source = self.transport
        self.setTimeout(_SILENT)

    def dataReceived(self, data: bytes) -> None:  # noqa: N802
        self.resetTimeout()
        if not self._flow.gone:
            self._request.write(data)

    def timeoutConnection(self) -> None:  # noqa: N802
        transport: Any = self.transport
        transport.loseConnection()

    def connectionLost(self, reason: Any = None) -> None:  # noqa: ARG002, N802
        self.setTimeout(None)
        self._flow.source = None
        self.ended.callback(None)
