"""Tor: circuits of their own for the requests of a pool, each told apart by its credentials.

Tor's tunnel (`HTTPTunnelPort`) never lets connections with different credentials share a circuit. So a random token is a circuit,
and another token another one.
"""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
import time
from contextlib import AsyncExitStack
from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING

from moviecrawler.errors import ConfigurationError
from moviecrawler.proxies.pools import basic_authorization
from moviecrawler.proxies.tor_control import NEWNYM_EVERY, ControlAddress, TorControl
from moviecrawler.proxies.tor_tunnel import TorError, Tunnel, connected

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from typing import Self

    from scrapy.settings import BaseSettings

__all__ = ["TorCircuits", "TorError", "TorOptions"]

logger = logging.getLogger(__name__)

_USER = "tor"
"""By this name Tor's tunnel knows that the password is there to keep circuits apart."""
_TOKEN = 12  # bytes
_MOST_CIRCUITS = 64
"""A circuit is work for three volunteers' machines."""
_BETWEEN_TRIES = 0.5  # seconds
_CONTROL_TIMEOUT = 10.0
"""Seconds for each answer of the control port, which asks nobody else."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TorOptions:
    """How Tor is reached."""

    tunnel: Tunnel
    """TOR_TUNNEL."""
    control: ControlAddress | None = None
    """TOR_CONTROL."""
    circuits: int = 8
    """TOR_CIRCUITS: how many are in use at a time."""
    timeout: float = 60.0
    """TOR_TIMEOUT: seconds that Tor has at the start until a site has been reached through it."""

    @classmethod
    def from_settings(cls, settings: BaseSettings) -> Self | None:
        """Read TOR_TUNNEL and the rest; None when it is not set. Raises ConfigurationError."""
        tunnel, control = settings.get("TOR_TUNNEL"), settings.get("TOR_CONTROL")
        if not tunnel:
            if control:
                raise ConfigurationError("TOR_CONTROL is set, but TOR_TUNNEL is not; set it to Tor's HTTPTunnelPort")
            return None
        circuits = _number(settings, "TOR_CIRCUITS", 1, _MOST_CIRCUITS)
        if circuits != int(circuits):
            raise ConfigurationError(f"TOR_CIRCUITS is {circuits:g}; set it to a whole number")
        return cls(
            tunnel=Tunnel.parse(tunnel),
            control=ControlAddress.parse(control) if control else None,
            circuits=int(circuits),
            timeout=_number(settings, "TOR_TIMEOUT", 1, 600),
        )


def _number(settings: BaseSettings, name: str, least: float, most: float) -> float:
    try:
        value = float(settings[name])
    except (TypeError, ValueError):
        value = -1.0
    if not least <= value <= most:
        raise ConfigurationError(f"{name} is {settings[name]!r}; set it to a number from {least:g} to {most:g}")
    return value


class TorCircuits:
    """A number of circuits, from 0 on. Nothing is opened before `check`, and Tor builds a circuit when it is first used."""

    def __init__(self, options: TorOptions, clock: Callable[[], float] = time.monotonic) -> None:
        """Take the password of the control port from TOR_CONTROL_PASSWORD in the environment, where no command line shows it."""
        self._options = options
        self._clock = clock
        self._tokens = [_token() for _ in range(options.circuits)]
        self._control = None
        if options.control is not None:
            password = os.environ.get("TOR_CONTROL_PASSWORD")
            self._control = TorControl(options.control, password, _CONTROL_TIMEOUT)
        self._last_identity: float | None = None

    def __len__(self) -> int:
        return len(self._tokens)

    def proxy(self, number: int) -> str:
        """Return the URL of a circuit as it is now, with its credentials."""
        return f"http://{_USER}:{self._tokens[number]}@{self._options.tunnel}"

    def renew(self, number: int) -> None:
        """Leave a circuit for a fresh one, which may end at another relay, but need not."""
        self._tokens[number] = _token()

    def takes(self, url: str) -> bool:
        """Return whether a URL can be asked through Tor's tunnel: https only.

        Scrapy asks a proxy for an http URL with GET, where the tunnel takes CONNECT only; and the last relay could read and
        change what comes unencrypted.
        """
        return url.startswith("https:")

    def require_https(self, setting: str, home: str) -> None:
        """Raise ConfigurationError when a site that is to be asked through Tor has an address that can't be."""
        if not self.takes(home):
            raise ConfigurationError(
                f"{setting} is {home!r}, and its site is to be asked through Tor, which takes https addresses only; set it to "
                "one, or take the pool of kind tor out of PROXY_ORDER"
            )

    # --- Whether it works ---------------------------------------------------------------------------------------------

    async def check(self, host: str, port: int) -> None:
        """Reach a host through Tor, and send it nothing. Raises TorError when it can't be reached within the time.

        With TOR_CONTROL, make sure as well that two circuits of ours are really two.
        """
        started = self._clock()
        if self._control is not None:
            await self._retried(started, self._bootstrapped)
        await self._retried(
            started, lambda: self._reached(f"[{host}]:{port}" if ":" in host else f"{host}:{port}", started)
        )

    async def _retried(self, started: float, attempt: Callable[[], Awaitable[None]]) -> None:
        while True:
            try:
                await attempt()
            except TorError as error:
                if self._clock() - started + _BETWEEN_TRIES >= min(error.patience, self._options.timeout):
                    raise
            else:
                return
            await asyncio.sleep(_BETWEEN_TRIES)

    async def _bootstrapped(self) -> None:
        assert self._control is not None  # noqa: S101 - asked for only with one
        state = await self._control.bootstrapped()
        if state is not None:
            raise TorError(
                f"Tor at TOR_CONTROL {self._control.address} has no circuits yet: it is at {state}; see its log, or raise "
                "TOR_TIMEOUT",
                patience=inf,
            )

    async def _reached(self, target: str, started: float) -> None:
        used = [_authorization(_token()) for _ in range(1 if self._control is None else 2)]
        async with AsyncExitStack() as stack:
            for authorization in used:
                left = max(self._options.timeout - (self._clock() - started), _BETWEEN_TRIES)
                await stack.enter_async_context(connected(self._options.tunnel, target, authorization, left))
            if self._control is None:
                return
            exits = {circuit.authorization: circuit.exit for circuit in await self._control.circuits()}
        if not exits.keys() >= set(used):
            raise TorError(
                f"TOR_CONTROL {self._control.address} knows no circuits of their own for two connections that were just made "
                f"through TOR_TUNNEL {self._options.tunnel}; it is another Tor's, or its HTTPTunnelPort has NoIsolateSOCKSAuth: "
                "correct it"
            )
        relays = " and ".join(exits[authorization] for authorization in used)
        logger.info("Tor reaches %s over circuits of their own, the first two from relays %s", target, relays)

    # --- With a control port ------------------------------------------------------------------------------------------

    async def new_identity(self) -> bool:
        """Make Tor use none of its circuits for new connections, and leave all of ours; return whether it has.

        Kept-alive connections would go on over the old ones, so every circuit gets a fresh token too. False without
        TOR_CONTROL, and when the last time was less than NEWNYM_EVERY seconds ago. Raises TorError.
        """
        now = self._clock()
        if self._control is None or (self._last_identity is not None and now - self._last_identity < NEWNYM_EVERY):
            return False
        self._last_identity = now
        built = await self._control.new_identity()
        for number in range(len(self)):
            self.renew(number)
        logger.info("Tor has a new identity, and %d fresh circuits", built)
        return True


def _token() -> str:
    return secrets.token_hex(_TOKEN)


def _authorization(token: str) -> bytes:
    return basic_authorization(_USER, token)
