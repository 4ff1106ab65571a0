"""`scrapy proxies`: show for each proxy and site what happened, and end quarantines."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any

from scrapy.commands import ScrapyCommand

from moviecrawler.basics.clock import utc_text
from moviecrawler.basics.errors import ConfigurationError
from moviecrawler.commands.base import JSON, NONE, BaseCommand, option, print_json, table_lines
from moviecrawler.sites import SITES

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from moviecrawler.proxies.pools import Ban
    from moviecrawler.proxies.site_pools import SitePools
    from moviecrawler.sites import Site

_COLUMNS = ("proxy", "kind", "address", "site", "state", "until", "bans", "reason")


class Command(BaseCommand, ScrapyCommand):
    """Show the proxies and their quarantines, or end quarantines."""

    arguments = "[--json] | clear [PROXY|POOL...]"
    options = (
        option(
            "action",
            nargs="?",
            choices=["clear"],
            help="end all quarantines, or those of the names",
        ),
        option("names", nargs="*", metavar="PROXY|POOL"),
        JSON,
    )

    def execute(self, opts: argparse.Namespace) -> None:
        from moviecrawler.proxies.site_pools import SitePools

        site_pools = SitePools.from_settings(self.settings)
        if opts.action:
            asyncio.run(self._clear(site_pools, set(opts.names)))
            return
        bans = asyncio.run(self._read())
        rows = list(_rows(site_pools, bans))
        if opts.json:
            for row in rows:
                print_json(row)
        else:
            print("\n".join(table_lines([_COLUMNS, *map(_cells, rows)])))

    async def _read(self) -> dict[Site, dict[str, Ban]]:
        from moviecrawler.frontier.runs import frontier
        from moviecrawler.proxies.quarantines import decode_bans

        async with frontier(self.settings) as backend:
            return {site: decode_bans(await backend.exchange_bans(site, {})) for site in SITES}

    async def _clear(self, site_pools: SitePools, names: set[str]) -> None:
        """End the quarantines of proxies or pools.

        Without names, end all, including those of other nodes' proxies.
        """
        from moviecrawler.frontier.runs import frontier

        members = [
            (pool, proxy) for pool in site_pools.pools.values() for proxy in pool.members.values()
        ]
        labels = {proxy.key: (proxy.name, pool.name) for pool, proxy in members}
        if unknown := names.difference(*labels.values()):
            raise ConfigurationError(f"there is no proxy {', '.join(sorted(unknown))}")
        bans = await self._read()
        async with frontier(self.settings) as backend:
            for site, of_site in bans.items():
                for key in of_site:
                    label = labels.get(key, (key,))
                    if not names or names.intersection(label):
                        await backend.exchange_bans(site, {key: None})
                        print(f"{label[0]} may be used for {site} again")


def _rows(site_pools: SitePools, bans: dict[Site, dict[str, Ban]]) -> Iterator[dict[str, Any]]:
    """Yield a row for each proxy and each site that is fetched through it or has banned it.

    A proxy without such a site has one row, too.
    """
    others = {site: dict(of_site) for site, of_site in bans.items()}
    for pool in site_pools.pools.values():
        used = [site for site, order in site_pools.orders.items() if pool in order]
        for proxy in pool.members.values():
            own: dict[Site | None, Ban] = {
                site: of_site.pop(str(proxy.key))
                for site, of_site in others.items()
                if proxy.key in of_site
            }
            address = (proxy.url or "").replace("://", "://***@" if proxy.authorization else "://")
            about = {"proxy": proxy.name, "kind": pool.kind, "address": address}
            # The quarantines of a session, which has no key, are in the memory of its crawl.
            is_known = proxy.key is not None
            unused = [] if pool.kind == "direct" else [None]
            for site in dict.fromkeys([*used, *own]) or unused:
                yield about | _state(site, own.get(site), is_known=is_known)
    for site, of_site in others.items():
        for key, ban in of_site.items():
            about = {"proxy": key, "kind": "of another node", "address": ""}
            yield about | _state(site, ban, is_known=True)


def _state(site: Site | None, ban: Ban | None, *, is_known: bool) -> dict[str, Any]:
    """Return whether a site may be fetched through a proxy, and what is known of bans."""
    state = "usable" if is_known else None
    if ban and ban.until > time.time():
        state = "quarantined"
    return {
        "site": site,
        "state": state,
        "until": ban and ban.until,
        "bans": ban.bans if ban else 0,
        "reason": ban and ban.reason,
    }


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    shown = row | {"until": row["until"] and utc_text(row["until"])}
    return tuple(str(shown[column] or NONE) for column in _COLUMNS)
