"""`scrapy replica`: serve a local stand-in for the three sites."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from moviecrawler.console.output import Console, check_no_arguments
from moviecrawler.replica.app import serve
from moviecrawler.replica.options import parse_options

if TYPE_CHECKING:
    import argparse


class Replica(Console):
    """Prints the three URLs and serves until SIGINT or SIGTERM."""

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        """Serve. Raises ConfigurationError for options that can't be."""
        check_no_arguments(args)
        asyncio.run(serve(parse_options(opts)))
