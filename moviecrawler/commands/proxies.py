"""`scrapy proxies`: the exits that requests may leave from, how well each serves each site, and trying them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy.commands import ScrapyCommand

if TYPE_CHECKING:
    import argparse


class Command(ScrapyCommand):
    """A table of exits; `clear` ends quarantines, and `check` asks for one URL from every exit."""

    requires_crawler_process = False

    def syntax(self) -> str:
        """Return the arguments' form."""
        return "[--json] | clear [EXIT...] | check URL [EXIT...]"

    def short_desc(self) -> str:
        """Return one line for the list of commands."""
        return "Show the proxies and how sites take them, end their quarantines, or try them"

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        """Add `--json`."""
        super().add_options(parser)
        parser.add_argument("--json", action="store_true", help="one JSON object a line, in place of a table")

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        """Run it, in `console/proxies.py`."""
        from moviecrawler.console.proxies import Proxies  # noqa: PLC0415 - Scrapy imports this module for every command

        self.exitcode = Proxies(self).exit_code(args, opts)
