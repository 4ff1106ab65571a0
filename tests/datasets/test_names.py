from __future__ import annotations

from random import Random

import pytest

from moviecrawler.datasets.names import IdSet, Names


@pytest.mark.parametrize("size", [0, 1, 1_000])
def test_each_person_has_the_name_that_was_given_in_whatever_order(size: int) -> None:
    luck = Random(size)  # noqa: S311 - the same ones each time
    numbers = {*luck.sample(range(3_000), size), *luck.sample(range(10**10), size)}
    people = IdSet()
    ids = {f"nm{number:07}": f"Välimäki {number}" for number in numbers}
    for person in ids:
        people.add(person.encode())
    names = Names(people)
    named = {person for person in ids if luck.random() < 0.8}
    for person in luck.sample(sorted(named), len(named)):
        names.add(person.encode(), ids[person].encode())
    for person, name in ids.items():
        assert person.encode() in people
        assert names.of(person) == (name if person in named else None)
    for number in range(3_000, 4_000):
        assert f"nm{number:07}".encode() not in people
        assert names.of(f"nm{number:07}") is None


def test_a_pattern_finds_the_lines_of_its_ids_alone() -> None:
    ids = [b"tt0000001", b"tt0000012", b"tt12345678", b"tt1234567", b"tt0123456", b"tt99999999999"]
    others = [b"tt0000002", b"tt0000123", b"tt0000120", b"tt2345678", b"tt123456789", b"tt9999999999", b"nm0000001"]
    pattern = IdSet(ids).pattern("tt")
    assert pattern is not None
    lines = b"".join(b"\n" + one + b"\ttt0000012" for one in [*ids, *others])
    assert [found.strip() for found in pattern.findall(lines)] == ids
    empty = IdSet().pattern("tt")
    assert empty is not None
    assert empty.search(lines) is None
    assert IdSet(b"tt%07d" % number for number in range(10_001)).pattern("tt") is None


def test_the_rows_of_members_are_chosen_whatever_the_size_of_their_numbers() -> None:
    ids = IdSet([b"tt0000001", b"tt99999999999"])
    rows = [(b"row", one) for one in (b"tt0000001", b"tt0000002", b"tt99999999999", b"tt99999999998")]
    assert [one for _, one in ids.of(rows)] == [b"tt0000001", b"tt99999999999"]
    assert [one for _, one in ids.of(rows[:2])] == [b"tt0000001"]
