"""Parses a spider's arguments, and the seeds that others push.

The arguments are checked before the first request.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated

import msgspec

from moviecrawler.basics.errors import ConfigurationError
from moviecrawler.basics.texts import shown

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from typing import Self


_UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
KNOWN_IDS = "_ids"
"""The argument with the ids that are known of the titles that a file names by those of any site."""


@dataclass(slots=True, kw_only=True)
class Plan:
    """What a spider's arguments request."""

    titles: list[str]
    """Ids, in the order given."""
    list_name: str | None
    limit: int | None
    """The most titles to request."""
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


class Seed(msgspec.Struct, forbid_unknown_fields=True):
    """What scrapy-redis' users push: an id, a URL, or JSON with these fields."""

    url: str
    priority: int = 0
    proxy_pool: str | None = None
    """The one pool through which this title is requested; None for PROXY_ORDER."""
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
            raise ConfigurationError(f"{shown(seed)} is not a seed: {error}") from None


def as_texts(arguments: Mapping[str, object]) -> dict[str, str]:
    """Return arguments of a Python program as those of a command line; None is left out.

    >>> as_texts({"ids": ["tt1", "tt2"], "limit": 3, "list": None})
    {'ids': 'tt1,tt2', 'limit': '3'}
    """
    return {name: _as_text(value) for name, value in arguments.items() if value is not None}


def _as_text(value: object) -> str:
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, str) or not isinstance(value, Iterable):
        return str(value)
    return ",".join(map(_as_text, value))


def parse_limit(text: str | None) -> int | None:
    """Return the number of titles to stop after; None for no limit."""
    if text is None:
        return None
    # A number of thousands of digits is none to Python.
    if not re.fullmatch("[0-9]{1,18}", text) or int(text) < 1:
        raise ConfigurationError(f"limit is {text!r:.100}; give a whole number of at least 1")
    return int(text)


def parse_age(text: str | None) -> timedelta | None:
    """Return a length of time such as 7d; None when none is given.

    >>> parse_age("36h")
    datetime.timedelta(days=1, seconds=43200)
    """
    if text is None:
        return None
    found = re.fullmatch("([0-9]{1,6})([mhdw])", text.strip())
    if found is None or not int(found[1]):
        raise ConfigurationError(
            f"skip_newer_than is {text!r:.100}; give such as 7d, 12h, 30m or 2w"
        )
    return timedelta(**{_UNITS[found[2]]: int(found[1])})


def parse_choice(name: str, text: str, choices: Collection[str]) -> str:
    """Return `text` when it is one of the choices, else raise ConfigurationError with them."""
    if text not in choices:
        raise ConfigurationError(f"{name} is {text!r}; give one of {', '.join(choices)}")
    return text
