"""`scrapy proxies`: show for each proxy and site what happened, and end quarantines."""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING, Literal

import msgspec
from msgspec.structs import asdict
from scrapy.commands import ScrapyCommand

from moviecrawler.basics.clock import utc_text
from moviecrawler.basics.errors import ConfigurationError
from moviecrawler.commands.base import JSON, NONE, BaseCommand, option, print_json, table
from moviecrawler.sites import SITES

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from moviecrawler.frontier.contract import Backend
    from moviecrawler.proxies.pools import Ban
    from moviecrawler.proxies.site_pools import SitePools
    from moviecrawler.sites import Site


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
        from moviecrawler.frontier.runs import with_queue
        from moviecrawler.proxies.site_pools import SitePools

        site_pools = SitePools.from_settings(self.settings)
        if opts.action:
            with_queue(self.settings, partial(_clear, site_pools, set(opts.names)))
            return
        rows = _rows(site_pools, with_queue(self.settings, _read_bans))
        if opts.json:
            for row in rows:
                print_json(row)
        else:
            print(table([Row.__struct_fields__, *map(_cells, rows)]))


async def _read_bans(queue: Backend) -> dict[Site, dict[str, Ban]]:
    from moviecrawler.proxies.quarantines import decode_bans

    return {site: decode_bans(await queue.exchange_bans(site, {})) for site in SITES}


async def _clear(site_pools: SitePools, names: set[str], queue: Backend) -> None:
    """End the quarantines of proxies or pools.

    Without names, end all, including those of other nodes' proxies.
    """
    labels = {
        proxy.key: (proxy.name, pool.name)
        for pool in site_pools.pools.values()
        for proxy in pool.members.values()
    }
    if unknown := names.difference(*labels.values()):
        raise ConfigurationError(f"there is no proxy {', '.join(sorted(unknown))}")
    for site, bans in (await _read_bans(queue)).items():
        for key in bans:
            label = labels.get(key, (key,))
            if not names or names.intersection(label):
                await queue.exchange_bans(site, {key: None})
                print(f"{label[0]} may be used for {site} again")


class Row(msgspec.Struct, kw_only=True):
    """The state of a proxy for a site."""

    proxy: str
    kind: str
    address: str
    site: Site | None
    state: Literal["usable", "quarantined"] | None = "usable"
    until: float | None = None
    """Unix time at which its latest quarantine ends."""
    bans: int = 0
    reason: str | None = None

    def add(self, ban: Ban) -> None:
        """Add the latest ban."""
        self.until = ban.until
        self.bans = ban.bans
        self.reason = ban.reason
        if ban.until > time.time():
            self.state = "quarantined"


def _rows(site_pools: SitePools, bans: dict[Site, dict[str, Ban]]) -> Iterator[Row]:
    """Yield a row for each proxy and each site that is fetched through it or has banned it.

    A proxy without such a site has one row, too. `bans` keeps those of other nodes' proxies.
    """
    for pool in site_pools.pools.values():
        used = [site for site, order in site_pools.orders.items() if pool in order]
        unused: list[Site | None] = [] if pool.kind == "direct" else [None]
        for proxy in pool.members.values():
            key = str(proxy.key)
            banned = [site for site in bans if key in bans[site]]
            address = (proxy.url or "").replace("://", "://***@" if proxy.authorization else "://")
            for site in dict.fromkeys([*used, *banned]) or unused:
                row = Row(proxy=proxy.name, kind=pool.kind, address=address, site=site)
                if proxy.key is None:  # a session's quarantines are in the memory of its crawl
                    row.state = None
                elif site in banned:
                    row.add(bans[site].pop(key))
                yield row
    for site, others in bans.items():
        for key, ban in others.items():
            row = Row(proxy=key, kind="of another node", address="", site=site)
            row.add(ban)
            yield row


def _cells(row: Row) -> list[str]:
    shown = {**asdict(row), "until": row.until and utc_text(row.until)}
    return [str(value or NONE) for value in shown.values()]
