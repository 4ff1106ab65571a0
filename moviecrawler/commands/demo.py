"""`scrapy demo`: the three spiders against the replica, and the scores they found side by side."""

from __future__ import annotations

from moviecrawler.console.command import LazyCommand, option


class Command(LazyCommand):
    """Needs no network and no service."""

    work = "demo.Demo"
    summary = "Crawl a local replica of the three sites and print the joined scores"
    options = (
        option("--titles", type=int, default=60, metavar="N", help="movies on the replica (default: 60)"),
        option("--seed", type=int, default=1, metavar="S", help="which movies those are (default: 1)"),
    )
