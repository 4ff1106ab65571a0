"""Reads users' CSV files, as spreadsheets write them, row by row."""

from __future__ import annotations

import csv
from contextlib import contextmanager
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeVar, get_args

import msgspec

from moviecrawler.basics.errors import ConfigurationError
from moviecrawler.items import TitleKind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from pathlib import Path
    from typing import TextIO

Row = TypeVar("Row", bound=msgspec.Struct)

_MAX_SHOWN_CHARS = 40


@contextmanager
def opened(path: Path) -> Iterator[TextIO]:
    """Open a file.

    Raises ConfigurationError, also while reading, when it can't be read or is not UTF-8.
    """
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            yield file
    except UnicodeDecodeError as error:
        where = f"{error.reason} at byte {error.start}"
        raise ConfigurationError(f"{path} is not UTF-8 ({where}); save it as CSV UTF-8") from error
    except OSError as error:
        raise ConfigurationError(f"{path} can't be read: {error.strerror or error}") from error


def read_rows(
    lines: Iterable[str], name: str, columns_of: Callable[[list[str]], list[str]]
) -> Iterator[tuple[dict[str, str], str]]:
    """Yield the cells of each row by column, with its location for messages.

    A location is such as `mine.csv, line 2`. Cells are separated by commas, semicolons or tabs.
    `columns_of` returns the column names of a header. Raises ConfigurationError for the first wrong
    row.
    """
    lines = iter(lines)
    first = next((line for line in lines if line.strip()), "")
    reader = csv.reader(chain([first], lines), strict=True, delimiter=max(",;\t", key=first.count))
    try:
        header = columns_of([cell.strip().casefold() for cell in next(reader, [])])
        twice = next((column for column in header if header.count(column) > 1), None)
        if twice is not None:
            raise ConfigurationError(f"{name} has the column {twice!r} twice")
        for cells in reader:
            if any(cell.strip() for cell in cells):  # spreadsheets write empty rows at the end
                location = f"{name}, line {reader.line_num}"
                if len(cells) != len(header):
                    raise ConfigurationError(
                        f"{location} has {len(cells)} cells, not {len(header)} as the header has"
                    )
                yield dict(zip(header, cells, strict=True)), location
    except csv.Error as error:
        raise ConfigurationError(f"{name}, line {reader.line_num}: {error}") from error


def converted(cells: Mapping[str, Any], location: str, form: type[Row]) -> Row:
    """Convert cells to a row.

    Empty cells and unknown columns are left out. Raises ConfigurationError.
    """
    values = {
        column: cell.strip() if isinstance(cell, str) else cell
        for column, cell in cells.items()
        if column in form.__struct_fields__ and cell is not None and str(cell).strip()
    }
    try:
        return msgspec.convert(values, form, strict=False)
    except msgspec.ValidationError as error:
        reason, _, column = str(error).partition(" - at `$.")
        column = column.rstrip("`")
        text = f"{column} is {shown(values[column])}: {reason}" if column in values else str(error)
        if column == "kind":
            text += f"; give one of {', '.join(get_args(TitleKind))}"
        raise ConfigurationError(f"{location}: {text}") from error


def shown(cell: Any) -> str:
    """Return a cell for a message, cut if it is long."""
    text = repr(cell)
    return text if len(text) <= _MAX_SHOWN_CHARS else f"{text[:_MAX_SHOWN_CHARS]}…"
