"""`scrapy progress`: the progress of the crawls that share a Redis."""

from __future__ import annotations

import asyncio
import math
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from scrapy.commands import ScrapyCommand

from moviecrawler.commands.base import BaseCommand, option
from moviecrawler.sites import SITES

if TYPE_CHECKING:
    import argparse
    from collections.abc import Awaitable, Callable

    from tqdm import tqdm

    from moviecrawler.frontier.report import Rate, RunReport

_REFRESH_SECONDS = 1.0
"""Seconds between two updates on a terminal."""
_FOLLOW_SECONDS = 30.0
"""Seconds for which unfinished crawls are followed while they have no worker, as workers may be restarting."""


class Command(BaseCommand, ScrapyCommand):
    """Bars on a terminal, lines otherwise, while a crawl runs; runs that were over an hour ago only when they are asked for."""

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
        """Show it. Raises ConfigurationError for a wrong setting, and MovieCrawlerError when Redis can't be reached."""
        from moviecrawler.commands.base import check_no_arguments
        from moviecrawler.errors import ConfigurationError

        check_no_arguments(args)
        if not self.settings.get("REDIS_URL"):
            raise ConfigurationError("REDIS_URL is not set; a crawl without it shows its own progress")
        with suppress(KeyboardInterrupt):
            asyncio.run(_show(self, opts))


async def _show(command: BaseCommand, opts: argparse.Namespace) -> None:
    from moviecrawler.commands.base import print_json
    from moviecrawler.frontier.report import Rate, asking, budgets, read_runs

    by_site = budgets(command.settings)
    rates: dict[tuple[str, str], Rate] = {}
    async with asking(command.settings) as client:

        async def read() -> list[RunReport]:
            reports = await read_runs(client, opts.site, opts.run, by_site)
            reports = [report for report in reports if report.is_current or opts.all or opts.run is not None]
            for report in reports:
                rates.setdefault((report.run, report.number), Rate(report.started_at)).update(report)
            if not reports and not opts.json:
                print("there is no such crawl on this Redis; --all shows those that are over")
            return reports

        def show(reports: list[RunReport]) -> None:
            from moviecrawler.frontier.report import line_of

            for report in reports:
                print(line_of(report, rates[report.run, report.number]), flush=True)

        if opts.json:
            print_json({"runs": [_figures(report, rates[report.run, report.number]) for report in await read()]})
        elif opts.once:
            show(await read())
        elif sys.stdout.isatty():
            bars = _Bars(rates)
            try:
                await _follow(read, bars.show, _REFRESH_SECONDS)
            finally:
                bars.close()
        else:
            await _follow(read, show, command.settings.getfloat("LOGSTATS_INTERVAL"))


def _figures(report: RunReport, rate: Rate) -> dict[str, Any]:
    return report.as_json() | {"per_second": rate.per_second, "seconds_left": rate.seconds_left(report.to_go)}


async def _follow(
    read: Callable[[], Awaitable[list[RunReport]]], show: Callable[[list[RunReport]], None], every: float
) -> None:
    """Show the reports repeatedly, until every crawl is finished or has had no worker for a while."""
    seen = -math.inf
    while True:
        reports = await read()
        show(reports)
        now = asyncio.get_running_loop().time()
        if any(report.workers for report in reports):
            seen = now
        if all(report.state == "finished" for report in reports) or now - seen > _FOLLOW_SECONDS:
            return
        await asyncio.sleep(every)


class _Bars:
    """A bar for each run."""

    def __init__(self, rates: dict[tuple[str, str], Rate]) -> None:
        self.rates = rates
        self.bars: dict[tuple[str, str], tqdm[Any]] = {}

    def show(self, reports: list[RunReport]) -> None:
        from tqdm import tqdm

        from moviecrawler.frontier.report import details_of, name_of

        for report in reports:
            key = (report.run, report.number)
            if key not in self.bars:
                form = "{desc}{percentage:3.0f}%|{bar:20}| {n_fmt}/{total_fmt}{postfix}"
                self.bars[key] = tqdm(file=sys.stdout, bar_format=form, position=len(self.bars), dynamic_ncols=True)
            bar = self.bars[key]
            bar.total, bar.n = report.total, report.ended
            bar.set_description_str(f"{name_of(report)} ", refresh=False)
            bar.set_postfix_str(details_of(report, self.rates[key]))

    def close(self) -> None:
        for bar in self.bars.values():
            bar.close()
