"""The rule of erasing in every store: a stated absence erases at once, silence never does."""

from __future__ import annotations

import random
from functools import reduce

from moviecrawler.catalogue.merging import complete
from moviecrawler.items import Movie
from moviecrawler.pipelines.store import Store
from tests.catalogue.readings import reading
from tests.pipelines.runs import record_of
from tests.pipelines.stored import Stored, in_order


def write(store: Store, *movies: Movie) -> None:
    store.write([record_of(one) for one in movies])


def test_all_stores_hold_what_the_newest_reading_of_each_field_says(every_store: Stored) -> None:
    luck = random.Random(11)  # noqa: S311 - no secret
    days = [0, 1, 2, 3]
    history = {number: [reading(luck, number, day) for day in days] for number in range(25)}
    for day in days:
        every_store.write(*(readings[day] for readings in history.values()))
    late = {number: reading(luck, number, 1.5) for number in history}
    every_store.write(*late.values())
    found = {one.site_id: in_order(one) for one in every_store.contents()}
    for number, readings in history.items():
        if every_store.kind == "s3":  # whoever reads puts all lines together, in the order of their times
            expected = joined([*readings[:2], late[number], *readings[2:]])
        else:  # a late reading fills what all others do not mention
            expected = complete(joined(readings), late[number])
        assert found[expected.site_id] == in_order(expected)


def joined(readings: list[Movie]) -> Movie:
    return reduce(lambda known, newer: complete(newer, known), readings)
