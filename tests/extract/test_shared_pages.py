"""Every fact that is known of the saved pages, one test a page."""

from __future__ import annotations

from typing import Literal

import pytest

from moviecrawler.extract.blocks import classify
from moviecrawler.extract.pages import page_record, read_page
from tests.extract.saved_pages import CORE, TRUTH, compare, holds, record
from tests.shared import PAGES

pytestmark = pytest.mark.shared("pages")


@pytest.mark.parametrize("file", CORE)
def test_every_known_fact_is_read(file: str) -> None:
    truth, got = TRUTH[file], record(file)
    wrong = [fact for fact in compare().FACTS if fact in truth and not holds(truth, fact, got)]
    said = got.get("item") or {"entries": [entry["site_id"] for entry in got.get("entries", [])][:5]}
    assert not wrong, {fact: {"want": truth[fact], "got": said.get(fact, said.get("entries"))} for fact in wrong}


@pytest.mark.parametrize("file", CORE)
def test_url_does_not_change_what_is_read(file: str) -> None:
    url = next(
        line.split("\t")[3]
        for line in (PAGES / "INDEX.tsv").read_text("utf-8").splitlines()
        if line.startswith(file + "\t")
    )
    body = (PAGES / file).read_bytes()
    with_url = page_record(read_page(body, url or None))
    for key, value in record(file).get("item", {}).items():
        if value is not None:  # a trimmed page names itself only by its URL
            assert with_url["item"][key] == value, key
    assert with_url.get("entries") == record(file).get("entries")


@pytest.mark.parametrize("file", sorted(TRUTH))
def test_healthy_page_is_not_taken_for_a_block(file: str) -> None:
    body = (PAGES / file).read_bytes()
    expects: Literal["json", "page"] = "json" if file.endswith(".json") else "page"
    if len(body) > 10_000:  # owners have trimmed the others to pieces of pages
        assert classify(200, {}, body, expects=expects, now=0) is None
