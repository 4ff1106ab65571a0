"""A pool of Tor circuits."""

from __future__ import annotations

import logging
import os
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from moviecrawler.proxies.pools import Proxy, ProxyPool, ProxyPoolError, Route, basic_authorization
from moviecrawler.proxies.tor import TorCircuits, TorOptions
from moviecrawler.proxies.tor_tunnel import TorError

if TYPE_CHECKING:
    from typing import Self

    from scrapy.settings import BaseSettings

logger = logging.getLogger(__name__)


class TorPool(ProxyPool):
    """Circuits of a Tor beside this node. A refused one is replaced at once, which is why its health is the process' own."""

    def __init__(self, name: str, tor: TorCircuits) -> None:
        # No other process has this circuit, nor this one after a restart.
        process = os.urandom(4).hex()
        labels = (f"{name}:c{number}" for number in range(1, len(tor) + 1))
        super().__init__(name, "tor", tuple(Proxy(label, name, "tor", f"{label}@{process}") for label in labels))
        self._tor = tor
        self._numbers = {exit_: number for number, exit_ in enumerate(self.exits)}

    @classmethod
    def from_settings(cls, name: str, settings: BaseSettings) -> Self | None:
        """Read what `TorOptions` reads, without connecting; None when TOR_TUNNEL is not set. Raises ConfigurationError."""
        options = TorOptions.from_settings(settings)
        return None if options is None else cls(name, TorCircuits(options))

    def check(self, setting: str, home: str) -> None:
        """Raise ConfigurationError for a site that is not asked by https, as Tor's tunnel takes nothing else."""
        self._tor.require_https(setting, home)

    async def open(self, home: str) -> None:
        """Reach the site's own host through Tor. Raises ProxyPoolError."""
        parts = urlsplit(home)
        try:
            await self._tor.check(parts.hostname or "", parts.port or 443)
        except TorError as error:
            raise ProxyPoolError(str(error)) from None

    def takes(self, url: str) -> bool:
        """Return whether a URL is https."""
        return self._tor.takes(url)

    def route(self, exit_: Proxy) -> Route:
        """Return the tunnel, and the name that keeps a circuit apart from others."""
        parts = urlsplit(self._tor.proxy(self._numbers[exit_]))
        return Route(
            f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}",
            basic_authorization(parts.username or "", parts.password or ""),
        )

    def renew(self, exit_: Proxy) -> bool:
        """Take a fresh circuit."""
        self._tor.renew(self._numbers[exit_])
        return True

    async def exhausted(self) -> None:
        """Ask Tor for a new identity, where it may be asked."""
        try:
            await self._tor.new_identity()
        except TorError as error:
            logger.warning("%s", error)
