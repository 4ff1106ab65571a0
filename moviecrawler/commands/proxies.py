"""`scrapy proxies`: the exits that requests may leave from, how well each serves each site, and trying them."""

from __future__ import annotations

from moviecrawler.console.command import LazyCommand, option


class Command(LazyCommand):
    """A table of exits; `clear` ends quarantines, and `check` asks for one URL from every exit."""

    work = "proxies.Proxies"
    arguments = "[--json] | clear [EXIT...] | check URL [EXIT...]"
    summary = "Show the proxies and how sites take them, end their quarantines, or try them"
    options = (option("--json", action="store_true", help="one JSON object a line, in place of a table"),)
