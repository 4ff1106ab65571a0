"""`scrapy extract`: print what would be read from saved pages."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy.commands import ScrapyCommand

if TYPE_CHECKING:
    import argparse


class Command(ScrapyCommand):
    """One JSON object a line and file: what the page says, or why it could not be read."""

    requires_crawler_process = False

    def syntax(self) -> str:
        """Return the arguments' form."""
        return "[--url URL] FILE..."

    def short_desc(self) -> str:
        """Return one line for the list of commands."""
        return "Print what would be read from saved pages, one JSON object a line"

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        """Add `--url`."""
        super().add_options(parser)
        parser.add_argument("--url", help="where the page came from; recognised from the page itself when not given")

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        """Run it, in `console/extract.py`."""
        from moviecrawler.console.extract import Extract  # noqa: PLC0415 - Scrapy imports this module for every command

        self.exitcode = Extract(self).exit_code(args, opts)
