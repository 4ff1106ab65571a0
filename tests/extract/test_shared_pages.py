"""Every fact that is known of the saved pages, one test a page."""

from __future__ import annotations

from typing import Literal

import pytest

from moviecrawler.extract.blocks import classify
from moviecrawler.extract.pages import page_record, read_page
from tests.extract.saved_pages import CORE, TRUTH, URLS, compare, holds
from tests.shared import PAGES

pytestmark = pytest.mark.shared("pages")


@pytest.mark.parametrize("file", CORE)
def test_every_known_fact_is_read(file: str) -> None:
    truth, body = TRUTH[file], (PAGES / file).read_bytes()
    got = page_record(read_page(body))
    wrong = [fact for fact in compare().FACTS if fact in truth and not holds(truth, fact, got)]
    said = got.get("item") or {"entries": [entry["site_id"] for entry in got.get("entries", [])][:5]}
    assert not wrong, {fact: {"want": truth[fact], "got": said.get(fact, said.get("entries"))} for fact in wrong}
    # And its address changes nothing of it.
    with_url = page_record(read_page(body, URLS[file] or None))
    for key, value in got.get("item", {}).items():
        if value is not None:  # a trimmed page names itself only by its URL
            assert with_url["item"][key] == value, key
    assert with_url.get("entries") == got.get("entries")


@pytest.mark.parametrize("file", sorted(TRUTH))
def test_healthy_page_is_not_taken_for_a_block(file: str) -> None:
    body = (PAGES / file).read_bytes()
    expects: Literal["json", "page"] = "json" if file.endswith(".json") else "page"
    if len(body) > 10_000:  # owners have trimmed the others to pieces of pages
        assert classify(200, {}, body, expects=expects, now=0) is None
