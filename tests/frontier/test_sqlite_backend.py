"""What befalls a queue that is a file: deaths of processes, damage, other programs, full disks."""

import asyncio
import os
import shutil
import sqlite3
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import closing, contextmanager
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path

import pytest

from moviecrawler.basics.errors import ConfigurationError, FrontierError, FrontierFullError
from moviecrawler.frontier import queue_file
from moviecrawler.frontier.contract import ARGUMENTS, TERMS, RunName, Worker
from moviecrawler.frontier.sqlite_backend import FILE, LOCKS, SqliteBackend
from moviecrawler.politeness.budgets import UNLIMITED
from tests.backends import (
    ANOTHER,
    DAY_SECONDS,
    RUN,
    OutsideOfSqlite,
    account_of,
    begin,
    bury_next,
    charge,
    dead,
    done,
    expect,
    expect_report,
    files,
    finish_all,
    is_all_done,
    letter_ids,
    open_now,
    pushes,
    refuse,
    report_of,
    store,
    stored,
    take,
    take_arguments,
    take_ids,
    worker,
)
from tests.processes import CONTEXT
from tests.waiting import LONGEST

ONE = worker("one")
TWO = worker("two")
TABLES = [
    "runs",
    "requests",
    "seen",
    "limited_titles",
    "letters",
    "workers",
    "sites",
    "clock",
]


@pytest.fixture
async def file_side(tmp_path: Path) -> AsyncIterator[OutsideOfSqlite]:
    """Return the backend of a file, with what may befall its queue."""
    file_side = OutsideOfSqlite(tmp_path)
    yield file_side
    await file_side.close()


@pytest.fixture
def queue(file_side: OutsideOfSqlite) -> SqliteBackend:
    """Return the backend of a file."""
    return file_side.backend


@pytest.fixture
async def other(tmp_path: Path) -> AsyncIterator[SqliteBackend]:
    """Return another backend on the same folder, as another process has."""
    other = SqliteBackend(tmp_path)
    yield other
    await other.close()


def damaged_files(folder: Path) -> list[str]:
    return [name for name in files(folder) if "damaged" in name]


def is_whole(path: Path) -> bool:
    with closing(sqlite3.connect(path)) as database:
        return database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


# --- Processes ----------------------------------------------------------------------------------

_PROCESS = """
import asyncio
from moviecrawler.frontier.sqlite_backend import SqliteBackend
from tests.backends import ids, open_now, store, take_ids, worker

async def main():
    backend = SqliteBackend(folder)
    one = worker(name)
    got = []
    if job == "hold":
        await open_now(backend, one)
        told.send(await take_ids(backend, one, 9))
        await asyncio.sleep(600)
    elif job == "open":
        await open_now(backend, one)
    else:
        while (reply := await backend.take(one, 5)).account.open:
            got += ids(reply.deliveries)
            await store(backend, one, reply.deliveries)
        told.send(got)
    await backend.leave(one)
    await backend.close()

asyncio.run(main())
"""


@contextmanager
def process(name: str, folder: Path, job: str) -> Iterator[tuple[BaseProcess, Connection]]:
    """Run a worker in a process of its own: one that holds requests, opens the run or ends it.

    Yield the process, and where it tells which requests it has got.
    """
    here, there = CONTEXT.Pipe()
    given = {"name": name, "folder": folder, "job": job, "told": there}
    started = CONTEXT.Process(target=exec, args=(_PROCESS, given), daemon=True)
    with here:
        with there:
            started.start()
        try:
            yield started, here
        finally:
            started.kill()
            started.join()


@pytest.mark.promise(
    "Any worker may be killed: others get what it held, no title is lost and none doubled."
)
async def test_leases_of_a_process_that_was_killed_end_at_once(
    queue: SqliteBackend, tmp_path: Path
) -> None:
    await begin(queue, ONE, "a", "b")
    await queue.leave(ONE)
    with process("killed", tmp_path, "hold") as (killed, told):
        assert told.recv() == ["a", "b"]
        assert await take(queue, ONE, 9) == []
        report = await report_of(queue)
        assert report.workers == 2
        assert (tmp_path / LOCKS / "killed.lock").exists()
        killed.kill()
        killed.join(LONGEST)
        report = await report_of(queue)
        assert report.workers == 1
        deliveries = await take(queue, ONE, 9)
    assert [(delivery.id, delivery.number) for delivery in deliveries] == [("a", 2), ("b", 2)]
    await store(queue, ONE, deliveries)
    assert is_all_done(await account_of(queue, ONE))


async def test_a_process_that_hangs_loses_its_leases_when_their_time_is_over(
    queue: SqliteBackend, file_side: OutsideOfSqlite
) -> None:
    brief = worker("brief", lease_seconds=60)
    await begin(queue, brief, "a", "b")
    await queue.take(brief, 9)
    assert await take(queue, TWO, 9) == []
    file_side.clock.ahead = 61
    assert await take_ids(queue, TWO, 9) == ["a", "b"]


@pytest.mark.promise(
    "Any worker may be killed: others get what it held, no title is lost and none doubled."
)
async def test_processes_that_share_a_folder_get_each_request_once(
    queue: SqliteBackend, tmp_path: Path
) -> None:
    titles = [f"tt{number}" for number in range(300)]
    await begin(queue, ONE, *titles)
    await queue.leave(ONE)
    with process("p1", tmp_path, "end") as first, process("p2", tmp_path, "end") as second:
        got = []
        for started, told in (first, second):
            got += told.recv()
            started.join(LONGEST)
            assert started.exitcode == 0
    assert sorted(got) == sorted(titles)
    await expect(queue, ONE, stored=300, requested=301, lost=0)


@pytest.mark.parametrize("is_damaged", [False, True])
async def test_processes_that_make_the_file_at_the_same_time_join_one_run(
    queue: SqliteBackend, tmp_path: Path, is_damaged: bool
) -> None:
    if is_damaged:
        overwrite(tmp_path / FILE)
    with (
        process("p1", tmp_path, "open") as first,
        process("p2", tmp_path, "open") as second,
        process("p3", tmp_path, "open") as third,
    ):
        for started, _ in (first, second, third):
            started.join(LONGEST)
            assert started.exitcode == 0
    await expect(queue, ONE, requested=1, open=1)
    assert files(tmp_path) == [LOCKS, FILE, *damaged_files(tmp_path)]
    assert len(damaged_files(tmp_path)) == is_damaged


async def test_a_worker_whose_lock_file_was_deleted_is_not_taken_for_dead(
    queue: SqliteBackend, other: SqliteBackend, tmp_path: Path
) -> None:
    await begin(queue, ONE, "a", "b")
    await queue.take(ONE, 9)
    shutil.rmtree(tmp_path / LOCKS)
    assert await take(other, TWO, 9) == []


async def test_what_a_worker_holds_that_leaves_is_queued_again(
    queue: SqliteBackend, other: SqliteBackend
) -> None:
    await begin(queue, ONE, "a", "b")
    await queue.take(ONE, 1)
    await queue.leave(ONE)
    assert await take_ids(other, TWO, 9) == ["a", "b"]


async def test_lock_files_that_nobody_needs_are_swept_away(
    queue: SqliteBackend, other: SqliteBackend, tmp_path: Path
) -> None:
    odd = worker("../né\n/" * 60)  # as somebody may name a node
    for one in (ONE, odd):
        await open_now(queue, one)
        await queue.take(one, 1)
    long_ago = tmp_path / LOCKS / "long-ago.lock"
    long_ago.touch()
    os.utime(long_ago, (1, 1))
    await open_now(other, TWO)
    assert len(files(tmp_path / LOCKS)) == 4  # with that of who makes the file
    await other.leave(TWO)
    await queue.leave(odd)
    assert files(tmp_path / LOCKS) == ["one.lock", "opening"]


# --- Loss and damage ----------------------------------------------------------------------------


@pytest.mark.promise("A lost key in Redis never hangs a crawl, and what was lost is told.")
@pytest.mark.parametrize("table", TABLES)
async def test_rows_of_a_table_that_were_lost_hang_nothing(
    queue: SqliteBackend, file_side: OutsideOfSqlite, table: str
) -> None:
    one = worker(limit=9)
    titles = [*map(str, range(9))]
    await begin(queue, one, *titles)
    await charge(queue, UNLIMITED)
    deliveries = await take(queue, one, 4)
    await queue.finish(one, [dead(deliveries[0]), stored(deliveries[1])])
    file_side.execute(f"DELETE FROM {table}")  # noqa: S608 - a name of ours
    while deliveries := await take(queue, one, 9):
        for delivery in deliveries:
            if delivery.id.startswith(ARGUMENTS):
                await queue.push(one, pushes(*titles))
            await queue.finish(one, [done(delivery, stored=1)])
        await file_side.end_leases("2", "3")
    account = await account_of(queue, one)
    assert account.open == 0
    if table == "requests":
        assert account.lost == 7
        assert await open_now(queue, one, age=1e6) is None  # the next pass
    else:
        assert (account.lost, account.dead) == (0, 1)


@pytest.mark.parametrize("with_log", [False, True])
async def test_a_file_that_is_deleted_while_it_is_in_use_is_made_again_once(
    queue: SqliteBackend, other: SqliteBackend, tmp_path: Path, with_log: bool
) -> None:
    await begin(queue, ONE, "a", "b")
    await expect(other, TWO, open=2)
    (tmp_path / FILE).unlink()
    if with_log:
        (tmp_path / f"{FILE}-wal").unlink()
        (tmp_path / f"{FILE}-shm").unlink()
    assert (await other.read({})).runs == []
    assert not (tmp_path / FILE).exists()
    end = await take_arguments(queue, ONE)
    assert await queue.push(ONE, pushes("a", "b", "c")) == 0
    await expect(other, TWO, open=4)
    await queue.finish(ONE, [end])
    await queue.leave(TWO)
    await finish_all(queue, ONE)
    await expect(other, TWO, requested=4, stored=3, lost=0)
    assert is_whole(tmp_path / FILE)
    assert files(tmp_path) == [LOCKS, FILE]


def overwrite(path: Path) -> None:
    path.write_bytes(b"This is no database. " * 4000)


def cut(path: Path) -> None:
    os.truncate(path, 5000)


def empty_pages(path: Path) -> None:
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(bytes(path.stat().st_size - 4096))


@pytest.mark.parametrize("is_open", [False, True])
@pytest.mark.parametrize("damage", [overwrite, cut, empty_pages])
async def test_a_damaged_file_is_moved_away_and_a_new_one_begun(
    queue: SqliteBackend,
    other: SqliteBackend,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    damage: Callable[[Path], None],
    is_open: bool,
) -> None:
    await begin(queue, ONE, *map(str, range(1000)))
    with closing(sqlite3.connect(tmp_path / FILE)) as database:
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    if not is_open:
        await queue.close()
    damage(tmp_path / FILE)
    with pytest.raises(FrontierError, match="the next crawl moves it away and begins anew"):
        await other.read({})
    await other.close()
    assert await open_now(queue, ONE) is None
    await take_arguments(queue, ONE)
    await queue.push(ONE, pushes("a"))
    await expect(other, TWO, open=2)
    [moved] = damaged_files(tmp_path)
    assert moved.startswith(f"{FILE}.damaged-20")
    [remark] = caplog.messages
    assert remark.startswith(f"the queue was damaged ({tmp_path / FILE}: ")
    assert remark.endswith(f"it was moved to {moved}, and a new one begun")
    assert is_whole(tmp_path / FILE)


async def test_a_file_without_one_of_its_tables_counts_as_damaged(
    queue: SqliteBackend, file_side: OutsideOfSqlite, tmp_path: Path
) -> None:
    await begin(queue, ONE, "a")
    file_side.execute("DROP TABLE seen")
    assert await queue.push(ONE, pushes("b")) == 0
    await expect(queue, ONE, open=2)  # with the arguments
    assert len(damaged_files(tmp_path)) == 1


# --- What is refused ----------------------------------------------------------------------------


@pytest.mark.promise("A database of another schema is refused and left alone.")
async def test_a_file_of_a_newer_version_is_refused_and_left_alone(
    queue: SqliteBackend, file_side: OutsideOfSqlite, tmp_path: Path
) -> None:
    await begin(queue, ONE, "a")
    await queue.close()
    file_side.execute("PRAGMA user_version = 99")
    for step in (open_now(queue, ONE), queue.push(ONE, pushes("b")), report_of(queue)):
        with pytest.raises(ConfigurationError, match="was made by a newer version of moviecrawler"):
            await step
    assert file_side.execute("SELECT id FROM requests") == [("a",)]
    assert files(tmp_path) == [LOCKS, FILE]


_AS_BEFORE = ("ALTER TABLE runs DROP COLUMN fresh", "PRAGMA user_version = 2")


@pytest.mark.promise("What an earlier version has left in the queue is taken over.")
async def test_a_file_of_an_earlier_version_is_taken_over(
    queue: SqliteBackend,
    file_side: OutsideOfSqlite,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    await begin(queue, ONE, "a", "b", "c")
    await queue.take(ONE, 1)
    file_side.execute("INSERT INTO sites VALUES ('imdb', 1, 77, 0, 'blocked', 9e9, 2, NULL)")
    letter = "SELECT 9, run, 'd', site, name, 'lost', 9e9, NULL, 1, 0, 1, x'7B7D' FROM runs"
    file_side.execute(f"INSERT INTO letters {letter}")
    tables = ("runs", "requests", "seen", "letters", "sites")
    rows = "SELECT * FROM {}"
    before = {table: file_side.execute(rows.format(table)) for table in tables}
    await queue.close()
    for statement in _AS_BEFORE:
        file_side.execute(statement)
    await report_of(queue)
    after = {table: file_side.execute(rows.format(table)) for table in tables}
    # The new column is the last one now.
    assert sorted(map(str, after["runs"][0])) == sorted(map(str, before["runs"][0]))
    assert {**after, "runs": 0} == {**before, "runs": 0}
    await queue.open(ONE, None, 0)
    await queue.take(ONE)
    assert caplog.messages == [f"{FILE} was made by an earlier version: all was taken over"]
    assert files(tmp_path) == [LOCKS, FILE]


@pytest.mark.parametrize("version", [0, 1, 2])
async def test_a_file_of_another_program_is_refused_and_left_alone(
    queue: SqliteBackend, file_side: OutsideOfSqlite, version: int
) -> None:
    file_side.execute("CREATE TABLE theirs (column)")
    file_side.execute(f"PRAGMA user_version = {version}")
    with pytest.raises(ConfigurationError, match="was made by another program; move it away"):
        await open_now(queue, ONE)
    assert file_side.execute("SELECT name FROM sqlite_master") == [("theirs",)]


_MOUNTINFO = """\
22 28 0:21 / /proc rw,nosuid - proc proc rw
28 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw,discard
36 28 {device} / /mnt/two rw,relatime shared:7 master:1 - {kind} server:/export rw,vers=4.2
"""


def device_of(path: Path) -> str:
    device = path.stat().st_dev
    return f"{os.major(device)}:{os.minor(device)}"


@pytest.mark.parametrize("kind", ["nfs", "nfs4", "cifs", "smb3", "fuse.sshfs"])
async def test_a_folder_on_a_network_file_system_is_refused(
    queue: SqliteBackend, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    mounts = tmp_path / "mountinfo"
    monkeypatch.setattr(queue_file, "_MOUNTS", mounts)
    mounts.write_text(_MOUNTINFO.format(device=device_of(tmp_path), kind=kind))
    with pytest.raises(ConfigurationError) as refused:
        await open_now(queue, ONE)
    assert str(refused.value) == (
        f"{tmp_path} is on a network file system ({kind}), where SQLite can't keep the queue; set"
        " DATA_DIR to a folder on a disk of this machine, or REDIS_URL to share a crawl"
    )
    assert files(tmp_path) == ["mountinfo"]


@pytest.mark.parametrize(
    "mountinfo",
    [
        _MOUNTINFO.format(device="0:999999", kind="nfs4"),
        "nothing that is known\n",
        None,
    ],
)
async def test_a_folder_on_a_disk_of_the_machine_is_taken(
    queue: SqliteBackend,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    mountinfo: str | None,
) -> None:
    mounts = tmp_path / "mountinfo"
    monkeypatch.setattr(queue_file, "_MOUNTS", mounts)
    if mountinfo is not None:
        mounts.write_text(mountinfo)
    assert await open_now(queue, ONE) is None


async def test_a_folder_that_is_missing_is_made_and_one_that_can_not_be_is_an_error(
    tmp_path: Path,
) -> None:
    inner = SqliteBackend(tmp_path / "one" / "two")
    assert (await inner.read({})).runs == []
    assert files(tmp_path) == []
    await begin(inner, ONE, "a")
    await inner.close()
    (tmp_path / "file").touch()
    impossible = SqliteBackend(tmp_path / "file" / "folder")
    with pytest.raises(FrontierError, match="Not a directory"):
        await open_now(impossible, ONE)
    await impossible.close()


# --- What passes --------------------------------------------------------------------------------


async def test_a_file_that_is_locked_for_too_long_is_an_error_and_blocks_no_event_loop(
    queue: SqliteBackend, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queue_file, "_BUSY_SECONDS", 0.3)
    await begin(queue, ONE, "a")
    with closing(sqlite3.connect(tmp_path / FILE, isolation_level=None)) as database:
        database.execute("BEGIN IMMEDIATE")
        step = asyncio.create_task(queue.push(ONE, pushes("b")))
        turns = 0
        while not step.done():
            await asyncio.sleep(0.01)
            turns += 1
        with pytest.raises(FrontierError, match=f"{FILE}: database is locked"):
            await step
        assert turns > 5
        report = await report_of(queue)  # which waits for no lock
        assert report.account.open == 1
        database.execute("ROLLBACK")
    assert await queue.push(ONE, pushes("b")) == 0
    await expect(queue, ONE, open=2)


async def test_on_a_full_disk_nothing_is_queued_and_leases_can_still_end(
    queue: SqliteBackend,
) -> None:
    await begin(queue, ONE, "a", "b")
    deliveries = await take(queue, ONE, 2)

    async def limit_pages(most: int) -> None:
        connection = queue._file._connection
        assert connection is not None
        await queue._in_thread(
            lambda: connection.execute(f"PRAGMA max_page_count = {most}").fetchall()
        )

    await limit_pages(1)  # no more than there are
    many = pushes(*(f"tt{number}" for number in range(2000)))
    with pytest.raises(FrontierFullError, match="database or disk is full"):
        await queue.push(ONE, many)
    await expect(queue, ONE, open=2)
    await store(queue, ONE, deliveries)
    await limit_pages(1_000_000)
    assert await queue.push(ONE, many) == 0
    await expect(queue, ONE, requested=2003, stored=2, open=2000)


async def test_a_clock_that_is_set_back_hangs_no_lease(
    queue: SqliteBackend, file_side: OutsideOfSqlite
) -> None:
    brief = worker("brief", lease_seconds=60)
    file_side.clock.ahead = 30 * DAY_SECONDS
    await begin(queue, brief, "a")
    await queue.take(brief, 1)
    file_side.clock.ahead = 0
    assert await take(queue, TWO, 1) == []
    file_side.clock.ahead = 65
    assert await take_ids(queue, TWO, 1) == ["a"]


async def test_a_clock_that_is_set_back_hangs_no_next_pass(
    queue: SqliteBackend, file_side: OutsideOfSqlite, other: SqliteBackend
) -> None:
    file_side.clock.ahead = 30 * DAY_SECONDS
    await begin(queue, ONE, "a")
    await finish_all(queue, ONE)
    assert await open_now(other, TWO) is None
    report = await report_of(other)
    assert report.started_at == pytest.approx(time.time(), abs=60)


async def test_what_is_unused_for_a_week_is_deleted_when_any_run_is_opened(
    queue: SqliteBackend, file_side: OutsideOfSqlite
) -> None:
    one = worker(limit=9)
    await begin(queue, one, "a", "b")
    [delivery] = await take(queue, one, 1)
    await queue.finish(one, [dead(delivery)])
    await file_side.expire()
    await open_now(queue, worker("other", run=RunName("metacritic", "other")))
    rows = {
        table: file_side.execute(f"SELECT count(*) FROM {table}")[0][0]  # noqa: S608 - ours
        for table in TABLES
    }
    assert rows == dict.fromkeys(TABLES, 0) | {
        "runs": 2,  # with that of the run that has expired
        "requests": 1,
        "letters": 1,
        "clock": 1,
    }
    file_side.clock.ahead += 30 * DAY_SECONDS
    await open_now(queue, worker("other", run=RunName("metacritic", "other")))
    assert file_side.execute("SELECT * FROM letters") == []


# --- What is the queue's own ---------------------------------------------------------------------


@pytest.mark.parametrize(("next_one", "renew"), [(ONE, []), (TWO, ["a"])])
async def test_a_lease_is_renewed_by_its_worker_alone_and_only_where_it_says_so(
    queue: SqliteBackend, file_side: OutsideOfSqlite, next_one: Worker, renew: list[str]
) -> None:
    await begin(queue, ONE, "a")
    await take(queue, ONE, 1)
    await file_side.end_leases("a")
    [delivery] = await take(queue, next_one, 1, renew)
    assert (delivery.id, delivery.number) == ("a", 2)


async def test_a_lease_of_another_run_is_not_renewed(
    queue: SqliteBackend, file_side: OutsideOfSqlite
) -> None:
    await file_side.begin_others()
    await begin(queue, ONE, "a")
    await queue.take(ONE, 0, ["d"])
    file_side.check_others()


async def test_who_leaves_gives_back_what_it_has_and_nothing_of_others(
    queue: SqliteBackend,
) -> None:
    await begin(queue, ONE, "a", "b")
    assert await take_ids(queue, ONE, 1) == ["a"]
    assert await take_ids(queue, TWO, 1) == ["b"]
    await queue.leave(ONE)
    assert await take_ids(queue, worker("three"), 9) == ["a"]


async def test_a_run_that_is_not_over_is_joined_though_something_of_it_was_lost(
    queue: SqliteBackend, file_side: OutsideOfSqlite
) -> None:
    await begin(queue, ONE, "a", "b")
    file_side.execute("DELETE FROM requests WHERE id = 'b'")
    assert await open_now(queue, TWO) is None
    await expect(queue, TWO, requested=3, open=1)


async def test_letters_are_listed_as_they_died_and_not_when_they_are_old(
    queue: SqliteBackend, file_side: OutsideOfSqlite
) -> None:
    await begin(queue, ONE, "b", "a", "c")
    await bury_next(queue, ONE)
    await bury_next(queue, ONE)
    assert await letter_ids(queue) == ["b", "a"]
    file_side.clock.ahead += TERMS.died_seconds + 1
    await queue.take(ONE)
    assert (await queue.ids(RUN)).died == set()
    file_side.clock.ahead += 31 * DAY_SECONDS
    await queue.take(ONE)
    assert await letter_ids(queue) == []
    await expect_report(queue, dead_letters=0)


async def test_letters_wait_for_the_next_pass_in_the_order_in_which_they_were_requeued(
    queue: SqliteBackend,
) -> None:
    await begin(queue, ONE, "a", "b", "c")
    for _ in range(3):
        await bury_next(queue, ONE)
    for letter in ("c", "a", "b"):
        assert await queue.requeue(RUN, letter)
    assert await open_now(queue, ONE) is None
    await take_arguments(queue, ONE)
    assert await take_ids(queue, ONE, 9) == ["c", "a", "b"]


async def test_of_letters_that_are_requeued_at_one_moment_each_joins_its_own_pass(
    tmp_path: Path,
) -> None:
    queue = SqliteBackend(tmp_path, lambda: 1e9)
    for run in (RUN, RunName("imdb", "other")):
        one = worker(run=run)
        await begin(queue, one, "a", "b")
        await bury_next(queue, one)
        await bury_next(queue, one)
        assert await queue.requeue(run, "a")  # which waits, as the run is over
        await queue.push(one, pushes("c"))
    assert await queue.requeue(RUN, "b")
    assert await take_ids(queue, ONE, 9) == ["c", "b"]
    assert await take_ids(queue, worker(run=RunName("imdb", "other")), 9) == ["c"]
    await queue.close()


async def test_an_unknown_letter_keeps_no_run(
    queue: SqliteBackend, file_side: OutsideOfSqlite
) -> None:
    await begin(queue, ONE, "a")
    file_side.clock.ahead += 3 * DAY_SECONDS
    assert not await queue.requeue(RUN, "none")
    assert not await file_side.lives_for(4.1 * DAY_SECONDS)


async def test_a_run_that_expires_leaves_its_letters_and_all_that_others_have(
    queue: SqliteBackend, file_side: OutsideOfSqlite
) -> None:
    def rows() -> list[object]:
        tables = ("requests", "seen", "limited_titles", "workers")
        return [
            file_side.execute(f"SELECT * FROM {table} WHERE {file_side.is_ours()}")  # noqa: S608
            for table in tables
        ]

    await file_side.begin_others()
    one = worker(limit=9)
    await begin(queue, one, "a", "b")
    file_side.clock.ahead += 6 * DAY_SECONDS
    await take(queue, one, 1)
    await refuse(queue, 3 * DAY_SECONDS)
    ours = rows()
    file_side.clock.ahead += 2 * DAY_SECONDS
    assert await queue.requeue(ANOTHER, "a")
    assert rows() == ours
    report = await report_of(queue, ANOTHER)
    assert (report.account.requested, report.requeued) == (0, 1)
    assert (await queue.ids(ANOTHER)).open == set()
    opened = await queue.open(worker(run=ANOTHER), None, 0)
    assert len(opened.remarks) == 1  # what expired is said, also by a later step


async def test_a_clock_that_goes_back_by_less_than_a_second_moves_nothing(
    queue: SqliteBackend, file_side: OutsideOfSqlite
) -> None:
    await begin(queue, ONE, "a")
    started = file_side.execute("SELECT started_at FROM runs")
    file_side.clock.ahead -= 0.5
    await queue.take(ONE)
    assert file_side.execute("SELECT started_at FROM runs") == started
