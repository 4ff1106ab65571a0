"""Reads PROXY_POOLS and PROXY_ORDER: the proxies, and the pools of each site.

No error shows a user or a password.
"""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING, Annotated
from urllib.parse import unquote

import msgspec
from msgspec import Meta

from moviecrawler.basics.errors import ConfigurationError
from moviecrawler.basics.files import read_file
from moviecrawler.basics.service_urls import split_url
from moviecrawler.options import FrontierOptions, ProxyOptions
from moviecrawler.politeness.meta import DIRECT
from moviecrawler.proxies.pools import SESSION, Address, Proxy, ProxyPool, SessionPool
from moviecrawler.proxies.tor import TorPool
from moviecrawler.sites import SITES, Site
from moviecrawler.sites.hosts import page_hosts_of
from moviecrawler.sites.ids import check_site

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Self

    from scrapy.settings import BaseSettings

_ORDER_FORM = 'direct,datacenter,tor for all sites, or {"imdb": "direct,tor"} for some'
_URL_FORM = "http://user:password@host:port"
_POOLS_FORM = f'{{"datacenter": {{"kind": "datacenter", "urls": ["{_URL_FORM}", ...]}}}}'
_PoolName = Annotated[str, Meta(pattern=r"^(?!direct$)[a-z][a-z0-9_-]{0,31}$")]
_MAX_FILE_BYTES = 8 * 1024 * 1024  # some 100,000 proxies
# Circuits of Tor that a worker uses; few, as each is work for the machines of three volunteers.
_CIRCUITS = 8
_RESIDENTIAL_RUN = 25  # requests through a residential proxy before the next one is used


class _PoolEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    # A pattern and not a Literal, as msgspec shows a wrong Literal, which may be a password.
    kind: Annotated[str, Meta(pattern="^(datacenter|residential|tor)$")]
    urls: list[str] = []
    sessions: Annotated[int, Meta(ge=0, le=1000)] = 0
    """Sessions of a gateway, which is then the only URL, or circuits of Tor; 0 for a list of
    proxies."""


@dataclass(frozen=True, slots=True)
class SitePools:
    """All pools, and those of each site."""

    options: ProxyOptions
    pools: Mapping[str, ProxyPool]
    """All pools, by name."""
    orders: Mapping[Site, tuple[ProxyPool, ...]]
    """The pools of each site, in the order of their use. Requests to other sites are sent
    directly, and a block stops them."""

    @classmethod
    def from_settings(cls, settings: BaseSettings) -> Self:
        """Read `ProxyOptions`. Raises ConfigurationError."""
        options = ProxyOptions.read(settings)
        # Each node has its own address, so the direct connection has a key for each node.
        direct = Proxy(DIRECT, key=f"{DIRECT}@{FrontierOptions.read(settings).node}")
        pools = {DIRECT: ProxyPool(DIRECT, DIRECT, [direct])}
        entries = _read_entries(str(options.pools))
        if options.tor_tunnel:
            entries.setdefault("tor", _PoolEntry("tor"))
        for name, entry in entries.items():
            pools[name] = _pool(name, entry, options.tor_tunnel)
        orders = _read_orders(str(options.order), pools)
        for site, order in orders.items():
            for setting, url in page_hosts_of(site, settings).items():
                if not all(pool.accepts(url) for pool in order):
                    raise ConfigurationError(
                        f"{setting} is {url!r}, and requests to its site go through Tor,"
                        " which takes https addresses only; set it"
                        " to one, or take the pool of kind tor out of PROXY_ORDER"
                    )
        return cls(options, pools, orders)


def _read_orders(setting: str, pools: Mapping[str, ProxyPool]) -> dict[Site, tuple[ProxyPool, ...]]:
    """Return the pools by site, from PROXY_ORDER: one order for all sites, or JSON."""
    try:
        orders = (
            msgspec.json.decode(setting, type=dict[str, str])
            if setting.startswith("{")
            else dict.fromkeys(SITES, setting)
        )
        for site in orders:
            check_site(site)
        named = {
            site: dict.fromkeys(names.replace(" ", "").split(","))
            for site, names in orders.items()
            if names
        }
        return {site: tuple(pools[name] for name in names) for site, names in named.items()}
    except KeyError:
        # The name is not shown, as it may be a proxy's URL with a password.
        reason = f"a pool is none of {', '.join(pools)}"
    except (msgspec.DecodeError, ValueError) as error:
        reason = str(error)
    raise ConfigurationError(f"PROXY_ORDER can't be read: {reason}; set it to {_ORDER_FORM}")


def _read_entries(setting: str) -> dict[str, _PoolEntry]:
    """Return the entries of PROXY_POOLS, which is JSON or the path of a file with it."""
    try:
        text = (
            (setting or "{}").encode()
            if setting.lstrip()[:1] in {"", "{"}
            else read_file(setting, _MAX_FILE_BYTES)
        )
        return msgspec.json.decode(text, type=dict[_PoolName, _PoolEntry])
    except (OSError, ValueError) as error:  # msgspec's are ValueErrors
        # The value is not shown, as it may be a proxy's URL with a password.
        reason = (
            os.strerror(error.errno) if isinstance(error, OSError) and error.errno else str(error)
        )
        message = f"PROXY_POOLS is neither JSON nor a file with it that can be read: {reason}"
        raise ConfigurationError(
            f"{message}; set it to {_POOLS_FORM}, or to the path of a file with that"
        ) from None


def _pool(name: str, entry: _PoolEntry, tor_tunnel: str) -> ProxyPool:
    if entry.kind == "tor":
        if entry.urls or not tor_tunnel:
            raise ConfigurationError(
                f"the pool {name} of kind tor takes no urls, but TOR_TUNNEL;"
                " set that to Tor's HTTPTunnelPort, or remove the pool"
            )
        return TorPool(name, tor_tunnel, entry.sessions or _CIRCUITS)
    if not entry.urls or len(entry.urls) > len(set(entry.urls)):
        raise ConfigurationError(
            f"PROXY_POOLS: pool {name} has no urls, or one twice; they are such as {_URL_FORM}"
        )
    addresses = {
        f"{name}:{number}": _parse_address(f"{name}:{number}", url)
        for number, url in enumerate(entry.urls, 1)
    }
    if entry.sessions or any(SESSION in url for url in entry.urls):
        gateway = next(iter(addresses.values()))
        has_token = SESSION in gateway.user + gateway.password
        if not entry.sessions or not has_token or len(addresses) > 1:
            message = (
                f"PROXY_POOLS: pool {name} is to have one URL"
                f" with {SESSION} in its user or password"
            )
            raise ConfigurationError(f"{message}, and the number of `sessions`; or neither")
        labels = [f"{name}:{number}" for number in range(1, entry.sessions + 1)]
        return SessionPool(name, entry.kind, labels, gateway)
    proxies = []
    seen = Counter[str]()
    for label, address in addresses.items():
        # The key is made of address and user, as nodes may have different lists; the password is no
        # part of it.
        digest = blake2b(f"{address.url} {address.user}".encode(), digest_size=8).hexdigest()
        seen[digest] += 1
        key = f"{digest}-{seen[digest]}"
        proxies.append(Proxy(label, address.url, address.authorization, key))
    run = _RESIDENTIAL_RUN if entry.kind == "residential" else 1
    return ProxyPool(name, entry.kind, proxies, run)


def _parse_address(label: str, url: str) -> Address:
    parts = split_url(url)
    is_url = (
        parts is not None
        and parts.scheme == "http"
        and parts.hostname
        and parts.port
        and parts.path in {"", "/"}
    )
    user = unquote(parts.username or "") if parts else ""
    password = unquote(parts.password or "") if parts else ""
    if parts is None or not is_url or not parts.netloc.isascii() or ":" in user:
        message = (
            f"PROXY_POOLS: {label} is not of the form {_URL_FORM}, without a colon in the user"
        )
        raise ConfigurationError(
            f"{message}; Scrapy can't use SOCKS, but an HTTP proxy forwards https all the same"
        )
    return Address(f"http://{parts.netloc.rpartition('@')[2]}", user, password)
