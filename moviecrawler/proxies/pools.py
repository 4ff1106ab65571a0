"""Pools of proxies. The direct connection is a pool of one proxy."""

from __future__ import annotations

import secrets
from collections import OrderedDict
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Annotated, NamedTuple

import msgspec
from rotating_proxies.expire import Proxies, exp_backoff
from w3lib.http import basic_auth_header

from moviecrawler.basics.errors import MovieCrawlerError

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

SESSION = "{session}"  # represents a random token in the user or the password of a gateway
QUARANTINE_SECONDS = 30 * 60.0
MAX_QUARANTINE_SECONDS = 7 * 24 * 3600.0
"""The longest quarantine."""
BAN_MEMORY_SECONDS = 7 * 24 * 3600.0
"""Seconds without a ban after which the backoff resets."""
_MAX_TIME = 1e11  # in the year 5138


class ProxyPoolError(MovieCrawlerError):
    """A pool can't be used; the message says why, and what to do."""


class Ban(msgspec.Struct, frozen=True):
    """A quarantine of a proxy, as all nodes share it."""

    until: Annotated[float, msgspec.Meta(ge=0, le=_MAX_TIME)]
    """The end of the quarantine, in seconds since 1970."""
    bans: Annotated[int, msgspec.Meta(ge=0)]
    """Bans in a row."""
    reason: str


class Address(NamedTuple):
    """A proxy, as its URL names it."""

    url: str
    """Without credentials."""
    user: str
    password: str

    @property
    def authorization(self) -> bytes | None:
        """The value of Proxy-Authorization; None without credentials."""
        if not self.user and not self.password:
            return None
        return basic_auth_header(self.user, self.password, "utf-8")


@dataclass(slots=True, eq=False)
class Proxy:
    """An address that requests are sent from.

    Its name and key may be logged and stored; its credentials may not.
    """

    name: str
    """The pool's name and the number in it, such as `datacenter:3`."""
    url: str | None = None
    """Scheme, host and port, without credentials; None for a direct connection."""
    authorization: bytes | None = field(default=None, repr=False)
    """The value of Proxy-Authorization."""
    key: str | None = None
    """The proxy's id in the queue's backend, the same on all nodes; None for a session, which only
    this process has."""
    is_busy: bool = False
    """Whether a request is sent through it. A proxy carries one at a time, so that a ban costs only
    one."""
    possible_failures: int = 0
    """Failures in a row that may be the proxy's fault."""
    renewals: int = 0
    """Renewals of its session in a row because of a ban."""


class ProxyPool(Proxies):  # type: ignore[misc]  # scrapy-rotating-proxies has no types
    """The proxies of one pool, for one site.

    States and backoff are scrapy-rotating-proxies'; a dead proxy is in quarantine here. Proxies are
    used in turn instead of at random. Their keys are names instead of URLs, as the package logs
    keys and drops the credentials from them.
    """

    def __init__(self, name: str, kind: str, proxies: Sequence[Proxy], run: int = 1) -> None:
        backoff = partial(exp_backoff, base=QUARANTINE_SECONDS, cap=MAX_QUARANTINE_SECONDS)
        super().__init__([proxy.name for proxy in proxies], backoff)
        self.name = name
        self.kind = kind  # direct, datacenter, residential or tor
        self.members = {proxy.name: proxy for proxy in proxies}
        self._run = run  # requests in a row through one proxy
        # Requests left until the next proxy is used.
        self._turns = OrderedDict.fromkeys(self.members, run)

    async def open(self, home: str) -> None:
        """Check that a site can be reached. Raises ProxyPoolError."""

    def accepts(self, url: str) -> bool:  # noqa: ARG002 - TorPool uses it
        """Return whether a URL can be fetched through this pool."""
        return True

    def renew(self, proxy: Proxy) -> bool:  # noqa: ARG002 - SessionPool uses it
        """Give a banned proxy another address; return whether it got one."""
        return False

    def is_usable(self, tried: Collection[str] = ()) -> bool:
        """Return whether a proxy is left that is neither in quarantine nor in `tried`."""
        return any(name not in self.dead and name not in tried for name in self.members)

    def take(self, tried: Collection[str] = ()) -> Proxy | None:
        """Return the next proxy that is not in `tried`; None while all of these are busy."""
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

    def ban(self, name: str, now: float, min_seconds: float) -> float | None:
        """Begin a quarantine of at least `min_seconds`; return its end.

        Returns None when the proxy is in one already.
        """
        if name in self.dead:
            return None
        state = self.proxies[name]
        if state.next_check is not None and now - state.next_check > BAN_MEMORY_SECONDS:
            state.failed_attempts = 0
        self.mark_dead(name, now)
        state.next_check = max(state.next_check, now + min_seconds)
        return float(state.next_check)

    def report_success(self, name: str) -> bool:
        """Mark a proxy as good after a response; return whether it had bans.

        These no longer count.
        """
        if name in self.dead:
            return False  # the request was sent before the ban
        was_banned = bool(self.proxies[name].failed_attempts)
        self.mark_good(name)
        return was_banned

    def apply_shared_ban(self, name: str, ban: Ban | None, now: float) -> None:
        """Apply another worker's quarantine of a proxy, or end the one it has."""
        state = self.proxies[name]
        state.failed_attempts = ban.bans if ban else 0
        state.next_check = ban.until if ban else None
        if ban and ban.until > now:
            self.dead.add(name)
            self.good.discard(name)
            self.unchecked.discard(name)
        elif name in self.dead:
            self.dead.remove(name)
            self.unchecked.add(name)


class SessionPool(ProxyPool):
    """Sessions of one gateway, such as a vendor's or Tor's.

    Each random token in the credentials gives another address.
    """

    def __init__(self, name: str, kind: str, labels: Sequence[str], gateway: Address) -> None:
        super().__init__(name, kind, [Proxy(label, gateway.url) for label in labels])
        self._gateway = gateway
        for proxy in self.members.values():
            self.renew(proxy)

    def renew(self, proxy: Proxy) -> bool:
        """Replace a session by a new one, which usually has another address."""
        token = secrets.token_hex(12)  # many vendors allow only letters and digits
        session = Address(*(text.replace(SESSION, token) for text in self._gateway))
        proxy.authorization = session.authorization
        return True
