"""`scrapy replay`: read archived pages again, into the stores that are configured."""

from __future__ import annotations

from typing import TYPE_CHECKING, get_args

from scrapy.commands import ScrapyCommand

from moviecrawler.commands.base import BaseCommand, option
from moviecrawler.items import Site

if TYPE_CHECKING:
    import argparse


class Command(BaseCommand, ScrapyCommand):
    """Reads the archive and asks no site. A replay that was interrupted goes on where it was."""

    requires_crawler_process = True
    arguments = "[--site SITE] [--from DATE] [--to DATE] SOURCE"
    summary = "Extract again from archived pages: s3://bucket/prefix, or a folder"
    options = (
        option("--site", choices=get_args(Site), help="pages of this site only"),
        option("--from", dest="begin", metavar="DATE", help="pages fetched on that day (UTC) or later"),
        option("--to", dest="end", metavar="DATE", help="pages fetched on that day (UTC) or before"),
    )

    def execute(self, args: list[str], opts: argparse.Namespace) -> None:
        """Replay; exit code 1 when not all could be read, or kept."""
        from moviecrawler.console.replay import replay

        replay(self, args, opts)
