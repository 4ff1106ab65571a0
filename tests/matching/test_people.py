"""Which names are one person's."""

import pytest

from moviecrawler.matching.people import name_words, same_person

PEOPLE: list[tuple[bool | None, str, str]] = [
    (True, "Seo Min-ji", "Min Ji Seo"),
    (True, "Seo Minji", "Min-ji Seo"),
    (True, "Mara Levin", "M. Levin"),
    (True, "Inés Quarrie Fonseca", "Ines Quarrie"),
    (True, "Inés Q. Fonseca", "Ines Quarrie Fonseca"),
    (True, "Otto von Holmberg", "Otto Holmberg"),
    (True, "Aleksandr Holmberg", "Alexander Holmberg"),
    (True, "The Holmberg Brothers", "Otto Holmberg"),
    (True, "Tarsemo", "Tarsemo Varga"),
    (True, "Nora", "Nora Varga"),
    (False, "Lee", "Lee Varga"),
    (True, "Mara Levin|Ines Quarrie", "Jonas Brandt|Ines Quarrie"),
    (True, "nm0000123", "nm0000123"),
    (False, "Mara Levin", "Ines Quarrie"),
    (False, "Mara Levin", "Tobias Levin"),
    (False, "Seo Min-ji", "Seo Hye-won"),
    (False, "Mara Levin|Ines Quarrie", "Jonas Brandt"),
    (None, "Mara Levin", ""),
    (None, "John Lee", "James Lee"),
    (None, "מרה לוין", "Mara Levin"),
    (None, "Mike Mann", "Michael Mann"),
]


@pytest.mark.parametrize(("expected", "one", "other"), PEOPLE)
def test_one_person_is_recognised_and_what_names_leave_open_is_left_open(
    *, expected: bool | None, one: str, other: str
) -> None:
    ours = [name_words(name) for name in one.split("|") if name]
    theirs = [name_words(name) for name in other.split("|") if name]
    assert same_person(ours, theirs) is same_person(theirs, ours) is expected
