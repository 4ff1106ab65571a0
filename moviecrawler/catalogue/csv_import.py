"""The catalogue's titles from a CSV of the operator's own: which they are, how popular, and where they are on the sites."""

from __future__ import annotations

import math
import re
from functools import partial
from typing import TYPE_CHECKING, Any

from moviecrawler.catalogue.comparing import BY_HAND
from moviecrawler.catalogue.file_source import FileSource
from moviecrawler.catalogue.rows import LARGEST_ID, ImportRow
from moviecrawler.catalogue.spreadsheets import kind_of, read_rows, read_values, shown
from moviecrawler.errors import ConfigurationError
from moviecrawler.extract.values import check_runtime, check_year
from moviecrawler.sites import SITES
from moviecrawler.urls import parse_title_id, part_of_series

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from moviecrawler.items import Site

_LONGEST_CELL = 1_000
"""Letters: some more than the longest title there is."""
_LINE_END = re.compile(r"\s*[\t\r\n]\s*")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")


def _popularity(text: str) -> float:
    value = float(text)
    if not (math.isfinite(value) and 0 <= value <= 100):  # noqa: PLR2004 - as ImportRow says
        raise ValueError("give a popularity of 0 to 100")
    return round(value, 1)


def _number(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= len(str(LARGEST_ID)) and 0 < int(text) <= LARGEST_ID):
        raise ValueError(f"give a whole number from 1 to {LARGEST_ID}")
    return int(text)


def _whole_title(site: Site, text: str) -> str:
    site_id = parse_title_id(site, text)
    part = part_of_series(site, site_id)
    if part is not None:
        raise ValueError(f"give the series, {part.series_id}; its seasons and episodes are found by its page")
    return site_id


_SITE_OF: dict[str, Site] = {f"{site}_id": site for site in SITES if site != "imdb"}
"""The site of each column that has ids of a site."""
COLUMNS: dict[str, Callable[[str], Any]] = {
    "imdb_id": lambda text: parse_title_id("imdb", text),
    "tmdb_id": _number,
    "tmdb_series_id": _number,
    "title": str,
    "original_title": str,
    "kind": kind_of,
    "year": lambda text: check_year(_number(text)),
    "end_year": lambda text: check_year(_number(text)),
    "runtime_minutes": lambda text: check_runtime(_number(text)),
    "popularity": _popularity,
    **{column: partial(_whole_title, site) for column, site in _SITE_OF.items()},
}
"""The columns that may be there, in any order, and how each is read. Ids may be given as URLs. An empty cell is no value."""
_FOUND_BY = ("imdb_id", "tmdb_id", "tmdb_series_id")
_FOUND_BY_ONE = f"{', '.join(_FOUND_BY[:-1])} or {_FOUND_BY[-1]}"
_SPELT_DIFFERENTLY = {"tconst": "imdb_id", "imdb": "imdb_id", "tmdb": "tmdb_id"}


_READERS = {column: lambda cell, read=read: read(_checked(cell)) for column, read in COLUMNS.items()}


def read_titles(lines: Iterable[str], name: str) -> Iterator[ImportRow]:
    """Yield the rows of a CSV with a header. Raises ConfigurationError for the first that can't be right, with its line."""

    def columns_of(header: list[str]) -> list[str]:
        columns = [_SPELT_DIFFERENTLY.get(cell, cell) for cell in header]
        unknown = next((column for column in columns if column not in COLUMNS), None)
        if unknown is not None:
            known = ", ".join(COLUMNS)
            raise ConfigurationError(f"{name} has a column {shown(unknown)}; the columns known are {known}")
        if not set(columns) & set(_FOUND_BY):
            raise ConfigurationError(f"{name} has no column {_FOUND_BY_ONE}; titles are found by these")
        return columns

    for row, place in read_rows(lines, name, columns_of):
        values = read_values(row, place, _READERS)
        if not values.keys() & set(_FOUND_BY):
            raise ConfigurationError(f"{place} has no {_FOUND_BY_ONE}")
        values["site_ids"] = {_SITE_OF[column]: values.pop(column) for column in values.keys() & _SITE_OF.keys()}
        yield ImportRow(**values, popularity_source="given", id_source="given", id_confidence=BY_HAND)


def _checked(cell: str) -> str:
    if len(cell) > _LONGEST_CELL:
        raise ValueError(f"it has {len(cell)} letters, and may have {_LONGEST_CELL}")
    cell = _LINE_END.sub(" ", cell)
    if _CONTROL.search(cell):
        raise ValueError("it holds a control character")
    return cell


class CsvTitles(FileSource):
    """The titles of a CSV."""

    name = "csv"
    is_read_first = True

    def __init__(self, path: Path) -> None:
        """Read the file at `path`: UTF-8; commas, semicolons or tabs; a header that names COLUMNS."""
        super().__init__(str(path), [path], f"a CSV with the columns {', '.join(COLUMNS)}")

    def read(self) -> Iterator[ImportRow]:
        """Yield the rows in the file's order; ConfigurationError for the first that can't be right; see `FileSource`."""
        (path,) = self.paths
        with path.open("rb") as file:
            try:
                yield from read_titles((line.decode("utf-8-sig") for line in file), str(path))
            except UnicodeDecodeError as error:
                raise ConfigurationError(f"{path} is not UTF-8 ({error}); save it as CSV UTF-8") from error
