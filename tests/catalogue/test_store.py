"""The catalogue's tables: who gets which title, when, and what a page's outcome makes of it."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from typing import Any

import psycopg2
import pytest

from moviecrawler.catalogue import lanes
from moviecrawler.catalogue.claims import MOST_CLAIMS
from moviecrawler.catalogue.figures import due, figures, reviews
from moviecrawler.catalogue.lanes import DeficitRoundRobin, Shares
from moviecrawler.catalogue.loading import begin_import, end_import, load
from moviecrawler.catalogue.outcomes import SiteOutcome
from moviecrawler.catalogue.rows import ImportRow, Sighting
from moviecrawler.catalogue.sql import read_sql
from moviecrawler.errors import TransientStoreError
from moviecrawler.items import Credit
from moviecrawler.pipelines.postgres import read_scoreboard
from tests.catalogue import model
from tests.catalogue.catalogued import DAY, LEASE, NOW, Catalogued, judged, outcome, page, row
from tests.catalogue.model import SiteState

# --- Claims -----------------------------------------------------------------------------------------------------------


def test_titles_that_an_import_has_locked_are_not_taken_for_none(store: Catalogued) -> None:
    store.bring_in(row(1), row(2))
    with closing(psycopg2.connect(store.url)) as importing, importing.cursor() as cursor:
        cursor.execute("SELECT FROM title_sites FOR UPDATE")
        with pytest.raises(TransientStoreError, match="another program is writing to all titles that are due"):
            store.claim_ids()
    assert len(store.claim_ids()) == 2
    assert store.claim_ids() == []


def test_what_a_dead_worker_claimed_is_due_again_when_its_lease_ends(store: Catalogued) -> None:
    store.bring_in(row(1))
    assert store.claim_ids(worker="dead") == ["tt1000001"]
    assert store.claim_ids(now=NOW + LEASE - timedelta(seconds=1)) == []
    assert store.claim_ids(now=NOW + LEASE) == ["tt1000001"]


def test_released_claims_are_due_at_once_but_for_what_waits_in_a_shared_queue(store: Catalogued) -> None:
    store.bring_in(row(1), row(2))
    store.claim_ids(worker="first")
    store.release("first", but=[store.title_id("tt1000001")])
    assert store.claim_ids(worker="second") == ["tt1000002"]
    store.release("first")
    assert store.claim_ids(worker="second") == ["tt1000001"]


def test_a_title_whose_claims_come_to_nothing_counts_as_failed(store: Catalogued) -> None:
    store.bring_in(row(1))
    for number in range(MOST_CLAIMS):
        assert store.claim_ids(now=NOW + number * LEASE) == ["tt1000001"]
    last = NOW + MOST_CLAIMS * LEASE
    assert store.claim_ids(now=last) == []
    found = store.state("tt1000001")
    assert (found.state, found.failures, found.next_due) == ("error", 1, last + DAY)


def test_eight_claimers_at_once_never_get_the_same_title(store: Catalogued) -> None:
    store.bring_in(*(row(number, popularity=50.0) for number in range(2_000)))

    def work(number: int) -> list[str]:
        got: list[str] = []
        with closing(Catalogued(store.url)) as own:
            while titles := own.claim_ids(20, worker=f"w{number}"):
                got += titles
        return got

    with ThreadPoolExecutor(8) as pool:
        got = list(pool.map(work, range(8)))
    assert Counter(title for titles in got for title in titles) == Counter(f"tt{1_000_000 + n}" for n in range(2_000))
    assert sum(bool(titles) for titles in got) > 1  # they did work at once


def test_claims_read_indexes_and_no_table_from_end_to_end(store: Catalogued) -> None:
    store.bring_in(*(row(number, popularity=number % 90) for number in range(20_000)))
    store.sql("UPDATE title_sites SET site_id = 'movie/' || title_id, id_source = 'wikidata' WHERE site = 'metacritic'")
    store.sql("UPDATE title_sites SET last_success = now() WHERE site = 'metacritic' AND title_id %% 2 = 0")
    store.sql("VACUUM ANALYZE title_sites")

    def plan(statement: str, values: dict[str, Any]) -> str:
        with closing(psycopg2.connect(store.url)) as connection, connection.cursor() as cursor:
            cursor.execute("EXPLAIN " + statement, values)
            return "\n".join(line for (line,) in cursor.fetchall())

    candidates = plan(
        read_sql("candidates.sql"), {"site": "metacritic", "now": NOW, "farthest": 120 * DAY, "size": 100}
    )
    for index in ("title_sites_unread", "title_sites_stale", "title_sites_boosted"):
        assert f"Index Scan using {index}" in candidates, candidates
    taking = plan(
        read_sql("take.sql"),
        {"site": "metacritic", "titles": list(range(1, 101)), "worker": "w", "now": NOW, "until": NOW + LEASE},
    )
    looking = plan(
        read_sql("unfound.sql"), {"site": "rottentomatoes", "now": NOW, "size": 500, "since": NOW, "again": 7 * DAY}
    )
    assert "title_sites_unfound" in looking, looking
    for each in (candidates, taking, looking):
        assert "Seq Scan on title_sites" not in each, each


def test_several_processes_of_postgres_count_the_titles_of_a_large_catalogue(store: Catalogued) -> None:
    with store.transaction() as cursor:
        for cost in ("parallel_setup_cost", "parallel_tuple_cost", "min_parallel_table_scan_size"):
            cursor.execute(f"SET LOCAL {cost} = 0")
        cursor.execute("EXPLAIN " + read_sql("status.sql"), {"now": NOW, "today": NOW, "fresh_year": 2026})
        plan = "\n".join(line for (line,) in cursor.fetchall())
    assert "Partial HashAggregate" in plan or "Partial GroupAggregate" in plan, plan


def test_the_order_of_claims_is_that_of_the_lanes(store: Catalogued) -> None:
    store.bring_in(*(row(number, popularity=float(number % 7)) for number in range(60)))
    # All states of a title, in all mixtures that matter.
    store.sql(
        "UPDATE title_sites s SET"
        " state = (ARRAY['never', 'ok', 'absent', 'error', 'blocked'])[1 + title_id %% 5]::site_state,"
        " last_success = CASE WHEN title_id %% 5 IN (1, 3) THEN %s - title_id * interval '1 day' END,"
        " next_due = CASE WHEN title_id %% 5 = 0 THEN 'epoch'"
        "   ELSE %s + (title_id * 7 %% 40 - 30) * interval '1 day' END,"
        " failures = CASE WHEN title_id %% 5 = 3 THEN 2 ELSE 0 END,"
        " boost = CASE WHEN title_id %% 11 = 0 THEN title_id %% 3 ELSE 0 END,"
        " boost_due = CASE WHEN title_id %% 11 = 0 THEN %s + (title_id %% 4 - 2) * interval '1 hour' END,"
        " claimed_until = CASE WHEN title_id %% 13 = 0 THEN %s + interval '1 hour' END WHERE site = 'imdb'",
        NOW,
        NOW,
        NOW,
        NOW,
    )
    columns = (
        "title_id",
        "state",
        "popularity",
        "next_due",
        "failures",
        "last_success",
        "boost",
        "boost_due",
        "claimed_until",
    )
    found = store.sql(f"SELECT {', '.join(columns)} FROM title_sites WHERE site = 'imdb'")  # noqa: S608 - our own columns
    states = [SiteState(site="imdb", **dict(zip(columns, each, strict=True))) for each in found]
    ids: dict[Any, Any] = dict(store.sql("SELECT title_id, imdb_id FROM titles"))
    orders = {"boosted": model.boosted_order, "unread": model.unread_order, "stale": model.stale_order}
    round_robin = DeficitRoundRobin(Shares(boosted=0.4, stale=0.3))
    expected: list[str] = []
    left = list(states)
    for _ in range(20):
        queues = {
            name: sorted((s for s in left if model.queue_of(s, NOW) == name or _also(s, name)), key=order)[:5]
            for name, order in orders.items()
        }
        chosen = lanes.choose(5, round_robin=round_robin, now=NOW, **queues)
        expected += [ids[s.title_id] for s in chosen]
        left = [s for s in left if s not in chosen]
    got: list[str] = []
    round_robin = DeficitRoundRobin(Shares(boosted=0.4, stale=0.3))
    while claims := store.claim("imdb", 5, worker="w", lease=LEASE, round_robin=round_robin, now=NOW):
        got += [found.ids[0] for found in claims]
    assert len(got) > 30
    assert got == expected


def _also(state: SiteState, queue: str) -> bool:
    """Return whether a boosted title stands in a queue of lane 1 as well."""
    return model.queue_of(replace(state, boost_due=None), NOW) == queue


SECOND = timedelta(seconds=1)
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
    shown = {found.imdb_id: found.queue for found in due(store, "imdb", 100, DeficitRoundRobin(), NOW)}
    expected = {f"tt{1_000_000 + number}": queue for number, (_, queue) in enumerate(QUEUES) if queue is not None}
    assert shown == expected
    assert set(store.claim_ids(100)) == set(expected)  # they were shown, and not claimed
    for number, (values, queue) in enumerate(QUEUES):
        assert model.queue_of(SiteState(**{**PLAIN, "title_id": number, **values}), NOW) == queue


PLAIN: dict[str, Any] = {
    "site": "imdb",
    "state": "never",
    "popularity": 50.0,
    "next_due": datetime(1970, 1, 1, tzinfo=UTC),
}


# --- Outcomes ---------------------------------------------------------------------------------------------------------


def test_an_outcome_says_when_a_title_is_due_again(store: Catalogued) -> None:
    ends: list[tuple[Any, int, int]] = [("ok", 2000, 90), ("ok", 2026, 14), ("absent", 2000, 90), ("error", 2000, 1)]
    store.bring_in(*(row(number, year=year) for number, (_, year, _) in enumerate(ends)))
    store.claim_ids()
    store.record([outcome(f"tt{1_000_000 + number}", ended) for number, (ended, *_) in enumerate(ends)])
    for number, (ended, _, days) in enumerate(ends):
        found = store.state(f"tt{1_000_000 + number}")
        assert (found.state, found.next_due, found.claimed_by) == (ended, NOW + days * DAY, None)


def test_errors_in_a_row_put_a_title_off_for_longer_and_longer(store: Catalogued) -> None:
    store.bring_in(row(1))
    at = NOW
    for days in (1, 2, 4):
        store.record([outcome("tt1000001", "error", at=at)])
        assert store.state("tt1000001").next_due == at + days * DAY
        at += days * DAY
    store.record([outcome("tt1000001", at=at)])
    assert store.state("tt1000001").failures == 0


def test_several_outcomes_of_a_title_in_one_write_all_count(store: Catalogued) -> None:
    store.bring_in(row(1))
    store.record([outcome("tt1000001", "error"), outcome("tt1000001", "error")])
    assert store.state("tt1000001").failures == 2


def test_a_block_marks_nothing_fetched_and_the_title_stays_due(store: Catalogued) -> None:
    store.bring_in(row(1), row(2))
    store.claim_ids(1)
    store.record([outcome("tt1000001", "blocked")])
    found = store.state("tt1000001")
    assert (found.state, found.last_success, found.failures) == ("blocked", None, 0)
    assert store.claim_ids() == ["tt1000001", "tt1000002"]


def test_a_paused_site_is_let_alone_until_its_time(store: Catalogued) -> None:
    store.pause("imdb", NOW + DAY, "imdb refused us")
    store.pause("imdb", NOW + LEASE, "imdb refused us, but for less long")
    assert store.paused("imdb", NOW + DAY - timedelta(seconds=1)) == "imdb refused us, but for less long"
    assert store.paused("imdb", NOW + DAY) is None
    assert store.paused("metacritic", NOW) is None


def test_an_outcome_of_a_page_that_no_title_has_is_passed_over(store: Catalogued) -> None:
    store.record([outcome("tt9999999"), outcome("m/nobody", "absent", site="rottentomatoes")])


# --- Boosts -----------------------------------------------------------------------------------------------------------


def test_a_boosted_title_goes_first_on_every_site_whose_id_is_known(store: Catalogued) -> None:
    store.bring_in(row(1), row(2), row(3, site_ids={"metacritic": "movie/title-3"}))
    assert store.boost([("imdb", "tt1000003"), ("imdb", "tt7777777")], 2.0, NOW) == [("imdb", "tt7777777")]
    assert store.claim_ids() == ["tt1000003", "tt1000001", "tt1000002"]
    assert store.claim_ids(site="metacritic") == ["movie/title-3"]


def test_a_boosted_title_is_fetched_at_most_once_a_week(store: Catalogued) -> None:
    store.bring_in(row(1))
    store.boost([("imdb", "tt1000001")], 1.0, NOW)
    assert store.claim_ids() == ["tt1000001"]
    store.record([outcome("tt1000001")])
    for hours in (1, 30, 100):
        store.boost([("imdb", "tt1000001")], 1.0, NOW + timedelta(hours=hours))
    assert store.claim_ids(now=NOW + 7 * DAY - timedelta(seconds=1)) == []
    assert store.claim_ids(now=NOW + 7 * DAY) == ["tt1000001"]
    assert store.state("tt1000001").boost == 3


def test_a_boost_whose_try_failed_is_as_strong_at_the_next(store: Catalogued) -> None:
    store.bring_in(row(1), row(2))
    store.boost([("imdb", "tt1000002")], 2.0, NOW)
    store.record([outcome("tt1000002", "error")])
    store.boost([("imdb", "tt1000001")], 1.0, NOW + DAY)
    assert store.claim_ids(now=NOW + DAY) == ["tt1000002", "tt1000001"]


def test_rounds_are_the_same_in_sql_as_in_the_lanes(store: Catalogued) -> None:
    cases = [(later, after) for later in (0.0, 1.0, 6.9, 7.0, 30.0) for after in (None, -2.0, 0.0, 3.0)]
    store.bring_in(*(row(number) for number in range(len(cases))))
    for number, (later, success_after) in enumerate(cases):
        imdb_id, at = f"tt{1_000_000 + number}", NOW + later * DAY
        store.boost([("imdb", imdb_id)], 1.0, NOW)
        success = None if success_after is None else NOW + success_after * DAY
        changed = "UPDATE title_sites SET boost_due = NULL, last_success = %s WHERE title_id = %s"
        store.sql(changed, success, store.title_id(imdb_id))
        store.boost([("imdb", imdb_id)], 1.0, at)
        assert store.state(imdb_id).boost_due == model.boost_due(NOW, success, at)
        assert store.sql("SELECT round_at FROM titles WHERE imdb_id = %s", imdb_id) == [(model.boost_round(NOW, at),)]


def test_what_is_popular_is_not_fetched_for_it_within_a_week_of_the_last_time(store: Catalogued) -> None:
    store.bring_in(row(1), row(2), row(3))
    store.record([outcome("tt1000001"), outcome("tt1000002")])
    store.boost([("imdb", "tt1000002")], 1.0, NOW)  # by a person
    store.sight("imdb", [Sighting(f"tt100000{n}") for n in (1, 2, 3)], "list", trending=True, now=NOW)
    assert sorted(store.claim_ids()) == ["tt1000002", "tt1000003"]
    assert store.state("tt1000001").boost_due == NOW + 7 * DAY


def test_what_is_popular_today_is_boosted_and_added(store: Catalogued) -> None:
    store.bring_in(row(1), row(2))
    seen = [Sighting("tt1000002", "Title 2", 2000, "movie"), Sighting("tt5000000", "New", 2026, "movie")]
    store.sight("imdb", seen, "list", trending=True, now=NOW)
    assert store.claim_ids() == ["tt1000002", "tt5000000", "tt1000001"]
    assert store.sql(
        "SELECT count(*) FROM title_sites s JOIN titles t USING (title_id) WHERE imdb_id = 'tt5000000'"
    ) == [(3,)]
    store.sight("imdb", seen, "list", trending=True, now=NOW)
    assert store.sql("SELECT count(*) FROM titles") == [(3,)]


# --- Ids on other sites -----------------------------------------------------------------------------------------------


def test_an_id_that_wikidata_names_is_checked_against_its_page(store: Catalogued) -> None:
    store.bring_in(row(1, title="The Quiet Mill", original_title="Der stille Müller"))
    store.bring_in(
        ImportRow(imdb_id="tt1000001", site_ids={"rottentomatoes": "m/mill"}, id_source="wikidata", id_confidence=2.0)
    )
    (found,) = store.claims_of(site="rottentomatoes")
    assert (found.ids, found.evidence) == (["m/mill"], "wikidata")
    assert found.wanted is not None
    assert (found.wanted.title, found.wanted.original_title) == ("The Quiet Mill", "Der stille Müller")
    store.write(page("rottentomatoes", "m/mill", "The Quiet Mill"))
    reasons = ["named by Wikidata", "same title"]
    store.record([judged("m/mill", found.title_id, score=4.0, reasons=reasons)])
    stored = store.state("tt1000001", "rottentomatoes")
    assert (stored.state, stored.site_id, stored.id_verified) == ("ok", "m/mill", True)
    assert store.sql("SELECT t.imdb_id FROM records r JOIN titles t USING (title_id) WHERE r.site_id = 'm/mill'") == [
        ("tt1000001",)
    ]
    assert store.sql("SELECT decision, reasons FROM title_matches") == [("accepted", reasons)]


def test_a_checked_id_joins_records_of_different_titles_and_years(store: Catalogued) -> None:
    store.bring_in(row(1, title="비밀의 정원", year=2001))
    store.write(page("rottentomatoes", "m/secret", "The Secret Garden", year=2002))
    store.write(page("imdb", "tt1000001", "비밀의 정원", imdb_id="tt1000001", year=2001))
    assert store.sql("SELECT count(*) FROM scoreboard") == [(2,)]
    store.record([judged("m/secret", store.title_id())])
    assert store.sql("SELECT imdb_id, rottentomatoes_id FROM scoreboard") == [("tt1000001", "m/secret")]
    # And it stays so when the page is fetched again.
    store.write(page("rottentomatoes", "m/secret", "The Secret Garden", year=2002, scraped_at=NOW + DAY))
    assert store.sql("SELECT imdb_id, rottentomatoes_id FROM scoreboard") == [("tt1000001", "m/secret")]


def test_a_title_that_only_the_catalogue_knows_gets_the_record_that_names_its_id(store: Catalogued) -> None:
    store.bring_in(row(1, title="Dune"))
    store.write(page("metacritic", "movie/dune", "Dune", imdb_id="tt1000001"))
    store.write(page("metacritic", "movie/other", "Other", imdb_id="tt1000002"))
    assert store.sql(
        "SELECT t.imdb_id, s.state::text, s.id_source::text FROM title_sites s JOIN titles t USING (title_id)"
        " WHERE s.site_id = 'movie/dune'"
    ) == [("tt1000001", "never", "joined")]
    store.record([outcome("movie/dune", site="metacritic", got_id="movie/dune")])
    assert store.state("tt1000001", "metacritic").state == "ok"
    # The id on a page may be that of a pilot or a dub: with another title and year it joins nothing.
    store.bring_in(row(3, title="Something Else", year=1950))
    store.write(page("metacritic", "movie/wrong", "Pilot", imdb_id="tt1000003"))
    assert store.state("tt1000003", "metacritic").site_id is None


def test_a_page_that_is_another_titles_is_not_tried_again(store: Catalogued) -> None:
    store.bring_in(row(1))
    lead = ImportRow(imdb_id="tt1000001", site_ids={"rottentomatoes": "m/wrong"}, id_source="wikidata")
    assert store.bring_in(lead).ids == 1
    store.write(page("rottentomatoes", "m/wrong", "Wrong", year=1950))
    store.record([judged("m/wrong", store.title_id(), decision="refused")])
    stored = store.state("tt1000001", "rottentomatoes")
    assert (stored.state, stored.site_id, stored.next_due) == ("absent", None, NOW + 90 * DAY)
    assert store.bring_in(lead, now=NOW + 89 * DAY).ids == 0
    # After 90 days it may be right: a site may have put another film there.
    store.sql("UPDATE title_sites SET site_id = NULL WHERE site_id = 'm/wrong'")
    assert store.bring_in(lead, now=NOW + 91 * DAY).ids == 1


def test_a_doubtful_page_waits_for_a_person(store: Catalogued) -> None:
    store.bring_in(row(1), row(2))
    store.write(page("rottentomatoes", "m/one", "One"), page("rottentomatoes", "m/two", "Two"))
    store.record(
        [
            judged("m/one", store.title_id(), decision="review"),
            judged("m/two", store.title_id("tt1000002"), decision="review"),
        ]
    )
    assert {(found.imdb_id, found.site_id) for found in reviews(store, 10)} == {
        ("tt1000001", "m/one"),
        ("tt1000002", "m/two"),
    }
    assert store.decide("tt1000001", "rottentomatoes", None, accept=True, now=NOW) == ["m/one"]
    assert store.decide("tt1000002", "rottentomatoes", "m/two", accept=False, now=NOW) == ["m/two"]
    assert store.decide("tt1000002", "rottentomatoes", "m/two", accept=False, now=NOW) == []
    assert reviews(store, 10) == []
    assert store.state("tt1000001", "rottentomatoes").site_id == "m/one"
    again = ImportRow(imdb_id="tt1000002", site_ids={"rottentomatoes": "m/two"}, id_source="wikidata")
    assert store.bring_in(again, now=NOW + 1000 * DAY).ids == 0  # what a person refused stays refused


def test_a_lead_without_a_page_is_looked_for_in_the_lists(store: Catalogued) -> None:
    store.bring_in(row(1, title="The Quiet Mill"))
    store.bring_in(
        ImportRow(imdb_id="tt1000001", site_ids={"rottentomatoes": "m/10012345-quiet"}, id_source="wikidata")
    )
    (found,) = store.claims_of(site="rottentomatoes")
    gone = outcome("m/10012345-quiet", "absent", site="rottentomatoes", title_id=found.title_id, evidence="wikidata")
    store.record([gone])
    assert store.state("tt1000001", "rottentomatoes").site_id is None
    store.sight("rottentomatoes", [Sighting("m/the_quiet_mill")], "sitemap", trending=False, now=NOW)
    claims = store.unfound()
    assert [(each.ids, each.evidence) for each in claims] == [(["m/the_quiet_mill"], "sitemap")]


def test_listed_ids_are_tried_by_year_and_never_another_titles(store: Catalogued) -> None:
    store.bring_in(row(1, title="Dune", year=2021), row(2, title="Dune", year=1984))
    seen = [Sighting("m/dune"), Sighting("m/dune_2021"), Sighting("m/1000086-dune", "Dune", 1984)]
    store.sight("rottentomatoes", seen, "list", trending=False, now=NOW)
    claims = store.unfound()
    assert [found.ids[0] for found in claims] == ["m/dune_2021", "m/1000086-dune"]
    store.release("w")
    store.write(page("rottentomatoes", "m/dune_2021", "Dune", year=2021))
    store.record([judged("m/dune_2021", store.title_id())])
    claims = store.unfound()
    assert [found.ids for found in claims] == [["m/1000086-dune", "m/dune"]]


def test_a_title_whose_listed_ids_kill_workers_is_put_off(store: Catalogued) -> None:
    store.bring_in(row(1, title="Quiet Mill"))
    store.list_names("metacritic", "movie/quiet-mill")
    for number in range(MOST_CLAIMS):
        at = NOW + number * LEASE
        assert len(store.unfound("metacritic", 1, now=at)) == 1
    last = NOW + MOST_CLAIMS * LEASE
    assert store.claim_unfound("metacritic", 1, worker="w", lease=LEASE, now=last) == ([], True)
    stored = store.state("tt1000001", "metacritic")
    assert (stored.claimed_by, stored.claims) == (None, 0)
    assert stored.next_due == last + 7 * DAY


def listed(site_id: str, title_id: Any, ended: Any = "absent", **fields: Any) -> SiteOutcome:
    return outcome(site_id, ended, site="rottentomatoes", title_id=title_id, evidence="list", **fields)


def test_what_a_page_was_found_to_be_is_kept_while_other_ids_are_tried(store: Catalogued) -> None:
    store.bring_in(row(1, title="Dune", year=2021))
    store.list_names("rottentomatoes", "m/dune", "m/dune_1984", "m/dune_2021", "m/dune_2022")
    (found,) = store.unfound()
    doubtful = listed(
        "m/dune",
        found.title_id,
        got_id="m/dune_1984",
        decision="review",
        score=1.0,
        reasons=["same title"],
        others_follow=True,
    )
    store.record([doubtful, listed("m/dune_2021", found.title_id, others_follow=True)])
    stored = store.state("tt1000001", "rottentomatoes")
    assert (stored.state, stored.claimed_by) == ("never", "w")
    store.record([listed("m/dune_2022", found.title_id, "error")])
    stored = store.state("tt1000001", "rottentomatoes")
    assert (stored.state, stored.claimed_by) == ("error", None)
    assert dict(store.sql("SELECT site_id, reasons FROM title_matches")) == {
        "m/dune_1984": ["same title"],
        "m/dune": ["but it leads to m/dune_1984"],
        "m/dune_2021": ["but the site has no such page"],
    }
    assert [each.site_id for each in reviews(store, 5)] == ["m/dune_1984"]
    # None of them is asked for again, until the 90 days are over.
    (again,) = store.unfound(now=NOW + DAY)
    assert not {"m/dune", "m/dune_1984", "m/dune_2021"} & set(again.ids)
    store.release("w")
    later = NOW + 91 * DAY
    (again,) = store.unfound(now=later)
    assert set(again.ids) == {"m/dune", "m/dune_1984", "m/dune_2021", "m/dune_2022"}


def test_a_listed_page_that_a_person_accepts_is_fetched_then(store: Catalogued) -> None:
    store.bring_in(row(1, title="Dune", year=2021))
    store.list_names("rottentomatoes", "m/dune")
    (found,) = store.unfound()
    doubtful = listed("m/dune", found.title_id, got_id="m/dune", decision="review")
    store.record([doubtful])
    assert store.claims_of(site="rottentomatoes") == []
    assert store.decide("tt1000001", "rottentomatoes", None, accept=True, now=NOW) == ["m/dune"]
    (again,) = store.claims_of(site="rottentomatoes")
    assert (again.ids, again.wanted) == (["m/dune"], None)
    assert store.state("tt1000001", "rottentomatoes").id_source == "given"


def test_a_page_is_decided_on_for_the_title_that_it_was_fetched_for_alone(store: Catalogued) -> None:
    store.bring_in(row(1, title="Dune", year=2021, site_ids={"rottentomatoes": "m/dune"}))
    gone = 10**6  # a title that was merged into another while it was claimed
    store.record(
        [listed("m/dune_1984", gone, "ok", got_id="m/dune", decision="refused", reasons=["but other directors"])]
    )
    stored = store.state("tt1000001", "rottentomatoes")
    assert (stored.state, stored.site_id) == ("never", "m/dune")
    assert store.sql("SELECT count(*) FROM title_matches") == [(0,)]


def test_imdb_ids_are_never_listed(store: Catalogued) -> None:
    store.write(page("metacritic", "movie/lonely", "Lonely"))
    assert store.claim_unfound("imdb", 10, worker="w", lease=LEASE, now=NOW) == ([], False)


def test_a_renamed_page_keeps_its_title_and_its_history(store: Catalogued) -> None:
    director = [Credit(name="A B", role="director", position=1)]
    store.write(page("imdb", "tt1000001", "Dune", imdb_id="tt1000001", credits=director))
    store.write(page("rottentomatoes", "m/dune_old", "Dune", credits=director))
    store.write(page("rottentomatoes", "m/dune_new", "Dune", credits=director, scraped_at=NOW + DAY))
    store.record([outcome("m/dune_old", site="rottentomatoes", got_id="m/dune_new", at=NOW + DAY)])
    assert store.sql("SELECT imdb_id, rottentomatoes_id FROM scoreboard") == [("tt1000001", "m/dune_new")]
    stored = store.state("tt1000001", "rottentomatoes")
    assert (stored.site_id, stored.state, stored.last_success) == ("m/dune_new", "ok", NOW + DAY)
    assert store.sql("SELECT site_id FROM records WHERE site = 'rottentomatoes'") == [("m/dune_new",)]


# --- Import -----------------------------------------------------------------------------------------------------------


def test_an_import_adds_and_changes_and_repeats_nothing(store: Catalogued) -> None:
    rows = [row(1), row(2, original_title="Zwei\tmit Tab\\"), row(3, popularity=None)]
    first = store.bring_in(*rows)
    assert (first.added, first.changed) == (3, 0)
    before = store.sql("SELECT xmin::text, ctid::text FROM titles ORDER BY title_id")
    again = store.bring_in(*rows)
    assert (again.added, again.changed) == (0, 0)
    assert store.sql("SELECT xmin::text, ctid::text FROM titles ORDER BY title_id") == before
    changed = store.bring_in(row(1, popularity=12.5), rows[1])
    assert (changed.added, changed.changed) == (0, 1)
    assert store.sql(
        "SELECT DISTINCT s.popularity FROM title_sites s JOIN titles USING (title_id) WHERE imdb_id = 'tt1000001'"
    ) == [(12.5,)]
    assert store.sql("SELECT original_title FROM titles WHERE imdb_id = 'tt1000002'") == [("Zwei\tmit Tab\\",)]


@pytest.mark.parametrize("by_votes", [50.0, 0.0])
def test_what_is_watched_now_counts_beside_the_votes(by_votes: float, store: Catalogued) -> None:
    popularity = "SELECT t.popularity, array_agg(DISTINCT s.popularity) FROM titles t JOIN title_sites s USING (title_id) GROUP BY 1"
    store.bring_in(row(1, popularity=by_votes, tmdb_id=603))
    unknown = ImportRow(tmdb_id=604, popularity=60.0, popularity_source="tmdb")
    counted = store.bring_in(ImportRow(tmdb_id=603, popularity=70.0, popularity_source="tmdb"), unknown)
    assert (counted.added, counted.changed) == (0, 1)
    assert store.sql(popularity) == [(70.0, [70.0])]
    store.bring_in(row(1, popularity=75.0, tmdb_id=603))
    assert store.sql(popularity) == [(75.0, [75.0])]
    store.bring_in(row(1, popularity=by_votes, tmdb_id=603))
    assert store.sql(popularity) == [(70.0, [70.0])]
    assert store.bring_in(row(1, popularity=by_votes, tmdb_id=603)).changed == 0
    store.bring_in(ImportRow(tmdb_id=603, popularity=20.0, popularity_source="tmdb"))
    assert store.sql(popularity) == [(max(by_votes, 20.0), [max(by_votes, 20.0)])]
    assert store.bring_in(ImportRow(tmdb_id=603, popularity=20.0, popularity_source="tmdb")).changed == 0


@pytest.mark.parametrize("given", [80.0, 50.0])  # 50 is what the votes made of it, too
def test_a_popularity_that_a_person_gave_stands_above_all(given: float, store: Catalogued) -> None:
    store.bring_in(row(1, popularity=50.0, tmdb_id=603))
    store.bring_in(ImportRow(imdb_id="tt1000001", popularity=given, popularity_source="given"))
    store.bring_in(row(1, popularity=51.0))
    store.bring_in(ImportRow(tmdb_id=603, popularity=90.0, popularity_source="tmdb"))
    assert store.sql("SELECT popularity, popularity_source::text FROM titles") == [(given, "given")]


def test_a_row_may_complete_a_title_by_an_id_that_another_row_of_its_part_gives(store: Catalogued) -> None:
    store.bring_in(row(1, popularity=50.0))
    by_imdb_id = ImportRow(imdb_id="tt1000001", tmdb_id=603, popularity=60.0, popularity_source="given")
    by_tmdb_id = ImportRow(tmdb_id=603, popularity=80.0, popularity_source="given")
    assert store.bring_in(by_imdb_id, by_tmdb_id).changed == 1
    assert store.sql(
        "SELECT DISTINCT t.popularity, s.popularity FROM titles t JOIN title_sites s USING (title_id)"
    ) == [(80.0, 80.0)]


def test_the_scoreboard_has_tmdbs_id_of_a_film_and_of_a_series(store: Catalogued) -> None:
    """Wikidata's rows tell one id each, in any order; TMDB's popularity of a film is none of the series with its number."""
    for number, kind in ((1, "movie"), (2, "series")):
        store.bring_in(row(number, popularity=None, kind=kind))
        imdb_id = f"tt{1_000_000 + number}"
        store.write(page("imdb", imdb_id, f"Title {number}", imdb_id=imdb_id, kind=kind))
        counted = store.bring_in(
            ImportRow(imdb_id=imdb_id, tmdb_id=602 + number),
            ImportRow(imdb_id=imdb_id, tmdb_series_id=601 + number),
            ImportRow(imdb_id=imdb_id, site_ids={"metacritic": f"movie/title-{number}"}, id_source="wikidata"),
        )
        assert (counted.changed, counted.ids) == (1, 1)
    store.bring_in(ImportRow(tmdb_id=603, popularity=70.0, popularity_source="tmdb"))
    assert [(row.kind, row.tmdb_id) for row in read_scoreboard(store.url)] == [("movie", 603), ("series", 603)]
    assert [store.state(f"tt100000{number}").popularity for number in (1, 2)] == [70, 0]


def test_titles_that_a_crawl_has_stored_are_the_imports_titles(store: Catalogued) -> None:
    store.write(page("imdb", "tt1000001", "Title 1", imdb_id="tt1000001"))
    store.record([outcome("tt1000001", got_id="tt1000001")])
    store.bring_in(row(1), row(2))
    assert store.sql("SELECT count(*) FROM titles") == [(2,)]
    assert store.claim_ids() == ["tt1000002"]


def test_a_broken_off_import_knows_how_far_it_is(store: Catalogued) -> None:
    assert begin_import(store, "imdb", "etag 1") == 0
    load(store, "imdb", "etag 1", [row(1), row(2)], 2, NOW)
    assert begin_import(store, "imdb", "etag 1") == 2
    end_import(store, "imdb", "etag 1", NOW)
    assert begin_import(store, "imdb", "etag 1") is None
    assert begin_import(store, "imdb", "etag 2") == 0


def test_an_id_that_a_page_has_shown_is_not_overruled(store: Catalogued) -> None:
    store.bring_in(row(1), row(2))
    store.write(page("rottentomatoes", "m/right", "Title 1"))
    store.record([judged("m/right", store.title_id())])
    store.bring_in(ImportRow(imdb_id="tt1000001", site_ids={"rottentomatoes": "m/other"}, id_source="given"))
    store.bring_in(ImportRow(imdb_id="tt1000002", site_ids={"rottentomatoes": "m/right"}, id_source="given"))
    assert store.state("tt1000001", "rottentomatoes").site_id == "m/right"
    assert store.state("tt1000002", "rottentomatoes").site_id is None


# --- What is shown ----------------------------------------------------------------------------------------------------


def test_the_figures_count_each_title_once(store: Catalogued) -> None:
    store.bring_in(*(row(number, year=2026 if number == 1 else 1990) for number in range(1, 7)))
    store.claim_ids(1)
    store.record(
        [
            outcome("tt1000001", at=NOW - 20 * DAY),
            outcome("tt1000002", at=NOW - 3 * DAY),
            outcome("tt1000003", "absent"),
            outcome("tt1000004", "error"),
            outcome("tt1000005", "blocked"),
        ]
    )
    store.pause("imdb", NOW + DAY, "imdb refused us")
    imdb, metacritic, _ = figures(store, NOW, date(2026, 5, 1))
    counted = (imdb.known, imdb.never, imdb.ok, imdb.absent, imdb.error, imdb.blocked)
    assert counted == (6, 1, 2, 1, 1, 1)
    assert (imdb.due, imdb.overdue, imdb.unread, imdb.fresh, imdb.old) == (3, 1, 3, 1, 1)
    assert imdb.oldest == NOW - 20 * DAY
    assert imdb.paused_because == "imdb refused us"
    assert (metacritic.known, metacritic.unfound) == (0, 6)


def test_a_title_that_a_clock_ahead_has_put_off_is_due_now(store: Catalogued) -> None:
    store.bring_in(*(row(number) for number in range(4)))
    later = (
        ("ok", 414, "tt1000000"),  # read in more than a year, as it seemed
        ("error", 401, "tt1000001"),
        ("ok", 90, "tt1000002"),
        ("absent", 490, "tt1000003"),
    )
    for ended, days, imdb_id in later:
        store.sql(
            "UPDATE title_sites SET state = %s, next_due = %s, last_success = %s WHERE site = 'imdb' AND site_id = %s",
            *(ended, NOW + days * DAY, NOW if ended == "ok" else None, imdb_id),
        )
    assert sorted(store.claim_ids()) == ["tt1000000", "tt1000001", "tt1000003"]
    assert store.claim_ids() == []
