"""Speaking to Tor's tunnel: the port of `HTTPTunnelPort`, which answers CONNECT and nothing else."""

from __future__ import annotations

import asyncio
import os
import re
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from moviecrawler.errors import ConfigurationError, MovieCrawlerError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from typing import Self

_FORM = "set it to where Tor's HTTPTunnelPort listens, such as http://127.0.0.1:9080"
_STATUS = re.compile(rb"HTTP/1\.\d (\d{3}) ?([^\r\n]{0,100})")
_LONGEST_ANSWER = 8 * 1024
"""Bytes; Tor's own have some 200."""
_OTHER_PORTS = {
    b"Tor is not an HTTP Proxy": "Tor's SocksPort, which Scrapy can't use",
    b"Tor ControlPort is not": "Tor's ControlPort",
}
"""What Tor's other ports answer to HTTP."""
STARTING = 5.0
"""Seconds after which a port on which nobody listens is taken for a wrong one. Tor opens its ports at once."""
_CONNECTED = 200
_NO_TUNNEL = frozenset({400, 401, 405, 407, 501})
"""Statuses of servers that take no CONNECT, or not from us. Tor's tunnel says others when it can't reach a host."""


class TorError(MovieCrawlerError):
    """Tor can't be used: why, and what to do. `patience` is the time in seconds for which it may help to try again."""

    def __init__(self, sentence: str, *, patience: float = 0.0) -> None:
        super().__init__(sentence)
        self.patience = patience


@dataclass(frozen=True, slots=True)
class Tunnel:
    """Where Tor's tunnel listens."""

    host: str
    """A name or an address; one of IPv6 without brackets."""
    port: int

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read TOR_TUNNEL. Raises ConfigurationError."""
        if "@" in text:
            # Not the value itself, which may hold a password.
            raise ConfigurationError(
                "TOR_TUNNEL has a user or a password in it; each circuit is given its own: remove them"
            )
        try:
            parts = urlsplit(text)
            host, port = parts.hostname or "", parts.port
        except ValueError:
            raise ConfigurationError(f"TOR_TUNNEL is {text!r}; {_FORM}") from None
        if parts.scheme.startswith("socks"):
            raise ConfigurationError(
                f"TOR_TUNNEL is {text!r}, a SOCKS port, which Scrapy can't use; add HTTPTunnelPort to Tor's torrc and {_FORM}"
            )
        if (
            parts.scheme != "http"
            or not port
            or not re.fullmatch(r"[\x21-\x7e]+", host)
            or parts.path not in {"", "/"}
            or parts.query
            or parts.fragment
        ):
            raise ConfigurationError(f"TOR_TUNNEL is {text!r}; {_FORM}")
        return cls(host, port)

    def __str__(self) -> str:
        return f"{f'[{self.host}]' if ':' in self.host else self.host}:{self.port}"


@asynccontextmanager
async def connected(tunnel: Tunnel, target: str, authorization: bytes, within: float) -> AsyncIterator[None]:
    """Keep a connection through the tunnel to `target` (host:port) open, over which nothing is sent.

    `authorization` is the value of Proxy-Authorization. Raises TorError when there is none within so many seconds.
    """
    try:
        async with asyncio.timeout(within):
            writer = await _connect(tunnel, target, authorization)
    except TimeoutError:
        raise TorError(
            f"Tor at TOR_TUNNEL {tunnel} did not reach {target} within {within:.0f} s; it may still be looking for its first "
            "circuits: wait until its log says `Bootstrapped 100%`, or raise TOR_TIMEOUT",
            patience=inf,
        ) from None
    try:
        yield
    finally:
        await _close(writer)


async def _connect(tunnel: Tunnel, target: str, authorization: bytes) -> asyncio.StreamWriter:
    try:
        reader, writer = await asyncio.open_connection(tunnel.host, tunnel.port, limit=_LONGEST_ANSWER)
    except OSError as error:
        raise TorError(
            f"nothing listens at TOR_TUNNEL {tunnel} ({_why(error)}); start Tor with `HTTPTunnelPort "
            f"{tunnel.port}` in its torrc, or correct TOR_TUNNEL",
            patience=STARTING,
        ) from None
    try:
        writer.write(
            f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\nProxy-Authorization: ".encode()
            + authorization
            + b"\r\n\r\n"
        )
        _check(tunnel, target, await _answer(reader))
    except BaseException:
        await _close(writer)
        raise
    return writer


async def _close(writer: asyncio.StreamWriter) -> None:
    writer.transport.abort()
    with suppress(OSError):
        await writer.wait_closed()


def _why(error: OSError) -> str:
    # asyncio puts the address where the reason should stand.
    return os.strerror(error.errno) if error.errno else str(error)


async def _answer(reader: asyncio.StreamReader) -> bytes:
    """Return an answer's status line and headers, or what there is of them."""
    try:
        return await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError as error:
        return error.partial
    except asyncio.LimitOverrunError:
        return await reader.read(_LONGEST_ANSWER)
    except OSError:
        return b""


def _check(tunnel: Tunnel, target: str, answer: bytes) -> None:
    """Raise TorError unless an answer to CONNECT says that the connection is there."""
    where = f"TOR_TUNNEL {tunnel}"
    if not answer:
        raise TorError(
            f"{where} closed the connection without an answer; it is no HTTPTunnelPort (a SOCKS port does so), or Tor is "
            "just ending",
            patience=STARTING,
        )
    status = _STATUS.match(answer)
    if status is None:
        raise TorError(f"{where} answers {answer[:20]!r}, which is not HTTP; {_FORM}")
    for sign, port in _OTHER_PORTS.items():
        if sign in status[2]:
            raise TorError(f"{where} is {port}; add `HTTPTunnelPort` to Tor's torrc, and {_FORM}")
    said = f"{int(status[1])} {status[2].decode('latin-1')}".rstrip()
    code = int(status[1])
    if code in _NO_TUNNEL:
        raise TorError(f"{where} answers {said!r} to CONNECT, so it is no HTTPTunnelPort of Tor's; {_FORM}")
    if code != _CONNECTED:
        raise TorError(f"Tor at {where} could not reach {target}: {said}", patience=inf)
