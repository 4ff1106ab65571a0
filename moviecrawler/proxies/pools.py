"""Proxies, the pools that hold them, and the route to each. This machine's own address is a proxy, too: the one without any."""

from __future__ import annotations

import base64
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Literal

from moviecrawler.errors import MovieCrawlerError
from moviecrawler.meta import DIRECT

Kind = Literal["direct", "datacenter", "residential", "tor"]
"""`direct` is this machine's own address."""


_SECRET = 4
"""Characters from which on a part of the credentials is taken out of a text: a shorter one would be found everywhere."""


class ProxyPoolError(MovieCrawlerError):
    """A pool can't be used: which, and what to do."""


@dataclass(frozen=True, slots=True)
class Proxy:
    """One place that requests come from. Nothing in it is secret: it may be logged, counted and put into Redis."""

    name: str
    """For people: the pool's name and the place in it, such as `datacenter:3`."""
    pool: str
    kind: Kind
    id: str
    """What its health is kept under. It is the same on every node, whatever the order of the pool there, for proxies that
    all nodes share; what only one node or process has, such as a circuit, has that in its id."""


@dataclass(frozen=True, slots=True)
class Route:
    """How a request gets to its proxy."""

    url: str | None
    """Scheme, host and port, without credentials; None for no proxy of ours, so that the environment's still applies."""
    authorization: bytes | None = field(default=None, repr=False)
    """The value of Proxy-Authorization."""

    @property
    def secrets(self) -> tuple[bytes, ...]:
        """What must not be seen anywhere: the credentials, in both forms."""
        if self.authorization is None:
            return ()
        encoded = self.authorization.removeprefix(b"Basic ")
        user, _, password = base64.b64decode(encoded).partition(b":")
        return tuple(secret for secret in (encoded, password, user) if len(secret) >= _SECRET)


class ProxyPool(ABC):
    """Proxies of one kind."""

    def __init__(self, name: str, kind: Kind, proxies: tuple[Proxy, ...]) -> None:
        self.name = name
        self.kind = kind
        self.proxies = proxies

    def check(self, setting: str, home: str) -> None:  # noqa: B027 - most pools can ask any site
        """Raise ConfigurationError when a site's scheme and host, which a setting names, can't be asked through this pool."""

    async def open(self, home: str) -> None:  # noqa: B027 - the first request finds out whether a proxy is there
        """Make sure that a site can be asked. Raises ProxyPoolError."""

    @abstractmethod
    def route(self, proxy: Proxy) -> Route:
        """Return the route to a proxy as it is now. Opens nothing."""

    def takes(self, url: str) -> bool:  # noqa: ARG002 - Tor takes fewer
        """Return whether a URL can be asked through this pool."""
        return True

    def renew(self, proxy: Proxy) -> bool:  # noqa: ARG002 - Tor can
        """Give a proxy that a site has refused another address; return whether it has one."""
        return False

    async def exhausted(self) -> None:  # noqa: B027 - most pools can do nothing about it
        """Act on a site having refused every proxy of the pool."""


class DirectPool(ProxyPool):
    """This machine's own address, which is another one on every node."""

    def __init__(self, node: str) -> None:
        super().__init__(DIRECT, "direct", (Proxy(DIRECT, DIRECT, "direct", f"{DIRECT}@{node}"),))

    def route(self, proxy: Proxy) -> Route:  # noqa: ARG002 - there is one
        """Return that there is no proxy."""
        return Route(None)


class ListedPool(ProxyPool):
    """Proxies that are each one address, or one way into a provider's gateway."""

    def __init__(self, name: str, kind: Kind, routes: dict[Proxy, Route]) -> None:
        super().__init__(name, kind, tuple(routes))
        self._routes = routes

    def route(self, proxy: Proxy) -> Route:
        """Return a proxy's URL and credentials."""
        return self._routes[proxy]


def basic_authorization(user: str, password: str) -> bytes:
    """Return the value of Proxy-Authorization for a name and a password.

    >>> basic_authorization("me", "secret")
    b'Basic bWU6c2VjcmV0'
    """
    return b"Basic " + base64.b64encode(f"{user}:{password}".encode())
