"""The payload of Nuxt 3, in which Metacritic's pages carry their data: values that refer to one another by index."""

from __future__ import annotations

import functools
from itertools import count
from typing import Any

from moviecrawler.replica import markup
from moviecrawler.replica.markup import encode

_FIRST_SHARED = 4


@functools.cache
def shared_values(*, light: bool) -> tuple[bytes, int]:
    """Return the values that every payload has from index 4 on, with the commas around them, and how many they are."""
    texts = markup.texts(300 if light else 120_000, "payload")
    first_text = _FIRST_SHARED + 5
    values = [
        {"version": first_text, "slots": _FIRST_SHARED + 1},
        list(range(first_text, first_text + len(texts))),
        ["Reactive", _FIRST_SHARED + 3],
        {},
        ["Set"],
        *texts,
    ]
    return b"," + encode(values)[1:-1] + b",", len(values)


def payload_around(key: str, page: dict[str, Any], path: str, *, light: bool) -> tuple[bytes, bytes]:
    """Return what stands before and behind the shared values in the payload of a page."""
    start = _FIRST_SHARED + shared_values(light=light)[1]
    values = flatten({"page": page, "path": path}, start)
    root = values[0]
    head = [
        ["ShallowReactive", 1],
        {
            "data": 2,
            "state": _FIRST_SHARED + 2,
            "once": _FIRST_SHARED + 4,
            "_errors": _FIRST_SHARED + 3,
            "path": root["path"],
        },
        ["ShallowReactive", 3],
        {"fandom-ads-ad-engine-config": _FIRST_SHARED, key: root["page"]},
    ]
    return encode(head)[:-1], encode(values)[1:]


def flatten(value: Any, start: int) -> list[Any]:
    """Return a value as devalue writes it: all that it consists of in one list, naming one another by index.

    The first of the list has the index `start`. Equal scalars are there once.
    """
    flat: list[Any] = []
    numbers = count(start)
    scalars: dict[tuple[type, Any], int] = {}

    def place(part: Any) -> int:
        if not isinstance(part, dict | list):
            known = scalars.get((type(part), part))
            if known is not None:
                return known
        number = next(numbers)
        flat.append(None)
        if isinstance(part, dict):
            flat[number - start] = {key: place(inner) for key, inner in part.items()}
        elif isinstance(part, list):
            flat[number - start] = [place(inner) for inner in part]
        else:
            flat[number - start] = part
            scalars[type(part), part] = number
        return number

    place(value)
    return flat
