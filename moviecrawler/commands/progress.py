"""`scrapy progress`: show how far the crawls are, or drop a run."""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING

from scrapy.commands import ScrapyCommand

from moviecrawler.basics.clock import utc_text
from moviecrawler.basics.errors import ConfigurationError
from moviecrawler.basics.texts import printable
from moviecrawler.commands.base import (
    JSON,
    NONE,
    RUN,
    SITE,
    BaseCommand,
    option,
    print_json,
    table,
)
from moviecrawler.frontier.contract import RunName
from moviecrawler.frontier.progress import figures_of

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Sequence

    from moviecrawler.frontier.contract import Backend, RunReport

_HEADER = (
    "site",
    "state",
    "done",
    "to go",
    "dead",
    "lost",
    "workers",
    "a minute",
    "time left",
    "today",
    "run",
)


class Command(BaseCommand, ScrapyCommand):
    """Show how far the crawls are, or drop a run.

    They are those of all machines with REDIS_URL, otherwise those of DATA_DIR. The table counts
    requests: `dead` are dead letters, and `today` is how many of the day's budget are used up.
    `watch scrapy progress` follows the crawls. `drop` deletes what a run has queued.
    """

    arguments = "[options] | drop --run RUN [--site SITE]"
    options = (
        option("action", nargs="?", choices=["drop"], help="delete what the run has queued"),
        JSON,
        option(
            "--all", action="store_true", help="crawls that finished more than an hour ago, too"
        ),
        SITE,
        RUN,
    )

    def execute(self, opts: argparse.Namespace) -> None:
        from moviecrawler.frontier.runs import budgets_of, with_queue

        if opts.action == "drop":
            with_queue(self.settings, partial(self._drop, opts))
            return
        budgets = budgets_of(self.settings)
        report = with_queue(self.settings, lambda queue: queue.read(budgets, opts.site, opts.run))
        self._show(opts, report.runs)

    def _show(self, opts: argparse.Namespace, runs: Sequence[RunReport]) -> None:
        shown = [run for run in runs if run.is_current or opts.all or opts.run is not None]
        if opts.json:
            print_json({"runs": [figures_of(run) for run in shown]})
        elif shown:
            print(table([_HEADER, *map(_cells, shown)], right=True))
            for sentence in _sentences(shown):
                print(sentence)
        elif opts.run is not None:
            self.fail(f"there is no run {opts.run!r}")
        else:
            print("there is no such crawl; --all shows those that have finished")

    async def _drop(self, opts: argparse.Namespace, queue: Backend) -> None:
        if opts.run is None:
            raise ConfigurationError("drop takes the name of a run: --run RUN")
        is_dropped = False
        report = await queue.read({}, opts.site, opts.run)
        for run in report.runs:
            if await queue.drop_run(RunName(run.site, run.run)):
                is_dropped = True
                print(printable(_describe_dropped(run)))
        if not is_dropped:
            where = "" if opts.site is None else f" of {opts.site}"
            self.fail(f"there is no run {opts.run!r}{where}")


def _describe_dropped(run: RunReport) -> str:
    """Return a sentence on a run that was dropped; `run` is what it was before."""
    facts = {
        "requests that were queued": run.account.open,
        "requeued ones that waited for its next start": run.requeued,
        "dead letters, which stay": run.dead_letters,
        "workers, which begin it anew unless they end": run.workers,
    }
    counts = [f"{what}: {count:,}" for what, count in facts.items() if count]
    return "; ".join([f"{run.site} ({run.run}) is dropped", *counts])


def _cells(report: RunReport) -> tuple[str, ...]:
    account = report.account
    site = report.site_state
    left = report.seconds_left if report.state == "running" and account.open else None
    per_day = site.budget.per_day
    return (
        report.site,
        report.state,
        f"{account.ended - account.dead:,} of {account.requested:,}",
        f"{account.open:,}",
        f"{report.dead_letters:,}",
        f"{account.lost:,}",
        f"{report.workers:,}",
        f"{60 * report.per_second:,.0f}",
        NONE if left is None else str(timedelta(seconds=round(left))),
        f"{site.used_today:,}" + ("" if per_day is None else f" of {per_day:,}"),
        report.run,
    )


def _sentences(reports: Sequence[RunReport]) -> Iterator[str]:
    """Yield what the table has no column for."""
    for report in reports:
        if report.requeued:
            yield (
                f"{report.site} ({printable(report.run)}): requeued dead letters that wait for its"
                f" next start: {report.requeued:,}"
            )
    stopped = {report.site: report.site_state for report in reports if report.state == "stopped"}
    for site in stopped.values():
        until = utc_text(site.stopped_until or 0)
        yield f"{site.site} is paused until {until}: {printable(site.refusal or '')}"
