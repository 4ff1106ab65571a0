"""Mutants of pages: a few of the project's own quickly, and thousands, also of the shared ones, as long tests.

All 200,000: `python -m tests.extract.fuzz --mutants 200000`.
"""

from __future__ import annotations

import os

import pytest

from tests.extract.fuzz import fuzz, golden_pages, shared_pages

MANY = int(os.environ.get("FUZZ_MUTANTS") or 1000)
"""Mutants of a long test: FUZZ_MUTANTS names another number."""
SLACK = 2.0
"""These tests look for failures, and for pages that take far too long on any machine; the program is strict about 2 s."""


def test_mutants_have_no_failure_but_extraction_error() -> None:
    report = fuzz(golden_pages(), 150, slack=SLACK)
    assert report.faults == []
    assert report.read > 30
    assert report.refused > 30


@pytest.mark.long
def test_many_mutants_have_no_failure_but_extraction_error() -> None:
    assert fuzz(golden_pages(), MANY, seed=2, slack=SLACK).faults == []


@pytest.mark.long
@pytest.mark.shared("pages")
def test_many_mutants_of_shared_pages_have_no_failure_but_extraction_error() -> None:
    assert fuzz(shared_pages(), MANY, seed=3, slack=SLACK).faults == []
