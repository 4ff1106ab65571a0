"""`scrapy replica`: serve a local stand-in for the three sites."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy.commands import ScrapyCommand
from scrapy.exceptions import UsageError

from moviecrawler.errors import ConfigurationError
from moviecrawler.replica.options import add_arguments, parse_options

if TYPE_CHECKING:
    import argparse


class Command(ScrapyCommand):
    """IMDb is on port P, Metacritic on P + 1, Rotten Tomatoes on P + 2; all on the loopback interface."""

    requires_crawler_process = False

    def short_desc(self) -> str:
        """Return one line for the list of commands."""
        return "Serve a local replica of the three sites"

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        """Add the replica's options."""
        super().add_options(parser)
        add_arguments(parser)

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        """Print the three URLs and serve until SIGINT or SIGTERM."""
        import asyncio  # noqa: PLC0415 - Scrapy imports this module for every command

        from moviecrawler.replica.app import serve  # noqa: PLC0415 - as above

        if args:
            raise UsageError(f"the replica takes options only, got {' '.join(args)!r}", print_help=False)
        try:
            asyncio.run(serve(parse_options(opts)))
        except ConfigurationError as error:
            raise UsageError(str(error), print_help=False) from error
