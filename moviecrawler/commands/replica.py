"""`scrapy replica`: serve a replica of the sites on this machine."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from scrapy.commands import ScrapyCommand

from moviecrawler.commands.base import BaseCommand
from moviecrawler.replica.options import add_arguments, parse_options

if TYPE_CHECKING:
    import argparse


class Command(BaseCommand, ScrapyCommand):
    """Serve a local replica of the sites.

    The first one that is printed is on port P, the others on those after it.
    """

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        add_arguments(parser)

    def execute(self, opts: argparse.Namespace) -> None:
        """Print the URLs, and serve until SIGINT or SIGTERM."""
        from moviecrawler.replica.app import serve

        asyncio.run(serve(parse_options(opts)))
