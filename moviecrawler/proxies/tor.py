"""Tor: a pool whose proxies are circuits, which differ by their credentials.

Tor's tunnel (`HTTPTunnelPort`) never lets connections with different credentials share a circuit. So a random token is a
circuit, and another token is another circuit.
"""

from __future__ import annotations

import asyncio
import logging
import os
import re
import secrets
import socket
import time
from contextlib import suppress
from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import stem.connection
import stem.socket

from moviecrawler.errors import ConfigurationError
from moviecrawler.option_types import split_url
from moviecrawler.proxies.pools import Proxy, ProxyPool, ProxyPoolError, Route, basic_authorization

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from moviecrawler.options import TorOptions

logger = logging.getLogger(__name__)
# At lower levels stem logs all that it sends, including the password.
logging.getLogger("stem").setLevel(logging.WARNING)

_USER = "tor"
"""User name by which Tor's tunnel takes the password for an isolation token."""
_TOKEN_BYTES = 12
_RETRY_PAUSE_SECONDS = 0.5
_STARTING_SECONDS = 5.0
"""Seconds to wait for Tor to open its ports, which it does at once; a port that is closed for longer is a wrong one."""
_CONTROL_TIMEOUT_SECONDS = 10.0
"""Time-out of each answer of the control port."""
_NEW_IDENTITY_INTERVAL_SECONDS = 10.0
"""Tor delays a new identity that is requested sooner."""
_MAX_ANSWER_BYTES = 8 * 1024
_STATUS = re.compile(rb"HTTP/1\.\d (\d{3}) ?([^\r\n]{0,100})")
_CONNECTED = 200
_TUNNEL_FORM = "set it to where Tor's HTTPTunnelPort listens, such as http://127.0.0.1:9080"
_CONTROL_FORM = "set it to Tor's ControlPort, such as 127.0.0.1:9051, or to the path of its ControlSocket"


class TorError(ProxyPoolError):
    """Tor can't be used; the message says why, and what to do."""

    def __init__(self, sentence: str, *, retry_seconds: float = 0.0) -> None:
        """Create it. `retry_seconds` says for how long trying again may help."""
        super().__init__(sentence)
        self.retry_seconds = retry_seconds


@dataclass(frozen=True, slots=True)
class Address:
    """A host and a port, or the path of a socket."""

    host: str = ""
    """A name or an address; one of IPv6 without brackets."""
    port: int = 0
    path: str = ""

    def __str__(self) -> str:
        return self.path or f"{f'[{self.host}]' if ':' in self.host else self.host}:{self.port}"


def _parse_tunnel(text: str) -> Address:
    if "@" in text:
        # Not the value itself, which may hold a password.
        raise ConfigurationError(
            "TOR_TUNNEL has a user or a password in it; each circuit is given its own: remove them"
        )
    if text.startswith("socks"):
        raise ConfigurationError(
            f"TOR_TUNNEL is {text!r}, a SOCKS port, which Scrapy can't use; add HTTPTunnelPort to Tor's torrc and {_TUNNEL_FORM}"
        )
    scheme, _, rest = text.partition("://")
    address = _parse_host_and_port(rest.removesuffix("/"))
    if scheme != "http" or address is None:
        raise ConfigurationError(f"TOR_TUNNEL is {text!r}; {_TUNNEL_FORM}")
    return address


def _parse_control(text: str) -> Address:
    if "@" in text:
        raise ConfigurationError(
            "TOR_CONTROL has a user or a password in it; remove them, and put the password into the environment as "
            "TOR_CONTROL_PASSWORD"
        )
    if path := re.fullmatch(r"(?:unix:(?://)?)?(/.+)", text):
        return Address(path=path[1])
    address = _parse_host_and_port(text)
    if address is None:
        raise ConfigurationError(f"TOR_CONTROL is {text!r}; {_CONTROL_FORM}")
    return address


def _parse_host_and_port(text: str) -> Address | None:
    parts = split_url(f"//{text}")
    if parts is None or not parts.hostname or not parts.port or not parts.hostname.isascii() or parts.netloc != text:
        return None
    return Address(parts.hostname, parts.port)


class TorPool(ProxyPool):
    """Circuits of a Tor client. A refused circuit is replaced at once, so that other processes need not know its health."""

    def __init__(self, name: str, options: TorOptions, clock: Callable[[], float] = time.monotonic) -> None:
        """Create it without connecting. Raises ConfigurationError."""
        self._tunnel = _parse_tunnel(options.tunnel)
        self._control = _parse_control(options.control) if options.control else None
        # Circuits are of this process, and new after a restart.
        process = os.urandom(4).hex()
        labels = [f"{name}:c{number}" for number in range(1, options.circuits + 1)]
        super().__init__(name, "tor", tuple(Proxy(label, name, "tor", f"{label}@{process}") for label in labels))
        self._timeout = options.timeout
        self._clock = clock
        self._tokens = {proxy: _new_token() for proxy in self.proxies}
        self._last_identity = -inf

    def check(self, setting: str, home: str) -> None:
        """Raise ConfigurationError for a site that is not asked by https."""
        if not self.accepts(home):
            raise ConfigurationError(
                f"{setting} is {home!r}, and its site is to be asked through Tor, which takes https addresses only; set it to "
                "one, or take the pool of kind tor out of PROXY_ORDER"
            )

    def accepts(self, url: str) -> bool:
        """Return whether a URL can be asked through Tor's tunnel: https only.

        Scrapy asks a proxy for an http URL with GET, where the tunnel takes CONNECT only; and the last relay could read and
        change what comes unencrypted.
        """
        return url.startswith("https:")

    def route(self, proxy: Proxy) -> Route:
        """Return the tunnel, and the token that keeps a circuit apart from others."""
        return Route(f"http://{self._tunnel}", basic_authorization(_USER, self._tokens[proxy]))

    def renew(self, proxy: Proxy) -> bool:
        """Replace a circuit by a new one, which often ends at another relay."""
        self._tokens[proxy] = _new_token()
        return True

    async def open(self, home: str) -> None:
        """Connect to the site's host through Tor, without sending anything. Raises TorError when that fails for too long."""
        parts = urlsplit(home)
        host = parts.hostname or ""
        target = f"{f'[{host}]' if ':' in host else host}:{parts.port or 443}"
        started = self._clock()
        if self._control is not None:
            await self._retry(started, self._check_bootstrapped)
        await self._retry(started, lambda: self._check_tunnel(target, started))
        logger.info("Tor reaches %s", target)

    async def on_exhausted(self) -> None:
        """Request a new identity, if Tor may be asked for one; it affects all users of this Tor.

        Kept-alive connections would go on over the old circuits, so every circuit gets a new token, too.
        """
        now = self._clock()
        if self._control is None or now - self._last_identity < _NEW_IDENTITY_INTERVAL_SECONDS:
            return
        self._last_identity = now
        try:
            await self._ask("SIGNAL NEWNYM")
        except TorError as error:
            logger.warning("%s", error)
            return
        for proxy in self.proxies:
            self.renew(proxy)
        logger.info("Tor has been asked for a new identity, and all circuits are left")

    # --- Whether it works ---------------------------------------------------------------------------------------------

    async def _retry(self, started: float, attempt: Callable[[], Awaitable[None]]) -> None:
        while True:
            try:
                return await attempt()
            except TorError as error:
                seconds = min(error.retry_seconds, self._timeout)
                if self._clock() - started + _RETRY_PAUSE_SECONDS >= seconds:
                    raise
            await asyncio.sleep(_RETRY_PAUSE_SECONDS)

    async def _check_bootstrapped(self) -> None:
        answer = await self._ask("GETINFO status/bootstrap-phase")
        phase = dict(re.findall(r'(PROGRESS|SUMMARY)="?([^"\n]*?)"?(?= [A-Z]+=|$)', answer, re.MULTILINE))
        if phase.get("PROGRESS") != "100":
            raise TorError(
                f"Tor at TOR_CONTROL {self._control} has no circuits yet: it is at {phase.get('PROGRESS', '?')}% "
                f"({phase.get('SUMMARY', 'unknown')}); see its log, or raise TOR_TIMEOUT",
                retry_seconds=inf,
            )

    async def _check_tunnel(self, target: str, started: float) -> None:
        left = max(self._timeout - (self._clock() - started), _RETRY_PAUSE_SECONDS)
        where = f"TOR_TUNNEL {self._tunnel}"
        try:
            async with asyncio.timeout(left):
                answer = await self._connect(target)
        except TimeoutError:
            raise TorError(
                f"Tor at {where} did not reach {target} within {left:.0f} s; it may still be looking for its first "
                "circuits: wait until its log says `Bootstrapped 100%`, or raise TOR_TIMEOUT",
                retry_seconds=inf,
            ) from None
        except OSError as error:
            # asyncio's message is the address and not the reason.
            reason = os.strerror(error.errno) if error.errno else str(error)
            raise TorError(
                f"nothing listens at {where} ({reason}); start Tor with `HTTPTunnelPort {self._tunnel.port}` in its "
                "torrc, or correct TOR_TUNNEL",
                retry_seconds=_STARTING_SECONDS,
            ) from None
        status = _STATUS.match(answer)
        if status is None or b"is not an HTTP " in answer:
            # Tor's other ports say so; its SOCKS port may hang up instead, as does a tunnel whose Tor is ending.
            raise TorError(
                f"{where} is not Tor's HTTPTunnelPort but another port, such as its SOCKS port, or its Tor is ending; add "
                f"`HTTPTunnelPort` to Tor's torrc, and {_TUNNEL_FORM}",
                retry_seconds=0.0 if answer else _STARTING_SECONDS,
            )
        if int(status[1]) != _CONNECTED:
            said = f"{int(status[1])} {status[2].decode('latin-1')}".rstrip()
            raise TorError(f"Tor at {where} could not reach {target}: {said}", retry_seconds=inf)

    async def _connect(self, target: str) -> bytes:
        """Return the tunnel's answer to CONNECT; empty when it hangs up. Raises OSError when nothing listens there."""
        reader, writer = await asyncio.open_connection(self._tunnel.host, self._tunnel.port, limit=_MAX_ANSWER_BYTES)
        try:
            credentials = basic_authorization(_USER, _new_token()).decode()
            head = f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\nProxy-Authorization: {credentials}\r\n\r\n"
            writer.write(head.encode())
            return await reader.readuntil(b"\r\n\r\n")
        except asyncio.IncompleteReadError as end:
            return end.partial
        except asyncio.LimitOverrunError:
            return await reader.read(_MAX_ANSWER_BYTES)
        except ConnectionError:
            return b""
        finally:
            writer.transport.abort()
            with suppress(OSError):
                await writer.wait_closed()

    # --- The control port ---------------------------------------------------------------------------------------------

    async def _ask(self, command: str) -> str:
        """Return the control port's answer to a line. Raises TorError."""
        assert self._control is not None  # noqa: S101 - asked for only with one
        return await asyncio.to_thread(_ask_control, self._control, command)


def _new_token() -> str:
    return secrets.token_hex(_TOKEN_BYTES)


def _ask_control(address: Address, command: str) -> str:
    where = f"TOR_CONTROL {address}"
    password = os.environ.get("TOR_CONTROL_PASSWORD") or None
    try:
        with _ControlSocket(address) as control:
            # stem escapes quotation marks, but not the mark that escapes them.
            stem.connection.authenticate(control, password=password and password.replace("\\", "\\\\"))
            control.send(command)
            answer = control.recv()
    except (stem.connection.MissingPassword, stem.connection.IncorrectPassword):
        raise TorError(
            f"{where} asks for another password; set TOR_CONTROL_PASSWORD in the environment to the one that "
            "HashedControlPassword in Tor's torrc was made from"
        ) from None
    except (stem.ControllerError, stem.connection.AuthenticationFailure, OSError, ValueError, LookupError) as error:
        reason = str(error).strip().partition("\n")[0]
        raise TorError(f"{where} can't be asked: {reason}; {_CONTROL_FORM}", retry_seconds=_STARTING_SECONDS) from None
    if not answer.is_ok():
        raise TorError(f"{where} answers {str(answer)!r} to {command}")
    return str(answer)


class _ControlSocket(stem.socket.ControlSocket):  # type: ignore[misc]  # stem has no types
    """stem's, with a time-out. stem's `Controller` has none: it would wait for ever for a Tor that does not answer."""

    def __init__(self, address: Address) -> None:
        super().__init__()
        self._address = address
        self.connect()

    def _make_socket(self) -> socket.socket:
        address = self._address
        try:
            if not address.path:
                return socket.create_connection((address.host, address.port), _CONTROL_TIMEOUT_SECONDS)
            made = socket.socket(socket.AF_UNIX)
            try:
                made.settimeout(_CONTROL_TIMEOUT_SECONDS)
                made.connect(address.path)
            except OSError:
                made.close()
                raise
        except OSError as error:
            raise stem.SocketError(error.strerror or str(error)) from None
        return made
