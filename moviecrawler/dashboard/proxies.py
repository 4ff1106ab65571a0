"""The page of proxies: how each site answers through each of them. User names and passwords are left out."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, ClassVar

from moviecrawler.dashboard.pages import Page, PageRequest, RefusedError
from moviecrawler.errors import ConfigurationError
from moviecrawler.proxies.report import read_proxies
from moviecrawler.proxies.shared_health import clear_quarantines
from moviecrawler.proxies.site_pools import SitePools
from moviecrawler.urls import HOMES

if TYPE_CHECKING:
    from moviecrawler.items import Site
    from moviecrawler.proxies.report import ProxyReport

_ROWS = 200
"""Proxies of a site on a page."""


class Proxies(Page):
    """`/proxies`."""

    template = "proxies.html"
    title = "Proxies"
    here: ClassVar[str] = "/proxies"

    def show(self, request: PageRequest) -> dict[str, Any]:
        page = request.whole_number("page", 1, 1_000_000, 1)
        try:
            site_pools = SitePools.from_settings(self.sources.settings)
        except ConfigurationError as error:
            request.troubles.append(f"This node's proxies can't be named: {error}")
            site_pools = None
        reports = request.attempt(self._read, site_pools, otherwise={})
        orders = site_pools.orders if site_pools else {}
        shown: list[dict[str, Any]] = [
            {
                "site": site,
                "order": [pool.name for pool in orders.get(site, ())],
                "rows": rows[(page - 1) * _ROWS : page * _ROWS],
                "total": len(rows),
                "quarantined": sum(row.state == "quarantined" for row in rows),
            }
            for site in HOMES
            for rows in [reports.get(site, [])]
        ]
        used = {pool.name for order in orders.values() for pool in order}
        pools = site_pools.pools.values() if site_pools else ()
        return {
            "shown": shown,
            "unused": [
                (pool.name, len(pool.proxies)) for pool in pools if pool.name not in used and pool.kind != "direct"
            ],
            "page": page,
            "has_more": page * _ROWS < max(site["total"] for site in shown),
            "has_frontier": self.sources.node.has_frontier,
        }

    def _read(self, site_pools: SitePools | None) -> dict[Site, list[ProxyReport]]:
        if not self.sources.node.has_frontier:
            return asyncio.run(read_proxies(None, site_pools))
        return self.sources.node.ask_frontier(lambda client: read_proxies(client, site_pools))

    def act(self, request: PageRequest) -> tuple[str, str]:
        site, proxy = request.value("site"), request.value("proxy")
        if request.value("action") != "release" or site not in HOMES:
            raise RefusedError("the action is release, of a proxy and a site")
        cleared = self.sources.node.ask_frontier(lambda client: clear_quarantines(client, site, [proxy]))
        return "/proxies", "released" if cleared else "no-proxy"
