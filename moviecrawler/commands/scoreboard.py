"""`scrapy scoreboard`: one row a title with every site's scores."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy.commands import ScrapyCommand

if TYPE_CHECKING:
    import argparse


class Command(ScrapyCommand):
    """The scores of the database that DATABASE_URL names, else of `movies.csv`, joined over the sites."""

    requires_crawler_process = False

    def syntax(self) -> str:
        """Return the arguments' form."""
        return "[--format table|csv|json] [--limit N]"

    def short_desc(self) -> str:
        """Return one line for the list of commands."""
        return "Print one row a title with every site's scores"

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        """Add `--format` and `--limit`."""
        super().add_options(parser)
        parser.add_argument("--format", choices=["table", "csv", "json"], default="table", help="default: table")
        parser.add_argument("--limit", type=int, metavar="N", help="print the first N rows only")

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        """Run it, in `console/scoreboard.py`."""
        from moviecrawler.console.scoreboard import Scoreboard  # noqa: PLC0415 - Scrapy imports this module for every command

        self.exitcode = Scoreboard(self).exit_code(args, opts)
