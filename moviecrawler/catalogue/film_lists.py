"""Reads users' lists of films, CSV or JSON Lines, and the IMDb titles that they are compared with.

Both are for `scrapy match`.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING, Annotated, Final

import msgspec
from msgspec import Meta

from moviecrawler.basics.errors import ConfigurationError
from moviecrawler.basics.texts import shown
from moviecrawler.basics.values import parse_date, parse_runtime
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
from moviecrawler.items import TitleKind  # noqa: TC001 - msgspec resolves annotations
from moviecrawler.matching.facts import TitleFacts
from moviecrawler.matching.forms import Title, prepare
from moviecrawler.sites import ID_SITE
from moviecrawler.sites.ids import find_title_id

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

_Text = Annotated[str, Meta(min_length=1, max_length=10_000)]
_Year = Annotated[int, Meta(ge=1000, le=9999)]  # IMDb has a film that will come out in 2115
_LISTS: Final = frozenset({"directors", "other_titles"})
"""Columns of several values in one cell."""
_BETWEEN: Final = ("|", ";", ",")
"""What stands between these, the surest first."""
_NEEDED: Final = ("title", "year")


class _Row(msgspec.Struct, kw_only=True):
    title: _Text | None = None
    year: _Year | None = None
    site: _Text | None = None
    site_id: _Text | None = None
    imdb_id: str | None = None
    original_title: _Text | None = None
    release_date: str | None = None
    runtime_minutes: Annotated[int, Meta(ge=1, le=100_000)] | None = None
    """IMDb's old datasets have 0 where it is unknown."""
    directors: list[_Text] = []
    votes: int | None = None
    other_titles: list[_Text] = []
    kind: TitleKind | None = None
    end_year: _Year | None = None
    season_count: Annotated[int, Meta(ge=1)] | None = None


@dataclass(slots=True, kw_only=True)
class Film:
    """One row of a list."""

    site: str | None
    """Its site gives each title one page. A list of one's own may name a title several times."""
    site_id: str | None
    facts: TitleFacts

    @property
    def key(self) -> str:
        """What two rows of one film have in common."""
        return repr((self.site, self.site_id or self.facts))

    def names(self) -> dict[str, object]:
        """Return what identifies the film for a reader."""
        of_site = {"site": self.site, "site_id": self.site_id} if self.site_id is not None else {}
        return {**of_site, "title": self.facts.title, "year": self.facts.year}

    @property
    def title(self) -> Title:
        """The film in the form that is compared.

        Its votes are left out, as they may be those of another site than IMDb.
        """
        return prepare(self.site or self.key, replace(self.facts, votes=None))


@dataclass(slots=True, kw_only=True)
class UnreadRow:
    """A row that can't be matched."""

    title: str
    reason: str
    """Why, with its location."""

    @property
    def key(self) -> str:
        """What no other row has."""
        return self.reason

    def names(self) -> dict[str, object]:
        """Return what identifies the film for a reader."""
        return {"title": self.title, "year": None}


def read_films(path: Path) -> Iterator[Film | UnreadRow]:
    """Yield the rows of a list, in their order.

    Raises ConfigurationError for a file that is not a list.
    """
    for row in _rows(path):
        title = ""
        try:
            cells = row.by_column()
            title = str(cells.get("title") or "").strip()
            yield _film(cells, row.location)
        except ConfigurationError as error:
            yield UnreadRow(title=title, reason=str(error))


def read_titles(path: Path, left_out: list[str]) -> Iterator[Title]:
    """Yield the titles of a list that have an IMDb id.

    Why a row is left out is added to `left_out`. Raises ConfigurationError for a file that is no
    list.
    """
    for film in read_films(path):
        if isinstance(film, UnreadRow):
            left_out.append(film.reason)
            continue
        facts = film.facts
        if film.site == ID_SITE and film.site_id is not None:
            facts.imdb_id = facts.imdb_id or find_title_id(ID_SITE, film.site_id)
        if facts.imdb_id is None:
            left_out.append(f"{facts.title!r} has no IMDb id such as tt0111161")
        else:
            yield prepare(ID_SITE, facts)


def _film(cells: Mapping[str, object], location: str) -> Film:
    """Return a row as a film. Raises ConfigurationError for a wrong title or year.

    Of the other columns, what can't be parsed is unknown.
    """
    if not str(cells.get("title") or "").strip():
        raise ConfigurationError(f"{location} has no title")
    row = _Row()
    for column in _Row.__struct_fields__:
        value = _value(column, cells.get(column))
        try:
            setattr(row, column, getattr(converted({column: value}, location, _Row), column))
        except ConfigurationError:
            if column in _NEEDED:
                raise
    facts = msgspec.convert(row, TitleFacts, from_attributes=True)
    return Film(site=row.site, site_id=row.site_id, facts=facts)


def _value(column: str, cell: object) -> object:
    """Return a cell as the field of its column takes it; None for what can't be parsed."""
    if column == "year":
        return year_of(cell)
    if not isinstance(cell, str):
        return cell
    if column in _LISTS:
        separator = next((mark for mark in _BETWEEN if mark in cell), _BETWEEN[0])
        return [part.strip() for part in cell.split(separator) if part.strip()]
    text = cell.strip()
    if column == "kind":
        return kind_of(text)
    if column == "imdb_id":
        return find_title_id(ID_SITE, as_id(column, text))
    with suppress(ValueError):
        if column == "release_date":
            return text if text.isdigit() and len(text) == len("1994") else parse_date(text)
        if column == "runtime_minutes" and not text.isdigit():
            return parse_runtime(text)
        return text
    return None


def _rows(path: Path) -> Iterator[SheetRow[str] | SheetRow[object]]:
    with opened(path) as file:
        first = next((line for line in file if line.strip()), None)
        if first is None:
            raise ConfigurationError(
                f"{path} is empty; give CSV with the columns title and year, or JSON Lines"
            )
        lines = chain([first], file)  # which may be a pipe
        if first.lstrip().startswith(("{", "[")):
            yield from _json_rows(lines, path)
            return

        def columns_of(header: list[str]) -> list[str]:
            columns = known_columns(header)
            missing = [column for column in _NEEDED if column not in columns]
            if missing:
                raise ConfigurationError(
                    f"{path} has no column {' and no '.join(missing)}; its header is"
                    f" {shown(','.join(header))}"
                )
            return columns

        yield from read_rows(lines, str(path), columns_of)


def _json_rows(lines: Iterable[str], path: Path) -> Iterator[SheetRow[object]]:
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        location = f"{path}, line {number}"
        try:
            row = msgspec.json.decode(line)
        except (msgspec.DecodeError, RecursionError) as error:
            raise ConfigurationError(
                f"{location} is not JSON: {error}; give one JSON object per line"
            ) from error
        if not isinstance(row, dict):
            raise ConfigurationError(f"{location} is not a JSON object; give one per line")
        columns = known_columns(list(row))
        yield SheetRow(location=location, columns=columns, cells=list(row.values()))
