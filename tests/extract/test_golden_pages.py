"""Pages written here, one for each layout and oddity of the sites.

Each is read as it is, and with one change at a time.
"""

import json
import random
from contextlib import suppress
from typing import Any

import pytest

from moviecrawler.basics.errors import ExtractionError
from moviecrawler.pipelines.validate import check
from moviecrawler.sites.fields import unknown_fields_of
from moviecrawler.sites.pages import read_page
from tests.extract.limits import processor_time
from tests.golden import CASES, GOLDEN, body_of, changed_body, changes, facts, read, url_of


def _fields(record: dict[str, Any]) -> dict[str, Any]:
    """Return a record's fields by where they are, such as `item.title` and `entries.0.title`."""
    parts = {"": record, "item.": record.pop("item", {})}
    for name in {"entries", "seasons"} & record.keys():
        rows = record[name] or []
        record[name] = len(rows) or None
        parts |= {f"{name}.{n}.": row for n, row in enumerate(rows)}
    return {place + field: value for place, part in parts.items() for field, value in part.items()}


@pytest.mark.promise("The pages that the sites serve now are read with every fact that they state.")
@pytest.mark.parametrize("case", CASES)
def test_page_is_read_as_written_beside_it(case: str) -> None:
    expected = _fields(json.loads((GOLDEN / case / "expected.json").read_text("utf-8")))
    meta = json.loads((GOLDEN / case / "meta.json").read_text("utf-8"))
    got = _fields(read(body_of(case), url_of(case)))
    assert got["kind"] == meta["kind"]
    assert {field: got.get(field) for field in expected} == expected
    page = read_page(body_of(case), url_of(case))
    if page.movie is not None:
        check(page.movie)
        for season in page.seasons:
            check(season)
            assert (season.kind, season.source, season.series_id) == (
                "season",
                "list",
                page.movie.site_id,
            )
            assert season.unknown_fields == unknown_fields_of(season)  # a list states no absence


@pytest.mark.promise("A page tells a value, a stated absence, or nothing of a field.")
@pytest.mark.promise("A missing value is never a zero.")
@pytest.mark.promise("JSON-LD by schema.org is read where a page has nothing better.")
@pytest.mark.promise(
    "A page of another title is never stored as the one that was asked for, and deletes nothing."
)
@pytest.mark.parametrize(("case", "change"), changes().values(), ids=changes())
def test_change_of_a_page_changes_only_what_is_written_beside_it(
    case: str, change: dict[str, Any]
) -> None:
    body = changed_body(case, change)
    url = change.get("url", url_of(case))
    if "refused" in change:
        with pytest.raises(ExtractionError) as error:
            read_page(body, url)
        assert error.value.field == change["refused"]
        return
    before = facts(body_of(case), url_of(case))
    after = facts(body, url)
    lacked = set(before.pop("unknown_fields", []))
    lacks = set(after.pop("unknown_fields", []))
    differs = {
        name: after.get(name) for name in before | after if before.get(name) != after.get(name)
    }
    assert differs == change["differs"]
    assert sorted(lacks - lacked) == change.get("unknown", [])
    assert sorted(lacked - lacks) == change.get("known", [])


@pytest.mark.promise("A damaged or hostile page costs bounded time and memory, and no other title.")
@pytest.mark.parametrize("case", CASES)
def test_cut_or_flipped_page_is_a_page_or_an_extraction_error(case: str) -> None:
    body = body_of(case)
    url = url_of(case)
    drawn = random.Random(case)  # noqa: S311 - the same in every run
    for _ in range(50):
        flipped = bytearray(body)
        for position in drawn.sample(range(len(body)), 50):
            flipped[position] = drawn.randrange(256)
        with processor_time(), suppress(ExtractionError):
            read(bytes(flipped), url)
    whole = read_page(body, url)
    for end in range(0, len(body), max(len(body) // 50, 1)):
        # A page that ends early is refused, or was read whole from a script that had ended: nothing
        # cut off is taken for absent.
        with processor_time(), suppress(ExtractionError):
            page = read_page(body[:end], url)
            assert page.listing == whole.listing
            if whole.movie is not None:
                assert page.movie is not None
                assert set(whole.movie.unknown_fields) <= set(page.movie.unknown_fields)
                assert (page.movie.site_id, page.movie.title) == (
                    whole.movie.site_id,
                    whole.movie.title,
                )
