"""What a store did not take.

It is spooled, loaded by one process of the next run, or accounted for where the disk is full.
"""

import asyncio
import json
import os
import re
import resource
import signal
import subprocess
import sys
import threading
from pathlib import Path
from unittest.mock import Mock

import pytest
from scrapy import Request, signals
from scrapy.http import TextResponse

from moviecrawler.basics.errors import TransientStoreError
from moviecrawler.extensions.completion import ItemCompletion
from moviecrawler.frontier.leases import LeaseTracker
from moviecrawler.items import Movie
from moviecrawler.pipelines.files import append_rejected
from moviecrawler.pipelines.spool import Spool
from moviecrawler.pipelines.sqlite import SqliteStore
from moviecrawler.replica.process import ReplicaProcess
from moviecrawler.signals import store_opened
from tests.crawling import change, counts
from tests.limited import IMPATIENT
from tests.pipelines.memory_store import MemoryStore, failing
from tests.processes import FAST, environment
from tests.runs import LIMIT, largest_file, make_movie, running
from tests.shared import PROJECT
from tests.tables import sqlite_movies
from tests.waiting import until, wait_for


async def test_one_process_loads_what_was_spooled(tmp_path: Path) -> None:
    gate = threading.Event()
    first = MemoryStore()
    others = [MemoryStore(), MemoryStore()]

    first.before_write = failing(10**6, TransientStoreError("down"))
    async with running(first, tmp_path, close_seconds=0.1) as run:
        await run.process(make_movie(1))
    first.before_write = lambda _: gate.wait(LIMIT)
    async with running(first, tmp_path) as loading:
        await until(lambda: len(first.batches) > 1)
        for other in others:
            async with running(other, tmp_path) as run:
                await run.process(make_movie(2))
            assert set(run.outcomes()) == {"tt0000002"}
        assert len(run.spool_files()) == 1, "it would be lost if this process were killed now"
        gate.set()
    assert loading.outcomes() == {"tt0000001": "durable"}
    assert run.spool_files() == []


OF_EARLIER_VERSION = Path(__file__).with_name("spool_of_an_earlier_version.jsonl").read_bytes()
"""A spool file as the version before queue.sqlite3 wrote it."""


@pytest.mark.promise("What a store did not take is spooled, and loaded by the next crawl.")
async def test_a_spool_file_of_an_earlier_version_is_loaded(tmp_path: Path) -> None:
    (tmp_path / "spool").mkdir()
    (tmp_path / "spool" / "sqlite-1772366400000000000-7.jsonl").write_bytes(OF_EARLIER_VERSION)
    async with running(SqliteStore(tmp_path), tmp_path) as run:
        await until(lambda: not run.spool_files())
    assert run.outcomes() == {"tt0000001": "durable", "tt0000002": "durable"}
    assert run.count("damaged") == 0
    (movie,) = sqlite_movies(tmp_path)
    assert (movie.title, movie.credits[0].name) == ("The Lamp", "Odile Farrow")
    assert movie.unknown_fields == ["metascore"]


@pytest.mark.parametrize(
    ("contents", "loaded"),
    [
        (b"", 0),
        (bytes(4096), 0),
        (OF_EARLIER_VERSION[:-20], 1),
        (OF_EARLIER_VERSION.replace(b'"kind":"movie"', b'"kind":"hologram"'), 1),
        (OF_EARLIER_VERSION.replace(b'"title":', b'"name":'), 1),
        (b"\x80" + OF_EARLIER_VERSION, 1),
    ],
    ids=["empty", "NULs", "cut", "another kind", "another field", "odd byte"],
)
async def test_a_damaged_spool_file_is_kept_and_counted(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, contents: bytes, loaded: int
) -> None:
    file = tmp_path / "spool" / "memory-1-1.jsonl"
    file.parent.mkdir()
    file.write_bytes(contents)
    kept = file.with_name(f"{file.name}.damaged")
    store = MemoryStore()
    store.write = Mock()  # type: ignore[method-assign]  # of misses, too
    async with running(store, tmp_path) as run:
        await until(lambda: run.spool_files() == [kept])
    assert kept.read_bytes() == contents
    assert list(run.outcomes().values()) == ["durable"] * loaded
    assert run.count("damaged") == 1
    assert f"it stays as {kept.name}, and its other {loaded} items are loaded" in caplog.text


@pytest.mark.promise("A store that is down slows the crawl and loses nothing.")
async def test_a_full_disk_holds_the_crawl_back_until_there_is_room(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store = MemoryStore()
    store.before_write = failing(10**6, TransientStoreError("database or disk is full"))
    async with running(store, tmp_path, buffer_items=1000) as run:
        with largest_file(4096):
            await run.process(make_movie(0))
            await until(lambda: run.count("stuck"))
            crawled = asyncio.gather(
                *(run.pipeline.process_item(make_movie(n)) for n in range(1, 30))
            )
            await asyncio.sleep(0.05)
            assert not crawled.done()
            assert len(run.pipeline._pending) == 1
        store.before_write = lambda _: None
        await crawled
    assert list(run.outcomes().values()) == ["durable"] * 30
    assert (
        "memory can neither be written nor spooled ([Errno 28] No space left on device)"
        in caplog.text
    )


@pytest.mark.parametrize(
    ("redis_url", "reasons"), [("redis://127.0.0.1", ["store_stuck"]), ("", [])]
)
async def test_a_worker_whose_disk_stays_full_ends_where_others_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, redis_url: str, reasons: list[str]
) -> None:
    monkeypatch.setattr("moviecrawler.pipelines.base._STUCK_SECONDS", 0.05)
    store = MemoryStore()
    store.before_write = failing(10**6, TransientStoreError("database or disk is full"))
    async with running(store, tmp_path, redis_url, close_seconds=0.2) as run:
        with largest_file(100):
            await run.process(make_movie(0))
            await until(lambda: run.count("stuck"))
            await until(lambda: run.ended_by or not reasons)
            await asyncio.sleep(0.1)
    assert run.ended_by == reasons


async def test_what_can_neither_be_stored_nor_spooled_is_told_and_its_lease_goes_back(
    tmp_path: Path,
) -> None:
    store = MemoryStore()
    store.before_write = failing(10**6, TransientStoreError("database or disk is full"))
    ended: list[tuple[str, str]] = []

    with largest_file(100):
        async with running(store, tmp_path, close_seconds=0.2) as run:
            tracker = LeaseTracker(lambda lease: ended.append((lease.id, lease.end().kind)))
            _completion = ItemCompletion(run.crawler.signals)
            tracker.connect(run.crawler.signals)
            run.crawler.signals.send_catch_log(store_opened, store="memory")
            request = Request("http://127.0.0.1/", cb_kwargs={"site_id": "tt0000001"})
            tracker.take("1", 1, request)
            movie = make_movie(1)
            await run.process(movie)
            response = TextResponse(request.url, request=request)
            run.crawler.signals.send_catch_log(signals.item_scraped, item=movie, response=response)
            tracker.ended(request)
    assert run.outcomes() == {"tt0000001": "lost"}
    assert "neither stored nor spooled" in (run.reported[0][2] or "")
    assert ended == [("1", "back")]


def test_a_crawl_that_ends_while_it_looks_for_files_leaves_them_to_the_next(tmp_path: Path) -> None:
    ended = Spool(tmp_path, "memory", [Movie])
    written = ended.write([make_movie(1)])
    ended.end_loading()
    assert ended.begin_loading() == []
    assert Spool(tmp_path, "memory", [Movie]).begin_loading() == [written]


def test_a_line_that_a_full_disk_has_cut_does_not_spoil_the_next(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    assert append_rejected(tmp_path, "memory", "first", None)
    with largest_file(200):
        assert not append_rejected(tmp_path, "memory", "second", "a lamp" * 100)
    assert append_rejected(tmp_path, "memory", "third", None)
    first, _, third = (tmp_path / "rejected.jsonl").read_bytes().splitlines()
    assert [json.loads(line)["reason"] for line in (first, third)] == ["first", "third"]
    assert "rejected.jsonl can't be written" in caplog.text


def test_rejected_items_turn_over_and_their_lines_have_a_length(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("moviecrawler.pipelines.files._MAX_REJECTED_BYTES", 2_000)
    for number in range(20):
        assert append_rejected(tmp_path, "memory", f"reason {number}", make_movie(number))
    kept = [tmp_path / name for name in ("rejected.1.jsonl", "rejected.jsonl")]
    assert all(path.stat().st_size < 4_000 for path in kept)
    reasons = [
        json.loads(line)["reason"] for path in kept for line in path.read_text().splitlines()
    ]
    assert reasons == [f"reason {number}" for number in range(20)][-len(reasons) :]

    monkeypatch.undo()
    long = make_movie(1, plot="a lamp " * 1_000_000, genres=["Drama"] * 100_000)
    assert append_rejected(tmp_path, "memory", "too long", long)
    line = (tmp_path / "rejected.jsonl").read_text().splitlines()[-1]
    assert len(line) < 10_000
    assert json.loads(line)["item"]["site_id"] == "tt0000001"
    assert "7,000,000 characters" in line
    lengths = {"exact": "b" * 1_000, "over": "c" * 1_001, "few": [1] * 100, "many": [1] * 101}
    assert append_rejected(tmp_path, "memory", "too long", {"long": "a" * 1_048_576, **lengths})
    item = json.loads((tmp_path / "rejected.jsonl").read_text("utf-8").splitlines()[-1])["item"]
    assert item["long"].endswith("a… (1,048,576 characters)")
    assert [item["exact"], item["few"]] == [lengths["exact"], lengths["few"]]
    assert item["over"] == "c" * 1_000 + "… (1,001 characters)"
    assert item["many"] == [1] * 100 + ["… (101 in all)"]


@pytest.mark.promise(
    "The exit code is 0 only when every requested title was stored or stated absent."
)
def test_a_crawl_whose_disk_is_full_ends_with_code_1_and_says_what_it_did_not_store(
    replica: ReplicaProcess, tmp_path: Path
) -> None:
    change(replica, latency=300)
    settings = {**FAST, "ITEM_PIPELINES": IMPATIENT, "CONCURRENT_REQUESTS": "4"}
    options = [part for name, value in settings.items() for part in ("-s", f"{name}={value}")]
    with subprocess.Popen(
        [sys.executable, "-m", "scrapy", "crawl", "imdb", "-a", "list=top", *options],
        env=environment(
            tmp_path,
            replica,
            PYTHONDONTWRITEBYTECODE="1",  # it would cut them
            PYTHONPATH=str(PROJECT),
        ),
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr is not None
        log = []
        for line in process.stderr:
            log.append(line)
            if "Spider opened" in line:
                # By then the queue knows what the list names.
                wait_for(lambda: counts(replica)["requests"] >= 8)
                resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (1000, 1000))
            if "sqlite: attempt 3 failed" in line:
                os.kill(process.pid, signal.SIGTERM)
        assert process.wait(LIMIT) == 1
    told = "".join(log)
    assert "items are lost: neither stored nor spooled" in told
    assert re.search(r"titles asked for: .*\d waiting in the queue", told)
    assert re.search(r"stores: sqlite .*\d lost", told)
    assert "the same command continues with them" in told
