"""`scrapy deadletters`: requests that were set aside, and what to do with them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy.commands import ScrapyCommand

from moviecrawler.urls import HOMES

if TYPE_CHECKING:
    import argparse


class Command(ScrapyCommand):
    """Prints dead letters, queues them again or forgets them: those named, or all of a site or a run."""

    requires_crawler_process = False

    def syntax(self) -> str:
        """Return the arguments' form."""
        return "[list | show | requeue | drop] [ID... | --all] [--site SITE] [--run RUN] [--json]"

    def short_desc(self) -> str:
        """Return one line for the list of commands."""
        return "Print the requests that were set aside, queue them again or drop them"

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        """Add which ones, and how to print them."""
        super().add_options(parser)
        parser.add_argument("--all", action="store_true", help="show, requeue or drop all of them")
        parser.add_argument("--site", choices=list(HOMES), help="that site's only")
        parser.add_argument("--run", metavar="RUN", help="those of runs of that name only (FRONTIER_RUN)")
        parser.add_argument("--json", action="store_true", help="print one JSON object a line")

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        """Run it, in `console/deadletters.py`."""
        from moviecrawler.console.deadletters import DeadLetters  # noqa: PLC0415 - Scrapy imports this module for every command

        self.exitcode = DeadLetters(self).exit_code(args, opts)
