"""The page of stores: how fast each writes, which items it rejected, and the dead letters."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import msgspec
from scrapy import Request

from moviecrawler.dashboard.pages import Page, PageRequest, RefusedError
from moviecrawler.extensions.crawl_keys import CrawlKeys
from moviecrawler.extensions.rejected_items import KEPT, RejectedItem
from moviecrawler.extensions.store_stats import SILENT_SECONDS
from moviecrawler.frontier.dead_letters import Place, drop, page_of_dead_letters
from moviecrawler.frontier.dupefilter import fingerprint
from moviecrawler.frontier.keys import Keys as FrontierKeys
from moviecrawler.frontier.queue import requeue
from moviecrawler.frontier.seeds import push_seed
from moviecrawler.sites import SITES
from moviecrawler.urls import title_url

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from moviecrawler.dashboard.sources import Frontier
    from moviecrawler.extensions.store_stats import StoreFigures
    from moviecrawler.frontier.dead_letters import DeadLetter
    from moviecrawler.items import Site

_ROWS = 50
"""Dead letters, and items, on a page."""
_ITEM_ID = re.compile(r"[0-9]{1,18}-[0-9]{1,18}")
_BOOSTED = 100
"""Priority above all others."""


class Stores(Page):
    """`/stores`. Its query says after which dead letter (`letters`) and which rejected item (`items`) each list begins."""

    template = "stores.html"
    title = in_menu = "Stores"

    def show(self, request: PageRequest) -> dict[str, Any]:
        """Return the figures of stores, the rejected items and the dead letters."""
        place = request.place("letters", Place.parse)
        before = request.place("items", _item_id) or ""
        now = time.time()
        figures_of_all = request.attempt(self.sources.store_figures, otherwise=[])
        running = [figures for figures in figures_of_all if not figures.ended and now - figures.at <= SILENT_SECONDS]
        ended = [figures for figures in figures_of_all if figures.ended]
        frontier = request.attempt(self.sources.frontier)
        dead_letters, more = request.attempt(self._dead_letters, frontier, place, otherwise=([], None))
        items: list[tuple[str, RejectedItem | None]] = []
        items_in_all = 0
        if self.node.has_frontier:
            items, items_in_all = request.attempt(self._items, before, otherwise=([], 0))
        totals: dict[str, list[StoreFigures]] = {}
        for figures in running:
            for name, store in figures.stores.items():
                totals.setdefault(name, []).append(store)
        return {
            "totals": dict(sorted(totals.items())),
            "processes": [
                (one, name, store)
                for one in (*sorted(running, key=lambda one: (one.site, one.run, one.node)), *ended)
                for name, store in one.stores.items()
            ],
            "where": _query(request),
            "dead_letters": dead_letters,
            "dead_letters_in_all": sum(run.dead_letters for run in frontier.runs) if frontier else len(dead_letters),
            "to_first_dead_letters": _query(request, letters="") if place else None,
            "to_more_dead_letters": _query(request, letters=str(more)) if more else None,
            "items": items[:_ROWS],
            "items_in_all": items_in_all,
            "items_kept": KEPT,
            "to_first_items": _query(request, items="") if before else None,
            "to_more_items": _query(request, items=items[_ROWS - 1][0]) if len(items) > _ROWS else None,
            "seeds": [state for state in frontier.sites.values() if state.seeds] if frontier else [],
        }

    def _dead_letters(self, frontier: Frontier | None, place: Place | None) -> tuple[list[DeadLetter], Place | None]:
        if frontier is None:
            return [], None
        found, more = self.node.ask_frontier(lambda client: page_of_dead_letters(client, frontier.runs, place, _ROWS))
        return sorted(found, key=lambda one: -(one.at or 0)), more

    def _items(self, before: str) -> tuple[list[tuple[str, RejectedItem | None]], int]:
        return self.node.ask_frontier(lambda client: page_of_rejected(client, before, _ROWS))

    def do_requeue(self, request: PageRequest) -> tuple[str, str]:
        return self._change_dead_letter(request, requeue, "requeued")

    def do_drop(self, request: PageRequest) -> tuple[str, str]:
        return self._change_dead_letter(request, drop, "dropped")

    def do_fetch(self, request: PageRequest) -> tuple[str, str]:
        start_urls = self.sources.start_urls()
        return self._change_item(request, lambda client, item: fetch_again(client, item, start_urls), "fetched-again")

    def do_forget(self, request: PageRequest) -> tuple[str, str]:
        return self._change_item(request, forget_rejected, "forgotten")

    def _change_dead_letter(
        self, request: PageRequest, change: Callable[[Any, FrontierKeys, str], Awaitable[bool]], notice: str
    ) -> tuple[str, str]:
        site, run, letter = (request.value(name) for name in ("site", "run", "letter"))
        if site not in SITES:
            raise RefusedError(f"there is no site {site[:40]!r}")
        done = self.node.ask_frontier(lambda client: change(client, FrontierKeys(site, run), letter))
        return f"{self.here}{_query(request)}", notice if done else "no-dead-letter"

    def _change_item(
        self, request: PageRequest, change: Callable[[Any, str], Awaitable[bool]], notice: str
    ) -> tuple[str, str]:
        item = request.place("item", _item_id)
        if item is None:
            raise RefusedError("no item is named")
        done = self.node.ask_frontier(lambda client: change(client, item))
        return f"{self.here}{_query(request)}", notice if done else "no-item"


def _item_id(text: str) -> str:
    """Return the id of an item. Raises ValueError for a text that is none."""
    if not _ITEM_ID.fullmatch(text):
        raise ValueError(f"{text!r} is no item's id")
    return text


def _query(request: PageRequest, **changed: str) -> str:
    """Return the query of the page that is shown, with a place changed; an empty one is a list's beginning."""
    places = {name: changed.get(name, request.value(name)) for name in ("letters", "items")}
    given = {name: place for name, place in places.items() if place}
    return f"?{urlencode(given)}" if given else ""


# --- Rejected items in Redis ------------------------------------------------------------------------------------------


async def page_of_rejected(client: Any, before: str, size: int) -> tuple[list[tuple[str, RejectedItem | None]], int]:
    """Return items with their ids, latest first, those before an id if one is given; and how many there are in all.

    An item that another version has written is None. One item more than `size` means that there are others.
    """
    found = await client.xrevrange(CrawlKeys.REJECTED, f"({before}" if before else "+", "-", count=size + 1)
    return [(id_.decode(), _read(stored)) for id_, stored in found], await client.xlen(CrawlKeys.REJECTED)


async def forget_rejected(client: Any, id_: str) -> bool:
    """Delete an item in Redis, not in its node's file; return whether it was there."""
    return bool(await client.xdel(CrawlKeys.REJECTED, id_))


async def fetch_again(client: Any, id_: str, start_urls: dict[Site, str]) -> bool:
    """Have the title of an item fetched by the running crawl of its site, or else by the next one; and forget the item.

    The title is pushed to the site's list of `start_urls`, from which all workers read. Return False when the item is gone
    or has no title.
    """
    found = await client.xrange(CrawlKeys.REJECTED, id_, id_, count=1)
    item = _read(found[0][1]) if found else None
    if item is None or item.title is None:
        return False
    site, site_id = item.title
    seed = {"url": title_url(site, site_id), "priority": _BOOSTED}
    await push_seed(client, start_urls[site], msgspec.json.encode(seed))
    # In this order, a process that dies in between loses nothing, and two clients at once have it fetched twice.
    await forget_rejected(client, id_)
    keys = FrontierKeys(site, item.run)
    if item.url and await client.hdel(keys.failed, fingerprint(Request(item.url, meta={"site": site}))):
        # Otherwise the next start of the run would fetch it again, too.
        await client.hincrby(keys.state, "failed", -1)
        await client.hincrby(keys.state, "total", -1)
    return True


def _read(stored: dict[bytes, bytes]) -> RejectedItem | None:
    try:
        return msgspec.json.decode(stored.get(b"item", b""), type=RejectedItem)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
