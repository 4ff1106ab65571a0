"""Reads users' CSV files row by row: those of spreadsheets, and the exports of other programs.

A column is known by any of the names that spreadsheets and programs give it, whatever its
capitals, spaces and underscores are: `Const` and `imdbID` are both `imdb_id`.
"""

from __future__ import annotations

import codecs
import csv
import re
import tomllib
from contextlib import contextmanager
from dataclasses import dataclass
from io import BufferedReader, TextIOWrapper
from itertools import chain, islice
from typing import TYPE_CHECKING, Final, Generic, TypeVar, get_args

import msgspec

from moviecrawler.basics.errors import ConfigurationError
from moviecrawler.basics.files import read_package_file
from moviecrawler.basics.texts import shown
from moviecrawler.items import TitleKind
from moviecrawler.sites import ID_SITE, SITES
from moviecrawler.sites.imdb.values import TITLE_KINDS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path
    from typing import TextIO

Cell = TypeVar("Cell")
"""Texts, or what JSON has."""
Form = TypeVar("Form", bound=msgspec.Struct)

_MAX_ROWS_BEFORE_HEADER = 20
"""Letterboxd writes what a list is about before the header."""
_ID_DIGITS = 7
"""Digits of an IMDb id, at least, which some programs write without its letters."""
_YEAR: Final = re.compile(r"\(?(\d{4})(?:\.0)?(?!\d)")
_TABLES = tomllib.loads(read_package_file(__package__, "columns.toml"))
_NAMES: Final[dict[str, str]] = {
    **{f"{site}{end}": f"{site}_id" for site in SITES for end in ("id", "url", "link")},
    **{
        name: column
        for column, names in _TABLES["columns"].items()
        for name in (column.replace("_", ""), *names)
    },
}
"""The columns that any program may have, by their names as `_plain` returns them."""
_KINDS: Final[dict[str, TitleKind]] = {
    **{name.casefold(): kind for name, kind in TITLE_KINDS.items()},
    **{kind: kind for kind in get_args(TitleKind)},
    **{name: kind for kind, names in _TABLES["kinds"].items() for name in names},
}
"""What a title is, by the words of IMDb's export and of other programs."""


@dataclass(slots=True, kw_only=True)
class SheetRow(Generic[Cell]):
    """One row of a file."""

    location: str
    """Such as `mine.csv, line 2`, for messages."""
    columns: list[str]
    """The names of the file's columns; "" for one that is not known."""
    cells: list[Cell]

    def by_column(self) -> dict[str, Cell]:
        """Return the cells of the known columns. Raises ConfigurationError for a wrong number."""
        if len(self.cells) != len(self.columns):
            raise ConfigurationError(
                f"{self.location} has {len(self.cells)} cells, not {len(self.columns)} as the"
                " header has"
            )
        return {
            column: cell for column, cell in zip(self.columns, self.cells, strict=True) if column
        }


def known_columns(header: Sequence[str]) -> list[str]:
    """Return the name of each column as this project writes it; "" for one that is not known.

    Of two columns with different names and one meaning, the first counts.

    >>> known_columns(["Position", "Const", "Title Type", "imdbID"])
    ['', 'imdb_id', 'kind', '']
    """
    columns: list[str] = []
    for cell in header:
        column = _NAMES.get(_plain(cell), "")
        is_other_name = column in columns and header[columns.index(column)] != cell
        columns.append("" if is_other_name else column)
    return columns


def _plain(text: str) -> str:
    return "".join(filter(str.isalnum, text.casefold()))


def kind_of(text: str) -> TitleKind | None:
    """Return what a title is by the word of another program; None for a word that is not known.

    >>> kind_of("TV Mini Series"), kind_of("show"), kind_of("play")
    ('series', 'series', None)
    """
    return _KINDS.get(_plain(text))


def year_of(cell: Cell) -> Cell | str:
    """Return the year that a cell begins with; any other cell as it is.

    >>> year_of("1994"), year_of("(1994)"), year_of("2011-2019"), year_of("MMXX")
    ('1994', '1994', '2011', 'MMXX')
    """
    match = _YEAR.match(str(cell).strip())
    return match[1] if match else cell


def as_id(column: str, cell: str) -> str:
    """Return the cell of an id with the letters that some programs leave out.

    >>> as_id("imdb_id", "111161"), as_id("tmdb_id", "278")
    ('tt0111161', '278')
    """
    text = cell.strip()
    if column == f"{ID_SITE}_id" and text.isascii() and text.isdigit():
        return f"tt{text.zfill(_ID_DIGITS)}"
    return text


@contextmanager
def opened(path: Path) -> Iterator[TextIO]:
    """Open a file in UTF-8, or in UTF-16 as spreadsheets write it.

    Raises ConfigurationError, also while reading, when it can't be read or is neither.
    """
    try:
        with path.open("rb") as file, TextIOWrapper(file, encoding_of(file), newline="") as text:
            yield text
    except UnicodeDecodeError as error:
        where = f"{error.reason} at byte {error.start}"
        raise ConfigurationError(f"{path} is not UTF-8 ({where}); save it as CSV UTF-8") from error
    except OSError as error:
        raise ConfigurationError(f"{path} can't be read: {error.strerror or error}") from error


def encoding_of(file: BufferedReader) -> str:
    """Return the encoding of a file by its byte order mark."""
    is_utf_16 = file.peek(2)[:2] in {codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE}
    return "utf-16" if is_utf_16 else "utf-8-sig"


def read_rows(
    lines: Iterable[str],
    name: str,
    columns_of: Callable[[list[str]], list[str]] = known_columns,
) -> Iterator[SheetRow[str]]:
    """Yield the rows of a file that are not empty.

    Cells are separated by commas, semicolons or tabs.

    Args:
        lines: The file.
        name: Its name, for messages.
        columns_of: Returns the names of the columns by a header. Raises ConfigurationError for what
            is none; then the header is one of the next rows.

    Raises:
        ConfigurationError: The file has no header, or can't be parsed.
    """
    lines = iter(lines)
    first = next((line for line in lines if line.strip()), "")
    separator = max(",;\t", key=first.count)
    if first.casefold().startswith("sep="):  # Excel's own line
        separator = first.strip()[-1]
        first = ""
    reader = csv.reader(chain([first], lines), strict=True, delimiter=separator)
    try:
        # Spreadsheets write empty rows at the end.
        rows = (cells for cells in reader if any(cell.strip() for cell in cells))
        columns = _header(rows, name, columns_of)
        for cells in rows:
            location = f"{name}, line {reader.line_num}"
            yield SheetRow(location=location, columns=columns, cells=cells)
    except csv.Error as error:
        raise ConfigurationError(f"{name}, line {reader.line_num}: {error}") from error


def _header(
    rows: Iterator[list[str]], name: str, columns_of: Callable[[list[str]], list[str]]
) -> list[str]:
    refusals = []
    for cells in islice(rows, _MAX_ROWS_BEFORE_HEADER):
        try:
            columns = columns_of([cell.strip().casefold() for cell in cells])
        except ConfigurationError as error:
            refusals.append(error)
            continue
        twice = next((column for column in columns if column and columns.count(column) > 1), None)
        if twice is not None:
            raise ConfigurationError(f"{name} has the column {twice!r} twice")
        return columns
    if refusals:
        raise refusals[0]
    return columns_of([])


def converted(cells: Mapping[str, object], location: str, form: type[Form]) -> Form:
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
