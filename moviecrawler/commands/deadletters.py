"""`scrapy deadletters`: requests that were set aside, to be shown, queued again or dropped."""

from __future__ import annotations

from moviecrawler.console.command import LazyCommand, option
from moviecrawler.sites import SITES


class Command(LazyCommand):
    """Prints dead letters, queues them again or forgets them: those named, or all of a site or a run."""

    work = "deadletters.DeadLetters"
    arguments = "[list | show | requeue | drop] [ID... | --all] [--site SITE] [--run RUN] [--json]"
    summary = "Print the requests that were set aside, queue them again or drop them"
    options = (
        option("--all", action="store_true", help="show, requeue or drop all of them"),
        option("--site", choices=list(SITES), help="that site's only"),
        option("--run", metavar="RUN", help="those of runs of that name only (FRONTIER_RUN)"),
        option("--json", action="store_true", help="print one JSON object a line"),
    )
