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
