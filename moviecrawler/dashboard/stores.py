"""The page of stores: how fast each writes, which items it rejected, and the dead letters."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import urlencode

from moviecrawler.dashboard.formats import safe_url
from moviecrawler.dashboard.pages import Page, PageRequest, RefusedError
from moviecrawler.dashboard.rejected import fetch_again, forget_rejected, is_item_id, page_of_rejected
from moviecrawler.extensions.rejected_items import KEPT
from moviecrawler.extensions.store_stats import SILENT_SECONDS
from moviecrawler.frontier.dead_letters import Place, drop, page_of_dead_letters
from moviecrawler.frontier.keys import Keys as FrontierKeys
from moviecrawler.frontier.queue import requeue
from moviecrawler.texts import printable
from moviecrawler.urls import HOMES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from moviecrawler.dashboard.sources import Frontier
    from moviecrawler.extensions.rejected_items import RejectedItem
    from moviecrawler.extensions.store_stats import ProcessFigures
    from moviecrawler.frontier.dead_letters import DeadLetter

_ROWS = 50
"""Dead letters, and items, on a page."""


@dataclass(slots=True, kw_only=True)
class Total:
    """Figures of one store, of all processes."""

    processes: int = 0
    per_minute: float = 0.0
    held: int = 0
    room: int = 0
    retries: int = 0
    rejected: int = 0
    slowest: float | None = None
    """Longest time that a batch takes; None before the first batch."""


@dataclass(frozen=True, slots=True)
class Where:
    """Which page of each list is shown, as the last entry before it; empty for the first page."""

    dead_letters: str = ""
    items: str = ""

    @property
    def query(self) -> str:
        """What follows the page's path."""
        places = {name: place for name, place in (("letters", self.dead_letters), ("items", self.items)) if place}
        return f"?{urlencode(places)}" if places else ""


class Stores(Page):
    """`/stores`."""

    template = "stores.html"
    title = "Stores"
    here: ClassVar[str] = "/stores"

    def show(self, request: PageRequest) -> dict[str, Any]:
        """Return the figures of stores, the rejected items and the dead letters."""
        sources = self.sources
        where = _where(request)
        now = time.time()
        figures_of_all = request.attempt(sources.store_figures, otherwise=[])
        running = [figures for figures in figures_of_all if not figures.ended and now - figures.at <= SILENT_SECONDS]
        frontier = request.attempt(sources.frontier)
        dead_letters, more = request.attempt(self._dead_letters, frontier, where, otherwise=([], None))
        items: list[tuple[str, RejectedItem | None]] = []
        items_in_all = 0
        if sources.node.has_frontier:
            items, items_in_all = request.attempt(self._items, where, otherwise=([], 0))
        return {
            "has_frontier": sources.node.has_frontier,
            "totals": _totals(running),
            "processes": [
                (one, name, store)
                for one in (
                    *sorted(running, key=lambda one: (one.site, one.run, one.node)),
                    *(figures for figures in figures_of_all if figures.ended),
                )
                for name, store in one.stores.items()
            ],
            "where": where,
            "dead_letters": dead_letters,
            "dead_letters_in_all": sum(run.dead_letters for run in frontier.runs) if frontier else len(dead_letters),
            "to_first_dead_letters": Where(items=where.items).query if where.dead_letters else None,
            "to_more_dead_letters": Where(str(more), where.items).query if more else None,
            "items": items[:_ROWS],
            "items_in_all": items_in_all,
            "items_kept": KEPT,
            "to_first_items": Where(dead_letters=where.dead_letters).query if where.items else None,
            "to_more_items": Where(where.dead_letters, items[_ROWS - 1][0]).query if len(items) > _ROWS else None,
            "seeds": [state for state in frontier.sites.values() if state.seeds] if frontier else [],
            "printable": printable,
            "safe_url": safe_url,
        }

    def _dead_letters(self, frontier: Frontier | None, where: Where) -> tuple[list[DeadLetter], Place | None]:
        if frontier is None:
            return [], None
        place = Place.parse(where.dead_letters) if where.dead_letters else None
        found, more = self.sources.node.ask_frontier(
            lambda client: page_of_dead_letters(client, frontier.runs, place, _ROWS)
        )
        return sorted(found, key=lambda one: -(one.at or 0)), more

    def _items(self, where: Where) -> tuple[list[tuple[str, RejectedItem | None]], int]:
        return self.sources.node.ask_frontier(lambda client: page_of_rejected(client, where.items or None, _ROWS))

    def act(self, request: PageRequest) -> tuple[str, str]:
        """Queue a dead letter again or drop it; fetch the title of a rejected item again, or forget the item."""
        back = f"/stores{_where(request).query}"
        action = request.value("action")
        if action in {"requeue", "drop"}:
            return back, self._act_on_dead_letter(request, action)
        if action in {"fetch", "forget"}:
            return back, self._act_on_item(request, action)
        raise RefusedError(
            f"action is {action[:40]!r}; it is requeue or drop of a dead letter, fetch or forget of an item"
        )

    def _act_on_dead_letter(self, request: PageRequest, action: str) -> str:
        site, run, letter = (request.value(name) for name in ("site", "run", "letter"))
        if site not in HOMES:
            raise RefusedError("the action is requeue or drop, of a dead letter of a site's run")
        keys = FrontierKeys(site, run)

        async def change(client: Any) -> bool:
            if action == "requeue":
                return await requeue(client, keys, letter)
            return await drop(client, keys, letter)

        done = self.sources.node.ask_frontier(change)
        return {"requeue": "requeued", "drop": "dropped"}[action] if done else "no-dead-letter"

    def _act_on_item(self, request: PageRequest, action: str) -> str:
        item = request.value("item")
        if not is_item_id(item):
            raise RefusedError("there is no such item")
        start_urls = self.sources.start_urls()

        async def change(client: Any) -> bool:
            if action == "fetch":
                return await fetch_again(client, item, start_urls)
            return await forget_rejected(client, item)

        done = self.sources.node.ask_frontier(change)
        return {"fetch": "fetched-again", "forget": "forgotten"}[action] if done else "no-item"


def _where(request: PageRequest) -> Where:
    """Return which page is asked for. Raises RefusedError."""
    where = Where(request.value("letters"), request.value("items"))
    try:
        _ = where.dead_letters and Place.parse(where.dead_letters)
    except ValueError:
        raise RefusedError("there is no such page of dead letters") from None
    if where.items and not is_item_id(where.items):
        raise RefusedError("there is no such page of items")
    return where


def _totals(running: Sequence[ProcessFigures]) -> dict[str, Total]:
    """Return each store's figures, by name."""
    totals: dict[str, Total] = {}
    for figures in running:
        for name, store in figures.stores.items():
            total = totals.setdefault(name, Total())
            total.processes += 1
            total.per_minute += store.per_minute
            total.held += store.held
            total.room += store.room
            total.retries += store.retries
            total.rejected += store.rejected
            if store.latency is not None:
                total.slowest = max(total.slowest or 0.0, store.latency)
    return dict(sorted(totals.items()))
