"""`scrapy progress`: the progress of the crawls that share a Redis."""

from __future__ import annotations

from moviecrawler.console.command import LazyCommand, option
from moviecrawler.sites import SITES


class Command(LazyCommand):
    """Bars on a terminal, lines otherwise, while a crawl runs; each run's figures by node, rate and time left."""

    work = "progress.Progress"
    arguments = "[--json] [--once] [--all] [--site SITE] [--run RUN]"
    summary = "Show the progress of the crawls of all nodes"
    options = (
        option("--json", action="store_true", help="one JSON object, once"),
        option("--once", action="store_true", help="don't follow"),
        option("--all", action="store_true", help="those that ended more than an hour ago, too"),
        option("--site", choices=list(SITES), help="that site's crawls only"),
        option("--run", metavar="RUN", help="runs of that name only (FRONTIER_RUN)"),
    )
