"""Who gets which title, and when."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import timedelta
from typing import Any

import psycopg2
import pytest

from moviecrawler.catalogue import claims
from moviecrawler.catalogue.claims import MOST_CLAIMS
from moviecrawler.catalogue.figures import due
from moviecrawler.catalogue.rows import Sighting
from moviecrawler.catalogue.store import boost, pause, paused
from moviecrawler.errors import TransientStoreError
from tests.catalogue.catalogued import DAY, LEASE, NOW, Catalogued, outcome, row

SECOND = timedelta(seconds=1)


def test_titles_that_an_import_has_locked_are_not_taken_for_none(store: Catalogued) -> None:
    store.bring_in(row(1), row(2))
    with closing(psycopg2.connect(store.url)) as importing, importing.cursor() as cursor:
        cursor.execute("SELECT FROM title_sites FOR UPDATE")
        with pytest.raises(TransientStoreError, match="another program is writing to all titles that are due"):
            store.claim_ids()
        importing.rollback()
    assert len(store.claim_ids()) == 2
    assert store.claim_ids() == []


def test_a_claim_ends_with_its_lease_or_when_its_worker_gives_it_back(store: Catalogued) -> None:
    store.bring_in(row(1), row(2))
    assert store.claim_ids(worker="dead") == ["tt1000001", "tt1000002"]
    assert store.claim_ids(now=NOW + LEASE - SECOND) == []
    assert store.claim_ids(now=NOW + LEASE, worker="first") == ["tt1000001", "tt1000002"]
    claims.release(store, "first", but=[store.title_id("tt1000001")])  # which waits in a shared queue
    assert store.claim_ids(now=NOW + LEASE, worker="second") == ["tt1000002"]
    claims.release(store, "first")
    assert store.claim_ids(now=NOW + LEASE, worker="second") == ["tt1000001"]


def test_a_title_whose_claims_come_to_nothing_counts_as_failed(store: Catalogued) -> None:
    store.bring_in(row(1))
    for number in range(MOST_CLAIMS):
        assert store.claim_ids(now=NOW + number * LEASE) == ["tt1000001"]
    last = NOW + MOST_CLAIMS * LEASE
    assert store.claim_ids(now=last) == []
    found = store.state("tt1000001")
    assert (found.state, found.failures, found.next_due, found.claims) == ("error", 1, last + DAY, 0)


def test_eight_claimers_at_once_never_get_the_same_title_and_leave_none(store: Catalogued) -> None:
    store.bring_in(*(row(number, popularity=50.0) for number in range(2_000)))

    def work(number: int) -> list[str]:
        got: list[str] = []
        with closing(Catalogued(store.url)) as own:
            while True:
                try:
                    titles = own.claim_ids(20, worker=f"w{number}")
                except TransientStoreError:  # others have the last ones locked
                    continue
                if not titles:
                    return got
                got += titles

    with ThreadPoolExecutor(8) as pool:
        got = list(pool.map(work, range(8)))
    assert Counter(title for titles in got for title in titles) == Counter(f"tt{1_000_000 + n}" for n in range(2_000))
    assert sum(bool(titles) for titles in got) > 1  # they did work at once


def fill(store: Catalogued, boosted: int, unread: int, stale: int) -> None:
    store.bring_in(*(row(number, popularity=50.0) for number in range(boosted + unread + stale)))
    change = (
        "UPDATE title_sites s SET {} FROM titles t WHERE t.title_id = s.title_id AND site = 'imdb' AND imdb_id {} %s"
    )
    first, second = f"tt{1_000_000 + boosted}", f"tt{1_000_000 + boosted + unread}"
    store.sql(change.format("boost = 1, boost_due = '2026-01-01'", "<"), first)
    store.sql(change.format("state = 'ok', last_success = '2026-01-01', next_due = '2026-02-01'", ">="), second)


@pytest.mark.parametrize(
    ("waiting", "size", "shares"),
    [
        ((20, 20, 20), 12, (6, 4, 2)),
        ((0, 20, 20), 12, (0, 8, 4)),
        ((20, 0, 20), 12, (6, 0, 6)),
        ((20, 20, 0), 12, (6, 6, 0)),
        ((20, 0, 0), 12, (12, 0, 0)),
        ((2, 20, 20), 11, (2, 6, 3)),
        ((20, 1, 1), 12, (10, 1, 1)),
        ((0, 0, 5), 12, (0, 0, 5)),
        ((0, 0, 0), 12, (0, 0, 0)),
    ],
)
def test_boosted_titles_have_half_and_unread_and_stale_ones_two_to_one_of_the_rest(
    store: Catalogued, waiting: tuple[int, int, int], size: int, shares: tuple[int, int, int]
) -> None:
    fill(store, *waiting)
    queues = [found.queue for found in due(store, "imdb", size, NOW)]
    assert tuple(map(queues.count, ("boosted", "unread", "stale"))) == shares
    assert queues[: shares[0]] == ["boosted"] * min(shares[0], len(queues))


def test_small_claims_share_as_large_ones_do(store: Catalogued) -> None:
    fill(store, 5, 5, 5)
    got = Counter(found.queue for _ in range(60) for found in due(store, "imdb", 2, NOW))
    assert got["boosted"] == 60
    assert got["unread"] > 25
    assert got["stale"] > 5


QUEUES: list[tuple[dict[str, Any], str | None]] = [
    ({}, "unread"),
    ({"state": "error", "next_due": NOW}, "unread"),
    ({"state": "error", "next_due": NOW + SECOND}, None),
    ({"state": "blocked"}, "unread"),
    ({"state": "absent", "next_due": NOW}, "stale"),
    ({"state": "ok", "last_success": NOW - 90 * DAY, "next_due": NOW}, "stale"),
    ({"state": "ok", "last_success": NOW - 90 * DAY, "next_due": NOW + SECOND}, None),
    ({"state": "error", "last_success": NOW - 90 * DAY, "next_due": NOW - DAY}, "stale"),
    ({"state": "ok", "last_success": NOW, "next_due": NOW + DAY, "boost": 1.0, "boost_due": NOW}, "boosted"),
    ({"boost": 1.0, "boost_due": NOW}, "boosted"),
    ({"boost": 1.0, "boost_due": NOW + SECOND}, "unread"),
    ({"claimed_until": NOW + SECOND}, None),
    ({"claimed_until": NOW}, "unread"),
]


def test_a_title_stands_in_one_queue_while_it_is_due(store: Catalogued) -> None:
    store.bring_in(*(row(number) for number in range(len(QUEUES))))
    for number, (values, _) in enumerate(QUEUES):
        changes = "".join(f", {column} = %s" for column in values)
        store.sql(
            f"UPDATE title_sites s SET claims = 0{changes} FROM titles t"  # noqa: S608 - our own columns
            " WHERE t.title_id = s.title_id AND s.site = 'imdb' AND t.imdb_id = %s",
            *values.values(),
            f"tt{1_000_000 + number}",
        )
    shown = {found.imdb_id: found.queue for found in due(store, "imdb", 100, NOW)}
    expected = {f"tt{1_000_000 + number}": queue for number, (_, queue) in enumerate(QUEUES) if queue is not None}
    assert shown == expected
    assert set(store.claim_ids(100)) == set(expected)  # they were shown, and not claimed


def test_a_boosted_title_goes_first_on_every_site_whose_id_is_known(store: Catalogued) -> None:
    store.bring_in(row(1), row(2), row(3, site_ids={"metacritic": "movie/title-3"}))
    assert boost(store, [("imdb", "tt1000003"), ("imdb", "tt7777777")], 2.0, NOW) == [("imdb", "tt7777777")]
    assert store.claim_ids() == ["tt1000003", "tt1000001", "tt1000002"]
    assert store.claim_ids(site="metacritic") == ["movie/title-3"]


def test_a_boosted_title_is_fetched_at_most_once_a_week(store: Catalogued) -> None:
    store.bring_in(row(1))
    store.boost("tt1000001")
    assert store.claim_ids() == ["tt1000001"]
    store.record(outcome("tt1000001"))
    for hours in (1, 30, 100):
        store.boost("tt1000001", now=NOW + timedelta(hours=hours))
    assert store.claim_ids(now=NOW + 7 * DAY - SECOND) == []
    assert store.claim_ids(now=NOW + 7 * DAY) == ["tt1000001"]
    assert store.state("tt1000001").boost == 3


@pytest.mark.parametrize(
    ("ended", "failures", "left"),
    [("ok", 0, None), ("absent", 0, None), ("error", 1, 2), ("error", 2, None), ("blocked", 9, -1)],
)
def test_a_boost_is_served_by_a_page_or_its_absence_and_tried_again_after_a_failure(
    store: Catalogued, ended: str, failures: int, left: int | None
) -> None:
    store.bring_in(row(1))
    store.boost("tt1000001", now=NOW - DAY)
    store.sql("UPDATE title_sites SET failures = %s", failures)
    store.record(outcome("tt1000001", ended))
    found = store.state("tt1000001")
    assert found.boost_due == (None if left is None else NOW + left * DAY)
    assert left is None or found.boost == 1  # it is as strong at the next try


def test_what_is_popular_today_is_boosted_once_a_week_and_added(store: Catalogued) -> None:
    store.bring_in(row(1), row(2), row(3))
    store.record(outcome("tt1000003"))
    seen = [
        Sighting("tt1000002", "Title 2", 2000, "movie"),
        Sighting("tt5000000", "New", 2026, "movie"),
        Sighting("tt1000003"),
    ]
    for _ in range(2):
        store.list_names("imdb", *seen, trending=True)
    assert store.claim_ids() == ["tt1000002", "tt5000000", "tt1000001"]
    assert store.state("tt1000003").boost_due == NOW + 7 * DAY
    assert store.sql("SELECT count(*) FROM titles t JOIN title_sites USING (title_id) WHERE imdb_id = 'tt5000000'") == [
        (3,)
    ]
    assert store.sql("SELECT count(*) FROM titles") == [(4,)]


def test_a_paused_site_is_let_alone_until_its_time(store: Catalogued) -> None:
    pause(store, "imdb", NOW + DAY, "imdb refused us")
    pause(store, "imdb", NOW + LEASE, "imdb refused us, but for less long")
    assert paused(store, "imdb", NOW + DAY - SECOND) == "imdb refused us, but for less long"
    assert paused(store, "imdb", NOW + DAY) is None
    assert paused(store, "metacritic", NOW) is None
