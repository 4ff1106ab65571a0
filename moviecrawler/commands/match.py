"""`scrapy match`: which IMDb title each film of a list is."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from scrapy.commands import ScrapyCommand

from moviecrawler.basics.errors import ConfigurationError
from moviecrawler.commands.base import BaseCommand, option, print_json

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from moviecrawler.matching.forms import Title


class Command(BaseCommand, ScrapyCommand):
    """Print the IMDb title of each film of a list, one JSON object a line.

    An object has the id if it is sure, how sure it is, and why. RECORDS and TITLES are CSV with a
    header, or JSON Lines, in UTF-8, with the columns site, site_id, title, original_title, year,
    release_date, runtime_minutes, directors (with | between them) and votes; other_titles (with |
    between them) and kind may be there too. An empty cell is unknown. The site of TITLES is imdb,
    their site_id the IMDb id. Without TITLES, the titles of the catalogue are taken, in the
    database that DATABASE_URL names.
    """

    arguments = "RECORDS [--against TITLES]"
    options = (
        option("records", type=Path, metavar="RECORDS", help="films"),
        option(
            "--against",
            type=Path,
            metavar="TITLES",
            help="IMDb titles; without it, those of the catalogue",
        ),
    )

    def execute(self, opts: argparse.Namespace) -> None:
        """Print the lines when all films are matched.

        A film that is in the list twice is matched once, and printed twice.
        """
        from moviecrawler.catalogue.film_lists import read_records, read_titles
        from moviecrawler.matching.linking import link

        titles = self._catalogue() if opts.against is None else read_titles(opts.against)
        films = list(read_records(opts.records))
        records = {(film.site, film.site_id): film.title for film in reversed(films)}
        found = dict(zip(records, link(list(records.values()), titles), strict=True))
        for film in films:
            key = film.site, film.site_id
            print_json(
                {"site": film.site, "site_id": film.site_id, **msgspec.to_builtins(found[key])}
            )

    def _catalogue(self) -> Iterator[Title]:
        from moviecrawler.catalogue.store import open_catalogue
        from moviecrawler.catalogue.wanted import known_titles

        if not self.settings.get("DATABASE_URL"):
            raise ConfigurationError(
                "DATABASE_URL is not set; "
                "name a list of IMDb titles with --against TITLES, or the database"
            )
        with closing(open_catalogue(self.settings)) as database:
            yield from known_titles(database)
