"""The stores: how fast each takes what crawls bring, and the requests that were set aside."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, ClassVar

from moviecrawler.dashboard.pages import Asked, Page, RefusedError
from moviecrawler.dashboard.telling import SILENT
from moviecrawler.frontier.keys import Keys as FrontierKeys
from moviecrawler.frontier.queue import requeue
from moviecrawler.frontier.report import dead_letters, printable
from moviecrawler.urls import HOMES

if TYPE_CHECKING:
    from moviecrawler.frontier.report import DeadLetter

_LETTERS = 100
"""Dead letters that are shown: once some are dealt with, others follow."""


class Stores(Page):
    """`/stores`."""

    template = "stores.html"
    title = "Stores"
    here: ClassVar[str] = "/stores"

    def show(self, asked: Asked) -> dict[str, Any]:
        """Return what processes tell of their stores, and dead letters."""
        sources = self.sources
        now = time.time()
        told = asked.attempt(sources.store_figures, otherwise=[]) if sources.has_frontier else []
        running = [figures for figures in told if not figures.ended and now - figures.at <= SILENT]
        totals: dict[str, dict[str, Any]] = {}
        for figures in running:
            for name, store in figures.stores.items():
                total = totals.setdefault(
                    name,
                    {
                        "processes": 0,
                        "per_minute": 0.0,
                        "held": 0,
                        "room": 0,
                        "retries": 0,
                        "rejected": 0,
                        "slowest": None,
                    },
                )
                total["processes"] += 1
                for figure in ("per_minute", "held", "room", "retries", "rejected"):
                    total[figure] += getattr(store, figure)
                if store.latency is not None:
                    total["slowest"] = max(total["slowest"] or 0.0, store.latency)
        ended = [figures for figures in told if figures.ended]
        letters: list[DeadLetter] = asked.attempt(self._letters, otherwise=[]) if sources.has_frontier else []
        frontier = asked.maybe(sources.frontier) if sources.has_frontier else None
        return {
            "has_frontier": sources.has_frontier,
            "totals": dict(sorted(totals.items())),
            "running": sorted(running, key=lambda one: (one.site, one.run, one.node)),
            "ended": sorted(ended, key=lambda one: -one.at)[:20],
            "letters": letters,
            "letters_in_all": sum(run.dead_letters for run in frontier.runs) if frontier else len(letters),
            "printable": printable,
        }

    def _letters(self) -> list[DeadLetter]:
        async def read(client: Any) -> list[DeadLetter]:
            found = []
            async for letter in dead_letters(client):
                found.append(letter)
                if len(found) == _LETTERS:
                    break
            return found

        letters: list[DeadLetter] = self.sources.ask_frontier(read)
        return sorted(letters, key=lambda letter: -(letter.at or 0))

    def act(self, asked: Asked) -> tuple[str, str]:
        """Queue a dead letter again, or forget it."""
        action, site, run, letter = (asked.value(name) for name in ("action", "site", "run", "letter"))
        if action not in {"requeue", "drop"} or site not in HOMES:
            raise RefusedError("the action is requeue or drop, of a letter of a site's run")
        keys = FrontierKeys(site, run)

        async def change(client: Any) -> bool:
            if action == "requeue":
                return await requeue(client, keys, letter)
            return bool(await client.hdel(keys.dead_letters, letter))

        done = self.sources.ask_frontier(change)
        return "/stores", {"requeue": "requeued", "drop": "dropped"}[action] if done else "no-letter"
