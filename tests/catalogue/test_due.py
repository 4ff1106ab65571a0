"""Which titles are due, in which order, and for which queue."""

from collections import Counter
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg2
import pytest

from moviecrawler.basics.errors import TransientStoreError
from moviecrawler.catalogue.due import Feed, end_feed, hold_feed
from moviecrawler.catalogue.figures import due
from moviecrawler.catalogue.rows import ListedTitle
from moviecrawler.database.connection import Database
from moviecrawler.frontier.contract import RunName
from moviecrawler.frontier.sqlite_backend import SqliteBackend
from tests.catalogued import DAY, NOW, Catalogued, outcome, row

SECOND = timedelta(seconds=1)


def test_titles_that_are_open_are_left_out(store: Catalogued) -> None:
    store.bring_in(row(1), row(2), row(3, title="Quiet Mill", popularity=None))
    store.list_names("metacritic", "movie/quiet-mill")
    first, second, third = store.due()
    assert [each.ids for each in (first, second, third)] == [[f"tt100000{n}"] for n in (1, 2, 3)]
    assert [each.title_id for each in store.due(open_titles=[first.title_id])] == [
        second.title_id,
        third.title_id,
    ]
    store.boost("tt1000002")
    assert store.due_ids(open_titles=[second.title_id]) == ["tt1000001", "tt1000003"]
    (found,) = store.unfound("metacritic")
    assert found.ids == ["movie/quiet-mill"]
    assert store.unfound("metacritic", open_titles=[found.title_id]) == []
    assert len(store.unfound("metacritic")) == 1  # it was not put off


def test_titles_that_an_import_has_locked_are_due_meanwhile(store: Catalogued) -> None:
    store.bring_in(row(1), row(2))
    with closing(psycopg2.connect(store.url)) as importing, importing.cursor() as cursor:
        cursor.execute("SELECT FROM title_sites FOR UPDATE")
        assert len(store.due_ids()) == 2


def test_one_queue_at_a_time_is_fed_with_what_is_due_on_a_site(store: Catalogued) -> None:
    one, two = "run a in Redis at one:6379", "run b in Redis at two:6379"

    def is_held_by(queue: str, site: Any = "imdb") -> bool:
        refusal = hold_feed(store, site, queue)
        assert refusal is None or f"another queue: {two if queue == one else one}, last" in refusal
        return refusal is None

    assert is_held_by(one)
    assert is_held_by(one)
    assert is_held_by(two, "metacritic")
    assert not is_held_by(two)
    store.sql("UPDATE feeds SET seen_at = now() - interval '121 s'")
    assert is_held_by(two)
    end_feed(store, "imdb", one)  # which it has no more
    assert not is_held_by(one)
    end_feed(store, "imdb", two)
    assert is_held_by(one)


async def test_a_database_that_lets_nobody_in_for_a_while_is_asked_again(
    postgres_server: str,
) -> None:
    database = Database(urlsplit(postgres_server)._replace(path="/no_such_database").geturl())
    feed = Feed(database, SqliteBackend(Path("nowhere")), RunName("imdb", "due"))
    with pytest.raises(TransientStoreError, match="refuses us"):
        await feed.hold()


def fill(store: Catalogued, boosted: int, unread: int, stale: int) -> None:
    store.sql("DELETE FROM titles; DELETE FROM title_sites")
    store.bring_in(*(row(number, popularity=50.0) for number in range(boosted + unread + stale)))
    first = f"tt{1_000_000 + boosted}"
    second = f"tt{1_000_000 + boosted + unread}"
    store.sql(
        "UPDATE title_sites SET boost = 1, boost_due = '2026-01-01' WHERE site_id < %s", first
    )
    store.sql(
        "UPDATE title_sites SET state = 'ok', last_success = '2026-01-01', next_due = '2026-02-01'"
        " WHERE site_id >= %s",
        second,
    )


@pytest.mark.promise(
    "What is due is fetched: boosted titles first, unread and stale ones in fixed shares."
)
def test_boosted_titles_have_half_and_unread_and_stale_ones_two_to_one_of_the_rest(
    store: Catalogued,
) -> None:
    cases = [
        ((20, 20, 20), 12, (6, 4, 2)),
        ((0, 20, 20), 12, (0, 8, 4)),
        ((20, 0, 20), 12, (6, 0, 6)),
        ((20, 20, 0), 12, (6, 6, 0)),
        ((20, 0, 0), 12, (12, 0, 0)),
        ((2, 20, 20), 11, (2, 6, 3)),
        ((20, 1, 1), 12, (10, 1, 1)),
        ((0, 0, 5), 12, (0, 0, 5)),
        ((0, 0, 0), 12, (0, 0, 0)),
    ]
    for waiting, size, shares in cases:
        fill(store, *waiting)
        queues = [found.queue for found in due(store, "imdb", size, NOW)]
        assert tuple(map(queues.count, ("boosted", "unread", "stale"))) == shares, waiting
        assert queues[: shares[0]] == ["boosted"] * shares[0]
    # Small numbers share as large ones do.
    fill(store, 5, 5, 5)
    got = Counter(found.queue for _ in range(90) for found in due(store, "imdb", 2, NOW))
    assert got["boosted"] == 90
    assert 10 < got["stale"] < 50


@pytest.mark.parametrize(
    ("values", "queue"),
    [
        ({}, "unread"),
        ({"state": "error", "next_due": NOW}, "unread"),
        ({"state": "error", "next_due": NOW + SECOND}, None),
        ({"state": "blocked"}, "unread"),
        ({"state": "absent", "next_due": NOW}, "stale"),
        ({"state": "ok", "last_success": NOW - 90 * DAY, "next_due": NOW}, "stale"),
        ({"state": "ok", "last_success": NOW - 90 * DAY, "next_due": NOW + SECOND}, None),
        ({"state": "error", "last_success": NOW - 90 * DAY, "next_due": NOW - DAY}, "stale"),
        (
            {"state": "ok", "last_success": NOW, "next_due": NOW + DAY, "boost_due": NOW},
            "boosted",
        ),
        ({"boost_due": NOW}, "boosted"),
        ({"boost_due": NOW + SECOND}, "unread"),
    ],
)
def test_a_title_stands_in_one_queue_while_it_is_due(
    store: Catalogued, values: dict[str, Any], queue: str | None
) -> None:
    store.bring_in(row(1))
    boost = 1.0 if "boost_due" in values else 0.0
    changes = "".join(f", {column} = %s" for column in values)
    store.sql(f"UPDATE title_sites SET boost = %s{changes}", boost, *values.values())  # noqa: S608
    assert [found.queue for found in due(store, "imdb", 5, NOW)] == ([queue] if queue else [])
    assert len(store.due_ids()) == (queue is not None)


def test_a_title_that_is_due_on_one_site_is_not_due_on_another(store: Catalogued) -> None:
    store.bring_in(row(1))
    store.sql(
        "UPDATE title_sites SET last_success = %s, site_id = coalesce(site_id, 'movie/one'),"
        " next_due = CASE site WHEN 'metacritic' THEN %s ELSE %s END",
        NOW - 90 * DAY,
        NOW,
        NOW + DAY,
    )
    assert (store.due_ids(), store.due_ids(site="metacritic")) == ([], ["movie/one"])


@pytest.mark.promise("A boosted title goes first on every site, at most once a week.")
def test_a_boosted_title_goes_first_on_every_site_and_is_fetched_at_most_once_a_week(
    store: Catalogued,
) -> None:
    store.bring_in(row(1), row(2), row(3, site_ids={"metacritic": "movie/title-3"}))
    assert store.boost_named([("imdb", "tt1000003"), ("imdb", "tt7777777")], 2.0, NOW) == [
        ("imdb", "tt7777777")
    ]
    assert store.due_ids() == ["tt1000003", "tt1000001", "tt1000002"]
    assert store.due_ids(site="metacritic") == ["movie/title-3"]
    store.record(outcome("tt1000003"))
    for hours in (1, 30, 100):
        store.boost("tt1000003", now=NOW + timedelta(hours=hours))
    later = NOW + 7 * DAY
    assert "tt1000003" not in store.due_ids(now=later - SECOND)
    assert store.due_ids(now=later)[0] == "tt1000003"
    assert store.state("tt1000003").boost == 3


@pytest.mark.parametrize(
    ("ended", "failures", "left"),
    [
        ("ok", 0, None),
        ("absent", 0, None),
        ("error", 1, 2 * DAY),
        ("error", 2, None),
        ("put off", 9, timedelta(hours=1)),
    ],
)
def test_a_boost_is_served_by_a_page_or_its_absence_and_tried_again_after_a_failure(
    store: Catalogued, ended: str, failures: int, left: timedelta | None
) -> None:
    store.bring_in(row(1))
    store.boost("tt1000001", now=NOW - DAY)
    store.sql("UPDATE title_sites SET failures = %s", failures)
    store.record(outcome("tt1000001", ended))
    found = store.state("tt1000001")
    assert found.boost_due == (None if left is None else NOW + left)
    assert left is None or found.boost == 1  # it is as strong at the next try


def test_what_is_popular_today_is_boosted_once_a_week(store: Catalogued) -> None:
    store.bring_in(row(1), row(2), row(3), row(4))
    store.record(outcome("tt1000003"))
    for _ in range(2):
        seen = map(ListedTitle, ["tt1000004", "tt1000002", "tt1000003", "tt7777777"])
        store.list_names("imdb", *seen, trending=True)
    assert store.due_ids() == ["tt1000004", "tt1000002", "tt1000001"]
    assert store.state("tt1000003").boost_due == NOW + 7 * DAY
    assert store.sql("SELECT count(*) FROM titles") == [(4,)]
