"""The matcher is as often right on real records as the README of the catalogue says.

`test_matching.py` has its single cases.
"""

import pytest

from tests.benchmarks.matching_accuracy import ASKED, FOLDER, measure, read


@pytest.mark.promise(
    "Records of one title become one title, and two titles are told apart, each with reasons."
)
@pytest.mark.long
@pytest.mark.shared("matching")
def test_hardly_any_record_of_two_sites_is_taken_for_another_title_and_few_are_missed() -> None:
    found = measure(read(FOLDER), "none", quick=True)
    assert found.keys() == {"pop", "id", "mc"}
    for group, (precision, recall) in found.items():
        assert precision >= ASKED["none"][0], group
        assert recall >= ASKED["none"][1], group
