"""`scrapy replica`: serve a local stand-in for the three sites."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moviecrawler.console.command import LazyCommand
from moviecrawler.replica.options import add_arguments

if TYPE_CHECKING:
    import argparse


class Command(LazyCommand):
    """IMDb is on port P, Metacritic on P + 1, Rotten Tomatoes on P + 2; all on the loopback interface."""

    work = "replica.Replica"
    summary = "Serve a local replica of the three sites"

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        """Add the replica's options."""
        super().add_options(parser)
        add_arguments(parser)
