"""Who may not write the folder of the embedded database reads it all the same."""

import os
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest
from scrapy.settings import Settings

from moviecrawler.basics.errors import TransientStoreError
from moviecrawler.database.board import BoardQuery, read_board
from moviecrawler.database.fresh import fresh_ids
from moviecrawler.database.reading import reading_sqlite
from moviecrawler.database.sqlite import FILE, open_sqlite
from moviecrawler.pipelines.sqlite import SqliteStore
from tests.processes import CONTEXT
from tests.runs import BEGIN, make_movie, record_of
from tests.stored import opened, write

_NOBODY = 65_534


@pytest.fixture
def readable() -> Iterator[Path]:
    """Return a folder into which anybody may look, which pytest's own is not."""
    readable = Path(tempfile.mkdtemp(prefix="readable-"))
    with opened(SqliteStore(readable)) as store:
        store.write([record_of(make_movie(1))])
    readable.chmod(0o555)
    for file in readable.iterdir():
        file.chmod(0o444)
    yield readable
    readable.chmod(0o755)
    shutil.rmtree(readable)


def read(folder: Path, *, is_left: bool) -> None:
    """Read the scoreboard as somebody else, and what a crawl has left by any program."""
    if os.getuid() == 0:
        os.setuid(_NOBODY)
    with reading_sqlite(folder) as tables:
        assert len(list(read_board(tables, BoardQuery()).rows)) == 1
    if is_left:
        uri = f"{(folder / FILE).as_uri()}?mode=ro"
        with closing(sqlite3.connect(uri, uri=True)) as connection:
            assert connection.execute("SELECT count(*) FROM titles").fetchall() == [(1,)]


@pytest.mark.promise("Who may not write the data can read it.")
@pytest.mark.parametrize("is_left", [True, False], ids=["as a crawl leaves it", "the file alone"])
def test_a_folder_that_can_not_be_written_is_read(readable: Path, is_left: bool) -> None:
    if not is_left:
        readable.chmod(0o755)
        for file in readable.glob(f"{FILE}-*"):
            file.unlink()
        readable.chmod(0o555)
    process = CONTEXT.Process(target=read, args=(readable,), kwargs={"is_left": is_left})
    process.start()
    process.join(60)
    assert process.exitcode == 0


@pytest.mark.promise("Who may not write the data can read it.")
def test_a_reader_beside_a_writer_sees_what_is_written(readable: Path) -> None:
    readable.chmod(0o755)
    for file in readable.iterdir():
        file.chmod(0o644)
    writing = open_sqlite(readable)
    with reading_sqlite(readable) as tables:
        writing.execute("UPDATE titles SET title = 'Another'")
        assert tables.select("SELECT title FROM titles", ()) == [("Another",)]
    writing.close()


def test_a_title_is_fresh_where_each_database_in_use_has_its_newer_page(
    tmp_path: Path, database_url: str
) -> None:
    def fresh(seconds: float, *, embedded: bool, url: str = "") -> set[str]:
        given = {"DATA_DIR": str(tmp_path), "SQLITE_ENABLED": embedded, "DATABASE_URL": url}
        since = BEGIN - timedelta(seconds=seconds)
        return fresh_ids(Settings(given), "imdb", ["tt0000001", "tt0000002"], since)

    assert fresh(60, embedded=True) == set()
    write(tmp_path, make_movie(1), make_movie(2, age=60), with_csv=False)
    assert fresh(60, embedded=True) == {"tt0000001"}
    assert fresh(61, embedded=True) == {"tt0000001", "tt0000002"}
    write(database_url, make_movie(1, source="list"), make_movie(2))
    assert fresh(60, embedded=False, url=database_url) == {"tt0000002"}
    assert fresh(61, embedded=True, url=database_url) == {"tt0000002"}
    assert fresh(0, embedded=True, url=database_url) == set()
    (tmp_path / FILE).write_bytes(b"no database" * 1_000)
    with pytest.raises(TransientStoreError, match="the embedded database can't be read"):
        fresh(0, embedded=True)
