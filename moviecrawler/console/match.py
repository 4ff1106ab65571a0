"""`scrapy match`: which IMDb title each film of a list is."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from moviecrawler.catalogue.film_lists import read_records, read_titles
from moviecrawler.catalogue.linking import link
from moviecrawler.console.output import Console, print_json
from moviecrawler.errors import ConfigurationError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable, Iterator

    from moviecrawler.catalogue.forms import Title


class Match(Console):
    """Prints one JSON object for each film, in their order."""

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        """Print them when all are matched; exit code 2 for wrong files, 1 when the database can't be read."""
        if len(args) != 1:
            raise ConfigurationError(f"name one list of films; got {len(args)}")
        titles = self._catalogue() if opts.against is None else read_titles(Path(opts.against))
        for line in _match(Path(args[0]), titles):
            print_json(line)

    def _catalogue(self) -> Iterator[Title]:
        # Matching two lists needs no database, and no client of one.
        from moviecrawler.catalogue.store import open_catalogue  # noqa: PLC0415
        from moviecrawler.catalogue.wanted import known_titles  # noqa: PLC0415

        if not self.settings.get("DATABASE_URL"):
            raise ConfigurationError(
                "DATABASE_URL is not set; name a list of IMDb titles with --against TITLES, or the catalogue's database"
            )
        with closing(open_catalogue(self.settings)) as store:
            yield from known_titles(store)


def _match(path: Path, titles: Iterable[Title]) -> list[dict[str, Any]]:
    """Return the line of each film. A film that is in the list twice is matched once, and its line is printed twice."""
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
    lines = [
        {"site": site, "site_id": site_id, **msgspec.to_builtins(linked)}
        for (site, site_id), linked in zip(numbers, found, strict=True)
    ]
    return [lines[number] for number in order]
