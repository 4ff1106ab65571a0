"""The CSV store's own promises.

They are about what stands in the files, whoever writes them, whenever one is killed.
"""

import json
import sqlite3
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from scrapy.exceptions import CloseSpider

from moviecrawler.basics.errors import ConfigurationError, OutputError
from moviecrawler.basics.texts import neutralise
from moviecrawler.database.sqlite import open_sqlite, read_sqlite
from moviecrawler.extensions.summary import _stores
from moviecrawler.items import Credit, Movie
from moviecrawler.pipelines.csv_export import export
from moviecrawler.pipelines.files import check_data_dir, replacing
from moviecrawler.pipelines.sqlite import SqliteStore
from moviecrawler.pipelines.store import Record
from moviecrawler.replica.process import ReplicaProcess
from tests.crawling import scrapy
from tests.pipelines.pages import MOVIES
from tests.processes import CONTEXT
from tests.runs import crawl, make_list, make_miss, make_movie, record_of, running
from tests.stored import board_of, opened, write
from tests.tables import MOVIE_COLUMNS, check_readable, read_movies, rows
from tests.waiting import until


def test_the_files_have_all_that_is_stored(tmp_path: Path) -> None:
    older = make_movie(
        8, 90, credits=[Credit(name="S. Body", role="cast", position=1, person_id="nm0000008")]
    )
    crawl(SqliteStore(tmp_path), tmp_path, *MOVIES.values(), older)
    assert tuple(rows(tmp_path / "movies.csv")[0]) == MOVIE_COLUMNS
    expected = json.loads(Path(__file__).with_name("cells.json").read_text("utf-8"))
    for name, expected_rows in expected.items():
        found = rows(tmp_path / name)
        for expected_row in expected_rows:
            assert any(expected_row.items() <= row.items() for row in found), expected_row


def test_files_that_can_not_be_replaced_are_told_and_replaced_by_the_next_crawl(
    replica: ReplicaProcess, tmp_path: Path
) -> None:
    (tmp_path / "movies.csv").mkdir()
    ended = scrapy("crawl", "imdb", "-a", "limit=1", data=tmp_path, replica=replica)
    assert ended.code == 1
    assert "are as old as before, as they could not be replaced" in ended.log
    assert len(board_of(tmp_path)) == 1
    (tmp_path / "movies.csv").rmdir()
    write(tmp_path)
    assert len(titles(tmp_path)) == 1


def test_rows_are_in_chart_order_then_in_the_order_of_arrival(tmp_path: Path) -> None:
    ranks = {"tt0000003": 10, "tt0000001": 2, "tt0000002": 1}
    movies = [make_movie(number) for number in (9, 8, 3, 1, 2, 7)]
    crawl(SqliteStore(tmp_path), tmp_path, *movies, make_list(ranks))
    assert [row["site_id"][-1] for row in rows(tmp_path / "movies.csv")] == list("213987")
    assert [row["rank"] for row in rows(tmp_path / "lists.csv")] == ["1", "2", "10"]


def test_files_are_written_when_the_crawl_ends(tmp_path: Path) -> None:
    with opened(SqliteStore(tmp_path)) as store:
        for item in (
            make_movie(1),
            make_miss(2, outcome="failed", reason="HTTP status 500"),
            make_movie(3, 9000),
            make_movie(3),
        ):
            store.write([record_of(item)])
        assert not list(tmp_path.glob("*.csv"))
    assert len(titles(tmp_path)) == 2
    (missed,) = rows(tmp_path / "misses.csv")
    expected = {"site_id": "tt0000002", "outcome": "failed", "reason": "HTTP status 500"}
    assert missed.items() >= expected.items()


def test_a_file_that_was_removed_is_exported_again(tmp_path: Path) -> None:
    crawl(SqliteStore(tmp_path), tmp_path, make_movie(1))
    (tmp_path / "people.csv").unlink()
    crawl(SqliteStore(tmp_path), tmp_path)
    assert len(rows(tmp_path / "people.csv")) == 3


class FullDisk(SqliteStore):
    """Has no room for the first two tries."""

    pages = iter((1, 1, 1_000_000))

    def write(self, records: Sequence[Record]) -> None:
        self._connection.execute(f"PRAGMA max_page_count = {next(self.pages)}")
        super().write(records)


async def test_a_full_disk_is_waited_out(tmp_path: Path) -> None:
    async with running(FullDisk(tmp_path), tmp_path) as run:
        await run.process(make_movie(1, keywords=["Rain. " * 60] * 200))
        await until(lambda: run.count("durable") == 1)
    assert run.count("retries") == 2
    assert len(check_readable(tmp_path)) == 1


def test_a_damaged_or_newer_file_stops_the_crawl_with_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "movies.sqlite3").write_bytes(b"no database " * 1000)
    for made_by, refusal in (
        ("", "move it away"),
        ("PRAGMA user_version = 99", "has version 99 of the schema"),
        ("CREATE TABLE of_another_program (id)", "has tables that no version of moviecrawler has"),
    ):
        if made_by:
            (tmp_path / "movies.sqlite3").unlink()
            with closing(sqlite3.connect(tmp_path / "movies.sqlite3")) as connection:
                connection.execute(made_by)
        with pytest.raises(CloseSpider) as caught:
            crawl(SqliteStore(tmp_path), tmp_path)
        assert refusal in str(caught.value.__cause__)


def test_an_unwritable_data_dir_is_told_in_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for wrong in (tmp_path / "file", tmp_path / "file" / "data", "", "nul\0"):
        with pytest.raises(ConfigurationError, match="DATA_DIR is"):
            check_data_dir(wrong)


@pytest.mark.promise("CSV files are replaced whole, and hold each text as it is.")
def test_a_file_is_replaced_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    with replacing(path) as file:
        file.write("old")

    def fail() -> None:
        with replacing(path) as file:
            file.write("new")
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_processes_may_open_a_fresh_folder_all_at_once(tmp_path: Path) -> None:
    with ProcessPoolExecutor(6, CONTEXT, CONTEXT.Barrier(6).wait, (60,)) as pool:
        list(pool.map(SqliteStore.open, [SqliteStore(tmp_path)] * 6))


def titles(folder: Path) -> list[str]:
    return [movie.title for movie in read_movies(folder / "movies.csv")]


def test_a_process_that_is_told_to_end_leaves_a_long_export_to_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    write(tmp_path, make_movie(0))
    with monkeypatch.context() as patched:
        patched.setattr("moviecrawler.pipelines.sqlite._HURRIED_EXPORT_SECONDS", -1.0)
        with opened(SqliteStore(tmp_path)) as store:
            store.hurried = True
            store.write([record_of(make_movie(number)) for number in range(1, 1300)])
    assert len(titles(tmp_path)) == 1
    assert len(board_of(tmp_path)) == 1300
    assert not list(tmp_path.glob("*.draft"))
    assert "lack what is new, as there was no time to write them" in caplog.text
    write(tmp_path, make_movie(0))
    assert len(titles(tmp_path)) == 1300


@pytest.mark.promise(
    "The exit code is 0 only when every requested title was stored or stated absent."
)
@pytest.mark.parametrize("is_replaced", [False, True], ids=["deleted", "replaced"])
@pytest.mark.parametrize(
    ("with_csv", "advice"),
    [(True, "copy the CSV files, which have it"), (False, "crawl it again")],
    ids=["csv", "no csv"],
)
def test_a_database_that_is_taken_away_in_mid_crawl_is_told(
    tmp_path: Path, is_replaced: bool, with_csv: bool, advice: str
) -> None:
    (tmp_path / "backup").mkdir()
    write(tmp_path / "backup", make_movie(3))
    store = SqliteStore(tmp_path, with_csv=with_csv)
    store.open()
    store.write([record_of(make_movie(1))])
    for path in tmp_path.glob("movies.sqlite3*"):
        path.unlink()
    if is_replaced:
        (tmp_path / "backup" / "movies.sqlite3").rename(tmp_path / "movies.sqlite3")
    store.write([record_of(make_movie(2))])
    sentence = "movies.sqlite3 was deleted or replaced during the crawl, and lacks what was stored"
    with pytest.raises(OutputError, match=f"{sentence}; {advice}"):
        store.close()
    if with_csv:
        assert len(check_readable(tmp_path)) == 2


async def test_a_scoreboard_that_is_not_made_anew_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("moviecrawler.pipelines.sqlite.MOST_TITLES_AT_THE_END", 1)
    async with running(SqliteStore(tmp_path), tmp_path) as run:
        await run.process(make_movie(1))
        url = "https://www.rottentomatoes.com/m/ebb"
        other = make_movie(2, site="rottentomatoes", site_id="m/ebb", url=url, scores=[])
        await run.process(other)
    remark = (
        "2 records are not matched with those of other sites yet; run scrapy scoreboard to do that"
    )
    assert remark in _stores(run.stats.get_stats())
    assert len(board_of(tmp_path)) == 2


def test_without_csv_the_database_is_written_all_the_same(tmp_path: Path) -> None:
    write(tmp_path, make_movie(1), with_csv=False)
    assert not list(tmp_path.glob("*.csv"))
    assert [row.title for row in board_of(tmp_path)] == [make_movie(1).title]


def people_and_indexes(folder: Path) -> list[list[tuple[Any, ...]]]:
    """Return what a database has after a load, but for times."""
    queries = (
        "SELECT name, sql FROM sqlite_master WHERE type = 'index' ORDER BY name",
        "SELECT site, person_key, person_id, name FROM people ORDER BY person_key",
        "SELECT count(*) FROM people WHERE named_at IS NULL",
    )
    with closing(read_sqlite(folder)) as connection:
        return [connection.execute(query).fetchall() for query in queries]


def some_movies() -> list[Movie]:
    """Return movies of which one has a person without a name."""
    movies = [make_movie(number, age=number) for number in range(1, 151)]
    movies[5].credits[1].name = None
    return movies


@pytest.fixture(scope="module")
def stored_one_by_one(tmp_path_factory: pytest.TempPathFactory) -> list[list[tuple[Any, ...]]]:
    """Return what a database has after crawls of a single movie each."""
    folder = tmp_path_factory.mktemp("one by one")
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("moviecrawler.pipelines.sqlite.MOST_TITLES_AT_THE_END", 1)
        for movie in some_movies():
            write(folder, movie, with_csv=False)
    return people_and_indexes(folder)


@pytest.mark.parametrize("is_killed", [True, False], ids=["killed", "signal"])
def test_a_load_that_is_broken_off_is_ended_when_the_database_is_opened_again(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    stored_one_by_one: list[list[tuple[Any, ...]]],
    is_killed: bool,
) -> None:
    monkeypatch.setattr("moviecrawler.pipelines.sqlite.MOST_TITLES_AT_THE_END", 1)
    killed = tmp_path / "killed"
    killed.mkdir()
    unfinished = SqliteStore(killed)
    unfinished.open()
    unfinished.write([record_of(movie) for movie in some_movies()])
    if not is_killed:
        unfinished.hurry()
        unfinished.close()
    assert people_and_indexes(killed)[1] == []
    assert not list(killed.glob("*.csv"))
    open_sqlite(killed).close()
    assert people_and_indexes(killed) == stored_one_by_one
    unfinished.close()


FORMULA_SIGNS = "=+-@\t\r\n＝＋－＠"


@pytest.mark.promise("CSV files are replaced whole, and hold each text as it is.")
def test_each_text_is_as_it_is_but_for_excel_where_no_cell_runs_as_a_formula(
    tmp_path: Path,
) -> None:
    texts = [
        f"{quotes}{sign}1" for sign in (*FORMULA_SIGNS, "x=", "; ") for quotes in ("", "'", "''")
    ]
    write(tmp_path, *(make_movie(number, title=text) for number, text in enumerate(texts)))
    assert titles(tmp_path) == texts
    with closing(open_sqlite(tmp_path)) as connection:
        export(connection, tmp_path, excel=True)
        assert (tmp_path / "people.csv").read_text("utf-8").startswith("\ufeff")
        cells = [row["title"] for row in rows(tmp_path / "movies.csv", "utf-8-sig")]
        assert not [cell for cell in cells if cell.startswith(tuple(FORMULA_SIGNS))]
        assert cells == [neutralise(text) for text in texts]
        export(connection, tmp_path)
    assert titles(tmp_path) == texts
