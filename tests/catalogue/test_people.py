"""Which names are one person's."""

from __future__ import annotations

import pytest

from moviecrawler.catalogue.people import name_words, same_person


def same(one: str, other: str) -> bool | None:
    ours, theirs = ([name_words(name) for name in names.split("|") if name] for names in (one, other))
    found = same_person(ours, theirs)
    assert same_person(theirs, ours) is found
    return found


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Seo Min-ji", "Min Ji Seo"),
        ("Seo Minji", "Min-ji Seo"),
        ("Mara Levin", "LEVIN Mara"),
        ("Mara Levin", "M. Levin"),
        ("Mara Levin", "Mara J. Levin"),
        ("Inés Quarrie Fonseca", "Ines Quarrie"),
        ("Inés Quarrie Fonseca", "Ines Fonseca"),
        ("Inés Q. Fonseca", "Ines Quarrie Fonseca"),
        ("Otto von Holmberg", "Otto Holmberg"),
        ("Aleksandr Holmberg", "Alexander Holmberg"),
        ("Volker Schönberg", "Volker Schoenberg"),
        ("The Holmbergs", "Lena Holmberg"),
        ("The Holmberg Brothers", "Otto Holmberg"),
        ("Tarsemo", "Tarsemo Varga"),
        ("Mara Levin|Ines Quarrie", "Jonas Brandt|Ines Quarrie"),
        ("nm0000123", "nm0000123"),
    ],
)
def test_one_person_is_recognised(one: str, other: str) -> None:
    assert same(one, other) is True


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Mara Levin", "Ines Quarrie"),
        ("Mara Levin", "Tobias Levin"),
        ("Seo Min-ji", "Seo Hye-won"),
        ("Otto Brandt", "Otto Varga"),
        ("nm0000123", "nm0000124"),
        ("Mara Levin|Ines Quarrie", "Jonas Brandt"),
    ],
)
def test_two_persons_are_told_apart(one: str, other: str) -> None:
    assert same(one, other) is False


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Mara Levin", ""),
        ("", ""),
        ("John Lee", "James Lee"),
        ("מרה לוין", "Mara Levin"),
        ("Mike Mann", "Michael Mann"),
    ],
)
def test_what_names_leave_open_is_left_open(one: str, other: str) -> None:
    assert same(one, other) is None
