"""CSV as people's spreadsheets and programs write it, row by row. Pure."""

from __future__ import annotations

import csv
from itertools import chain
from typing import TYPE_CHECKING, Any, get_args

from moviecrawler.errors import ConfigurationError
from moviecrawler.items import TitleKind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

_SHOWN = 40


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


def read_values(row: Mapping[str, Any], place: str, readers: Mapping[str, Callable[[Any], Any]]) -> dict[str, Any]:
    """Return what a row's cells say, by column. Left out are empty cells, and those of which a reader returns None.

    A reader takes a cell without spaces around it, and raises ValueError or ConfigurationError; that becomes a ConfigurationError with
    the place.
    """
    values: dict[str, Any] = {}
    for column, read in readers.items():
        cell = row.get(column)
        if isinstance(cell, str):
            cell = cell.strip()
        if cell is None or cell == "":
            continue
        try:
            value = read(cell)
        except (ValueError, ConfigurationError) as error:
            raise ConfigurationError(f"{place}: {column} is {shown(cell)}: {error}") from error
        if value is not None:
            values[column] = value
    return values


def kind_of(cell: Any) -> str:
    """Return the kind of title that a cell names. Raises ValueError."""
    if cell not in get_args(TitleKind):
        raise ValueError(f"give one of {', '.join(get_args(TitleKind))}")
    return str(cell)


def shown(cell: Any) -> str:
    """Return a cell's beginning for a message."""
    text = repr(cell)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
