"""`scrapy replay`: read archived pages again, into the stores that are configured."""

from __future__ import annotations

from typing import TYPE_CHECKING, get_args

from scrapy.commands import ScrapyCommand

from moviecrawler.items import Site

if TYPE_CHECKING:
    import argparse


class Command(ScrapyCommand):
    """No site is asked for anything. A replay that was broken off goes on where it was when it is started again."""

    def syntax(self) -> str:
        """Return the arguments' form."""
        return "[--site SITE] [--from DATE] [--to DATE] SOURCE"

    def short_desc(self) -> str:
        """Return one line for the list of commands."""
        return "Extract again from archived pages: s3://bucket/prefix, or a folder"

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        """Add `--site`, `--from` and `--to`."""
        super().add_options(parser)
        parser.add_argument("--site", choices=get_args(Site), help="pages of this site only")
        parser.add_argument("--from", dest="begin", metavar="DATE", help="pages fetched on that day (UTC) or later")
        parser.add_argument("--to", dest="end", metavar="DATE", help="pages fetched on that day (UTC) or before")

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        """Run it, in `console/replay.py`."""
        from moviecrawler.console.replay import Replay  # noqa: PLC0415 - Scrapy imports this module for every command

        self.exitcode = Replay(self).exit_code(args, opts)
