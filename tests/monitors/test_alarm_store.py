"""What the store of alarms promises, in a folder and in a Redis."""

from __future__ import annotations

import re
import sqlite3
import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from redis import Redis

from moviecrawler.clock import utc_now
from moviecrawler.errors import AlarmStoreError, ConfigurationError
from moviecrawler.monitors import alarm_store
from moviecrawler.monitors.alarm_store import FILE, Alarm, AlarmStore, Day, open_alarm_store
from moviecrawler.monitors.places import ANY, BASELINE_PAGES, KNOWN_FROM_PAGES, WINDOW_PAGES, Example, Seen
from moviecrawler.sites import SITES
from tests.services.redis import RedisServer
from tests.shared import PROJECT

ALARM = Alarm(
    name="coverage/imdb/year", kind="coverage", site="imdb", text="year is missing", since=100, seen_at=100, told_at=100
)
DAY = "2026-11-01"
GROUP = "title|movie|released"
Make = Callable[[], AlarmStore]


@pytest.fixture(params=["file", "redis"])
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Make:
    """Return what makes one more process' view of the same store."""
    url = "" if request.param == "file" else request.getfixturevalue("redis_url")
    return lambda: open_alarm_store({"DATA_DIR": tmp_path, "REDIS_URL": url})


@pytest.fixture
def store(make: Make) -> AlarmStore:
    return make()


def seen(at: float) -> Alarm:
    return replace(ALARM, since=at, seen_at=at, told_at=at)


def pages(number: int = 0, having: dict[str, int] | None = None, **more: Any) -> Seen:
    return Seen(number, Counter(having or {}), **more)


# --- Alarms -----------------------------------------------------------------------------------------------------------


def test_people_are_notified_once_until_the_alarm_recovers(store: AlarmStore) -> None:
    assert store.fire(seen(100), 50) == "opened"
    assert store.fire(seen(149), 50) is None
    assert [(alarm.since, alarm.seen_at, alarm.told_at) for alarm in store.open_alarms()] == [(100, 149, 100)]
    assert store.fire(seen(150), 50) == "reminder"
    assert store.fire(seen(199), 50) is None
    # A node has just seen it.
    assert store.recover(ALARM.name, 208.9, 10) is None
    recovered = store.recover(ALARM.name, 209, 10)
    assert recovered is not None
    assert (recovered.since, recovered.text) == (100, "year is missing")
    assert store.recover(ALARM.name, 301, 10) is None
    assert store.open_alarms() == []
    assert store.fire(seen(400), 50) == "opened"
    events = [(event.what, event.at) for event in store.history()]
    assert events == [("opened", 400), ("recovered", 209), ("opened", 100)]


def test_message_that_could_not_be_delivered_is_tried_again(store: AlarmStore) -> None:
    store.fire(seen(100), 50)
    store.notification_failed(ALARM.name)
    store.notification_failed("no such alarm")
    assert store.fire(seen(101), 50) == "opened"
    assert store.fire(seen(102), 50) is None


def test_one_of_many_nodes_notifies(make: Make) -> None:
    stores = [make() for _ in range(8)]
    together = threading.Barrier(len(stores))

    def fire(store: AlarmStore) -> object:
        together.wait(20)
        return store.fire(seen(100), 50)

    def recover(store: AlarmStore) -> object:
        together.wait(20)
        return store.recover(ALARM.name, 200, 10)

    with ThreadPoolExecutor(len(stores)) as threads:
        assert sorted(map(str, threads.map(fire, stores))) == ["None"] * 7 + ["opened"]
        assert sum(ended is not None for ended in threads.map(recover, stores)) == 1


def test_history_is_bounded(store: AlarmStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alarm_store, "MAX_EVENTS", 10)
    for at in range(0, 24, 2):
        store.fire(seen(at), 50)
        store.recover(ALARM.name, at + 1, 0)
    assert len(store.history()) == 10
    assert store.history(1)[0].at == 23


def test_alarm_about_a_field_names_the_file_that_has_its_places() -> None:
    for site in SITES:
        named = re.search(r"moviecrawler/extract/\w+\.py", replace(ALARM, site=site).todo)
        assert named is not None
        assert (PROJECT / named[0]).is_file()


# --- What is known of pages -------------------------------------------------------------------------------------------


def test_baselines_are_added_up_and_older_pages_count_less(make: Make) -> None:
    store, other = make(), make()
    both = {GROUP: {"year": (100.0, 10.0, 5.0), "scores.imdb.count": (100.0, 0.0, 0.0)}}
    store.learn("imdb", DAY, pages(baselines=both))
    other.learn("imdb", DAY, pages(baselines={GROUP: {"year": (100.0, 0.0, 1.0)}}))
    assert store.baselines("imdb") == {GROUP: {"year": (200, 10, 6), "scores.imdb.count": (100, 0, 0)}}
    assert store.baselines("metacritic") == {}
    store.learn("imdb", DAY, pages(baselines={GROUP: {"year": (5000.0, 5000.0, 0.0)}}))
    found = store.baselines("imdb")[GROUP]["year"]
    assert found == pytest.approx((BASELINE_PAGES, 5010 * BASELINE_PAGES / 5200, 6 * BASELINE_PAGES / 5200), rel=1e-4)


def test_signs_and_examples_of_the_latest_pages_are_kept(make: Make) -> None:
    store, other = make(), make()
    first, later = Example("tt1", "https://a/"), Example("tt2", 'https://b/"')
    store.learn("imdb", DAY, pages(marks={"year": "0011", "plot": "1"}, examples={"year": first, "plot": first}))
    other.learn("imdb", DAY, pages(marks={"year": "01"}, examples={"year": later}))
    assert store.latest("imdb") == {"year": "001101", "plot": "1"}
    assert store.examples("imdb") == {"year": later, "plot": first}
    store.learn("imdb", DAY, pages(marks={"year": "1" * (WINDOW_PAGES - 1)}))
    assert store.latest("imdb")["year"] == "1" * WINDOW_PAGES
    assert (store.latest("metacritic"), store.examples("metacritic")) == ({}, {})


def test_coverage_is_counted_by_day(make: Make) -> None:
    store, other = make(), make()
    store.learn("imdb", DAY, pages(10, {"year": 9, "plot": 0}, silent=Counter(year=1)))
    other.learn("imdb", DAY, pages(5, {"year": 3}, silent=Counter({"year": 2, "scores.imdb": 5})))
    store.learn("imdb", "2026-11-02", pages(2, {"year": 1}))
    first_day = [Day(DAY, "plot", 15, 0), Day(DAY, "scores.imdb", 15, 0, 5), Day(DAY, "year", 15, 12, 3)]
    second_day = [Day("2026-11-02", "year", 2, 1)]
    for since, until, expected in (
        (DAY, "2026-11-02", first_day + second_day),
        ("2026-11-02", "2026-11-02", second_day),
        ("2026-10-01", DAY, first_day),
        ("2026-11-03", "2026-11-02", []),
    ):
        assert store.coverage("imdb", since, until) == expected
    assert store.coverage("metacritic", "2026-01-01", "2026-11-02") == []


def test_coverage_is_read_until_today_and_of_400_days(store: AlarmStore) -> None:
    today = utc_now().date()
    for days in (0, 1, 399, 401):
        store.learn("imdb", (today - timedelta(days=days)).isoformat(), pages(1000, {"year": days + 1}))
    assert [day.present for day in store.coverage("imdb", "1999-01-01")] == [400, 2, 1]


def test_accepting_ends_the_alarm_and_learns_the_field_anew(store: AlarmStore) -> None:
    baselines = {
        GROUP: {"year": (100.0, 0.0, 0.0), "plot": (100.0, 1.0, 2.0)},
        "m|series|released": {"year": (50.0, 0.0, 0.0)},
    }
    store.learn("imdb", DAY, pages(baselines=baselines, marks={"year": "1" * 20, "plot": "0"}))
    store.fire(seen(100), 50)
    assert store.accept("coverage/imdb/plot", 101) is None
    for _ in range(2):
        assert store.accept(ALARM.name, 101) is not None
        assert store.open_alarms() == []
        assert store.baselines("imdb") == {
            GROUP: {"plot": (100, 1, 2)},
            ANY: {"year": (KNOWN_FROM_PAGES, KNOWN_FROM_PAGES, 0)},
        }
        assert store.latest("imdb") == {"plot": "0"}
        store.fire(seen(100), 50)
    assert [event.what for event in store.history()] == ["opened", "accepted", "opened", "accepted", "opened"]


# --- Where it is kept -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("levels", ["CREATE TABLE levels (site, category, field, pages REAL, present REAL)", ""])
def test_file_of_a_former_form_is_read(tmp_path: Path, levels: str) -> None:
    alarm = b'{"name":"blocks/imdb","kind":"blocks","site":"imdb","text":"no","since":1.0,"seen_at":2.0,"told_at":2.0}'
    event = b'{"at":1.0,"what":"opened","alarm":' + alarm + b"}"
    with closing(sqlite3.connect(tmp_path / FILE)) as connection, connection:
        connection.executescript(
            """
            CREATE TABLE alarms (name TEXT PRIMARY KEY, alarm BLOB NOT NULL) WITHOUT ROWID;
            CREATE TABLE events (number INTEGER PRIMARY KEY, event BLOB NOT NULL);
            CREATE TABLE coverage (site, day, field, pages INTEGER, present INTEGER);
            INSERT INTO coverage VALUES ('imdb', '2026-11-01', 'year', 10, 9);
            """
        )
        connection.executescript(levels)
        connection.execute("INSERT INTO alarms VALUES ('blocks/imdb', ?)", (alarm,))
        connection.execute("INSERT INTO events VALUES (7, ?)", (event,))
    for _ in range(2):
        store = open_alarm_store({"DATA_DIR": tmp_path})
        assert [(one.name, one.told_at) for one in store.open_alarms()] == [("blocks/imdb", 2.0)]
        assert [one.at for one in store.history()] == [1.0]
        assert store.baselines("imdb") == {}
        assert store.coverage("imdb", DAY, DAY) == [Day(DAY, "year", 10, 9)]


def test_keys_of_redis_share_a_hash_tag_and_those_that_grow_expire(redis_url: str, redis_client: Redis) -> None:
    with closing(open_alarm_store({"REDIS_URL": redis_url})) as store:
        store.fire(seen(100), 50)
        example, baselines = {"year": Example("tt1", "https://a/")}, {GROUP: {"year": (1.0, 1.0, 0.0)}}
        store.learn("imdb", DAY, pages(1, {"year": 1}, baselines=baselines, marks={"year": "0"}, examples=example))
        # What another version wrote is passed over.
        redis_client.hset("{alarms}:open", "of another version", "{")
        assert store.open_alarms() == [seen(100)]
    keys: list[bytes] = redis_client.keys("*")  # type: ignore[assignment]  # without decode_responses
    found = {key: redis_client.ttl(key) for key in keys}
    assert all(key.startswith(b"{alarms}:") for key in found)
    assert found.pop(b"{alarms}:open") == found.pop(b"{alarms}:history") == -1
    assert len(found) == 4
    assert all(left > 0 for left in found.values())


def test_file_forgets_what_is_old(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = open_alarm_store({"DATA_DIR": tmp_path})
    monkeypatch.setattr(alarm_store, "KEPT_SECONDS", -1)
    store.learn("imdb", DAY, pages(1, {"year": 1}))
    store.fire(seen(100), 50)
    with closing(sqlite3.connect(tmp_path / FILE)) as connection:
        assert connection.execute("SELECT DISTINCT key FROM hashes").fetchall() == [("{alarms}:open",)]


def test_store_that_can_not_be_used_says_so_without_its_password(tmp_path: Path) -> None:
    (tmp_path / FILE).write_bytes(b"This is no database." * 100)
    with pytest.raises(AlarmStoreError, match="can't be read or written"):
        open_alarm_store({"DATA_DIR": tmp_path}).open_alarms()
    with RedisServer() as server:
        store = open_alarm_store({"REDIS_URL": server.url.replace("redis://", "redis://:hunter2@")})
        server.stop()
        with pytest.raises(AlarmStoreError, match="can't be read or written") as error:
            store.open_alarms()
        assert "hunter2" not in str(error.value)
        store = open_alarm_store({"REDIS_URL": server.url})
        server.start()
        assert store.open_alarms() == []
        store.close()
    with pytest.raises(ConfigurationError, match="REDIS_URL is no Redis URL"):
        open_alarm_store({"REDIS_URL": "http://x"})
