"""`scrapy deadletters`: requests that were set aside, to be shown, queued again or dropped."""

from __future__ import annotations

import asyncio
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from moviecrawler.clock import utc_text
from moviecrawler.console.output import Console, print_json
from moviecrawler.errors import ConfigurationError
from moviecrawler.frontier.dead_letters import DeadLetter, dead_letters, drop
from moviecrawler.frontier.queue import requeue
from moviecrawler.frontier.report import asking, budgets
from moviecrawler.texts import printable

if TYPE_CHECKING:
    import argparse
    from collections.abc import Awaitable, Callable

_ACTIONS = ("list", "show", "requeue", "drop")


class DeadLetters(Console):
    """Prints dead letters, queues them again or forgets them: those named, or all of a site or a run."""

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        """Run the action; exit code 1 when Redis can't be reached or a request can't be queued, 2 when an argument or a setting is wrong."""
        action, *ids = args or ["list"]
        if action not in _ACTIONS:
            raise ConfigurationError(f"{action!r} is none of {', '.join(_ACTIONS)}")
        if action != "list" and bool(ids) == opts.all:
            raise ConfigurationError(f"{action} takes the ids of dead letters, or --all instead")
        if not self.settings.get("REDIS_URL"):
            raise ConfigurationError("REDIS_URL is not set; only a crawl on a shared Redis has dead letters")
        budgets(self.settings)  # raises ConfigurationError for wrong settings
        asyncio.run(self._run(action, set(ids), opts))

    async def _run(self, action: str, wanted: set[str], opts: argparse.Namespace) -> None:
        missing = set(wanted)
        count = 0
        async with asking(self.settings) as client:
            do: dict[str, Callable[[Any, DeadLetter], Awaitable[None]]] = {"requeue": self._requeue, "drop": self._drop}
            async for letter in dead_letters(client, opts.site, opts.run):
                if wanted and letter.id not in wanted:
                    continue
                missing.discard(letter.id)
                count += 1
                if action in do:
                    await do[action](client, letter)
                elif opts.json:
                    print_json({**asdict(letter), "request": letter.request})
                else:
                    print(_line(letter) if action == "list" else _whole(letter))
        for one in sorted(missing):
            self.fail(f"there is no dead letter {one}")
        if not (count or missing or opts.json):
            print("there are no dead letters")

    async def _requeue(self, client: Any, letter: DeadLetter) -> None:
        if await requeue(client, letter.keys, letter.id):
            print(f"{letter.id} is queued again in {letter.site} ({letter.run})")
        else:
            self.fail(f"{letter.id} can't be queued again: {letter.reason}")

    async def _drop(self, client: Any, letter: DeadLetter) -> None:
        if await drop(client, letter.keys, letter.id):
            print(printable(f"{letter.id} is dropped from {letter.site} ({letter.run})"))


def _when(letter: DeadLetter) -> str:
    return "" if letter.at is None else utc_text(letter.at, seconds=True)


def _line(letter: DeadLetter) -> str:
    about = (letter.request or {}).get("url") or ""
    parts = (letter.id, f"{letter.site} ({letter.run})", _when(letter), about, letter.reason)
    return "  ".join(printable(str(part)) for part in parts if part)


def _whole(letter: DeadLetter) -> str:
    """Return all facts, one a line."""
    facts: dict[str, Any] = {"id": letter.id, "site": letter.site, "run": letter.run, "set aside": _when(letter)}
    facts["reason"] = letter.reason
    facts |= letter.request or {"entry": letter.entry}
    return "\n".join(f"{name + ':':12} {printable(str(value))}" for name, value in facts.items() if value != "") + "\n"
