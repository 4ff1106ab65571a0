"""Pools of proxies. The direct connection counts as a pool of one proxy."""

from __future__ import annotations

import base64
import secrets
from collections import OrderedDict
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Literal

import msgspec
from rotating_proxies.expire import Proxies, exp_backoff
from w3lib.http import basic_auth_header

from moviecrawler.errors import MovieCrawlerError

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

Kind = Literal["direct", "datacenter", "residential", "tor"]
SESSION = "{session}"  # a session's random token in the user or the password of a gateway
QUARANTINE_SECONDS = 30 * 60.0
MAX_QUARANTINE_SECONDS = BAN_MEMORY_SECONDS = 7 * 24 * 3600.0
"""The longest quarantine; and the time after its end from which on it does not make the next one longer."""
_MIN_SECRET_CHARACTERS = 4  # shorter credentials are not removed from texts: they would be found by chance


class ProxyPoolError(MovieCrawlerError):
    """A pool can't be used: which, and what to do."""


class Ban(msgspec.Struct, frozen=True):
    """What all nodes know of a proxy that a site has refused."""

    until: float
    """The end of its quarantine, in seconds since 1970."""
    bans: int
    """How often in a row it was refused."""
    reason: str


@dataclass(slots=True, eq=False)
class Proxy:
    """An address that requests are sent from. Its name and key may be logged and stored; its credentials may not."""

    name: str
    """The pool's name and the number in it, such as `datacenter:3`."""
    url: str | None = None
    """Scheme, host and port, without credentials; None for a direct connection."""
    authorization: bytes | None = field(default=None, repr=False)
    """The value of Proxy-Authorization."""
    key: str | None = None
    """Names the proxy in Redis, the same on all nodes; None for a session, which only this process has."""
    is_busy: bool = False
    """A proxy carries one request at a time, so that one that is refused costs no more than that."""
    possible_failures: int = 0
    """Attempts in a row that failed, perhaps by its fault."""
    renewals: int = 0
    """How often in a row it got another session because it was refused."""


class ProxyPool(Proxies):  # type: ignore[misc]  # scrapy-rotating-proxies has no types
    """The proxies of one pool, as one site takes them.

    States and backoff are scrapy-rotating-proxies': dead is in quarantine here. Proxies take turns, where the package chooses at
    random; and they go by name, as the package takes proxies for one that differ in credentials only, and logs their URLs.
    """

    def __init__(self, name: str, kind: Kind, proxies: Sequence[Proxy], run: int = 1) -> None:
        backoff = partial(exp_backoff, base=QUARANTINE_SECONDS, cap=MAX_QUARANTINE_SECONDS)
        super().__init__([proxy.name for proxy in proxies], backoff)
        self.name = name
        self.kind = kind
        self.members = {proxy.name: proxy for proxy in proxies}
        self._run = run  # requests through a proxy before the next one has its turn
        self._turns = OrderedDict.fromkeys(self.members, run)  # requests left in the turn of each

    async def open(self, home: str) -> None:
        """Check that a site can be reached. Raises ProxyPoolError."""

    def accepts(self, url: str) -> bool:  # noqa: ARG002 - Tor accepts https only
        """Return whether a URL can be asked through this pool."""
        return True

    def renew(self, proxy: Proxy) -> bool:  # noqa: ARG002 - sessions can
        """Give a refused proxy another address; return whether it got one."""
        return False

    async def on_exhausted(self) -> None:
        """React to a site having refused every proxy of the pool."""

    def is_usable(self, tried: Collection[str] = ()) -> bool:
        """Return whether a proxy that is not in `tried` is not in quarantine."""
        return any(name not in self.dead and name not in tried for name in self.members)

    def take(self, tried: Collection[str] = ()) -> Proxy | None:
        """Return the proxy whose turn it is; None while all that are not in `tried` are busy."""
        for name in self._turns:
            proxy = self.members[name]
            if not proxy.is_busy and name not in self.dead and name not in tried:
                break
        else:
            return None
        self._turns[name] -= 1
        if not self._turns[name]:
            self._turns[name] = self._run
            self._turns.move_to_end(name)
        proxy.is_busy = True
        return proxy

    def ban(self, name: str, now: float, least: float) -> float | None:
        """Begin a quarantine of at least `least` seconds; return its end, None when the proxy is in one already."""
        if name in self.dead:
            return None
        state = self.proxies[name]
        if state.next_check is not None and now - state.next_check > BAN_MEMORY_SECONDS:
            state.failed_attempts = 0
        self.mark_dead(name, now)
        state.next_check = max(state.next_check, now + least)
        return float(state.next_check)

    def answered(self, name: str) -> bool:
        """Take an answer as a proof that a proxy is good; return whether that ends a count of bans in a row."""
        if name in self.dead:
            return False  # the request was sent before the ban
        was_banned = bool(self.proxies[name].failed_attempts)
        self.mark_good(name)
        return was_banned

    def learn(self, name: str, ban: Ban | None, now: float) -> None:
        """Take over what all nodes know of a proxy."""
        state = self.proxies[name]
        state.failed_attempts, state.next_check = (ban.bans, ban.until) if ban else (0, None)
        if ban and ban.until > now:
            self.dead.add(name)
            self.good.discard(name)
            self.unchecked.discard(name)
        elif name in self.dead:
            self.dead.remove(name)
            self.unchecked.add(name)


class SessionPool(ProxyPool):
    """Sessions of one gateway, such as a vendor's or Tor's: a random token in the credentials is an address."""

    def __init__(self, name: str, kind: Kind, labels: Sequence[str], url: str, user: str, password: str) -> None:
        super().__init__(name, kind, [Proxy(label, url) for label in labels])
        self._user, self._password = user, password
        for proxy in self.members.values():
            self.renew(proxy)

    def renew(self, proxy: Proxy) -> bool:
        """Replace a session by a new one, which most often has another address."""
        token = secrets.token_hex(12)  # vendors want letters and digits only
        user, password = (text.replace(SESSION, token) for text in (self._user, self._password))
        proxy.authorization = basic_auth_header(user, password, "utf-8")
        return True


def credentials_in(authorization: bytes | None) -> tuple[bytes, ...]:
    """Return the credentials as they are and as they are sent."""
    if authorization is None:
        return ()
    encoded = authorization.removeprefix(b"Basic ")
    user, _, password = base64.b64decode(encoded).partition(b":")
    return tuple(secret for secret in (encoded, password, user) if len(secret) >= _MIN_SECRET_CHARACTERS)
