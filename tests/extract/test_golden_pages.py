"""Pages written here, one for each generation and oddity of the sites; one test a page and field."""

from __future__ import annotations

import functools
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


@functools.cache
def _record(case: Path) -> dict[str, Any]:
    (page,) = case.glob("page.*")
    meta = json.loads((case / "meta.json").read_text("utf-8"))
    record = page_record(read_page(page.read_bytes(), meta.get("url")))
    assert record["kind"] == meta["kind"]
    return {**record, **{f"item.{key}": value for key, value in record.get("item", {}).items()}}


FIELDS = [(case, field) for case in CASES for field in _fields(case)]


@pytest.mark.parametrize(
    ("case", "field"), FIELDS, ids=[f"{case.parent.name}/{case.name}-{field}" for case, field in FIELDS]
)
def test_field(case: Path, field: str) -> None:
    expected, got = _fields(case)[field], _record(case)[field]
    if field == "entries":
        got = [{key: entry[key] for key in wanted} for wanted, entry in zip(expected, got, strict=True)]
    assert got == expected
