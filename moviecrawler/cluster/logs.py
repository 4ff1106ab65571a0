"""The logs of all nodes, from any of them."""

from __future__ import annotations

import re
from contextlib import closing
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote

import requests
from scrapyd.webservice import param
from scrapyd.website import File
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IPushProducer
from twisted.internet.threads import deferToThread
from twisted.logger import Logger
from twisted.web import http, static
from twisted.web.pages import notFound
from twisted.web.resource import Resource
from twisted.web.server import NOT_DONE_YET
from zope.interface import implementer

from moviecrawler.cluster.environment import START_LINE, log_path
from moviecrawler.cluster.state import node_name
from moviecrawler.cluster.threads import Threads
from moviecrawler.cluster.webservice import ClusterResource, error_data, error_response, send

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from twisted.web.server import Request

    from moviecrawler.cluster.node import Node

journal = Logger()

_CONNECT_SECONDS = 3.0
_SILENT_SECONDS = 30.0
"""Longest time between two parts of a log that another node sends."""
_CHUNK_BYTES = 64 * 1024
"""Bytes of a log that are read at once."""
_START_LINE_BYTES = 1024
"""More bytes than the line of a start has."""
_THREADS = 8
"""Logs that are read at once; others wait."""
_PART = "part"
"""Query parameter that asks for the node's own part only: the first and last start, with a hyphen; 0-0 for all."""
_PART_FORM = re.compile(r"([0-9]{1,9})-([0-9]{1,9})")


def request_log(url: str, headers: Mapping[str, str], silent_seconds: float = _SILENT_SECONDS) -> requests.Response:
    """Return another node's response, whose body is not read yet. Raises requests.RequestException."""
    with requests.Session() as session:
        session.trust_env = False  # no proxy of the environment, and no credentials of ~/.netrc
        return session.get(
            url, headers=headers, timeout=(_CONNECT_SECONDS, silent_seconds), allow_redirects=False, stream=True
        )


class _Part(NamedTuple):
    """A part of a job's log: the lines of consecutive starts on one node."""

    node: str
    """Its name."""
    url: str | None
    """None when it is this node, or a node that is down."""
    first: int
    last: int
    """0 for all starts that the node has."""


def byte_ranges(path: Path, first: int, last: int) -> list[tuple[int, int]]:
    """Return the byte ranges of some starts in a log. Raises OSError.

    Lines before the first line of a start belong to the first start.
    """
    found = [(0, 1)]
    place, rest = 0, b""
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK_BYTES):
            text = rest + chunk
            found += [(place + match.start(), int(match[1])) for match in START_LINE.finditer(text)]
            # The chunk may end in the middle of a line, which is read again with the next chunk.
            cut = max(text.rfind(b"\n") + 1, len(text) - _START_LINE_BYTES)
            place, rest = place + cut, text[cut:]
        size = file.tell()
    ends = [begin for begin, _ in found[1:]] + [size]
    return [
        (begin, end) for (begin, start), end in zip(found, ends, strict=True) if first <= start <= last and begin < end
    ]


class Logs(Resource):
    """`/logs/`: the log files of this node, and of other nodes through this one."""

    def __init__(self, node: Node) -> None:
        super().__init__()
        self._node = node
        self._folder = Path(node.options.logs_dir)
        self._files = File(node.options.logs_dir, "text/plain")
        self._threads = Threads("logs", _THREADS)
        self._threads.start()

    def getChild(self, path: bytes, request: Any) -> Any:
        names = [name.decode(errors="replace") for name in (path, *request.postpath)]
        if any("\0" in name for name in names):
            return notFound()
        if len(names) == 3 and names[2].endswith(".log"):  # noqa: PLR2004 - project, spider and job
            project, spider, job = *names[:2], names[2].removesuffix(".log")
            if not any(name in {"", ".", ".."} or "/" in name for name in (project, spider, job)):
                request.postpath.clear()
                return JobLog(self._node, self._threads, project, spider, job)
        self._folder.mkdir(parents=True, exist_ok=True)
        self._files.restat(False)
        return self._files.getChildWithDefault(path, request)

    def render_GET(self, request: Any) -> Any:
        self._folder.mkdir(parents=True, exist_ok=True)
        return self._files.render_GET(request)


class JobLog(ClusterResource):
    """The log of a job, put together from all nodes that it ran on."""

    def __init__(self, node: Node, threads: Threads, project: str, spider: str, job: str) -> None:
        super().__init__(node)
        self._threads = threads
        self._project, self._spider, self._job = project, spider, job
        self._path = log_path(node.options, project, spider, job)

    def render(self, request: Request) -> int:
        answering = Deferred.fromCoroutine(self._answer_log(request))
        answering.addErrback(lambda failure: journal.failure("A log could not be sent", failure))
        return NOT_DONE_YET

    async def _answer_log(self, request: Request) -> None:
        sending = _LogStream(request, self._threads)
        code, found = await deferToThread(self.answer, request)
        if sending.gone:
            return
        if "parts" not in found:
            send(request, self.encode(code, found))
            return
        parts = [_Part(*part) for part in found["parts"]]
        authorization = self._forwarded_headers(request, "Authorization")
        if parts[0].last:
            request.setHeader("Content-Type", "text/plain")
            await sending.send(self._read(parts, authorization))
        elif parts[0].url is None:
            self._send_file(request)
        else:
            await self._send_whole(parts[0], request, sending)

    @param(_PART, dest="own", required=False)
    def render_GET(self, request: Request, *, own: str | None) -> dict[str, Any]:
        here = self._path.is_file()
        if own is not None:
            asked = _PART_FORM.fullmatch(own)
            if not here or asked is None:
                raise error_response("there is no such log", http.NOT_FOUND)
            return {"parts": [_Part(self.node.name, None, int(asked[1]), int(asked[2]))]}
        urls = {node.name: node.url for node in self.node.state.nodes() if node.name != self.node.name}
        parts: list[_Part] = []
        starts = self.node.state.starts(f"{self._project}/{self._job}")
        for name, consecutive in groupby(starts, key=lambda start: node_name(start.node)):
            numbers = [start.number for start in consecutive]
            parts.append(_Part(name, urls.get(name), numbers[0], numbers[-1]))
        names = {part.node for part in parts} or {self.node.name}
        if len(names) > 1:
            return {"parts": parts}
        [name] = names
        if name != self.node.name and name not in urls:
            raise error_response(f"the log is on {name}, which is down", http.NOT_FOUND)
        if name == self.node.name and not here:
            raise error_response("there is no such log", http.NOT_FOUND)
        return {"parts": [_Part(name, urls.get(name), 0, 0)]}

    def _send_file(self, request: Request) -> None:
        """Send all of this node's file, or the bytes of it that are asked for."""
        file = static.File(str(self._path), "text/plain")
        try:
            request.render(file)
        except (OSError, ValueError):
            # Twisted fails when a suffix range is longer than the file. HTTP says to send the whole file then.
            for name in (b"range", b"content-range"):
                request.requestHeaders.removeHeader(name)
                request.responseHeaders.removeHeader(name)
            request.setResponseCode(http.OK)
            request.render(file)

    async def _send_whole(self, part: _Part, request: Request, sending: _LogStream) -> None:
        """Send all of a log that one other node has, or the bytes of it that are asked for."""
        headers = self._forwarded_headers(request, "Authorization", "Range")
        try:
            response = await self._threads.run(request_log, self._url(part), headers)
        except requests.RequestException as error:
            if not sending.gone:
                sentence = f"the log is on {part.node}, which can't be reached: {error}"
                send(request, self.encode(http.BAD_GATEWAY, error_data(sentence)))
            return
        if sending.gone:
            response.close()
            return
        request.setResponseCode(response.status_code)
        for name in ("Content-Type", "Content-Range", "Content-Length"):
            if name in response.headers:
                request.setHeader(name, response.headers[name])
        await sending.send(response.iter_content(_CHUNK_BYTES))

    def _read(self, parts: list[_Part], authorization: Mapping[str, str]) -> Iterator[bytes]:
        """Yield the parts, with a line in place of each missing part."""
        for part in parts:
            try:
                if part.node == self.node.name:
                    yield from self._read_own(part)
                elif part.url is None:
                    yield _missing(part, "down")
                else:
                    response = request_log(self._url(part), authorization)
                    # 404: that node wrote nothing, or has deleted the log.
                    if response.status_code == http.OK:
                        yield from response.iter_content(_CHUNK_BYTES)
                    elif response.status_code != http.NOT_FOUND:
                        yield _missing(part, f"answering with status {response.status_code}")
            except requests.RequestException as error:
                yield _missing(part, f"out of reach: {error}")
            except OSError as error:
                yield _missing(part, f"unable to read it: {error}")

    def _read_own(self, part: _Part) -> Iterator[bytes]:
        for begin, end in byte_ranges(self._path, part.first, part.last):
            with self._path.open("rb") as file:
                file.seek(begin)
                while begin < end and (chunk := file.read(min(_CHUNK_BYTES, end - begin))):
                    begin += len(chunk)  # noqa: PLW2901 - how far it is
                    yield chunk

    def _url(self, part: _Part) -> str:
        path = quote(f"{self._project}/{self._spider}/{self._job}.log")
        return f"{part.url}/logs/{path}?{_PART}={part.first}-{part.last}"

    @staticmethod
    def _forwarded_headers(request: Request, *names: str) -> dict[str, str]:
        """Return the headers to ask another node with: nodes share their user names and passwords."""
        return {name: value for name in names if (value := request.getHeader(name))}


def _missing(part: _Part, why: str) -> bytes:
    return f"[start {part.first} to {part.last} of this log: on {part.node}, which is {why}]\n".encode()


@implementer(IPushProducer)
class _LogStream:
    """Sends chunks, each read in a thread, no faster than the client takes them."""

    def __init__(self, request: Request, threads: Threads) -> None:
        self.gone = False
        """Whether the client has gone."""
        self._request = request
        self._threads = threads
        self._paused: Deferred[None] | None = None
        request.notifyFinish().addErrback(lambda _: self.stopProducing())

    async def send(self, chunks: Any) -> None:
        """Send what a generator yields; a HEAD request has no content."""
        request = self._request
        with closing(chunks):
            if request.method == b"HEAD":
                request.finish()
                return
            request.registerProducer(self, streaming=True)
            try:
                while not self.gone and (chunk := await self._threads.run(next, chunks, None)) is not None:
                    request.write(chunk)
                    if self._paused is not None:
                        await self._paused
            except Exception as error:  # noqa: BLE001 - whatever it is, the client sees that the end is missing
                journal.warn("A log could not be sent to its end: {error}", error=error)
                request.loseConnection()
                return
        if not self.gone:
            request.unregisterProducer()
            request.finish()

    def pauseProducing(self) -> None:
        self._paused = self._paused or Deferred()

    def resumeProducing(self) -> None:
        paused, self._paused = self._paused, None
        if paused is not None:
            paused.callback(None)

    def stopProducing(self) -> None:
        """Send no more, as the client is gone."""
        self.gone = True
        self.resumeProducing()
