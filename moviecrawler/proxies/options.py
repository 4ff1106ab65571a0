"""The settings of identity: which sites are asked through which pools, and how."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, get_args

import msgspec

from moviecrawler.configuration import read_file
from moviecrawler.errors import ConfigurationError
from moviecrawler.frontier.options import node_of
from moviecrawler.items import Site
from moviecrawler.meta import DIRECT
from moviecrawler.proxies.pool_settings import LARGEST_FILE, read_pools
from moviecrawler.proxies.pools import DirectPool, ProxyPool

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Self

    from scrapy.settings import BaseSettings

HOME_SETTINGS: dict[str, Site] = {
    "IMDB_URL": "imdb",
    "METACRITIC_URL": "metacritic",
    "METACRITIC_API_URL": "metacritic",
    "ROTTENTOMATOES_URL": "rottentomatoes",
}
"""Whose hosts are asked as which site. Not IMDb's datasets, which are there to be fetched: they go out directly."""
_SITES: tuple[Site, ...] = get_args(Site)
_ORDER_FORM = 'direct,datacenter,tor for all sites, or {"imdb": "direct,tor"} for some'


class Identity(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What an exit says of itself, always the same."""

    user_agent: str
    accept_language: str

    def __post_init__(self) -> None:
        for value in (self.user_agent, self.accept_language):
            if not value.isascii() or not value.isprintable() or not value:
                raise ValueError(f"{value!r} can't be sent in a header")


@dataclass(frozen=True, slots=True, kw_only=True)
class ProxyOptions:
    """Where requests go out. Each field that has a range below is the setting `PROXY_<NAME>`."""

    pools: Mapping[str, ProxyPool]
    orders: Mapping[Site, tuple[ProxyPool, ...]]
    """The pools that a site may be asked through, the first one first. Other sites are asked directly, and a block stops
    them."""
    tied: bool
    """Whether WORKER_POOL ties this worker to one pool."""
    identities: tuple[Identity, ...] = field(default=())
    attempts: int
    """Times that a request is sent, each time from another exit."""
    quarantine: float
    """Seconds for which an exit is not used for a site that has refused it; doubled each time it happens again."""
    run_datacenter: int
    """Requests after which the next exit of a pool has its turn."""
    run_residential: int
    """The same, of a pool whose exits look like homes."""

    @classmethod
    def from_settings(cls, settings: BaseSettings) -> Self:
        """Read PROXY_POOLS, PROXY_ORDER, WORKER_POOL and the rest. Raises ConfigurationError."""
        pools = {DIRECT: DirectPool(node_of(settings)), **read_pools(settings)}
        worker_pool = settings["WORKER_POOL"]
        names = _read_orders(settings["PROXY_ORDER"])
        if worker_pool:
            _pool("WORKER_POOL", worker_pool, pools)
            names = dict.fromkeys(names or _SITES, (worker_pool,))
        orders = {site: tuple(_pool("PROXY_ORDER", name, pools) for name in order) for site, order in names.items()}
        for setting, site in HOME_SETTINGS.items():
            for pool in orders.get(site, ()):
                pool.check(setting, settings[setting])
        if orders:
            from moviecrawler.proxies.policy import load_policy  # noqa: PLC0415 - imports what only proxies need

            load_policy(settings)
        return cls(
            pools=pools,
            orders=orders,
            tied=bool(worker_pool),
            identities=_read_identities(settings["PROXY_IDENTITIES"]),
            attempts=int(_number(settings, "PROXY_ATTEMPTS", 1, 20, whole=True)),
            quarantine=_number(settings, "PROXY_QUARANTINE", 1, 7 * 86_400),
            run_datacenter=int(_number(settings, "PROXY_RUN_DATACENTER", 1, 1_000_000, whole=True)),
            run_residential=int(_number(settings, "PROXY_RUN_RESIDENTIAL", 1, 1_000_000, whole=True)),
        )


def _read_orders(given: Any) -> dict[Site, tuple[str, ...]]:
    """Return the names of pools by site, from one order for all sites or from JSON."""
    if not given:
        return {}
    text = str(given)
    if not text.lstrip().startswith("{"):
        return dict.fromkeys(_SITES, _names(text))
    try:
        orders = msgspec.json.decode(text, type=dict[str, str])
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ConfigurationError(
            f"PROXY_ORDER is {_shown(text)}, which can't be understood ({error}); set it to {_ORDER_FORM}"
        ) from None
    for site in orders:
        if site not in _SITES:
            raise ConfigurationError(f"PROXY_ORDER names the site {site!r}; there are {', '.join(_SITES)}")
    return {site: _names(orders[site]) for site in _SITES if site in orders}


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
    """Return a value as it may be shown: a proxy's URL, put in the wrong place, has a password in it."""
    return "something that looks like a proxy's URL" if "@" in text or "//" in text else repr(text)


def _read_identities(given: Any) -> tuple[Identity, ...]:
    if not given:
        return ()
    text = str(given)
    try:
        if not text.lstrip().startswith("["):
            text = read_file(text, LARGEST_FILE).decode()
        return tuple(msgspec.json.decode(text, type=list[Identity]))
    except (OSError, ValueError, msgspec.DecodeError) as error:
        raise ConfigurationError(
            f"PROXY_IDENTITIES can't be used: {error}; set it to JSON such as "
            '[{"user_agent": "...", "accept_language": "en-US,en;q=0.8"}], or to the path of a file with that'
        ) from None


def _number(settings: BaseSettings, name: str, least: float, most: float, *, whole: bool = False) -> float:
    try:
        value = float(settings[name])
    except (TypeError, ValueError):
        value = -1.0
    if not least <= value <= most or (whole and value != int(value)):
        kind = "a whole number" if whole else "a number"
        raise ConfigurationError(f"{name} is {settings[name]!r}; set it to {kind} from {least:g} to {most:,.0f}")
    return value
