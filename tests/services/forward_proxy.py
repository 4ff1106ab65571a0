"""Forward proxies for tests, as providers sell them, and some that don't work.

They have a password, and take plain requests and CONNECT.
"""

import base64
import json
import socket
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple, Self
from urllib.parse import quote, urlsplit

from tests.services.https import NAME
from tests.services.threads import Server, join


class Mode(StrEnum):
    """What a proxy does with a request."""

    WORK = "work"
    DROP = "drop"  # closes the connection without an answer
    STALL = "stall"  # says nothing, and keeps the connection open
    CORRUPT = "corrupt"  # changes some bytes in the middle of the body
    CUT = "cut"  # closes the connection halfway through the body
    REJECT = "reject"  # 407, whatever the password, with all that was sent in the body
    ECHO = "echo"  # 403, in place of the site, with all that was sent in the body
    BROKEN = "broken"  # 502: it does not reach the site
    PAGE = "page"  # 200, in place of the site, with all that was sent in the body
    REDIRECT = "redirect"  # 302, to the same page at an address with all credentials


_SAYS = {
    Mode.REJECT: "407 Proxy Authentication Required",
    Mode.ECHO: "403 Forbidden",
    Mode.BROKEN: "502 Bad Gateway",
    Mode.PAGE: "200 OK",
    Mode.REDIRECT: "302 Found",
}


class Asked(NamedTuple):
    """A request to a proxy."""

    password: str
    target: str
    head: bytes


@dataclass(slots=True)
class ForwardProxy:
    """One of them.

    The site is told its `address` as the client's, by a header or, through a tunnel, by where it
    connects from.
    """

    user: str
    password: str
    address: str
    mode: Mode = Mode.WORK
    port: int = 0
    asked: list[Asked] = field(default_factory=list)
    takes_all: bool = False
    """Whether it takes any credentials, as Tor's tunnel does."""

    @property
    def url(self) -> str:
        """As PROXY_POOLS takes it."""
        return f"http://{self.user}:{self.password}@127.0.0.1:{self.port}"

    def serve(self, client: socket.socket, *_arguments: object) -> None:
        """Answer one request."""
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            if not (piece := client.recv(1)):
                return
            head += piece
        first, *lines = head.decode("latin-1").split("\r\n")
        method, target, _ = first.split(" ")
        headers = {
            name.lower(): value.strip()
            for name, _, value in (line.partition(":") for line in lines if line)
        }
        given = base64.b64decode(
            headers.get("proxy-authorization", "").removeprefix("Basic ")
        ).decode()
        user, _, password = given.partition(":")
        self.asked.append(Asked(password, target, head))
        if not self.takes_all and (user, password) != (self.user, self.password):
            _say(client, _SAYS[Mode.REJECT])
        elif self.mode in _SAYS:
            encoded = base64.b64encode(password.encode()).decode()
            location = target.replace("//", f"//{given}@") + f"?via={quote(given)}"
            echo = f"{given} {quote(given)} {encoded} {given:9000}"
            _say(client, _SAYS[self.mode], head + echo.encode(), f"Location: {location}")
        elif self.mode is Mode.STALL:
            client.recv(1)  # until the client gives up
        elif self.mode is not Mode.DROP and method == "CONNECT":
            host, _, port = target.rpartition(":")
            source = (self.address, 0) if self.address.startswith("127.") else None
            with socket.create_connection(
                (host.replace(NAME, "127.0.0.1"), int(port)), source_address=source
            ) as site:
                client.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
                join(client, site)
        elif self.mode is not Mode.DROP:
            self._forward(client, method, target, lines)

    def _forward(self, client: socket.socket, method: str, target: str, lines: list[str]) -> None:
        parts = urlsplit(target)
        path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        dropped = (
            "proxy-",
            "connection:",
            *(["accept-encoding:"] if self.mode is Mode.CORRUPT else []),
        )
        kept = [line for line in lines if line and not line.lower().startswith(dropped)]
        if self.mode is Mode.CORRUPT:
            # Gzip has a checksum; in brotli some damage can't be seen.
            kept.append("Accept-Encoding: gzip")
        told = [*kept, f"X-Forwarded-For: {self.address}", "Connection: close", "", ""]
        with (
            socket.create_connection((parts.hostname, parts.port or 80)) as site,
            site.makefile("rb") as answering,
        ):
            site.sendall(
                f"{method} {path} HTTP/1.1\r\n".encode() + "\r\n".join(told).encode("latin-1")
            )
            answer = answering.read()
        head, _, body = answer.partition(b"\r\n\r\n")
        middle = len(body) // 2
        if self.mode is Mode.CORRUPT and len(body) > 100:
            body = (
                body[:middle]
                + bytes(byte ^ 0x5A for byte in body[middle : middle + 20])
                + body[middle + 20 :]
            )
        if self.mode is Mode.CUT:
            body = body[:middle]
        client.sendall(head + b"\r\n\r\n" + body)


def _say(client: socket.socket, status: str, body: bytes = b"", *headers: str) -> None:
    sent = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", "Connection: close", *headers]
    client.sendall("\r\n".join([*sent, "", ""]).encode() + body)


class ProxyFleet:
    """Proxies that run while the `with` block does."""

    def __init__(self, modes: list[Mode | None], network: str = "203.0.113") -> None:
        """Take what each does; None for one that is dead: nothing listens on its port.

        Addresses are of `network`.
        """
        self.proxies = [
            ForwardProxy(
                f"customer{n}", f"s3cret-{n}-pa55word", f"{network}.{n}", mode or Mode.WORK
            )
            for n, mode in enumerate(modes, 1)
        ]
        self._dead = [
            proxy for proxy, mode in zip(self.proxies, modes, strict=True) if mode is None
        ]

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            for proxy in self.proxies:
                if proxy in self._dead:
                    # Bound, so that nobody else gets the port, and not listening, so that
                    # connections are refused.
                    held = stack.enter_context(closing(socket.socket()))
                    held.bind(("127.0.0.1", 0))
                    proxy.port = held.getsockname()[1]
                else:
                    proxy.port = stack.enter_context(Server(proxy.serve)).port
            self._stop = stack.pop_all().close
        return self

    def __exit__(self, *_: object) -> None:
        self._stop()

    def settings(self, folder: Path) -> dict[str, str]:
        """Write a PROXY_POOLS file of them all; return the settings with which it is used."""
        path = folder / "pools.json"
        pool = {"kind": "datacenter", "urls": [one.url for one in self.proxies]}
        path.write_text(json.dumps({"datacenter": pool}))
        return {"PROXY_ORDER": "datacenter", "PROXY_POOLS": str(path)}

    @property
    def secrets(self) -> list[str]:
        """Everything that must be seen nowhere: passwords, users, and how they are sent."""
        users = [f"{one.user}:" for one in self.proxies]
        passwords = [one.password for one in self.proxies]
        pairs = [f"{one.user}:{one.password}" for one in self.proxies]
        encoded = [base64.b64encode(text.encode()).decode() for text in (*pairs, *passwords)]
        return [*users, *passwords, *encoded]
