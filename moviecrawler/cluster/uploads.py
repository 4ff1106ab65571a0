"""Requests of a node, which are refused by their headers before their body is read.

What an authorised client uploads is parsed in a thread.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, BinaryIO, ClassVar
from urllib.parse import unquote_to_bytes

from python_multipart import parse_form
from python_multipart.exceptions import FormParserError
from twisted.web import http
from twisted.web.server import Request

from moviecrawler.basics.errors import ConfigurationError
from moviecrawler.cluster.process import reactor
from moviecrawler.cluster.website import refusal, refuse
from moviecrawler.scrapy_internals import make_requests_by, method_and_path, parse_forms

if TYPE_CHECKING:
    from python_multipart.multipart import Field, File
    from twisted.internet.base import DelayedCall
    from twisted.python.components import Componentized
    from twisted.python.failure import Failure

    from moviecrawler.cluster.node import Node

UPLOAD = b"addversion.json"
_MAX_BYTES = 64 * 1024
"""Bytes of a body: of a form with a job, for example."""
_MAX_EGG_BYTES = 100 * 1024 * 1024
"""Bytes of a body with an egg."""
_LINGER_SECONDS = 10.0
"""Seconds for which a refused client may continue to send without reading the response."""


class GuardedRequest(Request):
    """A request that is refused by its headers before its body is read.

    The body of a refused request is dropped as it arrives, and the connection is closed.
    """

    node: ClassVar[Node]
    """This node, which `guard` sets."""
    channel: Any
    """Twisted types its transport as one that need not be TCP."""
    args: dict[bytes, list[bytes]]
    content: BinaryIO
    _is_refused = False
    _received = 0
    _max_bytes = _MAX_BYTES
    _end: DelayedCall | None = None
    """Closes the connection of a client that continues to send."""

    @property
    def _is_multipart(self) -> bool:
        content_type = self.getHeader("Content-Type") or ""
        return content_type.partition(";")[0].strip().lower() == "multipart/form-data"

    @property
    def _has_upload(self) -> bool:
        """Whether the body is parsed in a thread."""
        is_large = self._is_multipart or self._max_bytes == _MAX_EGG_BYTES
        return self.method == b"POST" and is_large

    def gotLength(self, length: int | None) -> None:
        """Check the headers, which are complete when Twisted calls this."""
        if length == 0:
            super().gotLength(length)
            return
        self.method, path = method_and_path(self.channel)
        service = _service_of(path)
        if service == UPLOAD:
            self._max_bytes = _MAX_EGG_BYTES
        refused = refusal(self.node.options, self, service) or self._too_long(length or 0)
        if refused is None:
            super().gotLength(length)
        else:
            super().gotLength(0)
            self._refuse(*refused)

    def handleContentChunk(self, data: bytes) -> None:
        self._received += len(data)
        if self._is_refused:
            return
        if refused := self._too_long(self._received):
            self._refuse(*refused)
        else:
            super().handleContentChunk(data)

    def requestReceived(self, command: bytes, path: bytes, version: bytes) -> None:
        if self._is_refused:
            self.finish()
            return
        self.method = command
        parse_forms(self, is_now=not self._has_upload)
        super().requestReceived(command, path, version)

    def connectionLost(self, reason: Failure) -> None:
        if self._end is not None and self._end.active():
            self._end.cancel()
        super().connectionLost(reason)

    def parse_upload(self) -> None:
        """Add the fields of a form that was left unparsed to the arguments.

        This blocks. Raises ConfigurationError.
        """
        if not self._has_upload:
            return
        if not self._is_multipart:
            self.args.update(http.parse_qs(self.content.read(), keep_blank_values=True))
            return

        def add_field(field: Field) -> None:
            self._add(field.field_name, field.value)

        def add_file(file: File) -> None:
            file.file_object.seek(0)
            self._add(file.field_name, file.file_object.read())
            file.close()

        headers = {"Content-Type": (self.getHeader("Content-Type") or "").encode("latin-1")}
        try:
            parse_form(headers, self.content, add_field, add_file)
        except (FormParserError, ValueError) as error:
            raise ConfigurationError(f"the form can't be read: {error}") from error

    def _add(self, name: bytes | None, value: bytes | None) -> None:
        self.args.setdefault(name or b"", []).append(value or b"")

    def _too_long(self, length: int) -> tuple[int, str] | None:
        if length <= self._max_bytes:
            return None
        sentence = (
            f"the body has more than {self._max_bytes:,} bytes; "
            f"addversion.json takes {_MAX_EGG_BYTES:,}, everything else {_MAX_BYTES:,}"
        )
        return http.REQUEST_ENTITY_TOO_LARGE, sentence

    def _refuse(self, code: int, sentence: str) -> None:
        self._is_refused = True
        self.clientproto = b"HTTP/1.1"
        self.channel.persistent = False
        self.setHeader("Connection", "close")
        body = refuse(self, code, sentence, self.node.name)
        self.setHeader("Content-Length", str(len(body)))
        self.write(body)
        transport = self.channel.transport
        # A connection that is closed while data arrives loses the response.
        transport.loseWriteConnection()
        self._end = reactor.callLater(_LINGER_SECONDS, transport.abortConnection)


def _service_of(path: bytes) -> bytes:
    """Return the first segment of a path.

    >>> _service_of(b"//%61ddversion.json?x=1"), _service_of(b"/")
    (b'addversion.json', b'')
    """
    segments = path.partition(b"?")[0].split(b"/")
    return next((unquote_to_bytes(segment) for segment in segments if segment), b"")


def guard(app: Componentized, node: Node) -> None:
    """Have the requests of Scrapyd's application checked by their headers."""
    GuardedRequest.node = node
    make_requests_by(app, GuardedRequest)
