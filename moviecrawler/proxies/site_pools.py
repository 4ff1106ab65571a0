"""Reads which proxies there are, and which sites are asked through which pools.

No error shows a name or a password of a proxy.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING, Annotated, Literal
from urllib.parse import unquote

import msgspec

from moviecrawler.errors import ConfigurationError
from moviecrawler.items import Site
from moviecrawler.middlewares.blocks import DIRECT
from moviecrawler.options import ProxyOptions, TorOptions, node_of, read_file, split_url
from moviecrawler.proxies.pools import SESSION, DirectPool, Proxy, ProxyPool, SessionPool, basic_authorization
from moviecrawler.sites import SITES, page_hosts_of

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Self

    from scrapy.settings import BaseSettings

_ORDER_FORM = 'direct,datacenter,tor for all sites, or {"imdb": "direct,tor"} for some'
_URL_FORM = "http://user:password@host:port"
_POOLS_FORM = f'{{"datacenter": {{"kind": "datacenter", "urls": ["{_URL_FORM}", ...]}}}}'
_POOL_NAME = re.compile(r"[a-z][a-z0-9_-]{0,31}")
_MAX_FILE_BYTES = 8 * 1024 * 1024
"""Some 100,000 proxies."""
_CIRCUITS = 8
"""Circuits of Tor that a worker uses in turn. Each is work for three volunteers' machines."""


class _PoolEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    kind: Literal["datacenter", "residential", "tor"]
    urls: list[str] = []
    sessions: Annotated[int, msgspec.Meta(ge=0, le=1000)] = 0
    """Sessions of a gateway, the only one of `urls`, or circuits of Tor, that are used in turn; 0 for a list of proxies."""


@dataclass(frozen=True, slots=True)
class SitePools:
    """Which sites are asked through which pools."""

    options: ProxyOptions
    pools: Mapping[str, ProxyPool]
    """All pools, by name."""
    orders: Mapping[Site, tuple[ProxyPool, ...]]
    """The pools that a site may be asked through, the first one first. Other sites are asked directly, and a block stops them."""

    @classmethod
    def from_settings(cls, settings: BaseSettings) -> Self:
        """Read what `ProxyOptions` and `TorOptions` declare. Raises ConfigurationError."""
        options = ProxyOptions.read(settings)
        pools = {DIRECT: DirectPool(node_of(settings)), **_read_pools(settings, options)}
        orders = {
            site: tuple(_pool(name, pools) for name in dict.fromkeys(names.replace(" ", "").split(",")))
            for site, names in _read_orders(str(options.order)).items()
        }
        for site, order in orders.items():
            for setting, url in page_hosts_of(site, settings).items():
                for pool in order:
                    pool.check(setting, url)
        if orders:
            from moviecrawler.proxies.policy import load_policy  # noqa: PLC0415 - imports what only proxies need

            load_policy(settings)
        return cls(options, pools, orders)


def _read_orders(given: str) -> dict[Site, str]:
    """Return the names of pools by site, from one order for all sites or from JSON."""
    if not given.startswith("{"):
        return dict.fromkeys(SITES, given) if given else {}
    try:
        return msgspec.json.decode(given, type=dict[Site, str])
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"PROXY_ORDER can't be read: {error}; set it to {_ORDER_FORM}") from None


def _pool(name: str, pools: Mapping[str, ProxyPool]) -> ProxyPool:
    if name not in pools:
        # What is no name may be a proxy's URL with a password.
        shown = repr(name) if _POOL_NAME.fullmatch(name) else "that can't be one"
        raise ConfigurationError(
            f"PROXY_ORDER names a pool {shown}; PROXY_POOLS gives {', '.join(pools)}, TOR_TUNNEL the pool tor; set it to "
            f"{_ORDER_FORM}"
        )
    return pools[name]


def _read_pools(settings: BaseSettings, options: ProxyOptions) -> dict[str, ProxyPool]:
    entries = _read_entries(str(options.pools))
    if settings.get("TOR_TUNNEL") or settings.get("TOR_CONTROL"):
        entries.setdefault("tor", _PoolEntry("tor"))
    pools: dict[str, ProxyPool] = {}
    for name, entry in entries.items():
        if not _POOL_NAME.fullmatch(name) or name == DIRECT:
            raise ConfigurationError(
                f"PROXY_POOLS has a pool {name!r}; name it with small letters, digits, hyphens and underscores, but not {DIRECT}"
            )
        if entry.kind == "tor":
            pools[name] = _tor_pool(name, entry, settings)
        elif not entry.urls:
            raise ConfigurationError(f"PROXY_POOLS: pool {name} has no urls; give it one such as {_URL_FORM}")
        elif entry.sessions or any(SESSION in url for url in entry.urls):
            pools[name] = _session_pool(name, entry)
        else:
            run = options.run_residential if entry.kind == "residential" else 1
            pools[name] = ProxyPool(name, entry.kind, _proxies(name, entry.urls), run)
    return pools


def _read_entries(given: str) -> dict[str, _PoolEntry]:
    """Return what PROXY_POOLS, JSON or the path of a file with it, says."""
    if not given:
        return {}
    try:
        text = given.encode() if given.lstrip().startswith("{") else read_file(given, _MAX_FILE_BYTES)
        return msgspec.json.decode(text, type=dict[str, _PoolEntry])
    except (OSError, ValueError) as error:  # msgspec's among them
        # Not the value: it may be a proxy's URL with a password. msgspec shows one only where it expects one of few words.
        reason = os.strerror(error.errno) if isinstance(error, OSError) and error.errno else str(error)
        reason = re.sub(r"Invalid enum value '[^']*'", "the kind is none of datacenter, residential and tor", reason)
        raise ConfigurationError(
            f"PROXY_POOLS is neither JSON nor a file with it that can be read: {reason}; set it to {_POOLS_FORM}, or to the path "
            "of a file with that"
        ) from None


def _proxies(name: str, urls: list[str]) -> list[Proxy]:
    proxies: list[Proxy] = []
    seen: Counter[str] = Counter()
    for number, url in enumerate(urls, 1):
        label = f"{name}:{number}"
        address, user, password = _parse_proxy(label, url)
        if url in urls[: number - 1]:
            raise ConfigurationError(f"PROXY_POOLS: {label} is the same as one before it; remove it")
        # By address and user, as nodes may have different lists, and without the password.
        digest = blake2b(f"{address} {user}".encode(), digest_size=8).hexdigest()
        key = f"{digest}-{seen[digest]}" if seen[digest] else digest
        seen[digest] += 1
        authorization = basic_authorization(user, password) if user or password else None
        proxies.append(Proxy(label, address, authorization, key))
    return proxies


def _session_pool(name: str, entry: _PoolEntry) -> ProxyPool:
    address, user, password = _parse_proxy(f"{name}:1", entry.urls[0])
    if not entry.sessions or SESSION not in user + password or len(entry.urls) > 1:
        raise ConfigurationError(
            f"PROXY_POOLS: pool {name} is to have one URL with {SESSION} in its user or password, and the number of "
            "`sessions`; or neither"
        )
    labels = [f"{name}:{number}" for number in range(1, entry.sessions + 1)]
    return SessionPool(name, entry.kind, labels, address, user, password)


def _parse_proxy(label: str, url: str) -> tuple[str, str, str]:
    """Return scheme, host and port of a proxy, its user's name and its password."""
    parts = split_url(url)
    if (
        parts is None
        or not (parts.hostname and parts.port)
        or parts.path not in {"", "/"}
        or not parts.netloc.isascii()
    ):
        raise ConfigurationError(f"PROXY_POOLS: {label} is not of the form {_URL_FORM}")
    if parts.scheme != "http":
        raise ConfigurationError(
            f"PROXY_POOLS: {label} does not begin with http://, and Scrapy can't use SOCKS; give the proxy's HTTP port, which "
            "forwards https all the same"
        )
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    user, password = unquote(parts.username or ""), unquote(parts.password or "")
    if ":" in user:
        raise ConfigurationError(f"PROXY_POOLS: the user of {label} has a colon in it; no proxy can take that")
    return f"http://{host}:{parts.port}", user, password


def _tor_pool(name: str, entry: _PoolEntry, settings: BaseSettings) -> ProxyPool:
    from moviecrawler.proxies.tor import TorPool  # noqa: PLC0415 - imports stem, which takes a while

    options = TorOptions.read(settings)
    if entry.urls or not options.tunnel:
        raise ConfigurationError(
            f"the pool {name} of kind tor takes no urls, but TOR_TUNNEL; set that to Tor's HTTPTunnelPort, or remove the pool and "
            "TOR_CONTROL"
        )
    return TorPool(name, options.tunnel, options.control, entry.sessions or _CIRCUITS)
