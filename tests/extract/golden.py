"""The project's own pages, `tests/pages/<site>/<case>`, by their names such as `imdb/title-2024-series`; and ways to change them."""

from __future__ import annotations

import json
import re
from typing import Any

from moviecrawler.items import Movie, Page
from tests.shared import PROJECT

GOLDEN = PROJECT / "tests" / "pages"
CASES = sorted(f"{path.parent.parent.name}/{path.parent.name}" for path in GOLDEN.glob("*/*/meta.json"))
GONE = object()


def body_of(case: str) -> bytes:
    """Return a page as it is written."""
    (page,) = (GOLDEN / case).glob("page.*")
    return page.read_bytes()


def url_of(case: str) -> str | None:
    """Return the address of a page, where it needs one to be read."""
    url: str | None = json.loads((GOLDEN / case / "meta.json").read_text("utf-8")).get("url")
    return url


def movie_of(page: Page) -> Movie:
    """Return the title that a page is about."""
    assert page.movie is not None
    return page.movie


def changed(body: bytes, old: bytes, new: bytes) -> bytes:
    """Return a page with a part of it replaced, which must be there."""
    assert old in body
    return body.replace(old, new)


def edit(data: Any, path: str, value: Any = GONE) -> None:
    """Set what stands at a path, whose steps have dots between them, or remove it."""
    *steps, last = (int(step) if step.isdecimal() else step for step in path.split("."))
    for step in steps:
        data = data[step]
    if value is GONE:
        data.pop(last, None)
    else:
        data[last] = value


def edited(case: str, script_id: str, edits: dict[str, Any]) -> bytes:
    """Return a page with the JSON of one of its scripts edited."""
    body = body_of(case)
    found = re.search(rb"""<script\b[^<>]*id="%b"[^<>]*>(.*?)</script>""" % script_id.encode(), body, re.DOTALL)
    assert found is not None
    data = json.loads(found[1])
    for path, value in edits.items():
        edit(data, path, value)
    return body[: found.start(1)] + json.dumps(data).encode() + body[found.end(1) :]


def flatten(root: Any) -> list[Any]:
    """Write a value as devalue does; a tuple is a typed one, such as ("Ref", value)."""
    elements: list[Any] = []

    def put(value: Any) -> int:
        index = len(elements)
        elements.append(None)
        if isinstance(value, tuple):
            elements[index] = [value[0], *map(put, value[1:])]
        elif isinstance(value, dict):
            elements[index] = {name: put(member) for name, member in value.items()}
        else:
            elements[index] = [put(member) for member in value] if isinstance(value, list) else value
        return index

    put(root)
    return elements


def plain(value: Any) -> Any:
    """Return what was looked up in a payload of devalue as plain data."""
    if isinstance(value, dict):
        return {name: plain(value[name]) for name in value}
    return [plain(member) for member in value] if isinstance(value, list) else value
