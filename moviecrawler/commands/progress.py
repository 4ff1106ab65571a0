"""`scrapy progress`: show the progress of the crawls that share a Redis."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import TYPE_CHECKING

from scrapy.commands import ScrapyCommand

from moviecrawler.commands.base import JSON, NONE, RUN, SITE, BaseCommand, option

if TYPE_CHECKING:
    import argparse

    from moviecrawler.frontier.report import RunReport

_HEADER = (
    "site",
    "run",
    "state",
    "done",
    "to go",
    "dead letters",
    "lost",
    "workers",
    "a minute",
    "time left",
    "today",
)


class Command(BaseCommand, ScrapyCommand):
    """Show the progress of the crawls of all machines.

    The table counts requests; `today` is how many of the day's budget are used up. `watch scrapy
    progress` follows the crawls.
    """

    options = (
        JSON,
        option("--all", action="store_true", help="crawls that ended more than an hour ago, too"),
        SITE,
        RUN,
    )

    def execute(self, opts: argparse.Namespace) -> None:
        from moviecrawler.clock import utc_text
        from moviecrawler.commands.base import print_json, table_lines
        from moviecrawler.texts import printable

        self.require_redis("a crawl without it shows its own progress")
        reports = asyncio.run(self._read(opts))
        reports = [
            report for report in reports if report.is_current or opts.all or opts.run is not None
        ]
        if opts.json:
            print_json({"runs": [report.as_json() for report in reports]})
        elif reports:
            print("\n".join(table_lines([_HEADER, *map(_cells, reports)], right=True)))
            for site in {
                report.site: report.state_of_site for report in reports if report.state == "stopped"
            }.values():
                until = utc_text(site.stopped_until or 0)
                print(f"{site.site} is not asked until {until}: {printable(site.refusal or '')}")
        elif opts.run is not None:
            self.fail(f"there is no run {opts.run!r} on this Redis")
        else:
            print("there is no such crawl on this Redis; --all shows those that are over")

    async def _read(self, opts: argparse.Namespace) -> list[RunReport]:
        from moviecrawler.frontier.report import frontier_client, read_frontier

        async with frontier_client(self.settings) as client:
            return (await read_frontier(client, self.settings, opts.site, opts.run)).runs


def _cells(report: RunReport) -> tuple[str, ...]:
    from moviecrawler.texts import printable

    site = report.state_of_site
    counts = (report.to_go, report.failed, report.lost, report.workers)
    left = report.seconds_left if report.state == "running" and report.to_go else None
    return (
        report.site,
        printable(report.run),
        report.state,
        f"{report.done:,} of {report.total:,}",
        *(f"{count:,}" for count in counts),
        f"{60 * report.per_second:,.0f}",
        NONE if left is None else str(timedelta(seconds=round(left))),
        f"{site.used_today:,}"
        + ("" if site.budget.per_day is None else f" of {site.budget.per_day:,}"),
    )
