"""`scrapy proxies`: how each site answers through each proxy, and checking the proxies."""

from __future__ import annotations

from moviecrawler.console.command import LazyCommand, option


class Command(LazyCommand):
    """A table of proxies; `clear` ends quarantines, and `check` asks for one URL through every proxy."""

    work = "proxies.Proxies"
    arguments = "[--json] | clear [PROXY...] | check URL [PROXY...]"
    summary = "Show the proxies and how sites answer through them, end their quarantines, or check them"
    options = (option("--json", action="store_true", help="one JSON object a line, in place of a table"),)
