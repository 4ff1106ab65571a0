"""`scrapy progress`: show the progress of the crawls that share a Redis."""

from __future__ import annotations

import asyncio
import sys
from contextlib import suppress
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from scrapy.commands import ScrapyCommand

from moviecrawler.commands.base import BaseCommand, option
from moviecrawler.sites import SITES

if TYPE_CHECKING:
    import argparse

    from tqdm import tqdm

    from moviecrawler.frontier.report import RunReport

_REFRESH_SECONDS = 1.0
"""Seconds between two updates on a terminal."""
_FOLLOW_SECONDS = 30.0
"""Seconds for which a crawl without a worker is followed, as its workers may be restarting."""


class Command(BaseCommand, ScrapyCommand):
    """Prints bars on a terminal and lines elsewhere, until all runs have ended."""

    arguments = "[--json] [--once] [--all] [--site SITE] [--run RUN]"
    summary = "Show the progress of the crawls of all nodes"
    options = (
        option("--json", action="store_true", help="one JSON object, once"),
        option("--once", action="store_true", help="don't follow"),
        option("--all", action="store_true", help="those that ended more than an hour ago, too"),
        option("--site", choices=list(SITES), help="that site's crawls only"),
        option("--run", metavar="RUN", help="the run of that name only"),
    )

    def execute(self, args: list[str], opts: argparse.Namespace) -> None:
        """Show the progress. Raises ConfigurationError for a wrong setting, and MovieCrawlerError when Redis can't be reached."""
        from moviecrawler.commands.base import check_no_arguments
        from moviecrawler.errors import ConfigurationError

        check_no_arguments(args)
        if not self.settings.get("REDIS_URL"):
            raise ConfigurationError("REDIS_URL is not set; a crawl without it shows its own progress")
        with suppress(KeyboardInterrupt):
            asyncio.run(_show(self, opts))


async def _show(command: BaseCommand, opts: argparse.Namespace) -> None:
    """Show the reports, repeatedly until every crawl is finished or has had no worker for a while."""
    from moviecrawler.commands.base import print_json
    from moviecrawler.frontier.report import frontier_client, read_runs

    on_terminal = sys.stdout.isatty() and not opts.once
    pause = _REFRESH_SECONDS if on_terminal else command.settings.getfloat("LOGSTATS_INTERVAL")
    bars: dict[tuple[str, str], tqdm[Any]] = {}
    loop = asyncio.get_running_loop()
    worker_seen_at = loop.time()
    async with frontier_client(command.settings) as client:
        while True:
            reports = await read_runs(client, opts.site, opts.run, command.settings)
            reports = [report for report in reports if report.is_current or opts.all or opts.run is not None]
            if opts.json:
                print_json({"runs": [report.as_json() for report in reports]})
                return
            if not reports and opts.run is not None:
                command.fail(f"there is no run {opts.run!r} on this Redis")
            elif not reports:
                print("there is no such crawl on this Redis; --all shows those that are over")
            for report in reports:
                if on_terminal:
                    _show_bar(bars, report)
                else:
                    counted = f"{report.done:,} of {report.total:,} requests done"
                    print(f"{_name_of(report)} {counted}, {_details_of(report)}", flush=True)
            if any(report.workers for report in reports):
                worker_seen_at = loop.time()
            is_over = all(report.state == "finished" for report in reports)
            if opts.once or is_over or loop.time() - worker_seen_at > _FOLLOW_SECONDS:
                break
            await asyncio.sleep(pause)
    for bar in bars.values():
        bar.close()


def _show_bar(bars: dict[tuple[str, str], tqdm[Any]], report: RunReport) -> None:
    from tqdm import tqdm

    key = (report.run, report.number)
    if key not in bars:
        form = "{desc}{percentage:3.0f}%|{bar:20}| {n_fmt}/{total_fmt}{postfix}"
        bars[key] = tqdm(file=sys.stdout, bar_format=form, position=len(bars), dynamic_ncols=True)
    bar = bars[key]
    bar.total, bar.n = report.total, report.ended
    bar.set_description_str(f"{_name_of(report)} ", refresh=False)
    bar.set_postfix_str(_details_of(report))


def _name_of(report: RunReport) -> str:
    from moviecrawler.texts import printable

    return printable(f"{report.site} ({report.run}) {report.state}:")


def _details_of(report: RunReport) -> str:
    """Return the figures that follow the number of requests done."""
    from moviecrawler.clock import utc_text
    from moviecrawler.texts import printable

    site = report.state_of_site
    counts = {"dead letters": report.failed, "lost": report.lost}
    parts = [f"{count:,} {what}" for what, count in counts.items() if count]
    parts += [f"{report.to_go:,} to go", f"workers: {report.workers}", f"{60 * report.per_second:,.0f} a minute"]
    if report.state == "running" and report.to_go and report.seconds_left is not None:
        parts.append(f"{timedelta(seconds=round(report.seconds_left))} left")
    if site.budget.per_day is not None:
        parts.append(f"{site.used_today:,} of {site.budget.per_day:,} requests of the day")
    details = ", ".join(parts)
    if report.stopped is not None:
        details += f"; until {utc_text(site.stopped_until or 0)}: {printable(report.stopped)}"
    return details
