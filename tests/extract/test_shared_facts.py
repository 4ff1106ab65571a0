"""What the sites' saved pages say beside a title's facts, against an independent reading."""

from __future__ import annotations

import pytest

from moviecrawler.extract.pages import read_page
from tests.extract.shared_facts import FILES, IN_SERIES, facts, read
from tests.shared import PAGES

pytestmark = pytest.mark.shared("pages")
WHOLE = {"keywords", "interests", "taglines", "awards", "similar", "connection", "offer", "entry"}
"""Lists: nothing may be read that isn't there either."""


@pytest.mark.parametrize("file", FILES)
def test_every_fact_beside_is_read_and_no_other(file: str) -> None:
    stated, got = facts(file), read(read_page((PAGES / file).read_bytes()))
    assert stated - got == set()
    told = {name for name, _ in stated}
    assert {fact for fact in got if fact[0] in (WHOLE & told) | set(IN_SERIES)} <= stated


def test_the_pages_have_hundreds_of_such_facts() -> None:
    assert sum(len(facts(file)) for file in FILES) > 1_090
