"""Rejected items as the dashboard reads them, forgets them and has their titles fetched again."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import msgspec
from scrapy import Request

from moviecrawler.extensions.crawl_keys import CrawlKeys
from moviecrawler.extensions.rejected_items import RejectedItem
from moviecrawler.frontier.dupefilter import fingerprint
from moviecrawler.frontier.keys import Keys
from moviecrawler.frontier.seeds import push_seed
from moviecrawler.urls import title_url

if TYPE_CHECKING:
    from moviecrawler.items import Site

_ID = re.compile(r"[0-9]{1,18}-[0-9]{1,18}")
_BOOSTED = 100
"""The priority that goes before all others."""


def is_place(text: str) -> bool:
    """Return whether a text is the id of an item, or could be."""
    return _ID.fullmatch(text) is not None


async def page_of_rejected(
    client: Any, before: str | None, size: int
) -> tuple[list[tuple[str, RejectedItem | None]], int]:
    """Return items with their ids, latest first, those before an id if one is given; and how many there are in all.

    None stands for what another version has written. One item more than `size` tells that there are others.
    """
    found = await client.xrevrange(CrawlKeys.REJECTED, f"({before}" if before else "+", "-", count=size + 1)
    return [(id_.decode(), _read(stored)) for id_, stored in found], await client.xlen(CrawlKeys.REJECTED)


async def find_rejected(client: Any, id_: str) -> RejectedItem | None:
    """Return an item; None when it is not there, or another version's."""
    found = await client.xrange(CrawlKeys.REJECTED, id_, id_, count=1)
    return _read(found[0][1]) if found else None


async def forget_rejected(client: Any, id_: str) -> bool:
    """Forget an item, which its node's file still has; return whether it was there."""
    return bool(await client.xdel(CrawlKeys.REJECTED, id_))


async def fetch_again(client: Any, id_: str, start_urls: dict[Site, str]) -> bool:
    """Have the title of an item fetched by the crawl of its site that runs, or else by the next one; and forget the item.

    It is pushed to the site's list of `start_urls`, from where workers take it whatever else they do. Return whether there
    is such an item, with a title.
    """
    item = await find_rejected(client, id_)
    if item is None or item.title is None:
        return False
    site, site_id = item.title
    seed = {"url": title_url(site, site_id), "priority": _BOOSTED}
    await push_seed(client, start_urls[site], msgspec.json.encode(seed))
    # After that: two who ask at once have it fetched twice, and one who dies in between loses nothing.
    await forget_rejected(client, id_)
    keys = Keys(site, item.run)
    if item.url and await client.hdel(keys.failed, fingerprint(Request(item.url, meta={"site": site}))):
        # The next start of the run would try it once more, beside the seed, which counts as a request of its own.
        await client.hincrby(keys.state, "failed", -1)
        await client.hincrby(keys.state, "total", -1)
    return True


def _read(stored: dict[bytes, bytes]) -> RejectedItem | None:
    try:
        return msgspec.json.decode(stored.get(b"item", b""), type=RejectedItem)
    except (msgspec.DecodeError, RecursionError):
        return None
