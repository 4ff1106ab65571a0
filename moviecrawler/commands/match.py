"""`scrapy match`: which IMDb title each film of a list is."""

from __future__ import annotations

import sys
from dataclasses import asdict
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from scrapy.commands import ScrapyCommand

from moviecrawler.basics.errors import ConfigurationError
from moviecrawler.commands.base import BaseCommand, option, print_csv, print_json
from moviecrawler.sites.hosts import datasets_url

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from moviecrawler.catalogue.film_lists import Film, UnreadRow
    from moviecrawler.matching.forms import Title
    from moviecrawler.matching.linking import Linked

_CSV_COLUMNS = ("title", "year", "imdb_id", "decision", "reason")


class Command(BaseCommand, ScrapyCommand):
    """Print the IMDb title of each film of a list, one per line, in their order.

    A line has the id if it is sure, the decision (accepted, review or refused), and why. FILMS is
    CSV with a header, or JSON Lines, with a title and a year; what it has of original_title,
    release_date, runtime_minutes, directors, kind and imdb_id is compared, too. Columns may have
    the names of IMDb's, Letterboxd's and Trakt's exports. The films are compared with the titles of
    the catalogue that DATABASE_URL names; without it, with those of movies.sqlite3 and of IMDb's
    datasets in DATA_DIR. Exit code 1: a row has no title, or no year that can be understood.
    """

    arguments = "FILMS [--format jsonl|csv] [--against TITLES]"
    options = (
        option("films", type=Path, metavar="FILMS", help="the list"),
        option(
            "--format",
            choices=["jsonl", "csv"],
            default="jsonl",
            help="default: jsonl, a JSON object per line, which also has the other candidates",
        ),
        option(
            "--against",
            type=Path,
            metavar="TITLES",
            help="compare with these: a list of the same form, with a column of IMDb ids",
        ),
    )

    def execute(self, opts: argparse.Namespace) -> None:
        """Print the lines when all films are matched.

        A film that is in the list twice is matched once, and printed twice.
        """
        from moviecrawler.catalogue.film_lists import UnreadRow, read_films
        from moviecrawler.matching.linking import Linked, link

        films = list(read_films(opts.films))
        unread = [film for film in films if isinstance(film, UnreadRow)]
        records = {
            film.key: film.title for film in reversed(films) if not isinstance(film, UnreadRow)
        }
        left_out: list[str] = []
        results = link(list(records.values()), self._titles(opts, left_out))
        linked = dict(zip(records, results, strict=True))
        linked |= {film.key: Linked(reasons=[film.reason]) for film in unread}
        if opts.format == "csv":
            print_csv(_CSV_COLUMNS, (_csv_row(film, linked[film.key]) for film in films))
        else:
            for film in films:
                print_json({**film.names(), **asdict(linked[film.key])})
        if unread:
            self.fail(f"{len(unread):,} films could not be read, the first: {unread[0].reason}")
        if left_out:
            self.fail(f"{len(left_out):,} titles left out, the first: {left_out[0]}")

    def _titles(self, opts: argparse.Namespace, left_out: list[str]) -> Iterator[Title]:
        """Yield the titles that the films are compared with, and print where they are from."""
        from moviecrawler.catalogue.film_lists import read_titles

        if opts.against is not None:
            yield from read_titles(opts.against, left_out)
            return
        sources = self._sources()
        names = " and ".join(sources) or str(self.settings["DATA_DIR"])
        count = 0
        for count, title in enumerate(chain.from_iterable(sources.values()), 1):  # noqa: B007
            yield title
        if count == 0:
            raise ConfigurationError(
                f"{names} has no IMDb titles to compare with; crawl first, such as with:"
                " scrapy crawl imdb -a via=datasets"
            )
        print(f"compared with {count:,} titles of {names}", file=sys.stderr)

    def _sources(self) -> dict[str, Iterator[Title]]:
        """Return the titles that are at hand, by where they are."""
        from moviecrawler.catalogue.at_hand import dataset_titles, stored_titles
        from moviecrawler.catalogue.expected import known_titles
        from moviecrawler.catalogue.store import open_catalogue
        from moviecrawler.database.sqlite import FILE

        if self.settings.get("DATABASE_URL"):
            return {"the catalogue": known_titles(open_catalogue(self.settings))}
        folder = Path(self.settings["DATA_DIR"])
        sources = {}
        if (folder / FILE).exists():
            sources[str(folder / FILE)] = stored_titles(folder)
        if (titles := dataset_titles(datasets_url(self.settings), folder)) is not None:
            sources["IMDb's datasets"] = titles
        return sources


def _csv_row(film: Film | UnreadRow, linked: Linked) -> list[object]:
    names = film.names()
    reasons = ", ".join(linked.reasons)
    return [names["title"], names["year"], linked.imdb_id, linked.decision, reasons]
