"""`scrapy changes`: print what has changed since a day, or since the last crawl."""

from __future__ import annotations

from argparse import ArgumentTypeError
from dataclasses import astuple
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from scrapy.commands import ScrapyCommand

from moviecrawler.basics.clock import utc_text
from moviecrawler.basics.errors import ConfigurationError, FrontierError
from moviecrawler.commands.base import (
    NONE,
    SITE,
    BaseCommand,
    option,
    print_csv,
    print_json,
    program,
    score_text,
    table,
)
from moviecrawler.sites import SCORES, SITES

if TYPE_CHECKING:
    import argparse

    from moviecrawler.database.changes import Change
    from moviecrawler.items import Site

_HEADER = ("Title", "Year", "What", "Before", "Now")


def _time(text: str) -> datetime:
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise ArgumentTypeError(
            f"{text!r} is not a day such as 2026-11-28, or a time such as 2026-11-28T06:00"
        ) from None
    return time if time.tzinfo else time.replace(tzinfo=UTC)


class Command(BaseCommand, ScrapyCommand):
    """Print what has changed: scores up and down, new titles, new and ended offers.

    Without --since, since the last crawl of each site began.
    """

    options = (
        option(
            "--since",
            type=_time,
            help="a day such as 2026-11-28, or a time such as 2026-11-28T06:00 (UTC)",
        ),
        SITE,
        option("--format", choices=["table", "csv", "json"], default="table"),
    )

    def execute(self, opts: argparse.Namespace) -> None:
        from moviecrawler.database.changes import COLUMNS, read_changes
        from moviecrawler.database.reading import reading

        since = self._since(opts)
        try:
            with reading(self.settings) as tables:
                changes = read_changes(tables, since)
        except FileNotFoundError as error:
            self.fail(f"there is no {error.filename} yet; crawl first: {program()} crawl all")
            return
        if opts.format == "json":
            print_json(changes, indent=2)
        elif opts.format == "csv":
            print_csv(COLUMNS, map(astuple, changes))
        elif changes:
            print(table([_HEADER, *map(_cells, changes)]))
        else:
            times = {utc_text(time.timestamp()) for time in since.values()}
            print(f"nothing has changed since {min(times)}")

    def _since(self, opts: argparse.Namespace) -> dict[Site, datetime]:
        """Return since when each site's changes are printed."""
        from moviecrawler.frontier.runs import with_queue

        sites = [opts.site] if opts.site else list(SITES)
        if opts.since is not None:
            return dict.fromkeys(sites, opts.since)
        try:
            report = with_queue(self.settings, lambda queue: queue.read({}))
        except FrontierError as error:
            raise ConfigurationError(
                f"when the last crawl began can't be read ({error}); say since when, with --since"
            ) from error
        known = {
            run.site: datetime.fromtimestamp(run.started_at, UTC)
            for run in sorted(report.runs, key=lambda run: run.started_at)
            if run.site in sites
        }
        if not known:
            raise ConfigurationError(
                "no crawl of the last days is known; say since when, with --since 2026-11-28"
            )
        return known


def _cells(change: Change) -> list[str]:
    year = NONE if change.year is None else str(change.year)
    if change.score is not None:
        what = f"{SCORES[change.score].name} {change.change}"
        values = [score_text(change.score, value) for value in (change.before, change.now)]
        return [change.title, year, what, *values]
    facts = [change.provider, change.offer, change.country, change.quality]
    named = ", ".join(fact for fact in facts if fact)
    return [change.title, year, f"{change.change}{': ' if named else ''}{named}", "", ""]
