"""`scrapy replay`: read archived pages again, into the stores that are configured."""

from __future__ import annotations

from typing import get_args

from moviecrawler.console.command import LazyCommand, option
from moviecrawler.items import Site


class Command(LazyCommand):
    """Reads the archive and asks no site. A replay that was interrupted goes on where it was."""

    requires_crawler_process = True
    work = "replay.Replay"
    arguments = "[--site SITE] [--from DATE] [--to DATE] SOURCE"
    summary = "Extract again from archived pages: s3://bucket/prefix, or a folder"
    options = (
        option("--site", choices=get_args(Site), help="pages of this site only"),
        option("--from", dest="begin", metavar="DATE", help="pages fetched on that day (UTC) or later"),
        option("--to", dest="end", metavar="DATE", help="pages fetched on that day (UTC) or before"),
    )
