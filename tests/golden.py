"""The project's own pages, and ways to change them.

They are in `tests/pages/<site>/<case>`, and have names such as `imdb/title-2024-series`.
"""

import json
import re
from typing import Any

from msgspec import to_builtins

from moviecrawler.commands.extract import page_record
from moviecrawler.extract.devalue import unflatten
from moviecrawler.sites.pages import read_page
from tests.shared import PROJECT

GOLDEN = PROJECT / "tests" / "pages"
CASES = sorted(
    f"{path.parent.parent.name}/{path.parent.name}" for path in GOLDEN.glob("*/*/meta.json")
)


def body_of(case: str) -> bytes:
    """Return a page as it is written."""
    (page,) = (GOLDEN / case).glob("page.*")
    return page.read_bytes()


def url_of(case: str) -> str | None:
    """Return the address of a page, where it needs one to be read."""
    url: str | None = json.loads((GOLDEN / case / "meta.json").read_text("utf-8")).get("url")
    return url


def changes() -> dict[str, tuple[str, dict[str, Any]]]:
    """Return the rows of all files `changes.jsonl` beside the pages, by page and name.

    Each is there with its page.
    """
    found = {}
    for case in CASES:
        path = GOLDEN / case / "changes.jsonl"
        for line in path.read_text("utf-8").splitlines() if path.exists() else ():
            change = json.loads(line)
            found[f"{case}: {change['name']}"] = case, change
    return found


def changed_body(case: str, change: dict[str, Any]) -> bytes:
    """Return a page with a change.

    The change has `sub`, what to put in place of patterns, and `scripts`, what to put at which
    paths of their data.
    """
    text = body_of(case).decode()
    for pattern, new in change.get("sub", {}).items():
        text, count = re.subn(pattern, new, text, flags=re.DOTALL)
        assert count, pattern
    for script, edits in change.get("scripts", {}).items():
        found = re.search(
            rf"""<script\b[^<>]*"{re.escape(script)}"[^<>]*>(.*?)</script>""", text, re.DOTALL
        )
        assert found is not None
        data = (
            _edited_components(found[1], edits)
            if "NUXT" in script
            else _edited(json.loads(found[1]), edits)
        )
        text = text[: found.start(1)] + json.dumps(data) + text[found.end(1) :]
    return text.encode()


def _edited(data: Any, edits: dict[str, Any]) -> Any:
    """Return data with values set at paths.

    The steps of a path have dots between them; the value "gone" removes what is there.
    """
    for path, value in edits.items():
        *steps, last = (int(step) if step.isdecimal() else step for step in path.split("."))
        part = data
        for step in steps:
            part = part[step]
        if value == "gone":
            part.pop(last, None)
        else:
            part[last] = value
    return data


def _edited_components(raw: str, edits: dict[str, Any]) -> list[Any]:
    """Return a payload of Nuxt's with the components of its page edited."""
    payload: Any = unflatten(raw.encode())
    ((page, data),) = plain(payload["data"]).items()
    return flatten({"data": {page: {"components": _edited(data["components"], edits)}}})


def read(body: bytes, url: str | None) -> dict[str, Any]:
    """Return what `scrapy extract` prints of a page, but for what has no value."""
    record: dict[str, Any] = stated(to_builtins(page_record(read_page(body, url))))
    return record


def stated(value: Any) -> Any:
    if isinstance(value, dict):
        kept = {name: stated(member) for name, member in value.items()}
        return {name: member for name, member in kept.items() if member not in (None, [], {})}
    return [stated(member) for member in value] if isinstance(value, list) else value


def facts(body: bytes, url: str | None) -> dict[str, Any]:
    """Return what a page says, by field.

    Of a list it has the rows of each score, role, season or title.
    """
    record = read(body, url)
    found: dict[str, Any] = {}
    for field, value in {**record, **record.pop("item", {})}.items():
        rows = value if isinstance(value, list) and isinstance(value[0], dict) else []
        for row in rows:
            names = [row[key] for key in ("site_id", "role", "kind") if key in row]
            found.setdefault(".".join([field, *names[:1]]), []).append(row)
        if field != "item" and not rows:
            found[field] = value
    return found


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
            elements[index] = (
                [put(member) for member in value] if isinstance(value, list) else value
            )
        return index

    put(root)
    return elements


def plain(value: Any) -> Any:
    """Return what was looked up in a payload of devalue as plain data."""
    if isinstance(value, dict):
        return {name: plain(value[name]) for name in value}
    return [plain(member) for member in value] if isinstance(value, list) else value
