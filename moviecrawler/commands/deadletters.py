"""`scrapy deadletters`: show requests that were given up, queue them again or drop them."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from scrapy.commands import ScrapyCommand

from moviecrawler.commands.base import BaseCommand, option
from moviecrawler.sites import SITES

if TYPE_CHECKING:
    import argparse

    from moviecrawler.frontier.report import DeadLetter

_ACTIONS = ("list", "show", "requeue", "drop")


class Command(BaseCommand, ScrapyCommand):
    """Prints dead letters, queues them again or drops them: those named, or all of a site or a run."""

    arguments = "[list | show | requeue | drop] [ID... | --all] [--site SITE] [--run RUN] [--json]"
    summary = "Print the requests that were given up, queue them again or drop them"
    options = (
        option("--all", action="store_true", help="show, requeue or drop all of them"),
        option("--site", choices=list(SITES), help="that site's only"),
        option("--run", metavar="RUN", help="those of runs of that name only"),
        option("--json", action="store_true", help="print one JSON object a line"),
    )

    def execute(self, args: list[str], opts: argparse.Namespace) -> None:
        """Run the action. Raises ConfigurationError for a wrong argument, and MovieCrawlerError when Redis can't be reached."""
        from moviecrawler.errors import ConfigurationError

        action, *ids = args or ["list"]
        if action not in _ACTIONS:
            raise ConfigurationError(f"{action!r} is none of {', '.join(_ACTIONS)}")
        if action != "list" and bool(ids) == opts.all:
            raise ConfigurationError(f"{action} takes the ids of dead letters, or --all instead")
        if not self.settings.get("REDIS_URL"):
            raise ConfigurationError("REDIS_URL is not set; only a crawl on a shared Redis has dead letters")
        asyncio.run(_run(self, action, set(ids), opts))


async def _run(command: BaseCommand, action: str, wanted: set[str], opts: argparse.Namespace) -> None:
    from moviecrawler.commands.base import print_json
    from moviecrawler.frontier.report import dead_letters, drop, frontier_client, requeue
    from moviecrawler.texts import printable

    missing, count = set(wanted), 0
    async with frontier_client(command.settings) as client:
        async for letter in dead_letters(client, opts.site, opts.run):
            if wanted and letter.id not in wanted:
                continue
            missing.discard(letter.id)
            count += 1
            where = f"{letter.keys.site.site} ({letter.keys.run})"
            if action == "requeue":
                if await requeue(client, letter.keys, letter.id):
                    print(printable(f"{letter.id} is queued again in {where}; start the crawl's command again"))
            elif action == "drop":
                if await drop(client, letter.keys, letter.id):
                    print(printable(f"{letter.id} is dropped from {where}"))
            elif opts.json:
                print_json(_facts(letter))
            elif action == "list":
                about = (letter.request or {}).get("url") or letter.body[:100]
                parts = (letter.id, where, _facts(letter)["at"], about, letter.reason)
                print("  ".join(printable(part) for part in parts))
            else:
                print(
                    "\n".join(f"{name + ':':12} {printable(str(value))}" for name, value in _facts(letter).items()),
                    "\n",
                )
    for one in sorted(missing):
        command.fail(f"there is no dead letter {one}")
    if not (count or missing or opts.json):
        print("there are no dead letters")


def _facts(letter: DeadLetter) -> dict[str, Any]:
    """Return all that is known of a dead letter."""
    from moviecrawler.clock import utc_text

    facts = {"id": letter.id, "site": letter.keys.site.site, "run": letter.keys.run}
    facts |= {"at": utc_text(letter.at, seconds=True), "reason": letter.reason}
    return facts | (letter.request or {"pushed": letter.body})
