"""Forward proxies for tests, as providers sell them: with a password, plain and CONNECT, and some that don't work."""

from __future__ import annotations

import asyncio
import base64
import socket
import threading
import time
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Self
from urllib.parse import urlsplit

WATCHED = "203.0.113.66"
"""The address by which the site knows a proxy that it has had enough of."""
_PIECE = 65_536
_STOP_WITHIN = 10  # seconds


class Mode(StrEnum):
    """What a proxy does with a request."""

    WORK = "work"
    DROP = "drop"
    """The connection is closed without an answer."""
    STALL = "stall"
    """Nothing comes, and the connection stays open."""
    CORRUPT = "corrupt"
    """Some bytes in the middle of the body are others."""
    CUT = "cut"
    """The connection is closed halfway through the body."""
    REJECT = "reject"
    """407, whatever the password, with all that was sent in the body."""
    ECHO = "echo"
    """403, in place of the site, with all that was sent in the body."""
    BROKEN = "broken"
    """502: the proxy does not reach the site."""


@dataclass(slots=True)
class ForwardProxy:
    """One of them. The site is told its `address` as the client's."""

    user: str
    password: str
    address: str
    mode: Mode = Mode.WORK
    port: int = 0
    asked: list[tuple[float, str, str]] = field(default_factory=list)
    """When (by `time.time()`), with which user, and what was asked of it."""
    heads: list[bytes] = field(default_factory=list)
    """What was sent with each request, up to the body."""
    answered: list[tuple[float, int]] = field(default_factory=list)
    """When an answer was passed on to its end, and its status."""
    unauthorised: int = 0
    """Requests without a right password."""
    watched_from: int | None = None
    """Requests after which the site knows it as WATCHED; None for never."""
    others: dict[str, str] = field(default_factory=dict)
    """Further users and their passwords."""

    @property
    def url(self) -> str:
        """As PROXY_POOLS takes it."""
        return f"http://{self.user}:{self.password}@127.0.0.1:{self.port}"


class ProxyFleet:
    """Proxies that run in a thread while the `with` block does."""

    def __init__(self, modes: list[Mode | None]) -> None:
        """Take what each does; None for one that is dead: nothing listens on its port."""
        self.proxies = [
            ForwardProxy(f"customer{n}", f"s3cret-{n}-pa55word", f"203.0.113.{n}", mode or Mode.WORK)
            for n, mode in enumerate(modes, 1)
        ]
        self._dead = {n for n, mode in enumerate(modes) if mode is None}
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._tasks: set[asyncio.Task[None]] = set()

    def __enter__(self) -> Self:
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._start(), self._loop).result(_STOP_WITHIN)
        return self

    def __exit__(self, *_: object) -> None:
        stopped: Future[None] = asyncio.run_coroutine_threadsafe(self._stop(), self._loop)
        stopped.result(_STOP_WITHIN)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_STOP_WITHIN)
        self._loop.close()

    @property
    def secrets(self) -> list[str]:
        """Everything that must be seen nowhere: passwords, users, and how they are sent."""
        return [
            secret
            for proxy in self.proxies
            for secret in (
                proxy.password,
                f"{proxy.user}:",
                base64.b64encode(f"{proxy.user}:{proxy.password}".encode()).decode(),
            )
        ]

    async def _start(self) -> None:
        self._servers = []
        for n, proxy in enumerate(self.proxies):
            listener = socket.create_server(("127.0.0.1", 0))
            proxy.port = listener.getsockname()[1]
            if n in self._dead:
                # Bound, so that nobody else gets the port, and not listening, so that connections are refused.
                listener.close()
                listener = socket.socket()
                listener.bind(("127.0.0.1", proxy.port))
                self._held = [*getattr(self, "_held", []), listener]
                continue

            def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, proxy: ForwardProxy = proxy) -> None:
                task = self._loop.create_task(_serve(proxy, reader, writer))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)

            self._servers.append(await asyncio.start_server(serve, sock=listener))

    async def _stop(self) -> None:
        for server in self._servers:
            server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for listener in getattr(self, "_held", []):
            listener.close()


async def _serve(proxy: ForwardProxy, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError, asyncio.IncompleteReadError):
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            await _answer(proxy, head, reader, writer)
        finally:
            writer.close()


async def _answer(proxy: ForwardProxy, head: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    first, *lines = head.decode("latin-1").split("\r\n")
    method, target, _ = first.split(" ")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines if line)}
    given = base64.b64decode(headers.get("proxy-authorization", "").removeprefix("Basic ")).decode()
    user, _, password = given.partition(":")
    proxy.asked.append((time.time(), user, target))
    proxy.heads.append(head)
    users = {proxy.user: proxy.password, **proxy.others}
    if users.get(user) != password:
        proxy.unauthorised += 1
        await _say(writer, "407 Proxy Authentication Required", b"")
        return
    match proxy.mode:
        case Mode.DROP:
            return
        case Mode.STALL:
            await reader.read()  # until the client gives up
        case Mode.REJECT:
            await _say(writer, "407 Proxy Authentication Required", head + given.encode())
        case Mode.ECHO:
            await _say(writer, "403 Forbidden", head + given.encode())
        case Mode.BROKEN:
            await _say(writer, "502 Bad Gateway", b"")
        case _ if method == "CONNECT":
            await _tunnel(target, reader, writer)
        case _:
            await _forward(proxy, method, target, lines, writer)


async def _say(writer: asyncio.StreamWriter, status: str, body: bytes) -> None:
    writer.write(f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode() + body)
    await writer.drain()


async def _forward(
    proxy: ForwardProxy, method: str, target: str, lines: list[str], writer: asyncio.StreamWriter
) -> None:
    parts = urlsplit(target)
    site_reader, site = await asyncio.open_connection(parts.hostname, parts.port or 80)
    try:
        path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        dropped = ("proxy-", "connection:", *(["accept-encoding:"] if proxy.mode is Mode.CORRUPT else []))
        kept = [line for line in lines if line and not line.lower().startswith(dropped)]
        if proxy.mode is Mode.CORRUPT:
            kept.append("Accept-Encoding: gzip")  # which has a checksum; in brotli some damage can't be seen
        watched = proxy.watched_from is not None and len(proxy.asked) > proxy.watched_from
        told = [*kept, f"X-Forwarded-For: {WATCHED if watched else proxy.address}", "Connection: close", "", ""]
        site.write(f"{method} {path} HTTP/1.1\r\n".encode() + "\r\n".join(told).encode("latin-1"))
        await site.drain()
        answer = await site_reader.read()
        head, _, body = answer.partition(b"\r\n\r\n")
        if proxy.mode is Mode.CORRUPT and len(body) > 100:
            middle = len(body) // 2
            body = body[:middle] + bytes(byte ^ 0x5A for byte in body[middle : middle + 20]) + body[middle + 20 :]
        if proxy.mode is Mode.CUT:
            body = body[: len(body) // 2]
        writer.write(head + b"\r\n\r\n" + body)
        await writer.drain()
        proxy.answered.append((time.time(), int(answer[9:12])))
    finally:
        site.close()


async def _tunnel(target: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    host, _, port = target.rpartition(":")
    site_reader, site = await asyncio.open_connection(host, int(port))
    try:
        writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        await asyncio.gather(_pass_on(reader, site), _pass_on(site_reader, writer))
    finally:
        site.close()


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await reader.read(_PIECE):
            writer.write(data)
            await writer.drain()
        writer.write_eof()
