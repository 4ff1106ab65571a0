"""Lists are items of their own: ranks are those of the newest pass that has no gap."""

from pathlib import Path

import pytest

from moviecrawler.items import ListPage
from tests.runs import make_list, make_movie
from tests.services.mongo import documents
from tests.stored import Stored

RANKS = "SELECT site_id, rank FROM list_ranks WHERE list_name = 'top' ORDER BY rank"
ON_BOARD = "SELECT imdb_id, imdb_list_rank FROM scoreboard ORDER BY imdb_id"
IDS = [f"tt{number:07}" for number in range(10)]


def page(days: float, first: int, ids: list[str], ends: str | None) -> ListPage:
    """Return a page whose first title has the rank after `first`."""
    ranks = {site_id: rank for rank, site_id in enumerate(ids, first + 1)}
    return make_list(ranks, days, page_offset=first, next_offset=first + len(ids), ends=ends)


@pytest.mark.promise("A rank stays while the list names the title; no two titles have one.")
def test_the_newest_pass_replaces_the_one_before(database: Stored) -> None:
    database.write(*(make_movie(number) for number in range(3)))
    database.write(page(0, 0, IDS[:2], "list"))
    assert database.ask(ON_BOARD) == [(IDS[0], 1), (IDS[1], 2), (IDS[2], None)]
    database.write(make_movie(0, -86400))  # fetched again, by its id
    database.write(page(7, 0, [IDS[0], IDS[2]], "list"))
    assert database.ask(RANKS) == [(IDS[0], 1), (IDS[2], 2)]
    assert database.ask(ON_BOARD) == [(IDS[0], 1), (IDS[1], None), (IDS[2], 2)]


def test_a_pass_counts_once_no_page_is_missing(database: Stored) -> None:
    database.write(page(0, 0, IDS[:4], "list"))
    database.write(page(1, 2, IDS[7:9], "list"))
    database.write(make_list({IDS[0]: 1}, 2, list_name="another"))
    assert database.ask(RANKS) == [(IDS[number], number + 1) for number in range(4)]
    database.write(page(1, 0, IDS[5:7], None), page(1, 0, IDS[5:7], None))
    assert database.ask(RANKS) == [(IDS[number + 5], number + 1) for number in range(4)]


def test_a_pass_that_stopped_early_replaces_the_ranks_that_it_covers(database: Stored) -> None:
    database.write(page(0, 0, IDS[:4], "list"))
    database.write(page(1, 0, [IDS[3], IDS[0]], "reading"))
    assert database.ask(RANKS) == [(IDS[3], 1), (IDS[0], 2), (IDS[2], 3)]


def test_an_older_pass_that_is_read_again_changes_nothing(database: Stored) -> None:
    database.write(page(7, 0, IDS[:2], "list"))
    database.write(page(0, 0, IDS[5:9], "list"))
    assert database.ask(RANKS) == [(IDS[0], 1), (IDS[1], 2)]


FUTURE = 100_000.0  # days


def test_a_pass_of_a_wrong_clock_gives_way(database: Stored) -> None:
    database.write(page(0, 0, IDS[:3], "list"))
    database.write(page(FUTURE, 0, IDS[5:9], "list"))
    database.write(page(1, 0, IDS[1:3], "list"))
    assert database.ask(RANKS) == [(IDS[1], 1), (IDS[2], 2)]


def test_mongo_has_the_newest_page_of_each_place(
    request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    mongo = Stored("mongo", request, tmp_path)
    mongo.write(page(FUTURE, 0, IDS[3:5], "list"))
    mongo.write(page(1, 0, IDS[:2], "list"))
    mongo.write(page(0, 0, IDS[5:9], "list"))
    (document,) = documents(mongo.url, "lists").values()
    assert document["_id"] == "imdb/top/0"
    assert [entry["site_id"] for entry in document["entries"]] == IDS[:2]
