"""Who may do what: user names, passwords and the sizes of what they send."""

from __future__ import annotations

import json
import re
from binascii import a2b_qp
from hmac import compare_digest
from io import BytesIO
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import unquote_to_bytes, urlsplit

from twisted.protocols.policies import WrappingFactory
from twisted.web import http
from twisted.web.server import Request, Site

from moviecrawler.cluster.webservice import Answer, error_data, send

if TYPE_CHECKING:
    from twisted.protocols.policies import ProtocolWrapper
    from twisted.web.resource import Resource

    from moviecrawler.cluster.node import Node
    from moviecrawler.cluster.options import NodeOptions

Role = Literal["user", "deployer"]
"""A deployer may do everything; a user too, unless there are deployers."""

_OPEN = (b"healthz", b"readyz")
"""Paths that need no password. Their answers say whether the node is healthy, and nothing else."""
_FORM_BYTES = 256 * 1024
"""Limit of a request without an egg, in bytes. The largest job has a quarter of that."""
_ANONYMOUS_BYTES = 4 * 1024
"""Limit of a request without a valid password, in bytes."""
_UPLOAD_REST_BYTES = 64 * 1024
"""Bytes of an upload beside the egg."""
_READ_FACTOR = 4
"""Multiple of the largest upload. So much of a request that is too large is read and discarded, so that its sender gets the answer."""
_URLENCODED = b"application/x-www-form-urlencoded"
_UPLOAD = b"/addversion.json"
"""The path of the only large form."""
_DEPLOYING = (b"addversion.json", b"delversion.json", b"delproject.json")
_SLASHES = re.compile(rb"/{2,}")
_MAX_CONNECTIONS = 200
"""More than clients and other nodes need, and few enough to leave most of a process' usual 1024 file descriptors to spiders and Redis."""


class Credentials:
    """The node's user names and passwords."""

    def __init__(self, options: NodeOptions) -> None:
        self.needed = bool(options.username)
        self._known: dict[Role, tuple[str, str]] = {"user": (options.username, options.password)}
        self._known["deployer"] = self._known["user"]
        if options.deploy_username:
            self._known["deployer"] = options.deploy_username, options.deploy_password

    def role(self, username: bytes, password: bytes) -> Role | None:
        """Return the role of a user name and password; None when they are wrong. It takes the same time whichever part is wrong."""
        if not self.needed:
            return "deployer"
        found: Role | None = None
        for role, (name, secret) in self._known.items():
            same_name = compare_digest(name.encode(), username)
            if same_name & compare_digest(secret.encode(), password):
                found = role
        return found


class _Discard(BytesIO):
    def write(self, data: Any) -> int:
        return len(data)


class LimitedRequest(Request):
    """A request that is answered if its sender's role and its host allow it, and whose size is limited by that role."""

    role: Role | None = None
    """Its sender's role; None without a valid password."""
    _limit = 0
    _received = 0
    _too_large = False
    _is_large_form = False
    _form = b""

    @property
    def _site(self) -> LimitedSite:
        channel: Any = self.channel
        site: LimitedSite = channel.site
        return site

    def gotLength(self, length: int | None) -> None:
        site = self._site
        self.role = site.credentials.role(self.getUser(), self.getPassword())
        kind = (self.getHeader(b"content-type") or b"").partition(b";")[0].strip().lower()
        # Percent-encoding makes three bytes of one.
        limits = {b"multipart/form-data": site.largest, _URLENCODED: 3 * site.largest}
        self._limit = _ANONYMOUS_BYTES if self.role is None else limits.get(kind, _FORM_BYTES)
        self._is_large_form = kind == _URLENCODED and (length is None or length > _FORM_BYTES)
        super().gotLength(min(length or 0, self._limit))
        if (length or 0) > self._limit:
            self._discard()

    def handleContentChunk(self, data: bytes) -> None:
        self._received += len(data)
        if self._received > self._limit and not self._too_large:
            self._discard()
        if self._received > self._site.largest * _READ_FACTOR:
            self.loseConnection()
        super().handleContentChunk(data)

    def _discard(self) -> None:
        self._too_large = True
        self.content = _Discard()

    def requestReceived(self, command: bytes, path: bytes, version: bytes) -> None:
        """Parse the path and the form. A large form is kept for `process`, as Twisted would need gigabytes and minutes for it."""
        form, self._form = self.content, b""
        if self._is_large_form and not self._too_large:
            assert form is not None  # noqa: S101 - gotLength has made it
            form.seek(0)
            self._form = form.read()
            form.close()
            self.content = BytesIO()
        name, mark, query = path.partition(b"?")
        super().requestReceived(command, _SLASHES.sub(b"/", name) + mark + query, version)

    def process(self) -> None:
        service = unquote_to_bytes(self.path[1:].partition(b"/")[0])
        form, self._form = self._form, b""
        # Of all answers, also of logs, which hold what sites and spiders wrote.
        self.setHeader(b"X-Content-Type-Options", b"nosniff")
        self.setHeader(b"X-Frame-Options", b"DENY")
        if len(form) > _FORM_BYTES and self.path != _UPLOAD:
            self._too_large, self._limit = True, _FORM_BYTES
        if self.role is None and self.path.strip(b"/") not in _OPEN:
            self.setHeader(b"WWW-Authenticate", b'Basic realm="Scrapyd"')
            self._refuse(http.UNAUTHORIZED, "give a user name and a password that the node knows")
        elif self._too_large:
            self._refuse(http.REQUEST_ENTITY_TOO_LARGE, f"the request is larger than {self._limit} bytes")
        elif service not in _OPEN and not self._site.answers_to(self.getHeader("host") or ""):
            self._refuse(
                http.FORBIDDEN, "without a password, a node answers only to its own name, its address or localhost"
            )
        elif service in _DEPLOYING and self.role != "deployer":
            self._refuse(http.FORBIDDEN, "this needs the user name and password for deploying")
        else:
            if form and self.args is not None:
                is_large = len(form) > _FORM_BYTES
                self.args.update(_form_of(form) if is_large else http.parse_qs(form, keep_blank_values=True))
            super().process()

    def _refuse(self, code: int, sentence: str) -> None:
        body = json.dumps({**error_data(sentence), "node_name": self._site.node.name}).encode() + b"\n"
        headers = {"Content-Type": "application/json", "Cache-Control": "no-store", "Connection": "close"}
        send(self, Answer(code, body, headers))


def _form_of(content: bytes) -> dict[bytes, list[bytes]]:
    """Return the fields of an urlencoded form as Twisted does, but fast enough for a form that holds an egg."""
    fields: dict[bytes, list[bytes]] = {}
    for part in content.split(b"&"):
        name, equals, value = part.partition(b"=")
        if equals:
            fields.setdefault(_decoded(name), []).append(_decoded(value))
    return fields


def _decoded(text: bytes) -> bytes:
    # Percent-encoding is quoted-printable with another sign, which has a decoder in C.
    return a2b_qp(text.replace(b"+", b" ").replace(b"=", b"=3D").replace(b"%", b"="))


class LimitedSite(Site):
    """A site whose requests are limited, in size too, by who sends them."""

    requestFactory = LimitedRequest
    noisy = False

    def __init__(self, root: Resource, node: Node) -> None:
        super().__init__(root)
        self.node = node
        self.credentials = Credentials(node.options)
        self.largest = node.options.egg_max_mb * 1024 * 1024 + _UPLOAD_REST_BYTES
        self._names = {"localhost", node.name.lower(), urlsplit(node.options.url).hostname}

    def answers_to(self, host: str) -> bool:
        """Return whether requests for a host are answered.

        A node without a password answers only to its own name. Otherwise the owner of another site could point a domain name at this
        machine, and reach the node through the browser of a visitor (DNS rebinding).
        """
        if self.credentials.needed:
            return True
        try:
            name = urlsplit(f"//{host}").hostname or ""
            return name in self._names or bool(ip_address(name))
        except ValueError:
            return False

    def log(self, request: Any) -> None:
        if request.path.strip(b"/") not in {*_OPEN, b"metrics"}:
            super().log(request)


class ConnectionLimit(WrappingFactory):
    """Limits the number of connections. A new one above the limit closes the oldest, as anyone can open connections and send nothing."""

    noisy = False

    def __init__(self, site: Site) -> None:
        super().__init__(site)
        self._kept: dict[Any, None] = {}  # the oldest first; `protocols` also has those that are closing

    def registerProtocol(self, p: ProtocolWrapper) -> None:
        super().registerProtocol(p)
        self._kept[p] = None
        if len(self._kept) > _MAX_CONNECTIONS:
            oldest = next(iter(self._kept))
            del self._kept[oldest]
            oldest.abortConnection()

    def unregisterProtocol(self, p: ProtocolWrapper) -> None:
        super().unregisterProtocol(p)
        self._kept.pop(p, None)
