"""`scrapy catalogue`: which titles there are, what is due on which site, and what a person may decide of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy.commands import ScrapyCommand

if TYPE_CHECKING:
    import argparse


class Command(ScrapyCommand):
    """Works on the database that DATABASE_URL names."""

    requires_crawler_process = False

    def syntax(self) -> str:
        """Return the arguments' form."""
        return "import imdb|tmdb|wikidata|csv | status | boost ID… | due [SITE] | review [ID SITE] | rematch  [options]"

    def short_desc(self) -> str:
        """Return one line for the list of commands."""
        return "Fill the catalogue of titles, and show or change what is due"

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        """Add the options of all actions."""
        super().add_options(parser)
        parser.add_argument("--json", action="store_true", help="print JSON")
        group = parser.add_argument_group("import")
        group.add_argument("--from", dest="origin", metavar="PATH|URL", help="a file or folder, or another server")
        group.add_argument("--kinds", default="movie", metavar="KIND,…", help="imdb: which titles (default: movie)")
        group.add_argument("--min-votes", default="0", metavar="N", help="imdb: titles with at least N votes")
        group.add_argument("--years", default="", metavar="A-B", help="imdb: titles of these years, such as 1990-")
        group = parser.add_argument_group("boost")
        group.add_argument("--by", default="1", metavar="N", help="how much; the most boosted are fetched first")
        group = parser.add_argument_group("due, review")
        group.add_argument("--limit", default="20", metavar="N", help="rows to show (default: 20)")
        group.add_argument("--accept", action="store_true", help="the page is the title's")
        group.add_argument("--refuse", action="store_true", help="it is not, and won't be tried again")
        group.add_argument("--page", metavar="SITE_ID", help="of several pages under review, this one")

        group = parser.add_argument_group("rematch")
        group.add_argument("--apply", action="store_true", help="change what is shown otherwise")

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        """Run it, in `console/catalogue.py`."""
        from moviecrawler.console.catalogue import Catalogue  # noqa: PLC0415 - Scrapy imports this module for every command

        self.exitcode = Catalogue(self).exit_code(args, opts)
