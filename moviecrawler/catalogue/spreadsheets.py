"""Lists of anybody's own, as people's spreadsheets and programs write them, row by row."""

from __future__ import annotations

import csv
from contextlib import contextmanager
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeVar, get_args

import msgspec

from moviecrawler.errors import ConfigurationError
from moviecrawler.items import TitleKind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from pathlib import Path
    from typing import TextIO

Row = TypeVar("Row", bound=msgspec.Struct)

_SHOWN = 40


@contextmanager
def opened(path: Path) -> Iterator[TextIO]:
    """Open a file. Raises ConfigurationError, while it is read too, when it can't be read or is not UTF-8."""
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
    """Yield the cells of each row by column, with the words that name its place, such as `mine.csv, line 2`.

    Between cells stand commas, or the semicolons or tabs of countries where a comma is the decimal point. `columns_of` names the
    columns of a header. Raises ConfigurationError, as `columns_of` does, for the first row that can't be right.
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
            if any(cell.strip() for cell in cells):  # spreadsheets leave empty rows behind
                place = f"{name}, line {reader.line_num}"
                if len(cells) != len(header):
                    raise ConfigurationError(f"{place} has {len(cells)} cells, not {len(header)} as the header")
                yield dict(zip(header, cells, strict=True)), place
    except csv.Error as error:
        raise ConfigurationError(f"{name}, line {reader.line_num}: {error}") from error


def converted(cells: Mapping[str, Any], place: str, form: type[Row]) -> Row:
    """Return a row by its columns' types. Empty cells, and columns that it has not, are left out. Raises ConfigurationError."""
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
        told = f"{column} is {shown(values[column])}: {reason}" if column in values else str(error)
        if column == "kind":
            told += f"; give one of {', '.join(get_args(TitleKind))}"
        raise ConfigurationError(f"{place}: {told}") from error


def shown(cell: Any) -> str:
    """Return a cell's beginning for a message."""
    text = repr(cell)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
