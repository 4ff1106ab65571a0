"""Rejected items in Redis: reading them, forgetting them, and fetching their titles again."""

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
"""Priority above all others."""


def is_item_id(text: str) -> bool:
    """Return whether a text has the form of an item's id."""
    return _ID.fullmatch(text) is not None


async def page_of_rejected(
    client: Any, before: str | None, size: int
) -> tuple[list[tuple[str, RejectedItem | None]], int]:
    """Return items with their ids, latest first, those before an id if one is given; and how many there are in all.

    An item that another version has written is None. One item more than `size` means that there are others.
    """
    found = await client.xrevrange(CrawlKeys.REJECTED, f"({before}" if before else "+", "-", count=size + 1)
    return [(id_.decode(), _read(stored)) for id_, stored in found], await client.xlen(CrawlKeys.REJECTED)


async def find_rejected(client: Any, id_: str) -> RejectedItem | None:
    """Return an item; None when it is not there, or another version has written it."""
    found = await client.xrange(CrawlKeys.REJECTED, id_, id_, count=1)
    return _read(found[0][1]) if found else None


async def forget_rejected(client: Any, id_: str) -> bool:
    """Delete an item in Redis, not in its node's file; return whether it was there."""
    return bool(await client.xdel(CrawlKeys.REJECTED, id_))


async def fetch_again(client: Any, id_: str, start_urls: dict[Site, str]) -> bool:
    """Have the title of an item fetched by the running crawl of its site, or else by the next one; and forget the item.

    The title is pushed to the site's list of `start_urls`, from which all workers read. Return False when the item is gone
    or has no title.
    """
    item = await find_rejected(client, id_)
    if item is None or item.title is None:
        return False
    site, site_id = item.title
    seed = {"url": title_url(site, site_id), "priority": _BOOSTED}
    await push_seed(client, start_urls[site], msgspec.json.encode(seed))
    # In this order, a process that dies in between loses nothing, and two clients at once have it fetched twice.
    await forget_rejected(client, id_)
    keys = Keys(site, item.run)
    if item.url and await client.hdel(keys.failed, fingerprint(Request(item.url, meta={"site": site}))):
        # Otherwise the next start of the run would fetch it again, too.
        await client.hincrby(keys.state, "failed", -1)
        await client.hincrby(keys.state, "total", -1)
    return True


def _read(stored: dict[bytes, bytes]) -> RejectedItem | None:
    try:
        return msgspec.json.decode(stored.get(b"item", b""), type=RejectedItem)
    except (msgspec.DecodeError, RecursionError):
        return None
