"""`scrapy match`: which IMDb title each film of a list is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy.commands import ScrapyCommand

if TYPE_CHECKING:
    import argparse


class Command(ScrapyCommand):
    """One JSON object a film, in their order: its IMDb id if that is sure, how sure it is, and why."""

    requires_crawler_process = False

    def syntax(self) -> str:
        """Return the arguments' form."""
        return "RECORDS [--against TITLES]"

    def short_desc(self) -> str:
        """Return one line for the list of commands."""
        return "Print which IMDb title each film of a list is, one JSON object a line"

    def long_desc(self) -> str:
        """Return what the files hold."""
        return (
            "Find the IMDb titles of the films of a list. RECORDS and TITLES are CSV with a header, or JSON Lines, in UTF-8,"
            " with the columns site, site_id, title, original_title, year, release_date, runtime_minutes, directors (with |"
            " between them) and votes; other_titles (with | between them) and kind may be there too. An empty cell is"
            " unknown. The site of TITLES is imdb, their site_id the IMDb id. Without TITLES, the titles of the catalogue"
            " are taken, in the database that DATABASE_URL names."
        )

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        """Add `--against`."""
        super().add_options(parser)
        parser.add_argument("--against", metavar="TITLES", help="IMDb titles; without it, those of the catalogue")

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        """Run it, in `console/match.py`."""
        from moviecrawler.console.match import Match  # noqa: PLC0415 - Scrapy imports this module for every command

        self.exitcode = Match(self).exit_code(args, opts)
