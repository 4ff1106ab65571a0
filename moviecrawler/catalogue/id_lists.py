"""Reads the titles that a crawl's arguments name: by ids or URLs, one per line, or in any CSV."""

from __future__ import annotations

from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from dataclasses import dataclass, field
from io import StringIO
from itertools import islice
from typing import TYPE_CHECKING

from moviecrawler.basics.errors import ConfigurationError
from moviecrawler.basics.files import read_file
from moviecrawler.basics.texts import shown
from moviecrawler.catalogue.spreadsheets import SheetRow, as_id, known_columns, read_rows
from moviecrawler.sites import SITES
from moviecrawler.sites.ids import find_title_id

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from moviecrawler.sites import Site

_LARGEST_LIST = 16 * 1024 * 1024
"""Bytes of a file of titles: a million of them."""


@dataclass(kw_only=True)
class Film:
    """A title of a list."""

    location: str
    """Where the list names it."""
    ids: dict[Site, str] = field(default_factory=dict)
    """Its id on each site where that is known."""


def read_films(homes: Mapping[Site, str], ids: str | None, file: str | None) -> list[Film]:
    """Return the titles that the arguments `ids` and `file` name.

    No error quotes the file: whoever may schedule jobs on a node could read any of its files.

    Args:
        homes: The sites of the ids, with scheme and host of the URLs that are theirs, too.
        ids: Ids or URLs, with commas between them.
        file: Path of a file with one per line, where empty lines and those that start with # are
            skipped; or of a CSV, of which a row may name no title.

    Raises:
        ConfigurationError: The file can't be read, or a line is not a title of one site.
    """
    films = [_film(text, shown(text), homes) for text in (ids or "").split(",") if text.strip()]
    if ids is not None and not films:
        raise ConfigurationError(f"ids is {ids!r}, which names no title")
    if file is not None:
        films += _read_file(file, homes)
        if not films:
            raise ConfigurationError(f"file {file!r} names no title")
    return films


def _film(text: str, location: str, homes: Mapping[Site, str]) -> Film:
    film = Film(location=location)
    for site, home in homes.items():
        if site_id := find_title_id(site, text, home):
            film.ids[site] = site_id
    if not film.ids:
        example = SITES[next(iter(homes))].ids.example
        raise ConfigurationError(
            f"{location} is not a title of {', '.join(homes)}; give an id such as {example}, or"
            " its URL"
        )
    if len(film.ids) > 1 and "://" not in text:
        raise ConfigurationError(
            f"{location} may be a title of {' and '.join(film.ids)}; give its URL"
        )
    return film


def _read_file(file: str, homes: Mapping[Site, str]) -> list[Film]:
    text = _read_text(file)
    lines = {
        number: line
        for number, line in enumerate(text.splitlines(), 1)
        if line.strip() and not line.lstrip().startswith("#")
    }
    begin = list(islice(lines.values(), 3))
    header = list(islice(lines.values(), 1))
    has_cells = any(mark in line for line in begin for mark in ",;\t")
    if (has_cells or any(known_columns(header))) and not _has_id(header, homes):
        return _read_csv(text, file, homes)
    return [_film(line, f"line {number} of {file}", homes) for number, line in lines.items()]


def _read_text(file: str) -> str:
    try:
        content = read_file(file, _LARGEST_LIST)
        is_utf_16 = content.startswith((BOM_UTF16_LE, BOM_UTF16_BE))
        # Ids and URLs are the same in all other encodings.
        return content.decode("utf-16") if is_utf_16 else content.decode("utf-8-sig", "replace")
    # A ValueError is of bytes that are not UTF-16, or of a zero byte in the name.
    except (OSError, ValueError) as error:
        raise ConfigurationError(f"file {file!r} can't be read: {error}") from None


def _read_csv(text: str, file: str, homes: Mapping[Site, str]) -> list[Film]:
    """Return the titles of a CSV, also of one without a header, whose first row has an id."""
    rows: list[SheetRow[str]] = []

    def columns_of(header: list[str]) -> list[str]:
        if not _has_id(header, homes):
            return known_columns(header)
        columns = [""] * len(header)
        rows.append(SheetRow(location=f"{file}, line 1", columns=columns, cells=header))
        return columns

    for row in read_rows(StringIO(text, newline=""), file, columns_of):
        row.cells += [""] * (len(row.columns) - len(row.cells))
        rows.append(row)
    films = [Film(location=" of ".join(reversed(row.location.rsplit(", ", 1)))) for row in rows]
    for site, home in homes.items():
        for film, site_id in zip(films, _ids_of_rows(site, rows, home), strict=True):
            if site_id is not None:
                film.ids[site] = site_id
    if not any(film.ids for film in films):
        raise ConfigurationError(
            f"none of the {len(rows):,} rows of {file} has an id or URL of {', '.join(homes)};"
            " scrapy match finds IMDb's ids by title and year"
        )
    return films


def _ids_of_rows(site: Site, rows: list[SheetRow[str]], home: str) -> list[str | None]:
    """Return the id of each row's title on a site; None where it names none.

    Columns that are known to hold ids or URLs go before all others. Of these, the one counts that
    names the most titles.
    """
    columns = rows[0].columns if rows else []
    ids = [[_id_in(site, row, index, home) for row in rows] for index in range(len(columns))]
    names = (f"{site}_id", "site_id", "url")
    chosen = [ids[columns.index(name)] for name in names if name in columns]
    if not any(map(any, chosen)):
        chosen = sorted(ids, key=lambda column: column.count(None))[:1]
    return [next(filter(None, row), None) for row in zip(*chosen, strict=True)]


def _id_in(site: Site, row: SheetRow[str], index: int, home: str) -> str | None:
    """Return the id of a title of the site in a cell; None when there is none."""
    column = row.columns[index]
    row_site = row.cells[row.columns.index("site")] if "site" in row.columns else site
    if column == "site_id" and row_site.strip().casefold() != site:
        return None
    return find_title_id(site, as_id(column, row.cells[index]), home)


def _has_id(cells: Iterable[str], homes: Mapping[Site, str]) -> bool:
    return any(find_title_id(site, cell, home) for cell in cells for site, home in homes.items())
