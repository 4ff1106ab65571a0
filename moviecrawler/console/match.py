"""`scrapy match`: which IMDb title each film of a list is."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from scrapy.exceptions import UsageError

from moviecrawler.catalogue.film_lists import read_records, read_titles
from moviecrawler.catalogue.linking import link
from moviecrawler.console.output import Console, printing
from moviecrawler.errors import ConfigurationError, MovieCrawlerError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable, Iterator

    from moviecrawler.catalogue.forms import Title
    from moviecrawler.catalogue.linking import Linked


class Match(Console):
    """One JSON object a film, in their order."""

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        """Print them when all is read; exit code 2 for files that can't be right, 1 when the database can't be read."""
        if len(args) != 1:
            raise UsageError(f"name one list of films; got {len(args)}", print_help=False)
        try:
            if opts.against is not None:
                lines = _match(Path(args[0]), read_titles(Path(opts.against)))
            else:
                lines = _match(Path(args[0]), self._catalogue())
        except ConfigurationError as error:
            raise UsageError(str(error), print_help=False) from error
        except MovieCrawlerError as error:
            print(f"scrapy match: {error}", file=sys.stderr)
            self.exitcode = 1
            return
        with printing():
            for line in lines:
                sys.stdout.buffer.write(line)

    def _catalogue(self) -> Iterator[Title]:
        # A list against a list needs no database, and no client of one.
        from moviecrawler.catalogue.known_titles import known_titles  # noqa: PLC0415
        from moviecrawler.catalogue.store import open_catalogue  # noqa: PLC0415

        if not self.settings.get("DATABASE_URL"):
            raise ConfigurationError(
                "DATABASE_URL is not set; name a list of IMDb titles with --against TITLES, or the catalogue's database"
            )
        store = open_catalogue(self.settings)
        try:
            yield from known_titles(store)
        finally:
            store.close()


def _match(path: Path, titles: Iterable[Title]) -> list[bytes]:
    """Return the lines to print. A film that stands in the list twice is one film, and its line stands there twice."""
    order: list[int] = []
    numbers: dict[tuple[str, str], int] = {}
    records: list[Title] = []
    for film in read_records(path):
        key = film.site, film.site_id
        if key not in numbers:
            numbers[key] = len(records)
            records.append(film.title)
        order.append(numbers[key])
    found = link(records, titles)
    lines = [_line(*key, linked) for key, linked in zip(numbers, found, strict=True)]
    return [lines[number] for number in order]


def _line(site: str, site_id: str, linked: Linked) -> bytes:
    return msgspec.json.encode({"site": site, "site_id": site_id, **msgspec.to_builtins(linked)}) + b"\n"
