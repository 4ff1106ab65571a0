"""Parses a spider's arguments, and the seeds that others push.

The arguments are checked before the first request.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import msgspec

from moviecrawler.basics.errors import ConfigurationError
from moviecrawler.basics.files import read_file
from moviecrawler.basics.texts import shown
from moviecrawler.sites.ids import parse_title_id

if TYPE_CHECKING:
    from collections.abc import Collection
    from typing import Self

    from moviecrawler.items import Site

_LARGEST_LIST = 16 * 1024 * 1024
"""Bytes of a file of titles: a million of them."""


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

    @property
    def is_fed(self) -> bool:
        """Whether the run is fed with what the catalogue says is due."""
        return self.is_due and self.list_name is None


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


def parse_limit(text: str | None) -> int | None:
    """Return the number of titles to stop after; None for no limit."""
    if text is None:
        return None
    # A number of thousands of digits is none to Python.
    if not re.fullmatch("[0-9]{1,18}", text) or int(text) < 1:
        raise ConfigurationError(f"limit is {text!r:.100}; give a whole number of at least 1")
    return int(text)


def parse_choice(name: str, text: str, choices: Collection[str]) -> str:
    """Return `text` when it is one of the choices, else raise ConfigurationError with them."""
    if text not in choices:
        raise ConfigurationError(f"{name} is {text!r}; give one of {', '.join(choices)}")
    return text


def parse_title_ids(
    site: Site, ids: str | None, file: str | None, home: str | None = None
) -> list[str]:
    """Return the titles of the arguments `ids` and `file`, each once, in order.

    `ids` are separated by commas, and a file has one a line. They are ids, or URLs of the site or
    below `home`. Empty lines and those that start with # are passed over. Raises ConfigurationError
    for a file that can't be read, and for the first title that is malformed, with its line.
    """
    named = {
        parse_title_id(site, text, home): None for text in (ids or "").split(",") if text.strip()
    }
    if ids is not None and not named:
        raise ConfigurationError(f"ids is {ids!r}, which names no title")
    if file is None:
        return list(named)
    try:
        lines = read_file(file, _LARGEST_LIST).decode("utf-8-sig").splitlines()
    # A ValueError is of bytes that are no UTF-8, or of a zero byte in the name.
    except (OSError, ValueError) as error:
        raise ConfigurationError(f"file {file!r} can't be read: {error}") from None
    for number, line in enumerate(lines, 1):
        if line.strip() and not line.lstrip().startswith("#"):
            try:
                named[parse_title_id(site, line, home)] = None
            except ConfigurationError as error:
                # The line is not quoted: whoever may schedule jobs on a node could read any of its
                # files.
                why = str(error).rpartition(" is not ")[2]
                raise ConfigurationError(f"line {number} of {file} is not {why}") from None
    if not named:
        raise ConfigurationError(f"file {file!r} names no title")
    return list(named)
