"""Reading PROXY_POOLS: which proxies there are. No sentence of this module shows a name or a password of a proxy."""

from __future__ import annotations

import os
import re
from hashlib import blake2b
from typing import TYPE_CHECKING, Literal
from urllib.parse import unquote, urlsplit

import msgspec

from moviecrawler.configuration import read_file
from moviecrawler.errors import ConfigurationError
from moviecrawler.meta import DIRECT
from moviecrawler.proxies.pools import ListedPool, Proxy, ProxyPool, Route, basic_authorization

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

_POOL_NAME = re.compile(r"[a-z][a-z0-9_-]{0,31}")
_FORM = '{"datacenter": {"kind": "datacenter", "urls": ["http://user:password@host:port", ...]}}'
_PORTS = range(1, 65_536)
LARGEST_FILE = 8 * 1024 * 1024
"""Bytes; some 100,000 proxies."""


class _Weighted(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    url: str
    weight: float = 1.0


class _PoolEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    kind: Literal["datacenter", "residential", "tor"]
    urls: list[str | _Weighted] = []


def read_pools(settings: BaseSettings) -> dict[str, ProxyPool]:
    """Return the pools of PROXY_POOLS and TOR_TUNNEL by name, without the direct one. Raises ConfigurationError."""
    entries = _entries(settings["PROXY_POOLS"])
    pools: dict[str, ProxyPool] = {}
    for name, entry in entries.items():
        if not _POOL_NAME.fullmatch(name) or name == DIRECT:
            raise ConfigurationError(
                f"PROXY_POOLS has a pool {name!r}; name it with up to 32 small letters, digits, hyphens and underscores, "
                f"but not {DIRECT}, which is the pool of no proxy"
            )
        pools[name] = _tor_pool(name, settings, entry.urls) if entry.kind == "tor" else _proxy_pool(name, entry)
    if (settings.get("TOR_TUNNEL") or settings.get("TOR_CONTROL")) and not any(
        pool.kind == "tor" for pool in pools.values()
    ):
        if "tor" in pools:
            raise ConfigurationError(
                "PROXY_POOLS has a pool tor that is not of kind tor, and TOR_TUNNEL is set; rename it"
            )
        pools["tor"] = _tor_pool("tor", settings, [])
    return pools


def _entries(given: str) -> dict[str, _PoolEntry]:
    """Return what PROXY_POOLS, JSON or the path of a file with it, says."""
    if not given:
        return {}
    text: str | bytes = given
    where = "PROXY_POOLS"
    if not given.lstrip().startswith("{"):
        try:
            text = read_file(given, LARGEST_FILE)
        except (OSError, ValueError) as error:
            # Not the value: it may be a proxy's URL, put in the wrong place.
            reason = os.strerror(error.errno) if isinstance(error, OSError) and error.errno else str(error)
            raise ConfigurationError(
                f"PROXY_POOLS is neither JSON nor a file that can be read ({reason}); set it to {_FORM}, or to the path of a "
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
        raise ConfigurationError(f"{where} can't be understood: {reason}; the form is {_FORM}") from None


def _proxy_pool(name: str, entry: _PoolEntry) -> ProxyPool:
    if not entry.urls:
        raise ConfigurationError(
            f"PROXY_POOLS: pool {name} has no urls; give it one such as http://user:password@host:port"
        )
    proxies: dict[Proxy, Route] = {}
    known: set[str] = set()
    ids: set[str] = set()
    for place, given in enumerate(entry.urls, 1):
        weighted = _Weighted(given) if isinstance(given, str) else given
        label = f"{name}:{place}"
        if not 0 < weighted.weight <= 1000:  # noqa: PLR2004 - of which no more sense can be made
            raise ConfigurationError(
                f"PROXY_POOLS: {label} has weight {weighted.weight:g}; give it one above 0, up to 1000"
            )
        if weighted.url in known:
            raise ConfigurationError(f"PROXY_POOLS: {label} is the same as one before it; remove it")
        known.add(weighted.url)
        route, user = _parse_proxy(label, weighted.url)
        # By what it is and not by its place, which is another one on a node with another list. Without the password.
        key = blake2b(f"{route.proxy} {user}".encode(), digest_size=6).hexdigest()
        same = 0
        while (id_ := f"{name}:{key}" + (f"-{same}" if same else "")) in ids:
            same += 1
        ids.add(id_)
        proxies[Proxy(label, name, entry.kind, id_, weighted.weight)] = route
    return ListedPool(name, entry.kind, proxies)


def _parse_proxy(label: str, url: str) -> tuple[Route, str]:
    """Return the way through a proxy, and its user's name."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise ConfigurationError(
            f"PROXY_POOLS: {label} is no URL; give it the form http://user:password@host:port"
        ) from None
    if parts.scheme.startswith("socks"):
        raise ConfigurationError(
            f"PROXY_POOLS: {label} is a SOCKS proxy, which Scrapy can't use; give its HTTP port, as most have one"
        )
    if parts.scheme != "http":
        raise ConfigurationError(
            f"PROXY_POOLS: {label} does not begin with http://; what it forwards may be https all the same"
        )
    if not parts.hostname or port not in _PORTS or parts.path not in {"", "/"} or parts.query or parts.fragment:
        raise ConfigurationError(f"PROXY_POOLS: {label} is not of the form http://user:password@host:port")
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    if not re.fullmatch(r"[\x21-\x7e]+", host):
        raise ConfigurationError(f"PROXY_POOLS: the host of {label} is not in plain ASCII; write it as IDNA does")
    user, password = unquote(parts.username or ""), unquote(parts.password or "")
    if ":" in user:
        raise ConfigurationError(
            f"PROXY_POOLS: the user of {label} has a colon in it, which no proxy can tell from the password's"
        )
    authorization = basic_authorization(user, password) if user or password else None
    return Route(f"http://{host}:{port}", authorization), user


def _tor_pool(name: str, settings: BaseSettings, urls: list[str | _Weighted]) -> ProxyPool:
    # It brings stem, which takes a while to import.
    from moviecrawler.proxies.tor_pool import TorPool  # noqa: PLC0415

    if urls:
        raise ConfigurationError(f"PROXY_POOLS: pool {name} of kind tor has urls; remove them, and set TOR_TUNNEL")
    pool = TorPool.from_settings(name, settings)
    if pool is None:
        raise ConfigurationError(
            f"PROXY_POOLS has the pool {name} of kind tor, but TOR_TUNNEL is not set; set it, or remove the pool"
        )
    return pool
