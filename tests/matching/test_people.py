"""Which names are one person's."""

import pytest

from moviecrawler.matching.people import Name, name_words, same_person
from tests import written

SHARED = {"same": True, "other": False, "unknown": None}


def names(text: str | None) -> list[Name]:
    return [name_words(name) for name in text.split("|")] if text else []


@pytest.mark.parametrize(("expected", "one", "other"), written.rows(__file__, "people.txt"))
def test_one_person_is_recognised_and_what_names_leave_open_is_left_open(
    expected: str, one: str | None, other: str | None
) -> None:
    ours = names(one)
    theirs = names(other)
    assert same_person(ours, theirs) is same_person(theirs, ours) is SHARED[expected]
