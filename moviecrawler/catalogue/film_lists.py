"""Reads users' lists of films, CSV or JSON Lines, for `scrapy match`."""

from __future__ import annotations

from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import msgspec
from msgspec import Meta

from moviecrawler.basics.errors import ConfigurationError
from moviecrawler.basics.values import parse_date
from moviecrawler.catalogue.spreadsheets import converted, opened, read_rows, shown
from moviecrawler.items import TitleKind  # noqa: TC001 - msgspec resolves annotations
from moviecrawler.matching.facts import TitleFacts
from moviecrawler.matching.forms import Title, prepare
from moviecrawler.sites import ID_SITE
from moviecrawler.sites.ids import imdb_id_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

_Text = Annotated[str, Meta(min_length=1, max_length=10_000)]
_Year = Annotated[int, Meta(ge=1000, le=9999)]  # IMDb has a film that will come out in 2115
_LISTS = frozenset({"directors", "other_titles"})
"""Columns of several values, with `|` between them in one cell."""


class _Row(msgspec.Struct, kw_only=True):
    site: _Text
    site_id: _Text
    title: _Text
    original_title: _Text | None = None
    year: _Year | None = None
    release_date: str | None = None
    runtime_minutes: Annotated[int, Meta(ge=0, le=100_000)] | None = None
    """0 means unknown, as in IMDb's old datasets."""
    directors: list[_Text] = []
    votes: int | None = None
    other_titles: list[_Text] = []
    kind: TitleKind | None = None
    end_year: _Year | None = None
    season_count: Annotated[int, Meta(ge=0)] | None = None


COLUMNS = _Row.__struct_fields__[:9]
"""The required columns of a CSV, in any order. The other fields are optional; other columns are
ignored."""


class Film(NamedTuple):
    """One row of a list."""

    site: str
    site_id: str
    title: Title


def read_records(path: Path) -> Iterator[Film]:
    """Yield the films of a list whose IMDb ids are wanted.

    Their votes are left out, as they are those of another site than IMDb. Raises
    ConfigurationError for the first wrong row.
    """
    for row, _ in _rows(path):
        yield Film(row.site, row.site_id, prepare(row.site, _facts(row, votes=None)))


def read_titles(path: Path) -> Iterator[Title]:
    """Yield the titles of a list with IMDb ids.

    Raises ConfigurationError for the first wrong row.
    """
    for row, location in _rows(path):
        if row.site != ID_SITE:
            raise ConfigurationError(
                f"{location}: site is {shown(row.site)}; titles to match against are of imdb"
            )
        imdb_id = imdb_id_of(row.site_id)
        if imdb_id is None:
            raise ConfigurationError(
                f"{location}: site_id is {shown(row.site_id)}; give such as tt0111161"
            )
        yield prepare(ID_SITE, _facts(row, votes=row.votes, imdb_id=imdb_id))


def _facts(row: _Row, **known: Any) -> TitleFacts:
    facts = {
        name: value
        for name, value in msgspec.structs.asdict(row).items()
        if name not in {"site", "site_id"}
    }
    return TitleFacts(
        **{
            **facts,
            "runtime_minutes": row.runtime_minutes or None,
            "season_count": row.season_count or None,
            **known,
        }
    )


def _rows(path: Path) -> Iterator[tuple[_Row, str]]:
    """Yield rows, each with its location for messages."""
    with opened(path) as file:
        first = next((line for line in file if line.strip()), None)
        if first is None:
            raise ConfigurationError(
                f"{path} is empty; give CSV with the columns {', '.join(COLUMNS)}, or JSON Lines"
            )
        is_json = first.lstrip().startswith(("{", "["))
        lines = chain([first], file)  # which may be a pipe
        for cells, location in (
            _json_rows(lines, path)
            if is_json
            else read_rows(lines, str(path), partial(_header, path))
        ):
            row = converted(
                {column: _value(column, cell) for column, cell in cells.items()}, location, _Row
            )
            try:
                row.release_date = None if row.release_date is None else _date(row.release_date)
            except ValueError:
                reason = (
                    f"release_date is {shown(row.release_date)}: give such as 1994-09-23, 1994-09"
                    " or 1994"
                )
                raise ConfigurationError(f"{location}: {reason}") from None
            yield row, location


def _value(column: str, cell: Any) -> Any:
    return (
        [part for part in cell.split("|") if part.strip()]
        if column in _LISTS and isinstance(cell, str)
        else cell
    )


def _date(text: str) -> str:
    return text if text.isdigit() and len(text) == len("1994") else parse_date(text)


def _header(path: Path, header: list[str]) -> list[str]:
    missing = [column for column in COLUMNS if column not in header]
    if missing:
        raise ConfigurationError(
            f"{path} has no column {', '.join(missing)}; its header is"
            f" {shown(','.join(header))}, and has to name {', '.join(COLUMNS)};"
            " an empty cell is unknown"
        )
    return header


def _json_rows(lines: Iterable[str], path: Path) -> Iterator[tuple[dict[str, Any], str]]:
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        location = f"{path}, line {number}"
        try:
            row = msgspec.json.decode(line)
        except (msgspec.DecodeError, RecursionError) as error:
            raise ConfigurationError(
                f"{location} is no JSON: {error}; give one JSON object a line"
            ) from error
        if not isinstance(row, dict):
            raise ConfigurationError(f"{location} is no JSON object; give one JSON object a line")
        yield row, location
