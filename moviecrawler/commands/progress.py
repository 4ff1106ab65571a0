"""`scrapy progress`: how far the crawls that share a Redis are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy.commands import ScrapyCommand

from moviecrawler.urls import HOMES

if TYPE_CHECKING:
    import argparse


class Command(ScrapyCommand):
    """Bars on a terminal, lines otherwise, while a crawl runs; each run's figures by node, rate and time left.

    Of runs that are over, those of the last hour are shown: each job of a cluster may be one, for two weeks.
    """

    requires_crawler_process = False

    def syntax(self) -> str:
        """Return the arguments' form."""
        return "[--json] [--once] [--all] [--site SITE] [--run RUN]"

    def short_desc(self) -> str:
        """Return one line for the list of commands."""
        return "Show how far the crawls of all nodes are"

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        """Add what to show, and how."""
        super().add_options(parser)
        parser.add_argument("--json", action="store_true", help="one JSON object, once")
        parser.add_argument("--once", action="store_true", help="don't follow")
        parser.add_argument("--all", action="store_true", help="those that are over for long, too")
        parser.add_argument("--site", choices=list(HOMES), help="that site's crawls only")
        parser.add_argument("--run", metavar="RUN", help="runs of that name only (FRONTIER_RUN)")

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        """Run it, in `console/progress.py`."""
        from moviecrawler.console.progress import Progress  # noqa: PLC0415 - Scrapy imports this module for every command

        self.exitcode = Progress(self).exit_code(args, opts)
