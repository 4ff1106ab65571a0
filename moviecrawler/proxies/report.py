"""The health of each proxy for each site, as `scrapy proxies` and the dashboard show it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from moviecrawler.proxies.health import Figures, Quarantine, state_of
from moviecrawler.proxies.shared_health import read_health
from moviecrawler.sites import SITES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from moviecrawler.items import Site
    from moviecrawler.proxies.health import State
    from moviecrawler.proxies.pools import Proxy, ProxyPool
    from moviecrawler.proxies.site_pools import SitePools

_MASK = "***"


@dataclass(slots=True, kw_only=True)
class ProxyReport:
    """How one proxy serves one site, by the last 24 hours. Neither its user nor its password is in it."""

    id: str
    name: str
    kind: str
    """Empty when no pool of this machine has it or is named like its pool."""
    address: str
    """Scheme, host and port, with credentials masked; empty for what is not one of this machine's proxies."""
    figures: Figures = field(default_factory=Figures)
    quarantine: Quarantine | None = None
    state: State

    @property
    def answered(self) -> float | None:
        """Share of requests that were answered; None before the first."""
        return self.figures.successes / self.figures.requests if self.figures.requests else None


def configured_proxies(site_pools: SitePools) -> Iterator[tuple[ProxyPool, Proxy]]:
    """Yield the proxies of all pools; this machine's own address only where a site may be asked from it by PROXY_ORDER."""
    used = {pool.name for order in site_pools.orders.values() for pool in order}
    for pool in site_pools.pools.values():
        if pool.kind != "direct" or pool.name in used:
            for proxy in pool.proxies:
                yield pool, proxy


async def read_proxies(client: Any, site_pools: SitePools | None) -> dict[Site, list[ProxyReport]]:
    """Return the proxies that each site was asked through, or may be by PROXY_ORDER, those in quarantine first.

    Without a client there are no figures. Raises redis.RedisError.
    """
    pools = site_pools.pools if site_pools is not None else {}
    known = {proxy.id: (pool, proxy) for pool in pools.values() for proxy in pool.proxies}
    reports: dict[Site, list[ProxyReport]] = {}
    for site in SITES:
        now, figures, quarantines = await read_health(client, site) if client is not None else (0.0, {}, {})
        order = site_pools.orders.get(site, ()) if site_pools is not None else ()
        # Another process' sessions are none of ours, and our own are not used.
        expected = [proxy.id for pool in order for proxy in pool.proxies if "@" not in proxy.id]
        reports[site] = [
            _report(id_, known.get(id_), pools, now, figures.get(id_, Figures()), quarantines.get(id_))
            for id_ in dict.fromkeys([*expected, *sorted({*figures, *quarantines})])
        ]
        reports[site].sort(key=lambda one: ("quarantined", "recovering", "well").index(one.state))
    return reports


def _report(
    id_: str,
    known: tuple[ProxyPool, Proxy] | None,
    pools: Mapping[str, ProxyPool],
    now: float,
    figures: Figures,
    quarantine: Quarantine | None,
) -> ProxyReport:
    # A proxy of another node's list, or another node's own address, is of the pool that its id names.
    pool, proxy = known or (pools.get(id_.partition("@")[0].partition(":")[0]), None)
    address = ""
    if pool is not None and proxy is not None:
        route = pool.route(proxy)
        address = route.url or ""
        if route.authorization is not None:
            address = address.replace("://", f"://{_MASK}@", 1)
    return ProxyReport(
        id=id_,
        name=id_ if proxy is None else proxy.name,
        kind="" if pool is None else pool.kind,
        address=address,
        figures=figures,
        quarantine=quarantine,
        state=state_of(quarantine, now),
    )
