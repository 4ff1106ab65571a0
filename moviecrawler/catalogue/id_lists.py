"""Finds the ids of titles in users' lists: one a line, or in a CSV with whatever columns."""

from __future__ import annotations

from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from io import StringIO
from typing import TYPE_CHECKING

from moviecrawler.basics.errors import ConfigurationError
from moviecrawler.basics.files import read_file
from moviecrawler.catalogue.spreadsheets import SheetRow, as_id, known_columns, read_rows
from moviecrawler.sites.ids import parse_title_id

if TYPE_CHECKING:
    from collections.abc import Callable

    from moviecrawler.sites import Site

_LARGEST_LIST = 16 * 1024 * 1024
"""Bytes of a file of titles: a million of them."""


def read_list(file: str) -> str:
    """Return the text of a user's list. Raises ConfigurationError when it can't be read."""
    try:
        content = read_file(file, _LARGEST_LIST)
        is_utf_16 = content.startswith((BOM_UTF16_LE, BOM_UTF16_BE))
        # Ids and URLs are the same in all other encodings.
        return content.decode("utf-16") if is_utf_16 else content.decode("utf-8-sig", "replace")
    # A ValueError is of bytes that are no UTF-16, or of a zero byte in the name.
    except (OSError, ValueError) as error:
        raise ConfigurationError(f"file {file!r} can't be read: {error}") from None


def rows_of(text: str, file: str, is_id: Callable[[str], bool]) -> list[SheetRow[str]]:
    """Return the rows of a CSV file, also of one without a header, whose first row has an id."""
    first: list[list[str]] = []

    def columns_of(header: list[str]) -> list[str]:
        if any(map(is_id, header)):  # it is none
            first.append(header)
            return [""] * len(header)
        return known_columns(header)

    rows = list(read_rows(StringIO(text, newline=""), file, columns_of))
    if first:
        line = f"{file}, line 1"
        rows.insert(0, SheetRow(location=line, columns=[""] * len(first[0]), cells=first[0]))
    return rows


def ids_of_rows(site: Site, rows: list[SheetRow[str]], home: str | None) -> list[str | None]:
    """Return the id of each row's title on a site; None where it names none.

    Columns that are known to hold ids or URLs go before all others. Of these, the one counts that
    names the most titles.
    """
    columns = rows[0].columns if rows else []
    found = [[_id_in(site, row, index, home) for row in rows] for index in range(len(columns))]
    chosen = [columns.index(name) for name in (f"{site}_id", "site_id", "url") if name in columns]
    if not any(any(found[index]) for index in chosen):
        chosen = sorted(range(len(columns)), key=lambda index: found[index].count(None))[:1]
    return [
        next((found[index][number] for index in chosen if found[index][number]), None)
        for number in range(len(rows))
    ]


def _id_in(site: Site, row: SheetRow[str], index: int, home: str | None) -> str | None:
    """Return the id of a title of the site in a cell; None when there is none."""
    if index >= len(row.cells):
        return None
    column = row.columns[index]
    of_site = row.cells[row.columns.index("site")] if "site" in row.columns else site
    if column == "site_id" and of_site.strip().casefold() != site:
        return None
    return id_of(site, as_id(column, row.cells[index]), home)


def id_of(site: Site, text: str, home: str | None) -> str | None:
    """Return the id that a text is, or a URL has; None when it is none of the site."""
    try:
        return parse_title_id(site, text, home)
    except ConfigurationError:
        return None
