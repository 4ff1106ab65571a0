"""Reads which proxies there are, and which sites are asked through which pools.

No sentence of this module shows a name or a password of a proxy.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING, Annotated, Any, Literal
from urllib.parse import unquote

import msgspec

from moviecrawler.configuration import read_file
from moviecrawler.errors import ConfigurationError
from moviecrawler.meta import DIRECT
from moviecrawler.option_types import split_url
from moviecrawler.options import ProxyOptions, TorOptions, node_of
from moviecrawler.proxies.pools import (
    SESSION,
    DirectPool,
    ListedPool,
    Proxy,
    ProxyPool,
    Route,
    SessionPool,
    basic_authorization,
)
from moviecrawler.sites import SITES, page_hosts_of

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Self

    from scrapy.settings import BaseSettings

    from moviecrawler.items import Site


_ORDER_FORM = 'direct,datacenter,tor for all sites, or {"imdb": "direct,tor"} for some'
_POOLS_FORM = '{"datacenter": {"kind": "datacenter", "urls": ["http://user:password@host:port", ...]}}'
_POOL_NAME = re.compile(r"[a-z][a-z0-9_-]{0,31}")
_MAX_FILE_BYTES = 8 * 1024 * 1024
"""Some 100,000 proxies."""


class _PoolEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    kind: Literal["datacenter", "residential", "tor"]
    urls: list[str] = []
    sessions: Annotated[int, msgspec.Meta(ge=0, le=1000)] = 0
    """How many sessions of a gateway, the only one of `urls`, are used in turn; 0 for a list of proxies."""


@dataclass(frozen=True, slots=True)
class SitePools:
    """Which sites are asked through which pools."""

    options: ProxyOptions
    pools: Mapping[str, ProxyPool]
    """All pools, by name."""
    orders: Mapping[Site, tuple[ProxyPool, ...]]
    """The pools that a site may be asked through, the first one first. Other sites are asked directly, and a block stops
    them."""

    @classmethod
    def from_settings(cls, settings: BaseSettings) -> Self:
        """Read what `ProxyOptions` and `TorOptions` declare. Raises ConfigurationError."""
        options = ProxyOptions.read(settings)
        pools = {DIRECT: DirectPool(node_of(settings)), **read_pools(settings)}
        names = _read_orders(options.order)
        if options.worker_pool:
            _pool("WORKER_POOL", options.worker_pool, pools)
            names = dict.fromkeys(names or SITES, (options.worker_pool,))
        orders = {site: tuple(_pool("PROXY_ORDER", name, pools) for name in order) for site, order in names.items()}
        for site, order in orders.items():
            for setting, url in page_hosts_of(site, settings).items():
                for pool in order:
                    pool.check(setting, url)
        if orders:
            from moviecrawler.proxies.policy import load_policy  # noqa: PLC0415 - imports what only proxies need

            load_policy(settings)
        return cls(options, pools, orders)


def _read_orders(given: Any) -> dict[Site, tuple[str, ...]]:
    """Return the names of pools by site, from one order for all sites or from JSON."""
    if not given:
        return {}
    text = str(given)
    if not text.lstrip().startswith("{"):
        return dict.fromkeys(SITES, _names(text))
    try:
        orders = msgspec.json.decode(text, type=dict[str, str])
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ConfigurationError(
            f"PROXY_ORDER is {_shown(text)}, which can't be understood ({error}); set it to {_ORDER_FORM}"
        ) from None
    for site in orders:
        if site not in SITES:
            raise ConfigurationError(f"PROXY_ORDER names the site {site!r}; there are {', '.join(SITES)}")
    return {site: _names(orders[site]) for site in SITES if site in orders}


def _names(text: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in text.split(","))
    if not all(names) or len(set(names)) < len(names):
        raise ConfigurationError(f"PROXY_ORDER is {_shown(text)}; set it to pools, each once, as in {_ORDER_FORM}")
    return names


def _pool(setting: str, name: str, pools: Mapping[str, ProxyPool]) -> ProxyPool:
    if name not in pools:
        hint = " (it takes TOR_TUNNEL)" if name == "tor" else ""
        raise ConfigurationError(f"{setting} names the pool {_shown(name)}{hint}; PROXY_POOLS gives {', '.join(pools)}")
    return pools[name]


def _shown(text: str) -> str:
    """Return a value for an error. What looks like a proxy's URL is not shown, as it may hold a password."""
    return "something that looks like a proxy's URL" if "@" in text or "//" in text else repr(text)


def read_pools(settings: BaseSettings) -> dict[str, ProxyPool]:
    """Return the pools of PROXY_POOLS and TOR_TUNNEL by name, without the direct one. Raises ConfigurationError."""
    entries = _entries(settings["PROXY_POOLS"])
    if (settings.get("TOR_TUNNEL") or settings.get("TOR_CONTROL")) and all(
        entry.kind != "tor" for entry in entries.values()
    ):
        if "tor" in entries:
            raise ConfigurationError(
                "PROXY_POOLS has a pool tor that is not of kind tor, and TOR_TUNNEL is set; rename it"
            )
        entries["tor"] = _PoolEntry("tor")
    pools: dict[str, ProxyPool] = {}
    for name, entry in entries.items():
        if not _POOL_NAME.fullmatch(name) or name == DIRECT:
            raise ConfigurationError(
                f"PROXY_POOLS has a pool {name!r}; name it with up to 32 small letters, digits, hyphens and underscores, "
                f"but not {DIRECT}, which is the pool of no proxy"
            )
        pools[name] = _tor_pool(name, entry, settings) if entry.kind == "tor" else _listed_pool(name, entry)
    return pools


def _entries(given: str) -> dict[str, _PoolEntry]:
    """Return what PROXY_POOLS, JSON or the path of a file with it, says."""
    if not given:
        return {}
    text: str | bytes = given
    where = "PROXY_POOLS"
    if not given.lstrip().startswith("{"):
        try:
            text = read_file(given, _MAX_FILE_BYTES)
        except (OSError, ValueError) as error:
            # Not the value: it may be a proxy's URL with a password.
            reason = os.strerror(error.errno) if isinstance(error, OSError) and error.errno else str(error)
            raise ConfigurationError(
                f"PROXY_POOLS is neither JSON nor a file that can be read ({reason}); set it to {_POOLS_FORM}, or to the path of a "
                "file with that"
            ) from None
        where = "the file that PROXY_POOLS names"
    try:
        return msgspec.json.decode(text, type=dict[str, _PoolEntry])
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        # msgspec's messages give places and types, and the value only where one of few words is expected.
        reason = re.sub(
            r"Invalid enum value '[^']*'", "the kind is none of datacenter, residential and tor", str(error)
        )
        if "got `object`" in reason and ".urls[" in reason:
            reason += (
                '; put the URL alone in the place of {"url": ..., "weight": ...}, as the proxies of a pool take turns'
            )
        raise ConfigurationError(f"{where} can't be understood: {reason}; the form is {_POOLS_FORM}") from None


def _listed_pool(name: str, entry: _PoolEntry) -> ProxyPool:
    if not entry.urls:
        raise ConfigurationError(
            f"PROXY_POOLS: pool {name} has no urls; give it one such as http://user:password@host:port"
        )
    routes: dict[Proxy, Route] = {}
    known: set[str] = set()
    ids: set[str] = set()
    for place, url in enumerate(entry.urls, 1):
        label = f"{name}:{place}"
        if url in known:
            raise ConfigurationError(f"PROXY_POOLS: {label} is the same as one before it; remove it")
        known.add(url)
        address, user, password = _parse_proxy(label, url)
        if entry.sessions or SESSION in unquote(url):
            if not entry.sessions or SESSION not in user + password or len(entry.urls) > 1:
                raise ConfigurationError(
                    f"PROXY_POOLS: pool {name} is to have one URL with {SESSION} in its user or password, and the number of "
                    "`sessions`; or neither"
                )
            labels = (f"{name}:{number}" for number in range(1, entry.sessions + 1))
            return SessionPool(name, entry.kind, labels, address, user, password)
        # By address and user, not by its place, as nodes may have different lists. Without the password.
        key = blake2b(f"{address} {user}".encode(), digest_size=6).hexdigest()
        same = 0
        while (id_ := f"{name}:{key}" + (f"-{same}" if same else "")) in ids:
            same += 1
        ids.add(id_)
        authorization = basic_authorization(user, password) if user or password else None
        routes[Proxy(label, name, entry.kind, id_)] = Route(address, authorization)
    return ListedPool(name, entry.kind, routes)


def _parse_proxy(label: str, url: str) -> tuple[str, str, str]:
    """Return scheme, host and port of a proxy, its user's name and its password."""
    parts = split_url(url)
    if parts is None:
        raise ConfigurationError(f"PROXY_POOLS: {label} is no URL; give it the form http://user:password@host:port")
    if parts.scheme != "http":
        raise ConfigurationError(
            f"PROXY_POOLS: {label} does not begin with http://, and Scrapy can't use SOCKS; give the proxy's HTTP port, which "
            "forwards https all the same"
        )
    if not parts.hostname or not parts.port or parts.path not in {"", "/"} or parts.query or parts.fragment:
        raise ConfigurationError(f"PROXY_POOLS: {label} is not of the form http://user:password@host:port")
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    if not re.fullmatch(r"[\x21-\x7e]+", host):
        raise ConfigurationError(f"PROXY_POOLS: the host of {label} is not in plain ASCII; write it as IDNA does")
    user, password = unquote(parts.username or ""), unquote(parts.password or "")
    if ":" in user:
        raise ConfigurationError(
            f"PROXY_POOLS: the user of {label} has a colon in it, which no proxy can tell from the password's"
        )
    return f"http://{host}:{parts.port}", user, password


def _tor_pool(name: str, entry: _PoolEntry, settings: BaseSettings) -> ProxyPool:
    # It imports stem, which takes a while.
    from moviecrawler.proxies.tor import TorPool  # noqa: PLC0415

    if entry.urls:
        raise ConfigurationError(f"PROXY_POOLS: pool {name} of kind tor has urls; remove them, and set TOR_TUNNEL")
    options = TorOptions.read(settings)
    if not options.tunnel:
        raise ConfigurationError(
            f"the pool {name} of kind tor is asked for by PROXY_POOLS or TOR_CONTROL, but TOR_TUNNEL is not set; set it to Tor's "
            "HTTPTunnelPort, or remove the pool"
        )
    return TorPool(name, options)
