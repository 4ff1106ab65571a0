"""`scrapy version`, which says this project's version, too."""

from __future__ import annotations

from importlib import metadata
from typing import TYPE_CHECKING

from scrapy.commands import version

if TYPE_CHECKING:
    import argparse


class Command(version.Command):
    """Scrapy's command, which prints this project's version, too."""

    def short_desc(self) -> str:
        return "Print the versions of Scrapy and of moviecrawler"

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        super().run(args, opts)
        print(f"moviecrawler {metadata.version('moviecrawler')}")
