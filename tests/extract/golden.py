"""The project's own pages, `tests/pages/<site>/<case>`, by their names such as `imdb/title-2014`.

`python -m tests.extract.golden` writes `silent` of each `expected.json` anew, after a field was added.
"""

from __future__ import annotations

import json
from typing import Any

from moviecrawler.extract.pages import read_page
from moviecrawler.items import Movie, Page
from tests.shared import PROJECT

GOLDEN = PROJECT / "tests" / "pages"
CASES = sorted(f"{path.parent.parent.name}/{path.parent.name}" for path in GOLDEN.glob("*/*/meta.json"))


def body_of(case: str) -> bytes:
    """Return a page as it is written."""
    (page,) = (GOLDEN / case).glob("page.*")
    return page.read_bytes()


def url_of(case: str) -> str | None:
    """Return the address of a page, where it needs one to be read."""
    url: str | None = json.loads((GOLDEN / case / "meta.json").read_text("utf-8")).get("url")
    return url


def changed(body: bytes, old: bytes, new: bytes) -> bytes:
    """Return a page with a part of it replaced, which must be there."""
    assert old in body
    return body.replace(old, new)


GONE = object()


def edit(data: Any, path: str, value: Any = GONE) -> None:
    """Set what stands at a path, whose steps have dots between them, or remove it."""
    *steps, last = (int(step) if step.isdecimal() else step for step in path.split("."))
    for step in steps:
        data = data[step]
    if value is GONE:
        data.pop(last, None)
    else:
        data[last] = value


def movie_of(page: Page) -> Movie:
    """Return the title that a page is about."""
    assert page.movie is not None
    return page.movie


def write_silent() -> None:
    """Write what each page is silent of, where that is expected of it and is no longer so."""
    for case in CASES:
        path = GOLDEN / case / "expected.json"
        expected = json.loads(path.read_text("utf-8"))
        if "silent" in expected:
            silent = movie_of(read_page(body_of(case), url_of(case))).silent
            if silent != expected["silent"]:
                text = json.dumps({**expected, "silent": silent}, indent=2, ensure_ascii=False)
                path.write_text(f"{text}\n", "utf-8")


if __name__ == "__main__":
    write_silent()
