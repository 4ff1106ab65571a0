"""Pages with one key, box or label removed, renamed or emptied: what they don't tell any more is silent, all else is read."""

from __future__ import annotations

import os
from collections import Counter

import pytest

from tests.extract.damages import assert_cut_page_says_the_same_or_less, damages, faults, states
from tests.extract.golden import CASES, body_of, url_of
from tests.extract.saved_pages import TRUTH
from tests.shared import PAGES as SAVED

QUICK, LONG = 15, int(os.environ.get("DAMAGES", "40"))
"""Damaged copies of each page. `DAMAGES=400 pytest -m long tests/extract/test_damaged_pages.py` takes half an hour."""
LEAST_RIGHT_OF_SAVED, LEAST_RIGHT_OF_WRITTEN = 0.995, 0.98
"""Share of copies that say nothing wrong. Pages written for tests are small, and some of their sources contradict each other."""
MOST_REFUSED = 0.10
"""Share of copies that may have lost their identity, of all pages, of which some are pieces with little else."""


def _damage(body: bytes, url: str | None, name: str, most: int, tally: Counter[str]) -> list[str]:
    healthy = states(body, url)
    found = []
    for damage in damages(body, name, most) if healthy else ():
        tally["copies"] += 1
        damaged = states(damage.body, url)
        if damaged is None:
            tally["refused"] += 1
        elif wrong := faults(healthy or {}, damaged, damage):
            found.append(f"{name}, {damage.name}: {'; '.join(wrong)}")
    tally["wrong"] += len(found)
    return found


def _assert_right(tally: Counter[str], found: list[str], least: float) -> None:
    assert tally["copies"], "no page was damaged"
    right = 1 - tally["wrong"] / tally["copies"]
    print(f"{tally['copies']} damaged copies, {tally['refused']} refused, {right:.3%} right")  # noqa: T201 - its result
    assert right >= least, "\n".join(found)
    assert tally["refused"] <= MOST_REFUSED * tally["copies"]


@pytest.mark.parametrize("case", [case for case in CASES if not case.startswith("imdb/")])
def test_cut_page_says_the_same_or_less_or_is_refused(case: str) -> None:
    assert_cut_page_says_the_same_or_less(body_of(case), url_of(case))


def test_one_damage_to_a_page_changes_no_other_field() -> None:
    tally: Counter[str] = Counter()
    found = [wrong for case in CASES for wrong in _damage(body_of(case), url_of(case), case, QUICK, tally)]
    _assert_right(tally, found, LEAST_RIGHT_OF_WRITTEN)


@pytest.mark.shared("pages")
@pytest.mark.parametrize(
    ("most", "first", "step"), [(5, 0, 8), *(pytest.param(LONG, part, 4, marks=pytest.mark.long) for part in range(4))]
)
def test_one_damage_to_a_saved_page_changes_no_other_field(most: int, first: int, step: int) -> None:
    """Of all pages, a quarter in each test, and quickly of each eighth."""
    tally: Counter[str] = Counter()
    files = sorted(TRUTH)[first::step]
    found = [wrong for file in files for wrong in _damage((SAVED / file).read_bytes(), None, file, most, tally)]
    _assert_right(tally, found, LEAST_RIGHT_OF_SAVED)
