"""What every store promises of what it is given.

It comes back whole, and of each field the newest page that tells it counts.
"""

import random
from datetime import timedelta
from functools import reduce
from typing import Any

import pytest

from moviecrawler.basics import clock
from moviecrawler.basics.clock import utc_now
from moviecrawler.items import Movie
from moviecrawler.matching.merging import complete
from tests.pipelines.pages import METACRITIC, MOVIES, page
from tests.readings import reading
from tests.runs import BEGIN, led_from, make_miss, make_movie
from tests.stored import Stored, in_order

HOUR = 3600.0
AHEAD = timedelta(days=400)


def test_all_that_a_page_says_comes_back_from_every_store(every_store: Stored) -> None:
    every_store.write(*MOVIES.values())
    assert {one.site_id: in_order(one) for one in every_store.movies()} == {
        one.site_id: in_order(one) for one in MOVIES.values()
    }


@pytest.mark.promise(
    "A newer reading replaces an older one, never the other way; what it does not mention stays."
)
def test_all_stores_hold_what_the_newest_reading_of_each_field_says(every_store: Stored) -> None:
    luck = random.Random(11)  # noqa: S311 - no secret
    days = [0, 1, 2, 3]
    history = {number: [reading(luck, number, day) for day in days] for number in range(25)}
    for day in days:
        every_store.write(*(readings[day] for readings in history.values()))
    late = {number: reading(luck, number, 1.5) for number in history}
    every_store.write(*late.values())
    found = {one.site_id: in_order(one) for one in every_store.movies()}
    for number, readings in history.items():
        # Whoever reads S3 puts all lines together, in the order of their times.
        if every_store.kind == "s3":
            expected = joined([*readings[:2], late[number], *readings[2:]])
        else:  # a late reading fills what all others do not mention
            expected = complete(joined(readings), late[number])
        assert found[expected.site_id] == in_order(expected)


@pytest.mark.parametrize("step", [1, -1], ids=["in order", "late"])
def test_offers_that_a_newer_page_does_not_mention_were_seen_when_they_were(
    every_store: Stored, step: int
) -> None:
    newer = page("metacritic", "movie/salt-harbour", 1, unknown_fields=["offers"])
    for movie in (METACRITIC, newer)[::step]:
        every_store.write(movie)
    assert {offer.seen_at for offer in every_store.movie().offers} == {BEGIN}


def joined(readings: list[Movie]) -> Movie:
    return reduce(lambda known, newer: complete(newer, known), readings)


@pytest.mark.parametrize("stored", ["postgres", "mongo"], indirect=True)
def test_a_scrape_wins_when_newer_by_the_margin_or_the_same_again(stored: Stored) -> None:
    wins = {HOUR + 1: True, HOUR: True, HOUR - 1: False, 1: False, 0: True, -1: False, -HOUR: False}
    stored.write(*(make_movie(number, title="First") for number in range(len(wins))), margin=HOUR)
    for number, newer_by in enumerate(wins):
        stored.write(make_movie(number, -newer_by, title="Second", credits=[]), margin=HOUR)
    found = {movie.site_id: (movie.title, len(movie.credits)) for movie in stored.movies()}
    for number, is_replaced in enumerate(wins.values()):
        assert found[f"tt{number:07}"] == (("Second", 0) if is_replaced else ("First", 3)), number


@pytest.mark.parametrize("stored", ["postgres", "mongo"], indirect=True)
def test_a_page_replaces_a_list_row_within_the_margin_but_never_a_newer_one(stored: Stored) -> None:
    stored.write(make_movie(1, source="list", credits=[], title="Listed"), margin=HOUR)
    stored.write(make_movie(1, 1, title="Older page"), margin=HOUR)
    assert stored.movie().title == "Listed"
    assert len(stored.movie().credits) == 3  # which the row does not mention
    stored.write(
        make_movie(2, source="list", credits=[], title="Listed"),
        make_movie(2, -1, title="Page"),
        margin=HOUR,
    )
    assert {movie.title for movie in stored.movies()} == {"Listed", "Page"}


def test_one_batch_may_name_a_title_many_times(stored: Stored) -> None:
    page = make_movie(1, 60, plot="A keeper trims the lamp.")
    newer = make_movie(1, 30, title="Newer", plot="It burns.")
    row = make_movie(1, 20, title="Listed", source="list", credits=[])
    stored.write(page, newer, make_movie(2), row, make_movie(1, 90, title="Older"))
    (movie,) = (one for one in stored.movies() if one.site_id == "tt0000001")
    assert (movie.title, movie.plot, movie.scraped_at) == ("Listed", "It burns.", row.scraped_at)
    assert len(stored.movies()) == 2


def test_a_miss_stands_until_the_titles_own_page_is_read(stored: Stored) -> None:
    for age in (50, 60):
        stored.write(make_miss(1, age))
    assert stored.misses() == 1
    # Neither what a list says of it ends the miss, nor a page that was read before.
    stored.write(make_movie(1, 40, source="list"), make_movie(1, 55))
    assert stored.misses() == 1
    stored.write(make_movie(1, 30))
    assert stored.misses() == 0
    stored.write(make_miss(1, 35))
    assert stored.misses() == 0
    stored.write(make_miss(1, 20, outcome="blocked"), make_miss(1, 35))
    assert stored.misses() == 1
    assert stored.movie().scraped_at == make_movie(1, 30).scraped_at


def test_of_a_page_and_a_miss_of_one_moment_the_one_that_is_written_last_counts(
    stored: Stored,
) -> None:
    stored.write(make_miss(1))
    stored.write(make_movie(1))
    assert stored.misses() == 0
    stored.write(make_miss(1))
    assert stored.misses() == 1


def test_a_list_row_of_the_same_batch_hides_no_miss(stored: Stored) -> None:
    stored.write(make_movie(1, 600))
    stored.write(make_miss(1, 120), make_movie(1, 60, source="list"))
    assert stored.misses() == 1
    stored.write(make_movie(1), make_movie(1, 3 * HOUR), margin=HOUR)
    assert stored.misses() == 0
    # A page ends an older miss of its batch, though it is too new to be stored.
    stored.write(make_movie(2, 60), make_movie(2), make_miss(2, 30), margin=HOUR)
    assert stored.misses() == 0


def test_a_record_is_updated_when_its_page_says_something_else(
    database: Stored, monkeypatch: pytest.MonkeyPatch
) -> None:
    longer: dict[str, Any] = {"runtime_minutes": 99}
    updated = []
    for day, fields in enumerate([{}, {}, longer, {**longer, "fetch": led_from("tt0000009")}]):
        now = BEGIN + timedelta(days=day)
        monkeypatch.setattr("moviecrawler.database.records.utc_now", lambda now=now: now)
        database.write(make_movie(1, scraped_at=now, **fields))
        updated += [str(at)[:10] for (at,) in database.ask("SELECT updated_at FROM records")]
    assert updated == ["2026-03-01", "2026-03-01", "2026-03-03", "2026-03-03"]


def test_what_was_read_in_the_future_gives_way(stored: Stored) -> None:
    now = utc_now()
    stored.write(make_movie(1, scraped_at=now + AHEAD, title="Of the Future"))
    stored.write(make_movie(1, scraped_at=now, title="Of Today"))
    assert stored.movie().title == "Of Today"
    # And what is not in the future does not, though it is not quite past.
    stored.write(make_movie(1, scraped_at=now + clock.FUTURE / 2, title="Soon"))
    stored.write(make_movie(1, scraped_at=now + clock.FUTURE / 3, title="Sooner"))
    assert stored.movie().title == "Soon"


def test_a_miss_or_a_reading_of_the_future_hides_nothing(stored: Stored) -> None:
    now = utc_now()
    stored.write(make_miss(1, checked_at=now + AHEAD))
    stored.write(make_movie(1, scraped_at=now))
    assert stored.misses() == 0
    stored.write(make_movie(1, scraped_at=now + AHEAD))
    stored.write(make_miss(1, checked_at=now + timedelta(minutes=1)))
    assert stored.misses() == 1
