"""Tor: a pool whose sessions are circuits, whether it works, and new identities.

Tor's tunnel (`HTTPTunnelPort`) never lets connections with different credentials share a circuit. So a random token is a
circuit, and another token is another circuit.
"""

from __future__ import annotations

import asyncio
import logging
import os
import re
import socket
import time
from contextlib import suppress
from math import inf
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import stem.connection
import stem.socket

from moviecrawler.errors import ConfigurationError
from moviecrawler.proxies.pools import SESSION, ProxyPoolError, SessionPool, basic_authorization, new_token

if TYPE_CHECKING:
    from collections.abc import Callable

    from moviecrawler.options import TorOptions

logger = logging.getLogger(__name__)
# At lower levels stem logs all that it sends, including the password.
logging.getLogger("stem").setLevel(logging.WARNING)

_USER = "tor"
"""User name by which Tor's tunnel takes the password for an isolation token."""
_RETRY_PAUSE_SECONDS = 0.5
_STARTING_SECONDS = 5.0
"""Seconds to wait for Tor to open its ports, which it does at once; a port that is closed for longer is a wrong one."""
_CONTROL_TIMEOUT_SECONDS = 10.0
"""Time-out of each answer of the control port."""
_NEW_IDENTITY_INTERVAL_SECONDS = 10.0
"""Tor delays a new identity that is requested sooner."""
_MAX_LINE_BYTES = 8 * 1024
_STATUS = re.compile(rb"HTTP/1\.\d (\d{3})[^\r\n]{0,100}")
_BOOTSTRAP = re.compile(r'PROGRESS=(\d+) .*SUMMARY="([^"]*)"')


class TorError(ProxyPoolError):
    """Tor can't be used; the message says why, and what to do."""

    def __init__(self, sentence: str, *, retry_seconds: float = 0.0) -> None:
        """Create it. `retry_seconds` says for how long trying again may help."""
        super().__init__(sentence)
        self.retry_seconds = retry_seconds


class TorPool(SessionPool):
    """Circuits of a Tor client."""

    def __init__(self, name: str, options: TorOptions, clock: Callable[[], float] = time.monotonic) -> None:
        """Create it without connecting."""
        url = options.tunnel.rstrip("/")
        labels = (f"{name}:c{number}" for number in range(1, options.circuits + 1))
        super().__init__(name, "tor", labels, url, _USER, SESSION)
        self._tunnel = urlsplit(url)
        self._control = re.sub("^unix:(//)?", "", options.control)
        self._timeout = options.timeout
        self._clock = clock
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

    async def open(self, home: str) -> None:
        """Connect to the site's host through Tor, without sending anything. Raises TorError when that fails for too long."""
        site = urlsplit(home)
        host, port = site.hostname or "", site.port or 443
        started = self._clock()
        while True:
            try:
                await self._check(host, port, self._timeout - (self._clock() - started))
                break
            except TorError as error:
                seconds = min(error.retry_seconds, self._timeout)
                if self._clock() - started + _RETRY_PAUSE_SECONDS >= seconds:
                    raise
            await asyncio.sleep(_RETRY_PAUSE_SECONDS)
        logger.info("Tor reaches %s:%d", host, port)

    async def on_exhausted(self) -> None:
        """Request a new identity, if Tor may be asked for one; it affects all users of this Tor.

        Kept-alive connections would go on over the old circuits, so every circuit gets a new token, too.
        """
        now = self._clock()
        if not self._control or now - self._last_identity < _NEW_IDENTITY_INTERVAL_SECONDS:
            return
        self._last_identity = now
        try:
            await asyncio.to_thread(_ask_control, self._control, "SIGNAL NEWNYM")
        except TorError as error:
            logger.warning("%s", error)
            return
        for proxy in self.proxies:
            self.renew(proxy)
        logger.info("Tor has been asked for a new identity, and all circuits are left")

    async def _check(self, host: str, port: int, seconds: float) -> None:
        """Connect to a host once. Raises TorError."""
        if self._control:
            said = await asyncio.to_thread(_ask_control, self._control, "GETINFO status/bootstrap-phase")
            progress, summary = found.groups() if (found := _BOOTSTRAP.search(said)) else ("?", said)
            if progress != "100":
                raise TorError(
                    f"Tor at TOR_CONTROL {self._control} has no circuits yet: it is at {progress}% ({summary}); see its log, or "
                    "raise TOR_TIMEOUT",
                    retry_seconds=inf,
                )
        where = f"TOR_TUNNEL {self._tunnel.netloc}"
        try:
            # Not in a thread: at Ctrl-C, the process would wait for it.
            async with asyncio.timeout(max(seconds, _RETRY_PAUSE_SECONDS)):
                answer = await self._connect(host, port)
        except TimeoutError:
            answer = b"HTTP/1.0 504 no answer in time"
        except OSError as error:
            # asyncio's message is the address, not the reason.
            reason = os.strerror(error.errno) if error.errno and error.errno > 0 else error.strerror or error
            raise TorError(
                f"nothing listens at {where} ({reason}); start Tor with `HTTPTunnelPort {self._tunnel.port}` in "
                "its torrc, or correct TOR_TUNNEL",
                retry_seconds=_STARTING_SECONDS,
            ) from None
        status = _STATUS.match(answer)
        if status is None or b"is not an HTTP " in answer:
            # Tor's other ports say so; its SOCKS port may hang up instead, as does a tunnel whose Tor is ending.
            raise TorError(
                f"{where} is not Tor's HTTPTunnelPort but another port, such as its SOCKS port, or its Tor is ending; add "
                "`HTTPTunnelPort` to Tor's torrc, and set TOR_TUNNEL to where it listens, such as http://127.0.0.1:9080",
                retry_seconds=0.0 if answer else _STARTING_SECONDS,
            )
        if status[1] != b"200":
            raise TorError(
                f"Tor at {where} did not reach {host}:{port} ({status[0].decode('latin-1').partition(' ')[2]}); it may still be "
                "looking for its first circuits: wait until its log says `Bootstrapped 100%`, or raise TOR_TIMEOUT",
                retry_seconds=inf,
            )

    async def _connect(self, host: str, port: int) -> bytes:
        """Return the first line of the tunnel's answer to CONNECT; empty when it hangs up. Raises OSError."""
        authorization = basic_authorization(_USER, new_token()).decode()
        target = f"{host}:{port}"
        head = f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\nProxy-Authorization: {authorization}\r\n\r\n"
        reader, writer = await asyncio.open_connection(self._tunnel.hostname, self._tunnel.port, limit=_MAX_LINE_BYTES)
        try:
            writer.write(head.encode())
            return await reader.readline()
        except ConnectionError:
            return b""
        except ValueError:
            return b"a line that is too long"
        finally:
            writer.transport.abort()
            with suppress(OSError):
                await writer.wait_closed()


def _ask_control(address: str, command: str) -> str:
    """Return the control port's answer to a line. Raises TorError."""
    where = f"TOR_CONTROL {address}"
    password = os.environ.get("TOR_CONTROL_PASSWORD") or None
    try:
        with _ControlSocket(address) as control:
            # stem escapes quotation marks, but not the mark that escapes them.
            stem.connection.authenticate(control, password=password and password.replace("\\", "\\\\"))
            control.send(command)
            return str(control.recv())
    except (stem.connection.MissingPassword, stem.connection.IncorrectPassword):
        raise TorError(
            f"{where} asks for another password; set TOR_CONTROL_PASSWORD in the environment to the one that "
            "HashedControlPassword in Tor's torrc was made from"
        ) from None
    except (stem.ControllerError, stem.connection.AuthenticationFailure, OSError, ValueError, LookupError) as error:
        reason = str(error).strip().partition("\n")[0]
        raise TorError(
            f"{where} can't be asked: {reason}; start Tor with `ControlPort` in its torrc, or correct TOR_CONTROL",
            retry_seconds=_STARTING_SECONDS,
        ) from None


class _ControlSocket(stem.socket.ControlSocket):  # type: ignore[misc]  # stem has no types
    """stem's, with a time-out. stem's own would wait for ever for a Tor that does not answer."""

    def __init__(self, address: str) -> None:
        """Connect to a host and port, or to a socket by its path."""
        super().__init__()
        self._address = address
        self.connect()

    def _make_socket(self) -> socket.socket:
        if self._address.startswith("/"):
            made = socket.socket(socket.AF_UNIX)
            made.settimeout(_CONTROL_TIMEOUT_SECONDS)
            made.connect(self._address)
            return made
        parts = urlsplit(f"//{self._address}")
        return socket.create_connection((parts.hostname or "", parts.port or 0), _CONTROL_TIMEOUT_SECONDS)
