"""Mutants of pages: a few of the project's own quickly, and thousands, also of the shared ones, as long tests.

As many as one likes, on all cores: `FUZZ_MUTANTS=200000 pytest -m long tests/extract -k mutants`.
"""

from __future__ import annotations

import os

import pytest

from tests.extract.fuzz import fuzz, golden_pages, shared_pages

MANY = int(os.environ.get("FUZZ_MUTANTS") or 1000)
"""Mutants of a long test."""
PARTS = 4
"""In which they are read by several processes."""
SLACK = 2.0
"""These tests look for failures, and for pages that take far too long on any machine."""


def part_of(seed: int, part: int) -> range:
    return range(seed * 10**9 + part, seed * 10**9 + MANY, PARTS)


def test_mutants_have_no_failure_but_extraction_error() -> None:
    report = fuzz(golden_pages(), range(10**9, 10**9 + 150), SLACK)
    assert report.faults == []
    assert report.read > 30
    assert report.refused > 30


@pytest.mark.long
@pytest.mark.parametrize("part", range(PARTS))
def test_many_mutants_have_no_failure_but_extraction_error(part: int) -> None:
    assert fuzz(golden_pages(), part_of(2, part), SLACK).faults == []


@pytest.mark.long
@pytest.mark.shared("pages")
@pytest.mark.parametrize("part", range(PARTS))
def test_many_mutants_of_shared_pages_have_no_failure_but_extraction_error(part: int) -> None:
    assert fuzz(shared_pages(), part_of(3, part), SLACK).faults == []
