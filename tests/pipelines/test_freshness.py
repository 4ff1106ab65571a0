"""What replaces what is stored, in every store that replaces: a newer page, never an older one, and a list's row only in part."""

from __future__ import annotations

import pytest

from moviecrawler.items import Score
from tests.monitors.movies import movie as whole_page
from tests.pipelines.runs import BEGIN, make_miss, make_movie
from tests.pipelines.stored import Stored

HOUR = 3600.0


@pytest.mark.parametrize("stored", ["postgres", "mongo"], indirect=True)
def test_a_scrape_wins_when_newer_by_the_margin_or_the_same_again(stored: Stored) -> None:
    wins = {HOUR + 1: True, HOUR: True, HOUR - 1: False, 1: False, 0: True, -1: False, -HOUR: False}
    stored.write(*(make_movie(number, title="First") for number in range(len(wins))), margin=HOUR)
    for number, newer_by in enumerate(wins):
        stored.write(make_movie(number, -newer_by, title="Second", credits=[]), margin=HOUR)
    found = {movie.site_id: movie for movie in stored.movies()}
    for number, is_replaced in enumerate(wins.values()):
        movie = found[f"tt{number:07}"]
        assert movie.title == ("Second" if is_replaced else "First"), number
        assert len(movie.credits) == (0 if is_replaced else 3)


@pytest.mark.parametrize("stored", ["postgres", "mongo"], indirect=True)
def test_a_page_replaces_a_list_row_within_the_margin_but_never_a_newer_one(stored: Stored) -> None:
    stored.write(make_movie(1, source="list", credits=[], title="Listed"), margin=HOUR)
    stored.write(make_movie(1, 1, title="Older page"), margin=HOUR)
    assert stored.movie().title == "Listed"
    assert len(stored.movie().credits) == 3  # of which the row is silent
    stored.write(make_movie(2, source="list", credits=[], title="Listed"), make_movie(2, -1, title="Page"), margin=HOUR)
    assert {movie.title for movie in stored.movies()} == {"Listed", "Page"}


def test_an_older_page_takes_the_place_of_no_newer_one(stored: Stored) -> None:
    stored.write(whole_page(1, 2, title="Newer"))
    stored.write(whole_page(1, 1, title="Older"))  # silent of nothing, so that it is not compared field by field
    assert stored.movie().title == "Newer"


def test_a_list_row_does_not_erase_what_the_page_told(stored: Stored) -> None:
    stored.write(make_movie(1, 60, plot="A keeper trims the lamp."))
    stored.write(make_movie(1, source="list", credits=[], list_rank=4, scores=[Score(kind="imdb", value=9.1)]))
    movie = stored.movie()
    assert (movie.plot, movie.list_rank, movie.source) == ("A keeper trims the lamp.", 4, "page")
    assert movie.scores == [Score(kind="imdb", value=9.1, count=1001)]
    assert [credit.name for credit in movie.credits if credit.role == "director"] == ["Odile Farrow"]


def test_one_batch_may_name_a_title_many_times(stored: Stored) -> None:
    page, newer = make_movie(1, 60, plot="A keeper trims the lamp."), make_movie(1, 30, title="Newer", plot="It burns.")
    row = make_movie(1, 20, title="Listed", source="list", credits=[])
    stored.write(page, newer, make_movie(2), row, make_movie(1, 90, title="Older"))
    (movie,) = (one for one in stored.movies() if one.site_id == "tt0000001")
    assert (movie.title, movie.plot, movie.scraped_at) == ("Listed", "It burns.", row.scraped_at)
    assert len(stored.movies()) == 2


def test_a_miss_stands_until_the_titles_own_page_is_read(stored: Stored) -> None:
    stored.write(make_miss(1, 50), make_miss(1, 60, outcome="failed"))
    assert stored.misses() == 1
    # Neither what a list says of it ends the miss, nor a page that was read before.
    stored.write(make_movie(1, 40, source="list"), make_movie(1, 55))
    assert stored.misses() == 1
    stored.write(make_movie(1, 30))
    assert stored.misses() == 0
    stored.write(make_miss(1, 35))
    assert stored.misses() == 0
    stored.write(make_miss(1, 20, outcome="blocked"))
    assert stored.misses() == 1
    assert stored.movie().scraped_at is not None
    assert stored.movie().scraped_at < BEGIN  # type: ignore[operator]


def test_a_list_row_of_the_same_batch_hides_no_miss(stored: Stored) -> None:
    stored.write(make_movie(1, 600))
    stored.write(make_miss(1, 120), make_movie(1, 60, source="list"))
    assert stored.misses() == 1
    stored.write(make_movie(1), make_movie(1, 3 * HOUR), margin=HOUR)
    assert stored.misses() == 0


def test_a_page_ends_an_older_miss_of_its_batch_though_it_is_too_new_to_be_stored(stored: Stored) -> None:
    stored.write(make_movie(1, 60), make_movie(1), make_miss(1, 30), margin=HOUR)
    assert stored.misses() == 0
