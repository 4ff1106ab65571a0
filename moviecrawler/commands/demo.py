"""`scrapy demo`: the three spiders against the replica, and the scores they found side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy.commands import ScrapyCommand

if TYPE_CHECKING:
    import argparse


class Command(ScrapyCommand):
    """Needs no network and no service."""

    requires_crawler_process = False

    def short_desc(self) -> str:
        """Return one line for the list of commands."""
        return "Crawl a local replica of the three sites and print the joined scores"

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        """Add the replica's size and seed."""
        super().add_options(parser)
        parser.add_argument("--titles", type=int, default=60, metavar="N", help="movies on the replica (default: 60)")
        parser.add_argument("--seed", type=int, default=1, metavar="S", help="which movies those are (default: 1)")

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        """Run it, in `console/demo.py`."""
        from moviecrawler.console.demo import Demo  # noqa: PLC0415 - Scrapy imports this module for every command

        self.exitcode = Demo(self).exit_code(args, opts)
