"""`lane=due` while workers are killed, and while the database or the site goes away.

Others import and crawl at the same time.
"""

from contextlib import ExitStack, closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import redis

from moviecrawler.basics.clock import utc_text
from moviecrawler.replica.collection import Collection
from tests.catalogued import Catalogued
from tests.crawling import change, crawl
from tests.due_crawls import Due
from tests.run_keys import SiteKeys
from tests.services.postgres import away
from tests.services.replica import IDS, TITLES, ForkedReplica
from tests.waiting import LONGEST, wait_for

HOUR = timedelta(hours=1)
DAY = timedelta(days=1)


@pytest.fixture
def slow(due: Due) -> Due:
    """Return crawls of a catalogue whose site answers slowly."""
    change(due.replica, latency=150)
    return due


def assert_all_fetched(due: Due, titles: int = TITLES) -> None:
    counted = (
        "SELECT count(*), count(*) FILTER (WHERE state = 'ok'),"
        " count(*) FILTER (WHERE next_due - last_success IN ('14 days', '90 days'))"
        " FROM title_sites WHERE site = 'imdb'"
    )
    assert due.sql(counted) == [(titles, titles, titles)]
    assert due.sql("SELECT count(*), count(DISTINCT site_id) FROM records") == [(titles, titles)]


@pytest.mark.promise(
    "What is due is queued once for all workers, within the budget, and no killed worker loses it."
)
def test_two_workers_that_are_killed_four_times_fetch_all_and_the_boosted_first(
    database_url: str, redis_url: str, tmp_path: Path
) -> None:
    titles = 200
    collection = Collection(1, titles)
    boosted = collection.imdb_ids[100:110]
    # Long enough that no worker is taken for dead that is only slow.
    given = {"REDIS_URL": redis_url, "FRONTIER_LEASE": "5"}
    in_flight = 0
    with ForkedReplica(titles=titles, light=True) as replica, ExitStack() as stack:
        change(replica, latency=80)
        due = Due(database_url, replica, tmp_path)
        due.know()
        with closing(Catalogued(database_url)) as store:
            store.boost(*boosted, now=datetime.now(UTC))
        # What is sent at once comes in any order: one by one the order is that of the queue.
        one_by_one = {**given, "CONCURRENT_REQUESTS_PER_DOMAIN": "1"}
        workers = [stack.enter_context(due.worker("0", **one_by_one))]
        wait_for(lambda: len(due.pages()) >= len(boosted))
        workers.append(stack.enter_context(due.worker("1", **given)))
        for kill in range(4):
            wait_for(lambda kill=kill: len(due.pages()) >= 30 * (kill + 1))  # type: ignore[misc]
            workers[kill % 2].kill()
            workers[kill % 2].wait()
            in_flight += sum(due.pages().values()) - due.states().get("ok", 0)
            workers[kill % 2] = stack.enter_context(due.worker(f"{kill + 2}", **given))
        assert [worker.wait(LONGEST) for worker in workers] == [0, 0], due.log
        pages = due.pages()
    assert_all_fetched(due, titles)
    assert sum(pages.values()) - titles <= in_flight
    first = {path.split("/")[2] for path in list(pages)[: len(boosted)]}
    assert first == set(boosted), due.log
    boosts = "SELECT count(*) FROM title_sites WHERE site = 'imdb' AND boost_due IS NOT NULL"
    assert due.sql(boosts) == [(0,)]
    assert due.sql("SELECT count(*) FROM feeds") == [(0,)]  # the run is over


def test_what_a_killed_worker_had_is_fetched_by_the_next_one_without_redis(slow: Due) -> None:
    for kill in range(1, 4):
        with slow.worker():  # which is killed
            wait_for(lambda kill=kill: len(slow.pages()) >= 8 * kill)  # type: ignore[misc]
    change(slow.replica, latency=0)
    assert crawl("imdb", "lane=due", **slow.where).code == 0
    assert_all_fetched(slow)


@pytest.mark.promise(
    "A title that the network keeps from us is tried again in an hour, and that counts for nothing."
)
def test_a_title_whose_host_times_out_is_tried_once_an_hour(due: Due) -> None:
    due.sql("UPDATE title_sites SET next_due = 'infinity' WHERE site_id <> %s", IDS[0])
    boosted = "UPDATE title_sites SET boost = 1, boost_due = now() WHERE site_id = %s"
    due.sql(boosted, IDS[0])
    change(due.replica, faults={"timeout": 1.0})
    impatient: dict[str, Any] = {"DOWNLOAD_TIMEOUT": "1", "RETRY_TIMES": "0", "FRONTIER_IDLE": "1"}
    state = (
        "SELECT state::text, failures, boost_due = next_due, next_due - now() FROM title_sites"
        " WHERE site_id = %s"
    )
    for times in (1, 2):
        began = datetime.now(UTC)
        finished = crawl("imdb", "lane=due", **due.where, **impatient)
        assert finished.code == 1, finished.log
        assert "1 failed" in finished.summary.titles
        assert sum(due.pages().values()) == times
        ((outcome, failures, is_boosted, left),) = due.sql(state, IDS[0])
        assert (outcome, failures, is_boosted) == ("never", 0, True)
        assert HOUR - (datetime.now(UTC) - began) <= left <= HOUR
        due.sql("UPDATE title_sites SET next_due = now() WHERE site_id = %s", IDS[0])
        due.sql(boosted, IDS[0])


def test_a_dead_letter_is_an_error_of_its_title(slow: Due) -> None:
    slow.sql("UPDATE title_sites SET next_due = 'infinity' WHERE site_id <> %s", IDS[0])
    change(slow.replica, latency=60_000)
    given: dict[str, Any] = {"FRONTIER_DELIVERIES": "2", "RETRY_TIMES": "0"}
    for times in (1, 2):
        with slow.worker(DOWNLOAD_TIMEOUT="60", **given):  # which the page kills
            wait_for(lambda times=times: sum(slow.pages().values()) == times)  # type: ignore[misc]
    change(slow.replica, latency=0)
    finished = crawl("imdb", "lane=due", **slow.where, **given)
    assert finished.code == 1, finished.log
    assert "1 dead letters" in finished.summary.titles
    assert sum(slow.pages().values()) == 2
    state = "SELECT state::text, failures, next_due > now() + interval '23 h' FROM title_sites"
    assert slow.sql(f"{state} WHERE site_id = %s", IDS[0]) == [("error", 1, True)]


def test_a_limit_is_that_of_the_run_and_the_next_one_has_its_own(due: Due, redis_url: str) -> None:
    given = {**due.where, "REDIS_URL": redis_url}
    for times in (1, 2):
        assert crawl("imdb", "lane=due", "limit=7", **given).code == 0
        assert due.states()["ok"] == 7 * times
    assert set(due.pages().values()) == {1}


def test_a_worker_waits_for_what_becomes_due_and_another_queue_is_refused(
    due: Due, redis_url: str
) -> None:
    later = IDS[-1]
    due.sql("UPDATE title_sites SET next_due = 'infinity' WHERE site_id = %s", later)
    with due.worker(REDIS_URL=redis_url, FRONTIER_IDLE="3600") as running:
        wait_for(lambda: due.states().get("ok") == TITLES - 1, detail=lambda: due.log)
        refused = crawl("imdb", "lane=due", **due.where)  # with a queue in its own file
        assert refused.code == 1
        assert "(frontier_refused)" in refused.log
        assert "what is due on imdb goes into another queue: run lane-due-" in refused.summary.next
        due.sql("UPDATE title_sites SET next_due = now() WHERE site_id = %s", later)
        wait_for(lambda: due.states() == {"ok": TITLES}, detail=lambda: due.log)
        running.terminate()
        running.wait(LONGEST)
    assert set(due.pages().values()) == {1}


def test_a_database_that_goes_away_in_the_middle_of_a_crawl_costs_only_time(slow: Due) -> None:
    with slow.worker() as running:
        wait_for(lambda: len(slow.pages()) >= 15)
        with away(slow.url):
            wait_for(lambda: "Catalogue unavailable" in slow.log, detail=lambda: slow.log)
            wait_for(lambda: "postgres: attempt 2 failed" in slow.log, detail=lambda: slow.log)
        assert running.wait(LONGEST) == 0
    assert "Traceback" not in slow.log
    assert set(slow.pages().values()) == {1}
    assert_all_fetched(slow)


def test_imports_and_boosts_in_the_middle_of_a_crawl_disturb_neither(slow: Due) -> None:
    imports = 0
    boosted: list[Any] = [("imdb", imdb_id) for imdb_id in IDS[::3]]
    with slow.worker() as running, closing(Catalogued(slow.url)) as store:
        wait_for(lambda: len(slow.pages()) >= 5)
        while running.poll() is None:
            imports += 1
            slow.know(popularity=float(imports % 90))
            store.boost_named(boosted[imports % len(boosted) :][:5], 1.0, datetime.now(UTC))
        assert running.returncode == 0
    assert imports
    assert "Traceback" not in slow.log
    assert set(slow.pages().values()) <= {1, 2}  # a title may be boosted after it was fetched
    slow.sql("UPDATE title_sites SET boost_due = NULL")
    assert_all_fetched(slow)


def test_nothing_is_fetched_while_another_worker_knows_that_the_site_refuses_us(
    due: Due, redis_url: str
) -> None:
    until = (datetime.now(UTC).timestamp() + 3600) * 1000
    with redis.Redis.from_url(redis_url) as client:
        circuit = {"until": f"{until:.0f}", "reason": "imdb is blocking us", "trips": 3}
        client.hset(SiteKeys("imdb").circuit, mapping=circuit)
    ended = crawl("imdb", "lane=due", "via=pages", **due.where, REDIS_URL=redis_url)
    assert ended.code == 1
    assert f"imdb is blocking us; imdb is paused until {utc_text(until / 1000)}" in ended.log
    assert "(site_stopped)" in ended.log
    assert due.pages() == {}
    assert due.states() == {"never": TITLES}
