"""Checking settings and spider arguments before the first request."""

from __future__ import annotations

import logging
import os
import re
import stat
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING

from scrapy.settings import default_settings

from moviecrawler.errors import ConfigurationError
from moviecrawler.options import project_settings, read_all
from moviecrawler.urls import parse_title_id

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from scrapy.settings import BaseSettings

    from moviecrawler.items import Site

logger = logging.getLogger(__name__)

_ALIKE = 0.87
"""As `difflib` reckons it: DATABASE_URI is so near to DATABASE_URL, and no name of Spidermon's or scrapy-redis' is to one of ours."""
_LARGEST_LIST = 16 * 1024 * 1024
"""Bytes of a file of titles: a million of them."""


def warn_of_names(settings: BaseSettings) -> None:
    """Log a warning of each setting whose name is misspelt."""
    known = project_settings({})
    for name in sorted({*settings, *os.environ} - known.keys() - vars(default_settings).keys()):
        for meant in get_close_matches(name, known, 1, _ALIKE):
            logger.warning("Nothing reads the setting %s; is %s meant?", name, meant)


def check_settings(settings: BaseSettings) -> None:
    """Raise ConfigurationError for the first of this project's settings whose value can't be right."""
    read_all(settings)
    _check_scrapys_own(settings)
    folder = settings.get("METRICS_FOLDER")
    if folder and not Path(folder).is_dir():
        raise ConfigurationError(f"METRICS_FOLDER is {folder!r}, which is no folder; make it, or remove the setting")


def _check_scrapys_own(settings: BaseSettings) -> None:
    """Raise ConfigurationError for the first of Scrapy's settings that is no number or truth value where it has to be one."""
    for name, default in vars(default_settings).items():
        if not settings.getpriority(name) or not isinstance(settings[name], str):  # else it was not given as text
            continue
        try:
            if isinstance(default, bool):
                settings.getbool(name)
            elif isinstance(default, int | float):
                settings.getfloat(name)
        except (TypeError, ValueError):
            wanted = "0 or 1" if isinstance(default, bool) else f"a number such as {default}"
            raise ConfigurationError(f"{name} is {settings[name]!r}; set it to {wanted}") from None


def read_file(path: str, most: int) -> bytes:
    """Return what stands in a file of at most `most` bytes.

    Raises OSError, also for what is no regular file: a device may never end, and a pipe may never begin. Raises ValueError for a
    larger one, or for a path that can't be one.
    """
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError("it is no regular file")
        content = file.read(most + 1)
    if len(content) > most:
        raise ValueError(f"it has more than {most:,} bytes")
    return content


def user_agent(settings: BaseSettings) -> str:
    """Return USER_AGENT, with CONTACT where there is one."""
    contact = f" (+{settings['CONTACT']})" if settings["CONTACT"] else ""
    return f"{settings['USER_AGENT']}{contact}"


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
