"""`scrapy progress`: the progress of the crawls that share a Redis."""

from __future__ import annotations

import asyncio
import math
import sys
from contextlib import suppress
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import msgspec
from tqdm import tqdm

from moviecrawler.console.output import Console, check_no_arguments, print_json
from moviecrawler.errors import ConfigurationError
from moviecrawler.frontier.report import asking, budgets, read_current_runs, read_runs
from moviecrawler.frontier.runs import Rate, RunReport, details_of, line_of, name_of, per_minute
from moviecrawler.texts import printable

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

    from scrapy.settings import BaseSettings

_REFRESH_SECONDS = 1.0
"""Seconds between two updates on a terminal."""
_FOLLOW_SECONDS = 30.0
"""Seconds for which unfinished crawls are followed while they have no worker, as workers may be restarting."""
_NOTHING_TO_DO = "no crawl has anything to do on this Redis; --all shows those that are over"
_NO_SUCH_CRAWL = "there is no such crawl on this Redis"


class Progress(Console):
    """Bars on a terminal, lines otherwise, while a crawl runs; each run's figures by node, rate and time left.

    Of runs that are over, those of the last hour are shown: each job of a cluster may be one, for two weeks.
    """

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        """Show it; exit code 1 when Redis can't be reached, 2 when a setting is missing or wrong."""
        check_no_arguments(args)
        if not self.settings.get("REDIS_URL"):
            raise ConfigurationError("REDIS_URL is not set; a crawl without it shows its own progress")
        with suppress(KeyboardInterrupt):
            asyncio.run(_show(self.settings, opts))


async def _show(settings: BaseSettings, opts: argparse.Namespace) -> None:
    by_site = budgets(settings)
    rates: dict[tuple[str, ...], Rate] = {}
    async with asking(settings) as client:

        async def read() -> list[RunReport]:
            if opts.all or opts.run is not None:
                reports = await read_runs(client, opts.site, opts.run, by_site)
            else:
                current = (await read_current_runs(client, by_site)).runs
                reports = [report for report in current if opts.site in {None, report.site}]
            for report in reports:
                _update(rates, report)
            if not reports and not opts.json:
                print(_NO_SUCH_CRAWL if opts.all or opts.run is not None else _NOTHING_TO_DO)
            return reports

        if opts.json:
            print_json({"runs": [_run(report, rates) for report in await read()]})
        elif opts.once:
            _print_lines(await read(), rates)
        elif sys.stdout.isatty():
            bars = _Bars(rates)
            try:
                await _follow(read, bars.show, _REFRESH_SECONDS)
            finally:
                bars.close()
        else:
            await _follow(read, lambda reports: _print_lines(reports, rates), settings.getfloat("LOGSTATS_INTERVAL"))


def _update(rates: dict[tuple[str, ...], Rate], report: RunReport) -> None:
    """Update the rates of a report's run, by (site, run), and of its nodes, by (site, run, node)."""
    key = (report.site, report.run)
    counts = {key: report.ended} | {(*key, node): sum(figures.values()) for node, figures in report.nodes.items()}
    for name, count in counts.items():
        rates.setdefault(name, Rate(report.started_at)).update(count, report.active_until)


async def _follow(read: Callable[[], Any], show: Callable[[list[RunReport]], None], every: float) -> None:
    """Show the reports repeatedly, until every crawl is finished or has had no worker for a while."""
    seen = -math.inf
    while True:
        reports: list[RunReport] = await read()
        show(reports)
        now = asyncio.get_running_loop().time()
        if any(report.workers for report in reports):
            seen = now
        if all(report.state == "finished" for report in reports) or now - seen > _FOLLOW_SECONDS:
            return
        await asyncio.sleep(every)


# --- For programs -----------------------------------------------------------------------------------------------------


def _run(report: RunReport, rates: dict[tuple[str, ...], Rate]) -> dict[str, Any]:
    rate = rates[report.site, report.run]
    return {
        **asdict(report),
        "budget": msgspec.to_builtins(report.budget),
        "nodes": {
            node: {**figures, "per_second": rates[report.site, report.run, node].per_second}
            for node, figures in report.nodes.items()
        },
        "state": report.state,
        "to_go": report.to_go,
        "per_second": rate.per_second,
        "seconds_left": rate.seconds_left(report.to_go),
    }


# --- For people -------------------------------------------------------------------------------------------------------


def _print_lines(reports: list[RunReport], rates: dict[tuple[str, ...], Rate]) -> None:
    for report in reports:
        print(line_of(report, rates[report.site, report.run]))
        for node in report.nodes:
            print(f"  {_node(report, node, rates)}")
    sys.stdout.flush()


def _node(report: RunReport, node: str, rates: dict[tuple[str, ...], Rate]) -> str:
    figures, rate = report.nodes[node], rates[report.site, report.run, node]
    return f"{printable(node)}: {figures['done']:,} done, {figures['failed']:,} failed, {per_minute(rate)} a minute"


class _Bars:
    """A bar for each run, and below them a line for each node."""

    def __init__(self, rates: dict[tuple[str, ...], Rate]) -> None:
        self.rates = rates
        self.bars: dict[tuple[str, ...], tqdm[None]] = {}

    def show(self, reports: list[RunReport]) -> None:
        for report in reports:
            key = (report.site, report.run)
            bar = self._bar(
                key, "{desc}{percentage:3.0f}%|{bar:20}| {n_fmt}/{total_fmt}{postfix}", f"{name_of(report)} "
            )
            bar.total, bar.n = report.total, report.ended
            bar.set_postfix_str(details_of(report, self.rates[key]))
        for report in reports:
            for node in report.nodes:
                text = f"  {report.site}, {_node(report, node, self.rates)}"
                self._bar((report.site, report.run, node), "{desc}", text).refresh()

    def _bar(self, key: tuple[str, ...], form: str, text: str) -> tqdm[None]:
        if key not in self.bars:
            self.bars[key] = tqdm(
                desc=text, file=sys.stdout, bar_format=form, position=len(self.bars), dynamic_ncols=True, leave=True
            )
        self.bars[key].set_description_str(text, refresh=False)
        return self.bars[key]

    def close(self) -> None:
        for bar in self.bars.values():
            bar.close()
