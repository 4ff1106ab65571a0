"""`scrapy version`, which says this project's version, too."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy.commands import version

if TYPE_CHECKING:
    import argparse


class Command(version.Command):
    """Print the versions of Scrapy and of moviecrawler."""

    def short_desc(self) -> str:
        """Return one line for the list of commands."""
        return "Print the versions of Scrapy and of moviecrawler"

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        """Print Scrapy's version, or all that it uses, and this project's."""
        from importlib import metadata

        super().run(args, opts)
        print(f"moviecrawler {metadata.version('moviecrawler')}")
