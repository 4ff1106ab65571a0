"""Tor: a pool whose sessions are circuits.

Connections with different credentials never share a circuit of Tor's tunnel (`HTTPTunnelPort`), so
each random token is a circuit.
"""

from __future__ import annotations

import asyncio
import logging
from http.client import HTTPConnection, HTTPException
from time import monotonic
from urllib.parse import urlsplit

from moviecrawler.basics.texts import printable
from moviecrawler.proxies.pools import SESSION, Address, ProxyPoolError, SessionPool

logger = logging.getLogger(__name__)

_START_SECONDS = 60.0  # in which Tor has to open its port and to build its first circuits
_RETRY_PAUSE_SECONDS = 0.5
_TIMEOUT_SECONDS = 10.0


class TorPool(SessionPool):
    """Circuits of a Tor client."""

    def __init__(self, name: str, tunnel: str, circuits: int) -> None:
        self._tunnel = tunnel.rstrip("/")
        labels = [f"{name}:c{number}" for number in range(1, circuits + 1)]
        super().__init__(name, "tor", labels, Address(self._tunnel, "tor", SESSION))

    def accepts(self, url: str) -> bool:
        """Return whether a URL is https.

        The tunnel takes only CONNECT, and a relay could change plain HTTP.
        """
        return url.startswith("https:")

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
