"""Parses a spider's arguments, and the seeds that others push.

The arguments are checked before the first request.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any

import msgspec

from moviecrawler.basics.errors import ConfigurationError
from moviecrawler.basics.texts import shown
from moviecrawler.catalogue.id_lists import id_of, ids_of_rows, read_list, rows_of
from moviecrawler.catalogue.spreadsheets import known_columns
from moviecrawler.sites.ids import parse_title_id

if TYPE_CHECKING:
    from collections.abc import Collection
    from typing import Self

    from moviecrawler.items import Site

_UNITS = {
    "m": timedelta(minutes=1),
    "h": timedelta(hours=1),
    "d": timedelta(days=1),
    "w": timedelta(weeks=1),
}
KNOWN_IDS = "_ids"
"""The argument with the ids that are known of the titles that a file names by those of any site."""


@dataclass(slots=True, kw_only=True)
class Plan:
    """What a spider's arguments ask for."""

    titles: list[str]
    """Ids, in the order given."""
    list_name: str | None
    limit: int | None
    """The most titles to ask for."""
    is_due: bool = False
    """Whether titles come from the catalogue: `lane=due`."""
    has_file: bool = False
    """Whether a file names titles, which may name more at the next start."""
    skip_newer_than: timedelta | None = None
    """The age below which a title's stored record stays as it is; None when all are fetched."""
    note: str = ""
    """How many rows of that file name no title; empty when all do."""

    @property
    def is_fed(self) -> bool:
        """Whether the run is fed with what the catalogue says is due."""
        return self.is_due and self.list_name is None


@dataclass(slots=True, kw_only=True)
class NamedTitles:
    """What the arguments `ids` and `file` name."""

    ids: list[str]
    note: str = ""
    """How many rows of the file name no title; empty when all do."""


class Seed(msgspec.Struct, forbid_unknown_fields=True):
    """What scrapy-redis' users push: an id, a URL, or JSON with these fields."""

    url: str
    priority: int = 0
    proxy_pool: str | None = None
    """The one pool that this title is asked for through; None for PROXY_ORDER."""
    max_retries: Annotated[int, msgspec.Meta(ge=0, le=100)] | None = None
    """None for what the settings say."""

    @classmethod
    def parse(cls, seed: bytes, encoding: str = "utf-8") -> Self:
        """Return a seed. Raises ConfigurationError when it is none."""
        try:
            text = seed.decode(encoding)
            return (
                msgspec.json.decode(text, type=cls)
                if text.lstrip().startswith("{")
                else cls(url=text)
            )
        except (msgspec.DecodeError, ValueError, LookupError, RecursionError) as error:
            raise ConfigurationError(f"{shown(seed)} is no seed: {error}") from None


def as_texts(arguments: Mapping[str, Any]) -> dict[str, str]:
    """Return arguments of a Python program as those of a command line; None is left out.

    >>> as_texts({"ids": ["tt1", "tt2"], "limit": 3, "list": None})
    {'ids': 'tt1,tt2', 'limit': '3'}
    """
    return {name: _as_text(value) for name, value in arguments.items() if value is not None}


def _as_text(value: Any) -> str:
    if isinstance(value, timedelta):
        return f"{value // _UNITS['m']}m"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, str | bytes | Mapping) or not isinstance(value, Iterable):
        return value.decode() if isinstance(value, bytes) else str(value)
    return ",".join(map(_as_text, value))


def parse_limit(text: str | None) -> int | None:
    """Return the number of titles to stop after; None for no limit."""
    if text is None:
        return None
    # A number of thousands of digits is none to Python.
    if not re.fullmatch("[0-9]{1,18}", text) or int(text) < 1:
        raise ConfigurationError(f"limit is {text!r:.100}; give a whole number of at least 1")
    return int(text)


def parse_age(name: str, text: str | None) -> timedelta | None:
    """Return a length of time such as 7d; None when none is given.

    >>> parse_age("skip_newer_than", "36h")
    datetime.timedelta(days=1, seconds=43200)
    """
    if text is None:
        return None
    found = re.fullmatch("([0-9]{1,6})([mhdw])", text.strip())
    if found is None or not int(found[1]):
        raise ConfigurationError(f"{name} is {text!r:.100}; give such as 7d, 12h, 30m or 2w")
    return int(found[1]) * _UNITS[found[2]]


def parse_choice(name: str, text: str, choices: Collection[str]) -> str:
    """Return `text` when it is one of the choices, else raise ConfigurationError with them."""
    if text not in choices:
        raise ConfigurationError(f"{name} is {text!r}; give one of {', '.join(choices)}")
    return text


def parse_title_ids(
    site: Site, ids: str | None, file: str | None, home: str | None = None
) -> NamedTitles:
    """Return the titles of the arguments `ids` and `file`, each once, in order.

    `ids` are separated by commas. They are ids, or URLs of the site or below `home`, as are those
    of a file; see `_read_titles`. Raises ConfigurationError for a file that can't be read, and for
    the first title that is malformed.
    """
    named = {
        parse_title_id(site, text, home): None for text in (ids or "").split(",") if text.strip()
    }
    if ids is not None and not named:
        raise ConfigurationError(f"ids is {ids!r}, which names no title")
    if file is None:
        return NamedTitles(ids=list(named))
    found = _read_titles(site, read_list(file), file, home)
    if not named and not found.ids:
        raise ConfigurationError(f"file {file!r} names no title")
    return NamedTitles(ids=list(dict.fromkeys([*named, *found.ids])), note=found.note)


def _read_titles(site: Site, text: str, file: str, home: str | None) -> NamedTitles:
    """Return the titles that a file names.

    It has an id or a URL a line, where empty lines and those that start with # are passed over; or
    it is CSV with a column of ids or URLs. No error quotes what it holds: whoever may schedule jobs
    on a node could read any of its files.
    """
    lines = text.splitlines()
    numbered = {
        number: line
        for number, line in enumerate(lines, 1)
        if line.strip() and not line.lstrip().startswith("#")
    }
    if not numbered:
        return NamedTitles(ids=[])
    first, *others = islice(numbered.values(), 3)
    has_cells = any(mark in line for line in (first, *others) for mark in ",;\t")
    if id_of(site, first, home) is None and (has_cells or known_columns([first])[0]):
        return _read_csv(site, text, file, home)
    titles = []
    for number, line in numbered.items():
        try:
            titles.append(parse_title_id(site, line, home))
        except ConfigurationError as error:
            why = str(error).rpartition(" is not ")[2]
            raise ConfigurationError(f"line {number} of {file} is not {why}") from None
    return NamedTitles(ids=titles)


def _read_csv(site: Site, text: str, file: str, home: str | None) -> NamedTitles:
    """Return the titles of a CSV file: of each row, the first cell that names one of the site."""
    rows = rows_of(text, file, lambda cell: id_of(site, cell, home) is not None)
    titles = ids_of_rows(site, rows, home)
    missing = titles.count(None)
    if missing == len(titles):
        raise ConfigurationError(
            f"none of the {len(titles):,} rows of {file} has an id or URL of {site}; scrapy match"
            " finds IMDb's ids by title and year"
        )
    note = ""
    if missing:
        line = rows[titles.index(None)].location.rpartition(", ")[2]
        note = (
            f"rows of {file} without an id or URL of {site}: {missing:,} of {len(rows):,},"
            f" first {line}"
        )
    return NamedTitles(ids=[title for title in titles if title is not None], note=note)
