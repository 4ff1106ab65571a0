"""Reads decoded JSON: each function takes the data and the path to a value in it.

A key that is missing or null on the way gives None: the page has no such value. Anything of another
type than expected is a ShapeError: the page has one that we can't read.
"""

import html
import math
from collections.abc import Callable, Collection, Iterable
from functools import partial
from typing import TypeVar

from moviecrawler.basics.texts import fold
from moviecrawler.extract.findings import ABSENT, Findings, NoValue, ShapeError

_T = TypeVar("_T")

JsonObject = dict[str, object]
"""A decoded object, whose values are of no known type."""


class FieldPath:
    """Where a field is, such as `FieldPath("year", integer, "releaseYear.year")`."""

    def __init__(self, field: str, parse: Callable[..., object], *paths: str) -> None:
        """Take a field, what returns its value, ABSENT or None, and its paths.

        The paths are in order of preference; dots separate the keys of each.
        """
        self.field = field
        self.parse = parse
        self.paths = paths


_MOST_COUNTED = 10**9
"""More votes than any title has."""


def get_path(data: object, *path: str) -> object:
    """Return the value at `path`, or None when a step of it is missing or null."""
    for depth, step in enumerate(path):
        if isinstance(data, dict):
            data = data.get(step)
        elif data is None:
            return None
        else:
            raise ShapeError(_name(path[: depth + 1]), f"expected an object, not {data!r:.60}")
    return data


def get_text(data: object, *path: str) -> str | None:
    """Return the text at `path`; None when it is empty.

    White space is folded, and HTML entities are resolved.
    """
    value = get_path(data, *path)
    if value is None:
        return None
    if not isinstance(value, str):
        raise ShapeError(_name(path), f"expected text, not {value!r:.60}")
    return fold(html.unescape(value)) or None


def get_number(data: object, *path: str) -> float | None:
    """Return the number at `path`."""
    value = get_path(data, *path)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ShapeError(_name(path), f"expected a number, not {value!r:.60}")
    return float(value)


def get_integer(data: object, *path: str) -> int | None:
    """Return the whole number at `path`."""
    value = get_number(data, *path)
    if value is not None and value != int(value):
        raise ShapeError(_name(path), f"expected a whole number, not {value}")
    return None if value is None else int(value)


def get_items(data: object, *path: str) -> list[object]:
    """Return the list at `path`, without its nulls; empty when there is none."""
    value = get_path(data, *path)
    if value is None:
        return []
    if not isinstance(value, list):
        raise ShapeError(_name(path), f"expected a list, not {value!r:.60}")
    return [item for item in value if item is not None]


def as_list(data: object, *path: str) -> list[object]:
    """Return the list at `path`, or a list of the one value there.

    JSON-LD has a single value with or without a list.
    """
    value = get_path(data, *path)
    if value is None:
        return []
    return value if isinstance(value, list) else [value]


def get_size(data: object, *path: str) -> int | None:
    """Return the number of something at `path`, 0 and up."""
    value = get_integer(data, *path)
    if value is not None and not 0 <= value <= _MOST_COUNTED:
        raise ShapeError(_name(path), f"{value} of something")
    return value


def get_positive(data: object, *path: str) -> int | None:
    """Return the number of something at `path`, 1 and up; 0 is unknown."""
    return get_size(data, *path) or None


def parse_at(parse: Callable[..., _T | NoValue], data: object, *path: str) -> _T | NoValue:
    """Return what `parse` returns for the value at `path`.

    Returns ABSENT where that value is null or an empty list, and None where a key is missing.

    Raises ShapeError where a value has another type than expected.
    """
    for depth, step in enumerate(path):
        if data is None:
            return ABSENT if depth else None
        if not isinstance(data, dict):
            raise ShapeError(_name(path[: depth + 1]), f"expected an object, not {data!r:.60}")
        if step not in data:
            return None
        data = data[step]
    if data is None:
        return ABSENT if path else None
    value = parse(data)
    return ABSENT if data == value == [] else value


def parse_texts(*leaf: str) -> Callable[[object], list[str] | None]:
    """Return a function that returns the texts at `leaf` of a list's items.

    It returns None where an item has no such text, as it is another list then.
    """

    def parse(listed: object) -> list[str] | None:
        texts = [get_text(item, *leaf) for item in get_items(listed)]
        return None if None in texts else [each for each in texts if each]

    return parse


def readers(
    parse: Callable[..., object], sources: Collection[object], *paths: str
) -> list[Callable[[], object]]:
    """Return functions that parse a field: at the first path of each object, then at the next path.

    Dots separate a path's keys.
    """
    return [
        partial(parse_at, parse, source, *keys)
        for keys in (path.split(".") for path in paths)
        for source in sources
    ]


def extract_fields(
    findings: Findings, fields: Iterable[FieldPath], sources: Collection[object]
) -> None:
    """Set each of the fields to the first value at its paths in the objects."""
    for each in fields:
        findings.set_first(each.field, *readers(each.parse, sources, *each.paths))


def _name(path: tuple[str, ...]) -> str:
    return ".".join(path) or "page"
