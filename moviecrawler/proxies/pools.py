"""Proxies, their pools, and the route to each. The direct connection counts as a proxy, too."""

from __future__ import annotations

import base64
import os
import secrets
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from moviecrawler.errors import MovieCrawlerError
from moviecrawler.meta import DIRECT

if TYPE_CHECKING:
    from collections.abc import Iterable

Kind = Literal["direct", "datacenter", "residential", "tor"]
"""`direct` is this machine's own address."""
SESSION = "{session}"
"""Stands for a session's token in the user's name or the password of a gateway."""
_TOKEN_BYTES = 12
_MIN_SECRET_CHARACTERS = 4
"""Shortest part of credentials that is removed from texts; shorter ones would be found by chance."""


class ProxyPoolError(MovieCrawlerError):
    """A pool can't be used: which, and what to do."""


@dataclass(frozen=True, slots=True)
class Proxy:
    """An address that requests are sent from. Nothing in it is secret: it may be logged, counted and stored in Redis."""

    name: str
    """For people: the pool's name and the place in it, such as `datacenter:3`."""
    pool: str
    kind: Kind
    id: str
    """Key of its health. A proxy of a list has the same id on every node, whatever its place in the list; the id of a proxy of one
    node or process, such as a session, names that behind an @."""


@dataclass(frozen=True, slots=True)
class Route:
    """How a request reaches its proxy."""

    url: str | None
    """Scheme, host and port, without credentials; None for a direct connection, for which http_proxy of the environment still applies."""
    authorization: bytes | None = field(default=None, repr=False)
    """The value of Proxy-Authorization."""

    @property
    def secrets(self) -> tuple[bytes, ...]:
        """The credentials, in both forms: they must be shown nowhere."""
        if self.authorization is None:
            return ()
        encoded = self.authorization.removeprefix(b"Basic ")
        user, _, password = base64.b64decode(encoded).partition(b":")
        return tuple(secret for secret in (encoded, password, user) if len(secret) >= _MIN_SECRET_CHARACTERS)


class ProxyPool:
    """Proxies of one kind."""

    def __init__(self, name: str, kind: Kind, proxies: tuple[Proxy, ...]) -> None:
        self.name = name
        self.kind = kind
        self.proxies = proxies

    def check(self, setting: str, home: str) -> None:
        """Raise ConfigurationError when a site's home, which a setting names, can't be asked through this pool."""

    async def open(self, home: str) -> None:
        """Check that a site can be reached. Raises ProxyPoolError."""

    def route(self, proxy: Proxy) -> Route:
        """Return the route to a proxy as it is now. Opens nothing."""
        raise NotImplementedError

    def accepts(self, url: str) -> bool:  # noqa: ARG002 - Tor accepts fewer
        """Return whether a URL can be asked through this pool."""
        return True

    def renew(self, proxy: Proxy) -> bool:  # noqa: ARG002 - sessions can
        """Give a refused proxy another address; return whether it got one."""
        return False

    async def on_exhausted(self) -> None:
        """React to a site having refused every proxy of the pool."""


class DirectPool(ProxyPool):
    """The direct connection, whose address is a different one on each node."""

    def __init__(self, node: str) -> None:
        super().__init__(DIRECT, "direct", (Proxy(DIRECT, DIRECT, "direct", f"{DIRECT}@{node}"),))

    def route(self, proxy: Proxy) -> Route:  # noqa: ARG002 - there is one
        """Return that there is no proxy."""
        return Route(None)


class ListedPool(ProxyPool):
    """Proxies of a list, each with an address of its own."""

    def __init__(self, name: str, kind: Kind, routes: dict[Proxy, Route]) -> None:
        super().__init__(name, kind, tuple(routes))
        self._routes = routes

    def route(self, proxy: Proxy) -> Route:
        """Return a proxy's URL and credentials."""
        return self._routes[proxy]


class SessionPool(ProxyPool):
    """Sessions of one gateway, such as a vendor's or Tor: a random token in the credentials is an address, another token another one.

    A refused session is replaced at once, so that other processes need not know its health. A vendor that takes the token elsewhere
    is a subclass with its own `route`.
    """

    def __init__(self, name: str, kind: Kind, labels: Iterable[str], url: str, user: str, password: str) -> None:
        """Create it. `labels` are the sessions' names; `SESSION` in `user` or `password` stands for the token."""
        process = os.urandom(4).hex()  # sessions are of this process, and new after a restart
        super().__init__(name, kind, tuple(Proxy(label, name, kind, f"{label}@{process}") for label in labels))
        self._url, self._user, self._password = url, user, password
        self._tokens = {proxy: new_token() for proxy in self.proxies}

    def route(self, proxy: Proxy) -> Route:
        """Return the gateway, with the session's token in the credentials."""
        user, password = (text.replace(SESSION, self._tokens[proxy]) for text in (self._user, self._password))
        return Route(self._url, basic_authorization(user, password))

    def renew(self, proxy: Proxy) -> bool:
        """Replace a session by a new one, which most often has another address."""
        self._tokens[proxy] = new_token()
        return True


def new_token() -> str:
    """Return a token that nobody can guess, of letters and digits only, as vendors want it."""
    return secrets.token_hex(_TOKEN_BYTES)


def basic_authorization(user: str, password: str) -> bytes:
    """Return the value of Proxy-Authorization for a name and a password.

    >>> basic_authorization("me", "secret")
    b'Basic bWU6c2VjcmV0'
    """
    return b"Basic " + base64.b64encode(f"{user}:{password}".encode())
