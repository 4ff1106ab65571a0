"""The page of proxies: how each site answers through each of them. User names and passwords are left out."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from moviecrawler.dashboard.pages import Page, PageRequest, RefusedError
from moviecrawler.errors import ConfigurationError
from moviecrawler.proxies.report import read_proxies
from moviecrawler.proxies.shared_health import clear_quarantines
from moviecrawler.proxies.site_pools import SitePools
from moviecrawler.sites import SITES

if TYPE_CHECKING:
    from moviecrawler.items import Site
    from moviecrawler.proxies.report import ProxyReport

_ROWS = 200
"""Proxies of a site on a page."""


class Proxies(Page):
    """`/proxies`."""

    template = "proxies.html"
    title = in_menu = "Proxies"

    def show(self, request: PageRequest) -> dict[str, Any]:
        page = request.whole_number("page", 1, 1_000_000, 1)
        try:
            site_pools = SitePools.from_settings(self.sources.settings)
        except ConfigurationError as error:
            request.troubles.append(f"This node's proxies can't be named: {error}")
            site_pools = None
        reports = request.attempt(self._read, site_pools, otherwise={})
        orders = site_pools.orders if site_pools else {}
        used = {pool.name for order in orders.values() for pool in order}
        pools = site_pools.pools.values() if site_pools else ()
        return {
            "shown": {site: reports.get(site, []) for site in SITES},
            "orders": orders,
            "unused": [pool for pool in pools if pool.name not in used and pool.kind != "direct"],
            "page": page,
            "first": (page - 1) * _ROWS,
            "last": page * _ROWS,
        }

    def _read(self, site_pools: SitePools | None) -> dict[Site, list[ProxyReport]]:
        if not self.node.has_frontier:
            return asyncio.run(read_proxies(None, site_pools))
        return self.node.ask_frontier(lambda client: read_proxies(client, site_pools))

    def do_release(self, request: PageRequest) -> tuple[str, str]:
        site, proxy = request.value("site"), request.value("proxy")
        if site not in SITES:
            raise RefusedError(f"there is no site {site[:40]!r}")
        cleared = self.node.ask_frontier(lambda client: clear_quarantines(client, site, [proxy]))
        return "/proxies", "released" if cleared else "no-proxy"
