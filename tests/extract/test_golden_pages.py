"""Pages written here, one for each generation and oddity of the sites; one test a page."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from moviecrawler.extract.pages import page_record, read_page
from tests.conftest import PROJECT

CASES = sorted(path.parent for path in (PROJECT / "tests" / "pages").glob("*/*/meta.json"))


def _fields(case: Path) -> dict[str, Any]:
    """Return the expected record with its item's fields as `item.<field>`."""
    expected = json.loads((case / "expected.json").read_text("utf-8"))
    item = expected.pop("item", {})
    return {**expected, **{f"item.{key}": value for key, value in item.items()}}


def _record(case: Path) -> dict[str, Any]:
    (page,) = case.glob("page.*")
    meta = json.loads((case / "meta.json").read_text("utf-8"))
    record = page_record(read_page(page.read_bytes(), meta.get("url")))
    assert record["kind"] == meta["kind"]
    return {**record, **{f"item.{key}": value for key, value in record.get("item", {}).items()}}


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.parent.name}/{case.name}")
def test_page_is_read_as_written_beside_it(case: Path) -> None:
    got, wrong = _record(case), {}
    for field, expected in _fields(case).items():
        value = got.get(field, "not there")
        if field in {"entries", "seasons"} and isinstance(value, list):
            value = [{key: entry.get(key) for key in wanted} for wanted, entry in zip(expected, value, strict=True)]
        if value != expected:
            wrong[field] = {"want": expected, "got": value}
    assert not wrong, wrong
