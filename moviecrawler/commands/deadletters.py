"""`scrapy deadletters`: show requests that were given up, queue them again or drop them."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from scrapy.commands import ScrapyCommand

from moviecrawler.commands.base import JSON, RUN, SITE, BaseCommand, option

if TYPE_CHECKING:
    import argparse

    from moviecrawler.frontier.report import DeadLetter


class Command(BaseCommand, ScrapyCommand):
    """Print the requests that were given up, queue them again or drop them.

    Without ids, all are listed or shown; `requeue` and `drop` take ids, or --all.
    """

    arguments = "[list | show | requeue | drop] [ID...] [options]"
    options = (
        option("action", nargs="?", choices=["list", "show", "requeue", "drop"], default="list"),
        option("ids", nargs="*", metavar="ID"),
        option("--all", action="store_true", help="requeue or drop all of them"),
        SITE,
        RUN,
        JSON,
    )

    def execute(self, opts: argparse.Namespace) -> None:
        from moviecrawler.errors import ConfigurationError

        if opts.action in {"requeue", "drop"} and bool(opts.ids) == opts.all:
            raise ConfigurationError(
                f"{opts.action} takes the ids of dead letters, or --all instead"
            )
        self.require_redis("only a crawl on a shared Redis has dead letters")
        asyncio.run(self._run(opts))

    async def _run(self, opts: argparse.Namespace) -> None:
        from moviecrawler.commands.base import print_json
        from moviecrawler.frontier.report import dead_letters, drop, frontier_client, requeue
        from moviecrawler.texts import printable

        found: set[str] = set()
        async with frontier_client(self.settings) as client:
            async for letter in dead_letters(client, opts.site, opts.run):
                if opts.ids and letter.id not in opts.ids:
                    continue
                found.add(letter.id)
                facts = _facts(letter)
                where = f"{facts['site']} ({facts['run']})"
                if opts.action == "requeue":
                    if await requeue(client, letter.keys, letter.id):
                        print(
                            printable(
                                f"{letter.id} is queued again in {where}; "
                                "start the crawl's command again"
                            )
                        )
                elif opts.action == "drop":
                    if await drop(client, letter.keys, letter.id):
                        print(printable(f"{letter.id} is dropped from {where}"))
                elif opts.json:
                    print_json(facts)
                elif opts.action == "list":
                    about = facts.get("url") or letter.body[:100]
                    print(
                        "  ".join(
                            printable(part)
                            for part in (letter.id, where, facts["at"], about, letter.reason)
                        )
                    )
                else:
                    print(
                        *(
                            f"{name + ':':12} {printable(str(value))}"
                            for name, value in facts.items()
                        ),
                        "",
                        sep="\n",
                    )
        for missing in sorted(set(opts.ids) - found):
            self.fail(f"there is no dead letter {missing}")
        if not (found or opts.ids or opts.json):
            print("there are no dead letters")


def _facts(letter: DeadLetter) -> dict[str, Any]:
    """Return all that is known of a dead letter."""
    from moviecrawler.clock import utc_text

    facts = {"id": letter.id, "site": letter.keys.site.site, "run": letter.keys.run}
    facts |= {"at": utc_text(letter.at, seconds=True), "reason": letter.reason}
    return facts | (letter.request or {"pushed": letter.body})
