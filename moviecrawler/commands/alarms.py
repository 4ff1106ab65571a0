"""`scrapy alarms`: open alarms, their history, and ending one."""

from __future__ import annotations

from moviecrawler.console.command import LazyCommand, option


class Command(LazyCommand):
    """Shows the alarms of the Redis that REDIS_URL names, or of DATA_DIR."""

    work = "alarms.Alarms"
    arguments = "[--json] [--history N] [--accept NAME]"
    summary = "Show the open alarms"
    options = (
        option("--json", action="store_true", help="one JSON object"),
        option("--history", metavar="N", type=int, default=0, help="the latest N events as well"),
        option(
            "--accept",
            metavar="NAME",
            help="end an alarm whose report is as it should be; a field's places are learnt anew",
        ),
    )
