"""Imports titles, popularities and ids from the operator's own CSV."""

from __future__ import annotations

import re
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated

import msgspec
from msgspec import Meta

from moviecrawler.basics.errors import ConfigurationError
from moviecrawler.basics.texts import shown
from moviecrawler.catalogue.file_source import FileSource
from moviecrawler.catalogue.rows import LARGEST_ID, ImportRow
from moviecrawler.catalogue.spreadsheets import (
    SheetRow,
    as_id,
    converted,
    kind_of,
    known_columns,
    opened,
    read_rows,
    year_of,
)
from moviecrawler.items import Pixels, TitleKind, Year  # noqa: TC001 - msgspec resolves annotations
from moviecrawler.matching.comparing import BY_HAND
from moviecrawler.sites import ID_SITE, SITES
from moviecrawler.sites.ids import parse_title_id, part_of_series, site_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from moviecrawler.sites import Site

_LINE_END = re.compile(r"\s*[\t\r\n]\s*")
_Title = Annotated[str, Meta(max_length=1_000, pattern="^[^\x00-\x1f\x7f-\x9f]*$")]
"""A text without control characters. The bound is longer than any title."""
_Number = Annotated[int, Meta(ge=1, le=LARGEST_ID)]


class _Values(msgspec.Struct):
    tmdb_id: _Number | None = None
    tmdb_series_id: _Number | None = None
    title: _Title | None = None
    original_title: _Title | None = None
    kind: TitleKind | None = None
    year: Year | None = None
    end_year: Year | None = None
    runtime_minutes: Pixels | None = None
    popularity: Annotated[float, Meta(ge=0, le=100)] | None = None


_IMDB_COLUMN = f"{ID_SITE}_id"
_ID_COLUMNS = {f"{site}_id": site for site in SITES}
_TMDB_COLUMNS = {"tmdb_id", "tmdb_series_id"}
COLUMNS = tuple(dict.fromkeys([_IMDB_COLUMN, *_Values.__struct_fields__, *_ID_COLUMNS]))
"""The columns of the CSV, in any order and by any of their names; one of the first three, or `url`,
is required. Ids may be given as URLs. An empty cell is not a value. Other columns are not read."""
_FOUND_BY = "imdb_id, tmdb_id or tmdb_series_id"
_URL = "url"


def _title_of(row: SheetRow[str]) -> ImportRow:
    """Return the title of a row. Raises ConfigurationError for a wrong one."""
    cells = {
        column: _LINE_END.sub(" ", as_id(column, cell)) for column, cell in row.by_column().items()
    }
    cells["kind"] = kind_of(cells.get("kind", "")) or cells.get("kind", "")
    cells["year"] = year_of(cells.get("year", ""))
    values = converted(cells, row.location, _Values)
    if values.kind == "series":
        values.tmdb_series_id = values.tmdb_series_id or values.tmdb_id
        values.tmdb_id = None
    if values.popularity is not None:
        values.popularity = round(values.popularity, 1)
    site_ids = _ids_at(cells.get(_URL, ""))
    for column, site in _ID_COLUMNS.items():
        if text := cells.get(column):
            try:
                site_ids[site] = _whole_title(site, text)
            except ConfigurationError as error:
                raise ConfigurationError(
                    f"{row.location}: {column} is {shown(text)}: {error}"
                ) from error
    imdb_id = site_ids.pop(ID_SITE, None)
    if not (imdb_id or values.tmdb_id or values.tmdb_series_id):
        raise ConfigurationError(f"{row.location} has no {_FOUND_BY}")
    return ImportRow(
        imdb_id=imdb_id,
        **msgspec.structs.asdict(values),
        site_ids=site_ids,
        popularity_source="given",
        id_source="given",
        id_confidence=BY_HAND,
    )


def _ids_at(url: str) -> dict[Site, str]:
    """Return the title's id on the site of a URL, which may be that of another program."""
    site = site_of(url)
    with suppress(ConfigurationError):
        if site is not None:
            return {site: _whole_title(site, url)}
    return {}


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

        It is in UTF-8 or UTF-16, with commas, semicolons or tabs, and has a header that names some
        of COLUMNS.
        """
        super().__init__(str(path), [path], f"a CSV with the columns {', '.join(COLUMNS)}")

    def read(self) -> Iterator[ImportRow]:
        """Yield the rows in the file's order, but for wrong ones; see `FileSource`.

        Raises ConfigurationError for a file that is not such a CSV.
        """
        (path,) = self.paths
        with opened(path) as file:
            for row in read_rows(file, str(path), self._columns_of):
                try:
                    title = _title_of(row)
                except ConfigurationError as error:
                    self.leave_out(str(error))
                else:
                    yield title

    def _columns_of(self, header: list[str]) -> list[str]:
        columns = known_columns(header)
        if not set(columns) & {_IMDB_COLUMN, *_TMDB_COLUMNS, _URL}:
            raise ConfigurationError(
                f"{self.paths[0]} has no column {_FOUND_BY}; titles are found by these"
            )
        unread = [
            cell
            for cell, column in zip(header, columns, strict=True)
            if column not in {*COLUMNS, _URL}
        ]
        self.remark = f"columns that are not read: {', '.join(unread)}" if unread else ""
        return columns
