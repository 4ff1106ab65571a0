"""`scrapy scoreboard` prints to whatever reads it."""

import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

import duckdb
import pytest

from moviecrawler.database.schema import VERSION
from moviecrawler.database.sqlite import FILE, read_sqlite
from moviecrawler.pipelines.sqlite import SqliteStore
from moviecrawler.replica.process import ReplicaProcess
from tests.crawling import crawl, scrapy
from tests.processes import environment, start
from tests.runs import make_movie, record_of
from tests.services.replica import IDS
from tests.shared import PROJECT
from tests.stored import write
from tests.tables import read_movies


@pytest.fixture(scope="module")
def full(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a DATA_DIR with more titles than a pipe holds."""
    full = tmp_path_factory.mktemp("data")
    write(full, *(make_movie(number, title=f"Lámpa 千年の灯 {number}") for number in range(2000)))
    return full


@pytest.mark.parametrize("form", ["table", "csv"])
def test_who_reads_the_first_line_only_sees_no_traceback(full: Path, form: str) -> None:
    command = (sys.executable, "-m", "scrapy", "scoreboard", "--format", form)
    pipe = subprocess.PIPE
    with subprocess.Popen(
        command, env=environment(full, None), cwd=full, stdout=pipe, stderr=pipe
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline()
        process.stdout.close()
        assert process.stderr is not None
        assert process.stderr.read() == b""
        assert process.wait(60) == 0


def test_a_terminal_that_does_not_know_a_letter_shows_the_rest(full: Path) -> None:
    ended = scrapy(
        "scoreboard", "--limit", "1", data=full, PYTHONIOENCODING="ascii", PYTHONUTF8="0"
    )
    assert ended.code == 0, ended.log
    assert "L?mpa ???? 1999" in ended.output


def printed(folder: Path, *arguments: str, **settings: str) -> bytes:
    env = environment(folder, None, **settings)
    with NamedTemporaryFile() as output:
        process = start(["scoreboard", *arguments], env=env, cwd=folder, stdout=output)
        assert process.wait(60) == 0
        return Path(output.name).read_bytes()


def test_a_database_of_an_older_version_is_brought_up_to_date(tmp_path: Path) -> None:
    dump = PROJECT / "tests" / "database" / "version_1" / "sqlite.dump"
    with closing(sqlite3.connect(tmp_path / FILE)) as connection:
        connection.executescript(dump.read_text("utf-8"))
        connection.execute("UPDATE state SET matched = written")
        connection.commit()
    assert b"The Lamp" in printed(tmp_path)
    with closing(read_sqlite(tmp_path)) as connection:
        assert connection.execute("PRAGMA user_version").fetchall() == [(VERSION,)]


def test_csv_is_utf_8_wherever_it_goes(full: Path) -> None:
    header, row, end = printed(
        full, "--format", "csv", "--limit", "1", PYTHONIOENCODING="latin-1"
    ).split(b"\r\n")
    assert header.startswith(b"title,year,")
    assert row.decode().startswith("Lámpa 千年の灯 1999,2001,7.5,")
    assert end == b""


def test_parquet_has_each_row_with_its_type(full: Path) -> None:
    (full / "scoreboard.parquet").write_bytes(printed(full, "--format", "parquet"))
    with duckdb.connect() as connection:
        query = (
            "SELECT count(*), max(imdb_votes) > 1, max(imdb_rating)"  # noqa: S608
            f" FROM '{full}/scoreboard.parquet'"
        )
        assert connection.execute(query).fetchone() == (2000, True, 7.5)


def test_the_csv_files_of_a_crawl_that_was_killed_are_written_on_demand(tmp_path: Path) -> None:
    ended = scrapy("scoreboard", "--export", data=tmp_path)
    assert (ended.code, ended.output) == (1, "")
    assert "there is no" in ended.log
    store = SqliteStore(tmp_path)
    store.open()
    store.write([record_of(make_movie(1))])
    store._connection.close()
    ended = scrapy("scoreboard", "--export", data=tmp_path)
    assert (ended.code, ended.output) == (0, "")
    assert [movie.site_id for movie in read_movies(tmp_path / "movies.csv")] == ["tt0000001"]
    (tmp_path / "people.csv").unlink()
    (tmp_path / "people.csv").mkdir()
    ended = scrapy("scoreboard", "--export", data=tmp_path)
    assert ended.code == 1
    assert f"the CSV files in {tmp_path} can't be replaced" in ended.log


def test_without_sqlite_nothing_is_kept_and_the_scoreboard_is_that_of_postgres(
    replica: ReplicaProcess, database_url: str, tmp_path: Path
) -> None:
    elsewhere = {"DATABASE_URL": database_url, "SQLITE_ENABLED": "0"}
    ids = ",".join(IDS[:3])
    given: Any = {"data": tmp_path, "replica": replica, **elsewhere}
    ended = crawl("imdb", f"ids={ids}", "via=pages", **given)
    assert ended.code == 0, ended.log
    assert "store/sqlite" not in ended.log
    assert not [*tmp_path.glob("*.csv"), *tmp_path.glob("movies.sqlite3*")]
    lines = printed(tmp_path, "--format", "json", **elsewhere).decode()
    assert all(movie in lines for movie in IDS[:3])
