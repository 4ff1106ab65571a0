"""Who gets which title, and when."""

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import timedelta
from typing import Any

import psycopg2
import pytest

from moviecrawler.catalogue.claims import MAX_CLAIMS, claim_unfound, extend, release
from moviecrawler.catalogue.figures import due
from moviecrawler.catalogue.rows import ListedTitle
from moviecrawler.errors import TransientStoreError
from tests.catalogue.catalogued import DAY, LEASE, NOW, Catalogued, outcome, row

SECOND = timedelta(seconds=1)


def test_titles_that_an_import_has_locked_are_not_taken_for_none(store: Catalogued) -> None:
    store.bring_in(row(1), row(2))
    with closing(psycopg2.connect(store.url)) as importing, importing.cursor() as cursor:
        cursor.execute("SELECT FROM title_sites FOR UPDATE")
        with pytest.raises(TransientStoreError):
            store.claim_ids()
        importing.rollback()
    assert len(store.claim_ids()) == 2
    assert store.claim_ids() == []


@pytest.mark.promise(
    "No more is claimed than the budget allows, and a claim that is given back counts as none."
)
def test_a_claim_ends_with_its_lease_or_when_its_worker_gives_it_back(store: Catalogued) -> None:
    store.bring_in(row(1), row(2))
    assert store.claim_ids(worker="dead") == ["tt1000001", "tt1000002"]
    assert store.claim_ids(now=NOW + LEASE - SECOND) == []
    assert store.claim_ids(now=NOW + LEASE, worker="first") == ["tt1000001", "tt1000002"]
    release(store, "first", but=[store.title_id("tt1000001")])  # which waits in a shared queue
    assert store.claim_ids(now=NOW + LEASE, worker="second") == ["tt1000002"]
    release(store, "first")
    assert store.claim_ids(now=NOW + LEASE, worker="second") == ["tt1000001"]
    # The dead one's and the second's: to be given back is none.
    assert store.state("tt1000001").claims == 2


def test_a_claim_that_was_lost_on_its_way_is_not_kept(store: Catalogued) -> None:
    store.bring_in(row(1), row(2))
    assert store.claim_ids(1) == ["tt1000001"]  # of which the answer never arrived
    known = {found.title_id for found in store.claims_of(1)}
    assert extend(store, "w", NOW + 2 * LEASE, known) == known
    assert extend(store, "other", NOW + 2 * LEASE, known) == set()
    assert store.claim_ids(worker="other", now=NOW + LEASE) == ["tt1000001"]
    # What others have fetched is no longer kept either.
    store.record(outcome("tt1000002"))
    assert extend(store, "w", NOW + 2 * LEASE, known) == set()


def test_a_title_whose_claims_come_to_nothing_counts_as_failed(store: Catalogued) -> None:
    store.bring_in(row(1), row(2, title="Quiet Mill", popularity=None))
    store.list_names("metacritic", "movie/quiet-mill")
    store.sql("UPDATE title_sites SET next_due = 'infinity' WHERE site_id = 'tt1000002'")
    for number in range(MAX_CLAIMS):
        now = NOW + number * LEASE
        assert store.claim_ids(now=now) == ["tt1000001"]
        assert [found.ids for found in store.unfound("metacritic", now=now)] == [
            ["movie/quiet-mill"]
        ]
    last = NOW + MAX_CLAIMS * LEASE
    assert store.claim_ids(now=last) == []
    found = store.state("tt1000001")
    assert (found.state, found.failures, found.next_due, found.claims) == (
        "error",
        1,
        last + DAY,
        0,
    )
    # One whose listed ids kill the workers is put off.
    assert claim_unfound(store, "metacritic", 5, worker="w", lease=LEASE, now=last) == ([], True)
    found = store.state("tt1000002", "metacritic")
    assert (found.claimed_by, found.claims, found.next_due) == (None, 0, last + 7 * DAY)


@pytest.mark.promise(
    "A title is claimed by one worker at a time,"
    " and what a killed worker had is fetched by another."
)
def test_eight_claimers_at_once_never_get_the_same_title_and_leave_none(store: Catalogued) -> None:
    fill(store, boosted=200, unread=400, stale=400)

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
        got = Counter(title for titles in pool.map(work, range(8)) for title in titles)
    assert got == Counter(f"tt{1_000_000 + number}" for number in range(1_000))


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
    # Small claims share as large ones do.
    fill(store, 5, 5, 5)
    got = Counter(found.queue for _ in range(90) for found in due(store, "imdb", 2, NOW))
    assert got["boosted"] == 90
    assert 10 < got["stale"] < 50


QUEUES: list[tuple[dict[str, Any], str | None]] = [
    ({}, "unread"),
    ({"state": "error", "next_due": NOW}, "unread"),
    ({"state": "error", "next_due": NOW + SECOND}, None),
    ({"state": "blocked"}, "unread"),
    ({"state": "absent", "next_due": NOW}, "stale"),
    ({"state": "ok", "last_success": NOW - 90 * DAY, "next_due": NOW}, "stale"),
    ({"state": "ok", "last_success": NOW - 90 * DAY, "next_due": NOW + SECOND}, None),
    ({"state": "error", "last_success": NOW - 90 * DAY, "next_due": NOW - DAY}, "stale"),
    (
        {"state": "ok", "last_success": NOW, "next_due": NOW + DAY, "boost": 1.0, "boost_due": NOW},
        "boosted",
    ),
    ({"boost": 1.0, "boost_due": NOW}, "boosted"),
    ({"boost": 1.0, "boost_due": NOW + SECOND}, "unread"),
    ({"claimed_until": NOW + SECOND}, None),
    ({"claimed_until": NOW}, "unread"),
]


def test_a_title_stands_in_one_queue_while_it_is_due(store: Catalogued) -> None:
    ids = [f"tt{1_000_000 + number}" for number in range(len(QUEUES))]
    store.bring_in(*(row(number) for number in range(len(QUEUES))))
    for imdb_id, (values, _) in zip(ids, QUEUES, strict=True):
        changes = "".join(f", {column} = %s" for column in values)
        store.sql(
            f"UPDATE title_sites SET claims = 0{changes} WHERE site_id = %s",  # noqa: S608
            *values.values(),
            imdb_id,
        )
    expected = {
        imdb_id: queue for imdb_id, (_, queue) in zip(ids, QUEUES, strict=True) if queue is not None
    }
    shown = {found.imdb_id: found.queue for found in due(store, "imdb", len(expected), NOW)}
    assert shown == expected
    assert set(store.claim_ids(100)) == set(expected)  # they were shown, and not claimed


@pytest.mark.promise("A boosted title goes first on every site, at most once a week.")
def test_a_boosted_title_goes_first_on_every_site_and_is_fetched_at_most_once_a_week(
    store: Catalogued,
) -> None:
    store.bring_in(row(1), row(2), row(3, site_ids={"metacritic": "movie/title-3"}))
    assert store.boost_named([("imdb", "tt1000003"), ("imdb", "tt7777777")], 2.0, NOW) == [
        ("imdb", "tt7777777")
    ]
    assert store.claim_ids() == ["tt1000003", "tt1000001", "tt1000002"]
    assert store.claim_ids(site="metacritic") == ["movie/title-3"]
    store.record(outcome("tt1000003"))
    for hours in (1, 30, 100):
        store.boost("tt1000003", now=NOW + timedelta(hours=hours))
    later = NOW + 7 * DAY
    assert "tt1000003" not in store.claim_ids(now=later - SECOND)
    assert store.claim_ids(now=later) == ["tt1000003"]
    assert store.state("tt1000003").boost == 3


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


def test_what_is_popular_today_is_boosted_once_a_week(store: Catalogued) -> None:
    store.bring_in(row(1), row(2), row(3), row(4))
    store.record(outcome("tt1000003"))
    for _ in range(2):
        seen = map(ListedTitle, ["tt1000004", "tt1000002", "tt1000003", "tt7777777"])
        store.list_names("imdb", *seen, trending=True)
    assert store.claim_ids() == ["tt1000004", "tt1000002", "tt1000001"]
    assert store.state("tt1000003").boost_due == NOW + 7 * DAY
    assert store.sql("SELECT count(*) FROM titles") == [(4,)]
