"""`scrapy extract`: print what would be read from saved pages."""

from __future__ import annotations

from moviecrawler.console.command import LazyCommand, option


class Command(LazyCommand):
    """Prints one JSON object for each file: what the page says, or why it could not be read."""

    work = "extract.Extract"
    arguments = "[--url URL] FILE..."
    summary = "Print what would be read from saved pages, one JSON object a line"
    options = (option("--url", help="where the page came from; recognised from the page itself when not given"),)
