"""`scrapy replica`: serve a replica of the three sites on this machine."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from scrapy.commands import ScrapyCommand

from moviecrawler.commands.base import BaseCommand
from moviecrawler.replica.options import add_arguments, parse_options

if TYPE_CHECKING:
    import argparse


class Command(BaseCommand, ScrapyCommand):
    """IMDb is on port P, Metacritic on P + 1, Rotten Tomatoes on P + 2; all on the loopback interface."""

    summary = "Serve a local replica of the three sites"

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        """Add the replica's options."""
        super().add_options(parser)
        add_arguments(parser)

    def execute(self, args: list[str], opts: argparse.Namespace) -> None:
        """Print the three URLs, and serve until SIGINT or SIGTERM. Raises ConfigurationError for options that can't be."""
        from moviecrawler.commands.base import check_no_arguments
        from moviecrawler.replica.app import serve

        check_no_arguments(args)
        asyncio.run(serve(parse_options(opts)))
