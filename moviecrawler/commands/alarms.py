"""`scrapy alarms`: what stands, what has happened, and saying that something is as it should be."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy.commands import ScrapyCommand

if TYPE_CHECKING:
    import argparse


class Command(ScrapyCommand):
    """Shows the alarms of the Redis that REDIS_URL names, or of DATA_DIR."""

    requires_crawler_process = False

    def syntax(self) -> str:
        """Return the arguments' form."""
        return "[--json] [--history N] [--accept NAME]"

    def short_desc(self) -> str:
        """Return one line for the list of commands."""
        return "Show the alarms that stand"

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        """Add what to show, and how."""
        super().add_options(parser)
        parser.add_argument("--json", action="store_true", help="one JSON object")
        parser.add_argument("--history", metavar="N", type=int, default=0, help="the latest N events as well")
        parser.add_argument(
            "--accept",
            metavar="NAME",
            help="end an alarm: what it tells is as it should be; a field's level begins anew",
        )

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        """Run it, in `console/alarms.py`."""
        from moviecrawler.console.alarms import Alarms  # noqa: PLC0415 - Scrapy imports this module for every command

        self.exitcode = Alarms(self).exit_code(args, opts)
