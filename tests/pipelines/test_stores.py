"""What every store promises, whatever goes wrong in it. Runs over all of them."""

import asyncio
import threading
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import msgspec
import pytest
from scrapy.exceptions import CloseSpider

from moviecrawler.basics.errors import (
    ClockError,
    ConfigurationError,
    OutputError,
    RejectedError,
    TooSlowError,
    TransientStoreError,
)
from moviecrawler.database.scoreboard import match_embedded
from moviecrawler.database.sqlite import open_sqlite
from moviecrawler.pipelines.store import Limits, Record
from tests.pipelines.memory_store import MemoryStore, failing
from tests.runs import LIMIT, Run, make_movie, running
from tests.stored import Stored
from tests.waiting import until


@pytest.fixture
def memory() -> MemoryStore:
    """Return a store for what the pipeline promises whatever the store is."""
    return MemoryStore()


async def test_every_item_is_stored_and_told_durable_once(
    every_store: Stored, tmp_path: Path
) -> None:
    store = every_store.store()
    async with running(store, tmp_path) as run:
        for number in range(105):
            movie = make_movie(number)
            assert await run.pipeline.process_item(movie) is movie
        of_others = {"site": "imdb", "site_id": "tt0000001"}
        assert await run.pipeline.process_item(of_others) is of_others
    assert list(run.outcomes().values()) == ["durable"] * run.count("durable") == ["durable"] * 105
    assert run.count("batches") >= 11
    assert run.count("unfinished") == 0
    assert run.count("seconds") > 0
    assert run.count("buffered_max") <= 20
    assert len(every_store.movies()) == 105
    await until(
        lambda: not [each for each in threading.enumerate() if each.name == f"store-{store.name}"]
    )


@pytest.mark.parametrize(
    ("error", "times"),
    [(TransientStoreError("restarting"), 2), (OSError(24, "Too many open files"), 1)],
    ids=repr,
)
async def test_transient_errors_are_retried_until_they_pass(
    memory: MemoryStore,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    error: Exception,
    times: int,
) -> None:
    caplog.set_level("INFO")
    memory.before_write = failing(times, error)

    async with running(memory, tmp_path) as run:
        await run.process(*map(make_movie, range(5)))
        await until(lambda: run.count("durable") == 5)
    assert run.count("retries") == times
    assert f"memory: attempt {times + 1} worked" in caplog.text
    assert set(run.outcomes().values()) == {"durable"}
    assert len(memory.movies) == 5


@pytest.mark.parametrize(("times", "outcome"), [(3, "durable"), (4, "rejected")])
async def test_one_item_that_takes_too_long_is_tried_three_times_again(
    memory: MemoryStore,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    times: int,
    outcome: str,
) -> None:
    monkeypatch.setattr("moviecrawler.pipelines.writer.backoff", lambda _: 0)
    memory.before_write = failing(times, TooSlowError("the server is busy"))
    async with running(memory, tmp_path) as run:
        await run.process(make_movie(1))
        await until(lambda: bool(run.outcomes()))
    assert run.outcomes() == {"tt0000001": outcome}
    assert memory.batches == [1] * 4


@pytest.mark.parametrize(
    "limits",
    [{"batch_items": 2}, {"batch_bytes": 2 * len(msgspec.json.encode(make_movie(1)))}],
    ids=repr,
)
async def test_a_batch_has_no_more_than_it_may(
    memory: MemoryStore, tmp_path: Path, caplog: pytest.LogCaptureFixture, limits: dict[str, Any]
) -> None:
    caplog.set_level("INFO")
    async with running(memory, tmp_path, batch_seconds=3600, **limits) as run:
        await run.process(*map(make_movie, range(1, 6)))
    assert memory.batches == [2, 2, 1]
    assert "worked" not in caplog.text  # as all did at once


def test_a_buffer_has_space_for_a_number_of_items_and_bytes_and_for_any_single_one() -> None:
    limits = Limits(batch_items=2, batch_bytes=10, buffer_items=3, buffer_bytes=20)
    assert [limits.is_full(*full) for full in ((1, 9), (2, 0), (0, 10))] == [False, True, True]
    rooms = ((0, 0, 99), (2, 10, 10), (3, 0, 0), (2, 10, 11))
    assert [limits.has_space(*room) for room in rooms] == [True, True, False, False]


@pytest.mark.parametrize("error", [OutputError("disk full"), ValueError("unforeseen")], ids=repr)
async def test_a_store_that_can_not_be_closed_is_unfinished(
    memory: MemoryStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    monkeypatch.setattr(memory, "close", failing(1, error))
    async with running(memory, tmp_path) as run:
        await run.pipeline.process_item(make_movie(1))
    assert (run.count("durable"), run.count("unfinished")) == (1, 1)


@pytest.mark.promise("An item that a store can't hold is rejected alone, with its reason.")
@pytest.mark.parametrize(
    "error",
    [
        RejectedError("NUL byte"),
        KeyError("unforeseen"),
        StopIteration("no row"),
        SystemExit("a library ends"),
    ],
)
async def test_a_bad_item_takes_no_other_down(
    memory: MemoryStore, tmp_path: Path, error: BaseException
) -> None:
    def refuse(records: Sequence[Record]) -> None:
        if any(record.item.site_id == "tt0000003" for record in records):
            raise error

    memory.before_write = refuse
    async with running(memory, tmp_path) as run:
        await run.process(*map(make_movie, range(10)))
        await run.process(make_movie(10, title="half a \ud83c"))  # which is no JSON
    outcomes = run.outcomes()
    assert {outcomes.pop("tt0000003"), outcomes.pop("tt0000010")} == {"rejected"}
    assert list(outcomes.values()) == ["durable"] * len(memory.movies) == ["durable"] * 9
    lines = sorted(run.rejected(), key=lambda line: str(line["item"]["site_id"]))
    assert (
        [line["store"] for line in lines]
        == [memory.name] * run.count("rejected")
        == [memory.name] * 2
    )
    assert str(error.args[0]) in lines[0]["reason"]
    assert lines[1]["item"]["title"] == "half a \ud83c"
    assert {(reason, item.site_id) for reason, item in run.told} == {
        (line["reason"], line["item"]["site_id"]) for line in lines
    }


@pytest.mark.promise("A store that is down slows the crawl and loses nothing.")
@pytest.mark.parametrize(
    "limits",
    [{"buffer_items": 20}, {"buffer_items": 1000, "batch_bytes": 10_000, "buffer_bytes": 20_000}],
)
async def test_a_store_that_stands_still_holds_the_crawl_and_memory_stays_bounded(
    memory: MemoryStore, tmp_path: Path, limits: dict[str, Any]
) -> None:
    gate = threading.Event()
    memory.before_write = lambda _: gate.wait(LIMIT)

    async with running(memory, tmp_path, **limits) as run:
        crawled = asyncio.gather(
            *(run.pipeline.process_item(make_movie(number)) for number in range(60))
        )
        await until(lambda: memory.batches)
        await asyncio.sleep(0)
        held = run.count("buffered_max")
        assert 10 <= held <= 20
        assert not crawled.done()
        gate.set()
        await crawled
        # An item that is larger than the buffer is stored alone.
        await run.process(make_movie(60, keywords=["A lamp. " * 60] * 5_000))
    assert run.count("buffered_max") == held
    assert run.count("durable") == len(memory.movies) == 61


@pytest.mark.parametrize("items", [1, 25], ids=["buffered", "more-than-the-buffer"])
async def test_after_a_signal_a_store_that_is_away_is_not_waited_for(
    memory: MemoryStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, items: int
) -> None:
    monkeypatch.setattr("moviecrawler.pipelines.base._SIGNAL_SECONDS", 0.2)
    memory.before_write = failing(10**6, TransientStoreError("down"))
    async with asyncio.timeout(10), running(memory, tmp_path, close_seconds=3600) as run:
        run.crawler.engine.running = False
        await run.process(*map(make_movie, range(items)))
    assert run.count("spooled") == items


@pytest.mark.promise("What a store did not take is spooled, and loaded by the next crawl.")
async def test_what_a_store_does_not_take_is_spooled_and_loaded_by_the_next_run(
    memory: MemoryStore, tmp_path: Path
) -> None:
    memory.before_write = failing(10**6, TransientStoreError("down"))
    async with running(memory, tmp_path, close_seconds=0.3) as run:
        run.crawler.engine.running = False  # it is told to end, and the buffer is too small for all
        await run.process(*(make_movie(number, age=60) for number in range(25)))
    assert set(run.outcomes().values()) == {"spooled"}
    (file,) = run.spool_files()
    # Down all through the next run, too: the file stays, and the items of that run come beside it.
    async with running(memory, tmp_path, close_seconds=0.3) as run:
        await run.process(make_movie(99))
    assert file in run.spool_files()
    assert len(run.spool_files()) == 2

    memory.before_write = lambda _: None
    memory.batches = []
    async with running(
        memory, tmp_path, batch_items=500, buffer_items=500, batch_seconds=3600
    ) as run:
        await run.process(make_movie(3, title="Newer"))
    assert run.spool_files() == []
    # A crawl that is shorter than a batch may wait writes at once what it has loaded.
    assert len(memory.batches) <= 3
    assert [entry[1] for entry in run.reported] == ["durable"] * 27
    assert len(memory.movies) == 26
    assert memory.movies["tt0000003"].title == "Newer"


@pytest.mark.promise("What a store did not take is spooled, and loaded by the next crawl.")
async def test_what_can_not_be_loaded_stays_and_stops_neither_its_file_nor_the_next(
    memory: MemoryStore, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / "spool" / f"{memory.name}-0-1.jsonl"
    folder.mkdir(parents=True)
    # Another process writes it, or was killed.
    draft = folder.with_name(f".{memory.name}-1-1.jsonl.draft")
    draft.write_bytes(b"")
    bad = [
        b'{"site": 3}',
        b'{"type": "Movie", "item": {"site": 3}}',
        b'{"type": "Exploit", "item": {}}',
        b'{"type": "L\xe1mpa", "item": {}}',
        b'{"type": "Movie", "item": %b' % (b"[" * 100_000),
    ]
    good = [
        b'{"type": "Movie", "item": %b}' % msgspec.json.encode(make_movie(number))
        for number in (1, 2)
    ]
    lines = b"\n".join([*bad[:3], good[0], *bad[3:]])
    damaged = folder.with_name(f"{memory.name}-1-1.jsonl")
    damaged.write_bytes(lines)
    folder.with_name(f"{memory.name}-2-1.jsonl").write_bytes(good[1])
    kept = damaged.with_name(f"{damaged.name}.damaged")

    async with running(memory, tmp_path) as run:
        await until(lambda: run.spool_files() == [draft, folder, kept])
    assert run.outcomes() == {"tt0000001": "durable", "tt0000002": "durable"}
    assert kept.read_bytes() == lines
    assert run.rejected() == []
    assert run.count("damaged") == 2
    errors = [record.getMessage() for record in caplog.records if record.levelname == "ERROR"]
    assert errors == [
        f"memory: {folder} stays, as it can't be loaded: [Errno 21] Is a directory: '{folder}'",
        (
            f"memory: {damaged} is damaged (line 1 holds no item: Object missing required field"
            f" `type`; 5 in all): it stays as {kept.name}, and its other 1 items are loaded"
        ),
    ]

    async with running(memory, tmp_path) as run:  # the folder is told again, but not the file
        pass
    assert run.count("damaged") == 1
    assert run.spool_files() == [draft, folder, kept]


async def test_a_store_that_hangs_does_not_keep_the_spider_from_closing(
    memory: MemoryStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("moviecrawler.pipelines.base._CLOSE_GRACE_SECONDS", 0.1)
    gate = threading.Event()
    memory.before_write = lambda _: gate.wait(LIMIT)

    async with running(memory, tmp_path, close_seconds=0.1) as run:
        await run.process(*map(make_movie, range(12)))
        await until(lambda: memory.batches)
    assert set(run.outcomes().values()) == {"spooled"}
    # It comes back later, and what it reports then is not told a second time.
    gate.set()
    await until(lambda: run.pipeline._has_ended)
    assert len(run.outcomes()) == 12
    assert set(run.outcomes().values()) == {"spooled"}


async def test_a_store_whose_thread_fails_ends_the_crawl_and_loses_nothing(
    memory: MemoryStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running(memory, tmp_path) as run:
        monkeypatch.setattr(run.pipeline._writer, "_flush", Mock(side_effect=MemoryError))
        await run.process(make_movie(1))
        await until(lambda: run.ended_by)
        await run.process(*map(make_movie, range(2, 40)))
    assert run.ended_by == ["store_failed"]
    assert list(run.outcomes().values()) == ["spooled"] * 39
    assert run.spool_files()


async def test_a_store_that_is_down_at_the_start_is_opened_later(
    memory: MemoryStore, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    memory.before_open = Mock(
        side_effect=[TransientStoreError("not up yet"), KeyError("unforeseen"), None]
    )
    async with running(memory, tmp_path) as run:
        await run.process(make_movie(1))
        await until(lambda: run.count("durable") == 1)
    assert "KeyError: 'unforeseen'" in caplog.text


@pytest.mark.parametrize(
    ("error", "unreachable", "reason"),
    [
        (ConfigurationError("no such bucket"), "wait", "store_unavailable"),
        (ClockError("an hour ahead"), "wait", "clock_wrong"),
        (TransientStoreError("not up yet"), "fail", "store_unavailable"),
    ],
    ids=repr,
)
async def test_a_store_that_can_not_be_used_ends_the_crawl_at_its_start(
    memory: MemoryStore, tmp_path: Path, error: Exception, unreachable: str, reason: str
) -> None:
    memory.before_open = failing(1, error)
    run = Run(memory, tmp_path, Limits(), STORE_UNREACHABLE=unreachable)
    with pytest.raises(CloseSpider) as ended:
        await run.pipeline.open_spider()
    assert ended.value.reason == reason
    told = f"memory can't be used, so nothing is crawled: {error}"
    assert run.stats.get_value("crawl/cause") == told
    assert run.stats.get_value("store/memory/remark") == "memory can't be used"
    await run.pipeline.close_spider()


def test_records_of_a_site_that_only_other_workers_know_are_matched(
    database: Stored, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = "https://www.rottentomatoes.com/"
    of_other = [
        make_movie(n, site="rottentomatoes", site_id=f"m/lamp_{n}", url=f"{address}m/lamp_{n}")
        for n in (1, 2)
    ]
    of_other = [replace(movie, scores=[], imdb_id=None) for movie in of_other]
    monkeypatch.setattr("moviecrawler.sites.ids.BY_AUTHORITY", ("imdb", "metacritic"))
    database.write(make_movie(1), *of_other)
    database.write(replace(of_other[1], runtime_minutes=90))
    if database.kind == "csv":
        with closing(open_sqlite(database.folder)) as connection:
            match_embedded(connection)
    query = "SELECT imdb_id, rottentomatoes_id FROM scoreboard ORDER BY rottentomatoes_id"
    assert database.ask(query) == [("tt0000001", "m/lamp_1"), (None, "m/lamp_2")]
