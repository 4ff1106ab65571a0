"""Tor: a pool whose sessions are circuits.

Connections with different credentials never share a circuit of Tor's tunnel (`HTTPTunnelPort`), so
each random token is a circuit.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from http.client import HTTPConnection, HTTPException
from math import inf
from time import monotonic
from urllib.parse import urlsplit

import stem.connection
import stem.socket

from moviecrawler.proxies.pools import SESSION, ProxyPoolError, SessionPool
from moviecrawler.texts import printable

logger = logging.getLogger(__name__)
# At lower levels stem logs everything that it sends, also the password.
logging.getLogger("stem").setLevel(logging.WARNING)

_START_SECONDS = 60.0  # in which Tor has to open its port and to build its first circuits
_RETRY_PAUSE_SECONDS = 0.5
_TIMEOUT_SECONDS = 10.0  # of both ports
_NEW_IDENTITY_INTERVAL_SECONDS = 10.0  # Tor delays requests that come sooner


class TorPool(SessionPool):
    """Circuits of a Tor client."""

    def __init__(self, name: str, tunnel: str, control: str, circuits: int) -> None:
        self._tunnel = tunnel.rstrip("/")
        self._control = control
        self._last_identity = -inf
        labels = [f"{name}:c{number}" for number in range(1, circuits + 1)]
        super().__init__(name, "tor", labels, self._tunnel, "tor", SESSION)

    def accepts(self, url: str) -> bool:
        """Return whether a URL is https.

        The tunnel takes only CONNECT, and a relay could change plain HTTP.
        """
        return url.startswith("https:")

    async def on_exhausted(self) -> None:
        """Request a new identity if TOR_CONTROL is set, which affects all users of this Tor.

        Every circuit gets a new token too, as connections that are kept alive would use the old
        circuits.
        """
        now = monotonic()
        if not self._control or now - self._last_identity < _NEW_IDENTITY_INTERVAL_SECONDS:
            return
        self._last_identity = now
        try:
            await asyncio.to_thread(_request_identity, self._control)
        except ProxyPoolError as error:
            logger.warning("%s", error)
            return
        for proxy in self.members.values():
            self.renew(proxy)
        logger.info("Tor was asked for a new identity, and all circuits are replaced")

    async def open(self, home: str) -> None:
        """Connect to the site's host through Tor without sending a request.

        Raises ProxyPoolError when that fails for 60 s.
        """
        started = monotonic()
        while reason := await asyncio.to_thread(self._connect, home):
            if monotonic() - started >= _START_SECONDS:
                raise ProxyPoolError(
                    f"TOR_TUNNEL {self._tunnel} did not reach {home} ({reason});"
                    " it has to be Tor's HTTPTunnelPort, not its SOCKS"
                    " port, and Tor's log has to say `Bootstrapped 100%`"
                )
            await asyncio.sleep(_RETRY_PAUSE_SECONDS)
        logger.info("Tor reaches %s", home)

    def _connect(self, home: str) -> str:
        """Return why a site can't be reached; empty when it can."""
        tunnel = urlsplit(self._tunnel)
        site = urlsplit(home)
        proxy = next(iter(self.members.values()))
        connection = HTTPConnection(tunnel.hostname or "", tunnel.port, timeout=_TIMEOUT_SECONDS)
        headers = {"Proxy-Authorization": (proxy.authorization or b"").decode()}
        connection.set_tunnel(site.hostname or "", site.port or 443, headers)
        try:
            connection.connect()
        except (OSError, HTTPException) as error:
            self.renew(proxy)  # with a new token Tor tries another circuit
            return printable(str(error) or type(error).__name__)[:200]
        finally:
            connection.close()
        return ""


def _request_identity(address: str) -> None:
    """Ask the control port for NEWNYM. Raises ProxyPoolError when Tor does not do it."""
    password = os.environ.get("TOR_CONTROL_PASSWORD") or None
    try:
        with _ControlSocket(address) as control:
            # stem escapes quotation marks, but not backslashes.
            stem.connection.authenticate(
                control, password=password and password.replace("\\", "\\\\")
            )
            control.send("SIGNAL NEWNYM")
            control.recv()
    except (
        stem.ControllerError,
        stem.connection.AuthenticationFailure,
        OSError,
        ValueError,
        LookupError,
    ) as error:
        reason = str(error).strip().partition("\n")[0]
        raise ProxyPoolError(
            f"TOR_CONTROL {address} can't be asked: {reason}; it has to be Tor's ControlPort,"
            " and TOR_CONTROL_PASSWORD in the"
            " environment the password that HashedControlPassword in Tor's torrc was made from"
        ) from None


class _ControlSocket(stem.socket.ControlSocket):  # type: ignore[misc]  # stem has no types
    """stem's socket with a time-out, without which it waits for ever when Tor does not answer."""

    def __init__(self, address: str) -> None:
        super().__init__()
        self._address = urlsplit(f"//{address}")
        self.connect()

    def _make_socket(self) -> socket.socket:
        return socket.create_connection(
            (self._address.hostname, self._address.port or 0), _TIMEOUT_SECONDS
        )
