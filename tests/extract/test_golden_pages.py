"""Pages written here, one for each layout and oddity of the sites; one test a page."""

from __future__ import annotations

import json
import random
from contextlib import suppress
from typing import Any

import pytest

from moviecrawler.errors import ExtractionError
from moviecrawler.extract.pages import page_record, read_page
from moviecrawler.pipelines.validate import check
from tests.extract.golden import CASES, GOLDEN, body_of, url_of
from tests.extract.limits import processor_time


def _fields(record: dict[str, Any]) -> dict[str, Any]:
    """Return a record with its item's fields as `item.<field>`."""
    return {**{f"item.{key}": value for key, value in record.pop("item", {}).items()}, **record}


@pytest.mark.promise("The pages that the sites serve now are read with every fact that they state.")
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
    if page.movie is not None:
        for movie in (page.movie, *page.seasons):
            check(movie)


@pytest.mark.promise("A damaged or hostile page costs bounded time and memory, and no other title.")
@pytest.mark.parametrize("case", CASES)
def test_cut_or_flipped_page_is_a_page_or_an_extraction_error(case: str) -> None:
    body, url = body_of(case), url_of(case)
    drawn = random.Random(case)  # noqa: S311 - the same in every run
    step = max(len(body) // 50, 1)
    damaged = [body[:end] for end in range(0, len(body), step)]
    for _ in damaged[:]:
        flipped = bytearray(body)
        for place in drawn.sample(range(len(body)), 50):
            flipped[place] = drawn.randrange(256)
        damaged.append(bytes(flipped))
    for page in damaged:
        with processor_time(), suppress(ExtractionError):
            page_record(read_page(page, url))


@pytest.mark.parametrize("case", [case for case in CASES if body_of(case).lstrip().startswith(b"<")])
def test_page_that_is_cut_says_the_same_of_all_that_it_states_absent(case: str) -> None:
    """A page that ends early is refused, or was read whole from a script that had ended: nothing is taken for absent that was cut off."""
    body, url = body_of(case), url_of(case)
    whole = read_page(body, url)
    for end in range(0, len(body), max(len(body) // 50, 1)):
        with suppress(ExtractionError):
            page = read_page(body[:end], url)
            assert page.listing == whole.listing
            assert page.movie is not None or whole.movie is None
            if page.movie is not None and whole.movie is not None:
                assert set(whole.movie.unknown_fields) <= set(page.movie.unknown_fields)
                assert (page.movie.site_id, page.movie.title) == (whole.movie.site_id, whole.movie.title)
