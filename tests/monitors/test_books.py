"""What every book of alarms promises: the one of a folder, and the one of a Redis."""

from __future__ import annotations

import os
import sqlite3
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from redis import Redis
from scrapy.settings import Settings

from moviecrawler.clock import utc_now
from moviecrawler.errors import ConfigurationError
from moviecrawler.monitors import file_book, redis_book
from moviecrawler.monitors.books import FILE, Alarm, Book, BookError, Day, open_book
from moviecrawler.monitors.file_book import FileBook
from moviecrawler.monitors.places import ANY, KNOWN_FROM, MOST_PAGES, WINDOW, Example, Seen
from moviecrawler.monitors.redis_book import RedisBook
from tests.services.redis import RedisServer

ALARM = Alarm(
    name="coverage/imdb/year", kind="coverage", site="imdb", text="year is missing", since=100, seen_at=100, told_at=100
)
Make = Callable[[], Book]


@pytest.fixture(params=["file", "redis"])
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Make]:
    """Return what makes one more process' view of the same book."""
    made: list[Book] = []
    new: Make
    if request.param == "file":
        new = lambda: FileBook(tmp_path)  # noqa: E731 - one of two makers
    else:
        url = request.getfixturevalue("redis_url")
        new = lambda: RedisBook(url)  # noqa: E731

    def one_more() -> Book:
        made.append(new())
        return made[-1]

    yield one_more
    for book in made:
        book.close()


def seen(at: float) -> Alarm:
    return replace(ALARM, since=at, seen_at=at, told_at=at)


def test_alarm_is_told_once_until_it_recovers(make: Make) -> None:
    book = make()
    assert book.fire(seen(100), 50) == "opened"
    assert book.fire(seen(149), 50) is None
    assert [(alarm.since, alarm.seen_at, alarm.told_at) for alarm in book.open_alarms()] == [(100, 149, 100)]
    assert book.fire(seen(150), 50) == "reminder"
    assert book.fire(seen(199), 50) is None
    recovered = book.recover(ALARM.name, 300, 10)
    assert recovered is not None
    assert (recovered.since, recovered.text) == (100, "year is missing")
    assert book.recover(ALARM.name, 301, 10) is None
    assert book.open_alarms() == []
    assert book.fire(seen(400), 50) == "opened"
    assert [(event.what, event.at) for event in book.history()] == [
        ("opened", 400),
        ("recovered", 300),
        ("opened", 100),
    ]


def test_alarm_that_a_node_has_just_seen_is_not_over(make: Make) -> None:
    book = make()
    book.fire(seen(100), 50)
    assert book.recover(ALARM.name, 109.9, 10) is None
    assert book.recover(ALARM.name, 110, 10) is not None


def test_message_that_could_not_be_delivered_is_tried_again(make: Make) -> None:
    book = make()
    book.fire(seen(100), 50)
    book.untell(ALARM.name)
    book.untell("no such alarm")
    assert book.fire(seen(101), 50) == "opened"
    assert book.fire(seen(102), 50) is None


def test_many_nodes_tell_once_and_recover_once(make: Make) -> None:
    books = [make() for _ in range(8)]
    together = threading.Barrier(len(books))

    def fire(book: Book) -> object:
        together.wait(20)
        return book.fire(seen(100), 50)

    def recover(book: Book) -> object:
        together.wait(20)
        return book.recover(ALARM.name, 200, 10)

    with ThreadPoolExecutor(len(books)) as threads:
        assert sorted(map(str, threads.map(fire, books))) == ["None"] * 7 + ["opened"]
        assert sum(ended is not None for ended in threads.map(recover, books)) == 1


def test_history_is_bounded(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (file_book, redis_book):
        monkeypatch.setattr(module, "MOST_EVENTS", 10)
    book = make()
    for at in range(0, 24, 2):
        book.fire(seen(at), 50)
        book.recover(ALARM.name, at + 1, 0)
    assert len(book.history()) == 10
    assert book.history(1)[0].at == 23


def pages(number: int = 0, having: dict[str, int] | None = None, **more: Any) -> Seen:
    return Seen(number, Counter(having or {}), **more)


GROUP = "title|movie|released"


def test_levels_are_added_up_and_older_pages_count_less(make: Make) -> None:
    book, other = make(), make()
    book.learn(
        "imdb",
        "2026-11-01",
        pages(levels={GROUP: {"year": (100.0, 10.0, 5.0), "scores.imdb.count": (100.0, 0.0, 0.0)}}),
    )
    other.learn("imdb", "2026-11-01", pages(levels={GROUP: {"year": (100.0, 0.0, 1.0)}}))
    assert book.levels("imdb") == {GROUP: {"year": (200, 10, 6), "scores.imdb.count": (100, 0, 0)}}
    assert book.levels("metacritic") == {}
    book.learn("imdb", "2026-11-02", pages(levels={GROUP: {"year": (5000.0, 5000.0, 0.0)}}))
    seen, silent, absent = book.levels("imdb")[GROUP]["year"]
    assert seen == pytest.approx(MOST_PAGES)
    assert silent == pytest.approx(5010 * MOST_PAGES / 5200, rel=1e-4)
    assert absent == pytest.approx(6 * MOST_PAGES / 5200, rel=1e-4)


def test_signs_of_the_latest_pages_are_kept_in_order(make: Make) -> None:
    book, other = make(), make()
    book.learn("imdb", "2026-11-01", pages(marks={"year": "0011", "plot": "1"}))
    other.learn("imdb", "2026-11-01", pages(marks={"year": "01"}))
    assert book.latest("imdb") == {"year": "001101", "plot": "1"}
    book.learn("imdb", "2026-11-01", pages(marks={"year": "1" * (WINDOW - 1)}))
    assert book.latest("imdb")["year"] == "1" * WINDOW
    assert book.latest("metacritic") == {}


def test_the_latest_example_of_each_field_is_kept(make: Make) -> None:
    book = make()
    first, later = Example("tt1", "https://a/"), Example("tt2", 'https://b/"')
    book.learn("imdb", "2026-11-01", pages(examples={"year": first, "plot": first}))
    book.learn("imdb", "2026-11-02", pages(examples={"year": later}))
    assert book.examples("imdb") == {"year": later, "plot": first}
    assert book.examples("metacritic") == {}


def test_coverage_is_counted_by_day(make: Make) -> None:
    book, other = make(), make()
    book.learn("imdb", "2026-11-01", pages(10, {"year": 9, "plot": 0}, silent=Counter(year=1)))
    other.learn("imdb", "2026-11-01", pages(5, {"year": 3}, silent=Counter({"year": 2, "scores.imdb": 5})))
    book.learn("imdb", "2026-11-02", pages(2, {"year": 1}))
    found = book.coverage("imdb", "2026-11-01", "2026-11-02")
    assert [day for day in found if day.day == "2026-11-01"] == [
        Day("2026-11-01", "plot", 15 if isinstance(book, RedisBook) else 10, 0),
        Day("2026-11-01", "scores.imdb", 15 if isinstance(book, RedisBook) else 5, 0, 5),
        Day("2026-11-01", "year", 15, 12, 3),
    ]
    assert found[-1] == Day("2026-11-02", "year", 2, 1)
    assert [day.day for day in book.coverage("imdb", "2026-11-02", "2026-11-02")] == ["2026-11-02"]
    assert {day.day for day in book.coverage("imdb", "2026-10-01", "2026-11-01")} == {"2026-11-01"}
    assert book.coverage("imdb", "2026-11-03", "2026-11-02") == []
    assert book.coverage("metacritic", "2026-01-01", "2026-11-02") == []


def test_coverage_is_read_until_today_and_of_400_days(make: Make) -> None:
    book = make()
    today = utc_now().date()
    for days in (0, 1, 399):
        book.learn("imdb", (today - timedelta(days=days)).isoformat(), pages(1000, {"year": days + 1}))
    assert [day.present for day in book.coverage("imdb", "1999-01-01")] == [400, 2, 1]


def test_coverage_is_read_by_its_keys_alone_however_many_others_there_are(redis_url: str, redis_client: Redis) -> None:
    book = RedisBook(redis_url)
    book.learn("imdb", "2026-11-01", pages(10, {"year": 9}))
    with redis_client.monitor() as monitor:  # type: ignore[no-untyped-call]
        book.coverage("imdb", "2026-10-01", "2026-11-02")
        redis_client.echo("end")
        asked = []
        for seen in monitor.listen():
            if seen["command"].startswith("ECHO"):
                break
            asked.append(seen["command"].split()[0])
    book.close()
    assert asked.count("HGETALL") == 33
    assert not {"SCAN", "KEYS"} & set(asked)


def test_accepting_ends_the_alarm_and_learns_the_field_anew(make: Make) -> None:
    book = make()
    levels = {
        GROUP: {"year": (100.0, 0.0, 0.0), "plot": (100.0, 1.0, 2.0)},
        "m|series|released": {"year": (50.0, 0.0, 0.0)},
    }
    book.learn("imdb", "2026-11-01", pages(levels=levels, marks={"year": "1" * 20, "plot": "0"}))
    book.fire(seen(100), 50)
    assert book.accept("coverage/imdb/plot", 101) is None
    for _ in range(2):
        accepted = book.accept(ALARM.name, 101)
        assert accepted is not None
        assert book.open_alarms() == []
        assert book.levels("imdb") == {GROUP: {"plot": (100, 1, 2)}, ANY: {"year": (KNOWN_FROM, KNOWN_FROM, 0)}}
        assert book.latest("imdb") == {"plot": "0"}
        book.fire(seen(100), 50)
    assert [event.what for event in book.history()] == ["opened", "accepted", "opened", "accepted", "opened"]


def test_book_on_a_full_disk_says_so_and_goes_on_when_there_is_room(tmp_path: Path) -> None:
    book = FileBook(tmp_path)
    book.learn("imdb", "2026-11-01", pages(2, {"year": 1}))
    assert book._connection is not None
    book._connection.execute("PRAGMA max_page_count = 1")
    many = pages(2, {f"{'plot' * 100}{number}": 1 for number in range(1000)})
    with pytest.raises(BookError, match="full"):
        book.learn("imdb", "2026-11-01", many)
    book._connection.execute("PRAGMA max_page_count = 100000")
    book.learn("imdb", "2026-11-01", many)
    assert len(book.coverage("imdb", "2026-11-01", "2026-11-01")) > 1000
    book.close()


def test_what_an_earlier_version_knew_is_read_as_far_as_it_is_of_use(
    tmp_path: Path, redis_url: str, redis_client: Redis
) -> None:
    with closing(sqlite3.connect(tmp_path / FILE)) as connection, connection:
        connection.executescript(
            """
            CREATE TABLE levels (site, category, field, pages, present);
            CREATE TABLE coverage (
                site TEXT NOT NULL, day TEXT NOT NULL, field TEXT NOT NULL, pages INTEGER NOT NULL, present INTEGER NOT NULL,
                PRIMARY KEY (site, day, field)
            ) WITHOUT ROWID;
            INSERT INTO levels VALUES ('imdb', 'top|movie|old|3', 'year', 100, 99);
            INSERT INTO coverage VALUES ('imdb', '2026-11-01', 'year', 10, 9);
            """
        )
    redis_client.hset("{alarms}:levels:imdb", "top|movie|old|3/year", "100 99")
    redis_client.hset("{alarms}:coverage:imdb:2026-11-01", mapping={"year": 9, "pages": 10})
    for book in (FileBook(tmp_path), RedisBook(redis_url)):
        assert book.levels("imdb") == {}
        assert book.coverage("imdb", "2026-11-01", "2026-11-01") == [Day("2026-11-01", "year", 10, 9)]
        book.learn("imdb", "2026-11-01", pages(1, {"year": 0}, silent=Counter(year=1)))
        assert book.coverage("imdb", "2026-11-01", "2026-11-01") == [Day("2026-11-01", "year", 11, 9, 1)]
        book.close()
    assert not redis_client.exists("{alarms}:levels:imdb")


def test_book_that_can_not_be_read_says_so_without_its_password(tmp_path: Path) -> None:
    (tmp_path / FILE).write_bytes(b"This is no database." * 100)
    with pytest.raises(BookError, match="can't be read or written"):
        FileBook(tmp_path).open_alarms()
    with RedisServer() as server:
        url = server.url.replace("redis://", "redis://user:hunter2@")
    book = RedisBook(url)
    with pytest.raises(BookError) as error:
        book.open_alarms()
    assert "hunter2" not in str(error.value)
    book.close()


def test_redis_that_is_away_fails_when_it_is_asked_and_may_come_back() -> None:
    with RedisServer() as server:
        server.stop()
        book = RedisBook(server.url)
        with pytest.raises(BookError, match="can't be read or written"):
            book.open_alarms()
        server.start()
        assert book.open_alarms() == []
        book.close()


def test_redis_goes_before_the_folder(tmp_path: Path, redis_url: str) -> None:
    for given, kind in (({"REDIS_URL": redis_url}, RedisBook), ({}, FileBook)):
        book = open_book(Settings({"DATA_DIR": os.fspath(tmp_path), "REDIS_PARAMS": {}, **given}))
        assert isinstance(book, kind)
        book.close()
    with pytest.raises(ConfigurationError, match="REDIS_URL is no Redis URL"):
        open_book(Settings({"DATA_DIR": "x", "REDIS_URL": "http://x"}))
    with pytest.raises(ConfigurationError, match=r"^REDIS_PARAMS is no JSON object$"):
        open_book(Settings({"DATA_DIR": "x", "REDIS_URL": redis_url, "REDIS_PARAMS": "{x"}))


def test_keys_of_redis_share_a_hash_tag_and_those_that_grow_expire(redis_url: str, redis_client: object) -> None:
    book = RedisBook(redis_url)
    book.fire(seen(100), 50)
    example = {"year": Example("tt1", "https://a/")}
    book.learn(
        "imdb",
        "2026-11-01",
        pages(1, {"year": 1}, levels={GROUP: {"year": (1.0, 1.0, 0.0)}}, marks={"year": "0"}, examples=example),
    )
    book.close()
    found: dict[bytes, int] = {key: redis_client.ttl(key) for key in redis_client.keys("*")}  # type: ignore[attr-defined]
    assert all(key.startswith(b"{alarms}:") for key in found)
    assert found.pop(b"{alarms}:open") == found.pop(b"{alarms}:history") == -1
    assert len(found) == 4
    assert all(left > 0 for left in found.values())
