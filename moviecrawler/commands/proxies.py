"""`scrapy proxies`: show which proxies are in quarantine for which sites, and end quarantines."""

from __future__ import annotations

import asyncio
import sys
import time
from typing import TYPE_CHECKING, Any

from scrapy.commands import ScrapyCommand

from moviecrawler.commands.base import BaseCommand, option

if TYPE_CHECKING:
    import argparse

    from moviecrawler.items import Site
    from moviecrawler.proxies.pools import Ban
    from moviecrawler.proxies.site_pools import SitePools


class Command(BaseCommand, ScrapyCommand):
    """Prints a table of proxies; `clear` ends quarantines."""

    arguments = "[--json] | clear [PROXY...]"
    summary = "Show the proxies and their quarantines, or end quarantines"
    options = (option("--json", action="store_true", help="one JSON object a line, in place of a table"),)

    def execute(self, args: list[str], opts: argparse.Namespace) -> None:
        """Show or clear. Raises ConfigurationError, and MovieCrawlerError when Redis can't be reached."""
        from moviecrawler.commands.base import print_json, print_table
        from moviecrawler.errors import ConfigurationError
        from moviecrawler.proxies.site_pools import SitePools

        site_pools = SitePools.from_settings(self.settings)
        has_redis = bool(self.settings.get("REDIS_URL"))
        if args and args[0] != "clear":
            raise ConfigurationError("give nothing, or `clear` and names of proxies")
        if args and not has_redis:
            raise ConfigurationError("REDIS_URL is not set; without it a crawl's quarantines end with it")
        if args:
            asyncio.run(_clear(self, site_pools, args[1:]))
            return
        if not has_redis:
            print("REDIS_URL is not set: every crawl keeps its quarantines to itself", file=sys.stderr)
        bans = asyncio.run(_read(self)) if has_redis else {}
        rows = list(_rows(site_pools, bans, time.time()))
        if opts.json:
            for row in rows:
                print_json(row)
        else:
            print_table([("proxy", "kind", "address", "site", "state"), *map(_cells, rows)])


async def _read(command: BaseCommand) -> dict[Site, dict[str, Ban]]:
    from moviecrawler.frontier.report import frontier_client
    from moviecrawler.proxies.quarantines import bans_key, decode_bans
    from moviecrawler.sites import SITES

    async with frontier_client(command.settings) as client:
        return {site: decode_bans(await client.hgetall(bans_key(site))) for site in SITES}


async def _clear(command: BaseCommand, site_pools: SitePools, names: list[str]) -> None:
    """End the quarantines of proxies or pools; without names all, including those of other nodes' proxies."""
    from moviecrawler.errors import ConfigurationError
    from moviecrawler.frontier.report import frontier_client
    from moviecrawler.proxies.quarantines import bans_key, decode_bans
    from moviecrawler.sites import SITES

    labels = {
        proxy.key: (pool.name, proxy.name) for pool in site_pools.pools.values() for proxy in pool.members.values()
    }
    unknown = set(names) - {name for label in labels.values() for name in label}
    if unknown:
        raise ConfigurationError(f"there is no proxy {', '.join(sorted(unknown))}")
    async with frontier_client(command.settings) as client:
        for site in SITES:
            for key in decode_bans(await client.hgetall(bans_key(site))):
                label = labels.get(key, ("", key))
                if not names or set(label) & set(names):
                    await client.hdel(bans_key(site), key)
                    print(f"{label[1]} may be used for {site} again")


def _rows(site_pools: SitePools, bans: dict[Site, dict[str, Ban]], now: float) -> Any:
    """Yield a row for each proxy and site that has banned it, and one for each proxy that no site has banned."""
    used = {pool.name for order in site_pools.orders.values() for pool in order}
    left = {(site, key): ban for site, of_site in bans.items() for key, ban in of_site.items()}
    for pool in site_pools.pools.values():
        for proxy in pool.members.values():
            mine = [(site, left.pop((site, proxy.key or ""))) for site in bans if (site, proxy.key) in left]
            address = (proxy.url or "").replace("://", "://***@" if proxy.authorization else "://")
            for site, ban in mine:
                yield _row(proxy.name, pool.kind, address, site, ban, now)
            if not mine and (pool.kind != "direct" or pool.name in used):
                yield _row(proxy.name, pool.kind, address, None, None, now)
    for (site, key), ban in left.items():
        yield _row(key, "of another node", "", site, ban, now)


def _row(name: str, kind: str, address: str, site: str | None, ban: Ban | None, now: float) -> dict[str, Any]:
    quarantined = ban is not None and ban.until > now
    return {
        "proxy": name,
        "kind": kind,
        "address": address,
        "site": site,
        "state": "quarantined" if quarantined else "usable",
        "until": ban and ban.until,
        "bans": ban.bans if ban else 0,
        "reason": ban and ban.reason,
    }


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    state = row["state"]
    if state == "quarantined":
        minutes = max(row["until"] - time.time(), 0) / 60
        state = f"quarantined for {minutes:.0f} min, ban {row['bans']} in a row: {row['reason']}"
    return row["proxy"], row["kind"], row["address"] or "-", row["site"] or "-", state
