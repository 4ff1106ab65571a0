"""Imports titles, popularities and ids from the operator's own CSV."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated

import msgspec
from msgspec import Meta

from moviecrawler.basics.errors import ConfigurationError
from moviecrawler.catalogue.file_source import FileSource
from moviecrawler.catalogue.rows import LARGEST_ID, ImportRow
from moviecrawler.catalogue.spreadsheets import converted, opened, read_rows, shown
from moviecrawler.items import Pixels, TitleKind, Year  # noqa: TC001 - msgspec resolves annotations
from moviecrawler.matching.comparing import BY_HAND
from moviecrawler.sites import ID_SITE, SITES
from moviecrawler.sites.ids import parse_title_id, part_of_series

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from moviecrawler.sites import Site

_LINE_END = re.compile(r"\s*[\t\r\n]\s*")
_Title = Annotated[str, Meta(max_length=1_000, pattern="^[^\x00-\x1f\x7f-\x9f]*$")]
"""A text without control characters. The bound is longer than any title."""
_Number = Annotated[int, Meta(ge=1, le=LARGEST_ID)]


class _Values(msgspec.Struct):
    imdb_id: str | None = None
    tmdb_id: _Number | None = None
    tmdb_series_id: _Number | None = None
    title: _Title | None = None
    original_title: _Title | None = None
    kind: TitleKind | None = None
    year: Year | None = None
    end_year: Year | None = None
    runtime_minutes: Pixels | None = None
    popularity: Annotated[float, Meta(ge=0, le=100)] | None = None


_ID_COLUMNS = {f"{site}_id": site for site in SITES}
_Row = msgspec.defstruct(
    "_Row",
    [(column, str | None, None) for column, site in _ID_COLUMNS.items() if site != ID_SITE],
    bases=(_Values,),
)
COLUMNS = _Row.__struct_fields__
"""The columns of the CSV, in any order; one of the first three is required. Ids may be given as
URLs. An empty cell is no value."""
_FOUND_BY = "imdb_id, tmdb_id or tmdb_series_id"
_SPELT_DIFFERENTLY = {"tconst": "imdb_id", "imdb": "imdb_id", "tmdb": "tmdb_id"}


def read_titles(lines: Iterable[str], name: str) -> Iterator[ImportRow]:
    """Yield the rows of a CSV with a header.

    Raises ConfigurationError for the first wrong row, with its line.
    """

    def columns_of(header: list[str]) -> list[str]:
        columns = [_SPELT_DIFFERENTLY.get(cell, cell) for cell in header]
        unknown = next((column for column in columns if column not in COLUMNS), None)
        if unknown is not None:
            known = ", ".join(COLUMNS)
            raise ConfigurationError(
                f"{name} has a column {shown(unknown)}; the columns known are {known}"
            )
        if not set(columns) & set(COLUMNS[:3]):
            raise ConfigurationError(f"{name} has no column {_FOUND_BY}; titles are found by these")
        return columns

    for cells, location in read_rows(lines, name, columns_of):
        row = converted(
            {column: _LINE_END.sub(" ", cell) for column, cell in cells.items()}, location, _Row
        )
        values = {
            column: value
            for column, value in msgspec.structs.asdict(row).items()
            if value is not None
        }
        if not values.keys() & set(COLUMNS[:3]):
            raise ConfigurationError(f"{location} has no {_FOUND_BY}")
        found: dict[Site, str] = {}
        for column, site in _ID_COLUMNS.items():
            text = values.pop(column, None)
            if text is None:
                continue
            try:
                found[site] = _whole_title(site, text)
            except ConfigurationError as error:
                raise ConfigurationError(
                    f"{location}: {column} is {shown(text)}: {error}"
                ) from error
        if "popularity" in values:
            values["popularity"] = round(values["popularity"], 1)
        yield ImportRow(
            imdb_id=found.pop(ID_SITE, None),
            **values,
            site_ids=found,
            popularity_source="given",
            id_source="given",
            id_confidence=BY_HAND,
        )


def _whole_title(site: Site, text: str) -> str:
    site_id = parse_title_id(site, text)
    part = part_of_series(site, site_id)
    if part is not None:
        raise ConfigurationError(
            f"give the series, {part.series_id}; its seasons and episodes are found by its page"
        )
    return site_id


class CsvTitles(FileSource):
    """The titles of a CSV."""

    name = "csv"
    is_read_first = True

    def __init__(self, path: Path) -> None:
        """Read the file at `path`.

        It is in UTF-8, with commas, semicolons or tabs, and has a header that names COLUMNS.
        """
        super().__init__(str(path), [path], f"a CSV with the columns {', '.join(COLUMNS)}")

    def read(self) -> Iterator[ImportRow]:
        """Yield the rows in the file's order.

        Raises ConfigurationError for the first wrong one; see `FileSource`.
        """
        (path,) = self.paths
        with opened(path) as file:
            yield from read_titles(file, str(path))
