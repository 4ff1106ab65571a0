"""`scrapy proxies`: show which proxies are in quarantine for which sites, and end quarantines."""

from __future__ import annotations

import asyncio
import sys
import time
from typing import TYPE_CHECKING, Any

from scrapy.commands import ScrapyCommand

from moviecrawler.commands.base import JSON, NONE, BaseCommand, option

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from moviecrawler.items import Site
    from moviecrawler.proxies.pools import Ban
    from moviecrawler.proxies.site_pools import SitePools


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
        from moviecrawler.commands.base import print_json, table_lines
        from moviecrawler.errors import ConfigurationError
        from moviecrawler.proxies.site_pools import SitePools

        site_pools = SitePools.from_settings(self.settings)
        has_redis = bool(self.settings.get("REDIS_URL"))
        if opts.action:
            if not has_redis:
                raise ConfigurationError(
                    "REDIS_URL is not set; without it a crawl's quarantines end with it"
                )
            asyncio.run(self._clear(site_pools, set(opts.names)))
            return
        if not has_redis:
            print(
                "REDIS_URL is not set: every crawl keeps its quarantines to itself", file=sys.stderr
            )
        rows = list(_rows(site_pools, asyncio.run(self._read()) if has_redis else {}))
        if opts.json:
            for row in rows:
                print_json(row)
        else:
            print(
                "\n".join(
                    table_lines([("proxy", "kind", "address", "site", "state"), *map(_cells, rows)])
                )
            )

    async def _read(self) -> dict[Site, dict[str, Ban]]:
        from moviecrawler.proxies.quarantines import bans_key, decode_bans
        from moviecrawler.redis_client import client_of
        from moviecrawler.sites import SITES

        async with client_of(self.settings) as client:
            return {site: decode_bans(await client.hgetall(bans_key(site))) for site in SITES}

    async def _clear(self, site_pools: SitePools, names: set[str]) -> None:
        """End the quarantines of proxies or pools.

        Without names, end all, including those of other nodes' proxies.
        """
        from moviecrawler.errors import ConfigurationError
        from moviecrawler.proxies.quarantines import bans_key
        from moviecrawler.redis_client import client_of

        members = [
            (pool, proxy) for pool in site_pools.pools.values() for proxy in pool.members.values()
        ]
        labels = {proxy.key: (proxy.name, pool.name) for pool, proxy in members}
        if unknown := names.difference(*labels.values()):
            raise ConfigurationError(f"there is no proxy {', '.join(sorted(unknown))}")
        bans = await self._read()
        async with client_of(self.settings) as client:
            for site, of_site in bans.items():
                for key in of_site:
                    label = labels.get(key, (key,))
                    if not names or names.intersection(label):
                        await client.hdel(bans_key(site), key)
                        print(f"{label[0]} may be used for {site} again")


def _rows(site_pools: SitePools, bans: dict[Site, dict[str, Ban]]) -> Iterator[dict[str, Any]]:
    """Yield a row for each proxy and site that has banned it.

    Yield also one for each proxy that no site has banned.
    """
    used = {pool.name for order in site_pools.orders.values() for pool in order}
    left: dict[str, dict[Site | None, Ban | None]] = {}
    for site, of_site in bans.items():
        for key, ban in of_site.items():
            left.setdefault(key, {})[site] = ban
    for pool in site_pools.pools.values():
        for proxy in pool.members.values():
            own = left.pop(proxy.key or "", None)
            address = (proxy.url or "").replace("://", "://***@" if proxy.authorization else "://")
            if own or pool.kind != "direct" or pool.name in used:
                yield from _rows_of(
                    {"proxy": proxy.name, "kind": pool.kind, "address": address},
                    own or {None: None},
                )
    for key, own in left.items():
        yield from _rows_of({"proxy": key, "kind": "of another node", "address": ""}, own)


def _rows_of(
    proxy: dict[str, Any], bans: dict[Site | None, Ban | None]
) -> Iterator[dict[str, Any]]:
    for site, ban in bans.items():
        state = "quarantined" if ban and ban.until > time.time() else "usable"
        figures = {
            "until": ban and ban.until,
            "bans": ban.bans if ban else 0,
            "reason": ban and ban.reason,
        }
        yield {**proxy, "site": site, "state": state, **figures}


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    state = row["state"]
    if state == "quarantined":
        minutes = max(row["until"] - time.time(), 0) / 60
        state = f"quarantined for {minutes:.0f} min, ban {row['bans']} in a row: {row['reason']}"
    return row["proxy"], row["kind"], row["address"] or NONE, row["site"] or NONE, state
