"""Tor: a pool whose sessions are circuits, and the check that Tor works.

Tor's tunnel (`HTTPTunnelPort`) never lets connections with different credentials share a circuit. So a random token is a
circuit, and another token is another circuit.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from math import inf
from time import monotonic
from urllib.parse import urlsplit

import stem.connection
import stem.socket

from moviecrawler.errors import ConfigurationError
from moviecrawler.proxies.pools import SESSION, ProxyPoolError, SessionPool, basic_authorization, new_token
from moviecrawler.texts import printable

logger = logging.getLogger(__name__)
# At lower levels stem logs all that it sends, including the password.
logging.getLogger("stem").setLevel(logging.WARNING)

_USER = "tor"
_RETRY_PAUSE_SECONDS = 0.5
_START_SECONDS = 60.0
"""Time that Tor gets to build its first circuits."""
_LISTENING_SECONDS = 5.0
"""Time that it gets to open its port."""
_CONTROL_TIMEOUT_SECONDS = 10.0
_NEW_IDENTITY_INTERVAL_SECONDS = 10.0
"""Tor delays a new identity that is requested sooner."""
_MAX_ANSWER_BYTES = 200


class TorPool(SessionPool):
    """Circuits of a Tor client."""

    def __init__(self, name: str, tunnel: str, control: str, circuits: int) -> None:
        """Create it without connecting. `tunnel` is a URL, `control` a host and port, or empty."""
        url = tunnel.rstrip("/")
        super().__init__(name, "tor", [f"{name}:c{number}" for number in range(1, circuits + 1)], url, _USER, SESSION)
        self._tunnel = urlsplit(url)
        self._control = control
        self._last_identity = -inf

    def check(self, setting: str, url: str) -> None:
        """Raise ConfigurationError for a site that is not asked by https."""
        if not self.accepts(url):
            raise ConfigurationError(
                f"{setting} is {url!r}, and its site is to be asked through Tor, which takes https addresses only; set it to "
                "one, or take the pool of kind tor out of PROXY_ORDER"
            )

    def accepts(self, url: str) -> bool:
        """Return whether a URL is an https one: the tunnel takes CONNECT only, and a relay could change the rest."""
        return url.startswith("https:")

    async def on_exhausted(self) -> None:
        """Request a new identity, if Tor may be asked for one; it affects all users of this Tor.

        Kept-alive connections would go on over the old circuits, so every circuit gets a new token, too.
        """
        now = monotonic()
        if not self._control or now - self._last_identity < _NEW_IDENTITY_INTERVAL_SECONDS:
            return
        self._last_identity = now
        try:
            await asyncio.to_thread(_ask_control, self._control, "SIGNAL NEWNYM")
        except ProxyPoolError as error:
            logger.warning("%s", error)
            return
        for proxy in self.members.values():
            self.renew(proxy)
        logger.info("Tor has been asked for a new identity, and all circuits are left")

    async def open(self, home: str) -> None:
        """Connect to the site's host through Tor, without sending anything. Raises ProxyPoolError when that fails for too long."""
        site = urlsplit(home)
        target = f"{site.hostname}:{site.port or 443}"
        started = monotonic()
        while not (answer := await self._connect(target)).startswith("HTTP/1.0 200 "):
            if monotonic() - started >= (_START_SECONDS if answer.startswith("HTTP/") else _LISTENING_SECONDS):
                raise ProxyPoolError(
                    f"TOR_TUNNEL {self._tunnel.netloc} did not reach {target} ({answer or 'it hung up'}); it has to be Tor's "
                    "HTTPTunnelPort, not its SOCKS port, and Tor's log has to say `Bootstrapped 100%`"
                )
            await asyncio.sleep(_RETRY_PAUSE_SECONDS)
        logger.info("Tor reaches %s", target)

    async def _connect(self, target: str) -> str:
        """Return the first line of the tunnel's answer to CONNECT, or why there is none."""
        authorization = basic_authorization(_USER, new_token()).decode()
        head = f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\nProxy-Authorization: {authorization}\r\n\r\n"
        try:
            # Not in a thread: at Ctrl-C, the process would wait for it.
            async with asyncio.timeout(_START_SECONDS):
                reader, writer = await asyncio.open_connection(self._tunnel.hostname, self._tunnel.port)
                try:
                    writer.write(head.encode())
                    answer = await reader.read(_MAX_ANSWER_BYTES)
                finally:
                    writer.transport.abort()
        except TimeoutError:
            return "no answer in time"
        except OSError as error:
            return str(error)
        return printable(answer.decode("latin-1").partition("\r\n")[0])


def _ask_control(address: str, command: str) -> None:
    """Send a command to the control port. Raises ProxyPoolError when Tor does not do it."""
    where = f"TOR_CONTROL {address}"
    password = os.environ.get("TOR_CONTROL_PASSWORD") or None
    try:
        with _ControlSocket(address) as control:
            # stem escapes quotation marks, but not the mark that escapes them.
            stem.connection.authenticate(control, password=password and password.replace("\\", "\\\\"))
            control.send(command)
            control.recv()
    except (stem.connection.MissingPassword, stem.connection.IncorrectPassword):
        raise ProxyPoolError(
            f"{where} asks for another password; set TOR_CONTROL_PASSWORD in the environment to the one that "
            "HashedControlPassword in Tor's torrc was made from"
        ) from None
    except (stem.ControllerError, stem.connection.AuthenticationFailure, OSError, ValueError, LookupError) as error:
        reason = str(error).strip().partition("\n")[0]
        raise ProxyPoolError(
            f"{where} can't be asked: {reason}; start Tor with `ControlPort` in its torrc, or correct TOR_CONTROL"
        ) from None


class _ControlSocket(stem.socket.ControlSocket):  # type: ignore[misc]  # stem has no types
    """stem's, with a time-out. stem's own would wait for ever for a Tor that does not answer."""

    def __init__(self, address: str) -> None:
        """Connect to a host and port."""
        super().__init__()
        parts = urlsplit(f"//{address}")
        self._address = (parts.hostname or "", parts.port or 0)
        self.connect()

    def _make_socket(self) -> socket.socket:
        return socket.create_connection(self._address, _CONTROL_TIMEOUT_SECONDS)
