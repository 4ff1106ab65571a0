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
    """Serve a local replica of the three sites.

    IMDb is on port P, Metacritic on P + 1, Rotten Tomatoes on P + 2.
    """

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        add_arguments(parser)

    def execute(self, opts: argparse.Namespace) -> None:
        """Print the three URLs, and serve until SIGINT or SIGTERM."""
        from moviecrawler.replica.app import serve

        asyncio.run(serve(parse_options(opts)))
