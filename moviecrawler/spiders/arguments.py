"""Checking the arguments of spiders before the first request."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from moviecrawler.errors import ConfigurationError
from moviecrawler.options import read_file
from moviecrawler.urls import parse_title_id

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from moviecrawler.items import Site

_LARGEST_LIST = 16 * 1024 * 1024
"""Bytes of a file of titles: a million of them."""


def check_argument_names(given: Mapping[str, str], known: Collection[str]) -> None:
    """Raise ConfigurationError for an argument that the spider doesn't know; Scrapyd's own begin with "_"."""
    for name in given:
        if name not in known and not name.startswith("_"):
            raise ConfigurationError(f"unknown argument {name!r}; this spider takes {', '.join(sorted(known))}")


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


def parse_title_ids(site: Site, ids: str | None, file: str | None, home: str | None = None) -> list[str]:
    """Return the titles of the arguments `ids` (separated by commas) and `file` (one a line), each once, in order.

    They are ids, or URLs of the site or below `home`. Empty lines and those that start with # are passed over. Raises
    ConfigurationError for a file that can't be read, and for the first title that is malformed, with its line.
    """
    named: dict[str, None] = {}
    for text in (ids or "").split(","):
        if text.strip():
            named[parse_title_id(site, text, home)] = None
    if ids is not None and not named:
        raise ConfigurationError(f"ids is {ids!r}, which names no title")
    if file is not None:
        try:
            lines = read_file(file, _LARGEST_LIST).decode("utf-8-sig").splitlines()
        except (OSError, ValueError) as error:  # the latter of bytes that are no UTF-8, or of a zero byte in the name
            raise ConfigurationError(f"file {file!r} can't be read: {error}") from None
        for number, line in enumerate(lines, 1):
            if line.strip() and not line.lstrip().startswith("#"):
                try:
                    named[parse_title_id(site, line, home)] = None
                except ConfigurationError as error:
                    # Not what stands there: whoever may schedule jobs on a node could have any file of it read out.
                    said = str(error).removeprefix(f"{line.strip()!r} ")
                    raise ConfigurationError(f"line {number} of {file} {said}") from None
    if file is not None and not named:
        raise ConfigurationError(f"file {file!r} names no title")
    return list(named)
