"""Lists of films of anybody's own, as CSV or JSON Lines, read for `scrapy match`."""

from __future__ import annotations

import re
from functools import partial
from itertools import tee
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from moviecrawler.catalogue.forms import Title, prepare
from moviecrawler.catalogue.rows import TitleFacts
from moviecrawler.catalogue.spreadsheets import kind_of, read_rows, read_values, shown
from moviecrawler.errors import ConfigurationError
from moviecrawler.extract.values import check_runtime, parse_date

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

COLUMNS = (
    *("site", "site_id", "title", "original_title", "year", "release_date", "runtime_minutes", "directors", "votes"),
)
"""What a CSV's header has to name, in any order. It may name `other_titles`, `kind`, and `end_year` and `season_count` of series as well; other columns are passed over."""
_NEVER_EMPTY = ("site", "site_id", "title")
_BETWEEN = "|"
"""Stands between the values of a list in one cell."""
_LONGEST_CELL = 10_000
"""Letters: more than any title, or any film's directors, have."""
_LONGEST_NUMBER = 12
"""Digits."""
_FIRST_YEAR, _LAST_YEAR = 1000, 9999
"""IMDb has a film that is to come out in 2115."""
_IMDB_ID = re.compile(r"tt\d{7,}")
_WHOLE = re.compile(r"(\d+)(?:\.0*)?")  # spreadsheets and data frames write whole numbers with a fraction
_YEAR_ALONE = re.compile(r"\d{4}")


class Film(NamedTuple):
    """One row of a list."""

    site: str
    site_id: str
    title: Title


def read_records(path: Path) -> Iterator[Film]:
    """Yield the films of a list whose ids on IMDb are asked for. Raises ConfigurationError for what can't be right.

    Their votes are those of their own site, and not compared.
    """
    for row, _ in _rows(path):
        site, site_id = row.pop("site"), row.pop("site_id")
        yield Film(site, site_id, prepare(site, TitleFacts(**{**row, "votes": None})))


def read_titles(path: Path) -> Iterator[Title]:
    """Yield the titles of a list that has their ids on IMDb. Raises ConfigurationError for what can't be right."""
    for row, place in _rows(path):
        site, imdb_id = row.pop("site"), row.pop("site_id")
        if site != "imdb":
            raise ConfigurationError(f"{place}: site is {shown(site)}; titles to match against are of imdb")
        if not _IMDB_ID.fullmatch(imdb_id):
            raise ConfigurationError(f"{place}: site_id is {shown(imdb_id)}; give such as tt0111161")
        yield prepare("imdb", TitleFacts(**row, imdb_id=imdb_id))


def _rows(path: Path) -> Iterator[tuple[dict[str, Any], str]]:
    """Yield rows without what is unknown, each with the words that name its place."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            lines, ahead = tee(file)  # which may be a pipe
            first = next((line for line in ahead if line.strip()), None)
            del ahead  # else all lines would be kept for it
            if first is None:
                raise ConfigurationError(
                    f"{path} is empty; give CSV with the columns {', '.join(COLUMNS)}, or JSON Lines"
                )
            is_json = first.lstrip().startswith(("{", "["))
            for row, place in (
                _json_rows(lines, path) if is_json else read_rows(lines, str(path), partial(_checked_header, path))
            ):
                values = read_values(row, place, _READERS)
                for column in _NEVER_EMPTY:
                    if column not in values:
                        raise ConfigurationError(f"{place} has no {column}; give one")
                yield values, place
    except UnicodeDecodeError as error:
        raise ConfigurationError(
            f"{path} is not UTF-8 ({error.reason} at byte {error.start}); save it as UTF-8"
        ) from error
    except OSError as error:
        raise ConfigurationError(f"{path} can't be read: {error.strerror or error}") from error


def _checked_header(path: Path, header: list[str]) -> list[str]:
    missing = [column for column in COLUMNS if column not in header]
    if missing:
        raise ConfigurationError(
            f"{path} has no column {', '.join(missing)}; its header is {shown(','.join(header))}, and has to name"
            f" {', '.join(COLUMNS)}; an empty cell is unknown"
        )
    return header


def _json_rows(lines: Iterable[str], path: Path) -> Iterator[tuple[dict[str, Any], str]]:
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        place = f"{path}, line {number}"
        try:
            row = msgspec.json.decode(line)
        except (msgspec.DecodeError, RecursionError) as error:
            raise ConfigurationError(f"{place} is no JSON: {error}; give one JSON object a line") from error
        if not isinstance(row, dict):
            raise ConfigurationError(f"{place} is no JSON object; give one JSON object a line")
        yield row, place


# --- Cells ------------------------------------------------------------------------------------------------------------


def _text(cell: Any) -> str:
    if not isinstance(cell, str):
        raise ValueError("give a text")  # noqa: TRY004 - said as every other wrong cell
    if len(cell) > _LONGEST_CELL:
        raise ValueError(f"it has {len(cell):,} letters, and may have {_LONGEST_CELL:,}")
    return cell


def _texts(cell: Any) -> list[str]:
    parts = _text(cell).split(_BETWEEN) if isinstance(cell, str) else cell
    if not isinstance(parts, list) or not all(isinstance(part, str) for part in parts):
        raise ValueError(f"give texts with {_BETWEEN} between them")
    return [_text(part.strip()) for part in parts if part.strip()]


def _whole(cell: Any, check: Callable[[int], int] | None = None, *, zero_is_unknown: bool = False) -> int | None:
    found = None if isinstance(cell, bool) else _WHOLE.fullmatch(str(cell))
    if found is None or len(found[1]) > _LONGEST_NUMBER:
        raise ValueError("give a whole number")
    number = int(found[1])
    if number == 0 and zero_is_unknown:
        return None
    return check(number) if check is not None else number


def _date(cell: Any) -> str:
    if isinstance(cell, int) and not isinstance(cell, bool):
        cell = str(cell)
    text = _text(cell)
    if _YEAR_ALONE.fullmatch(text):
        return text
    try:
        return parse_date(text)
    except ValueError:
        raise ValueError("give such as 1994-09-23, 1994-09 or 1994") from None


def _year(year: int) -> int:
    if not _FIRST_YEAR <= year <= _LAST_YEAR:
        raise ValueError("give a year of four digits")
    return year


_READERS: dict[str, Callable[[Any], Any]] = {
    "site": _text,
    "site_id": _text,
    "title": _text,
    "original_title": _text,
    "other_titles": _texts,
    "kind": kind_of,
    "year": partial(_whole, check=_year),
    "end_year": partial(_whole, check=_year),
    "season_count": partial(_whole, zero_is_unknown=True),
    "release_date": _date,
    "runtime_minutes": partial(_whole, check=check_runtime, zero_is_unknown=True),  # as IMDb's old datasets have it
    "directors": _texts,
    "votes": _whole,
}
