"""Pages written here, one for each generation and oddity of the sites; one test a page."""

from __future__ import annotations

import json
from typing import Any

import pytest

from moviecrawler.extract.pages import page_record, read_page
from moviecrawler.pipelines.validate import check_movie
from tests.extract.golden import CASES, GOLDEN, body_of, url_of


def _fields(record: dict[str, Any]) -> dict[str, Any]:
    """Return a record with its item's fields as `item.<field>`."""
    return {**{f"item.{key}": value for key, value in record.pop("item", {}).items()}, **record}


@pytest.mark.parametrize("case", CASES)
def test_page_is_read_as_written_beside_it(case: str) -> None:
    expected, meta = (json.loads((GOLDEN / case / f"{name}.json").read_text("utf-8")) for name in ("expected", "meta"))
    page = read_page(body_of(case), url_of(case))
    got, wrong = _fields(page_record(page)), {}
    assert got["kind"] == meta["kind"]
    for field, value in _fields(expected).items():
        found = got.get(field, "not there")
        if field in {"entries", "seasons"} and isinstance(found, list):
            found = [{key: entry.get(key) for key in wanted} for wanted, entry in zip(value, found, strict=True)]
        if found != value:
            wrong[field] = {"want": value, "got": found}
    assert not wrong, wrong
    if page.movie is not None and page.movie.site_id is not None and page.movie.kind not in {"game", "music"}:
        for movie in (page.movie, *page.seasons):
            check_movie(movie)
