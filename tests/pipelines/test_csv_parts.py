"""CSV files of which only what has changed is written anew."""

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from unittest.mock import Mock

import pytest

from moviecrawler.basics.errors import OutputError
from moviecrawler.database.csv_files import forget_files, intact_files
from moviecrawler.database.sqlite import open_sqlite
from moviecrawler.items import ListPage, Miss, Movie, Score
from moviecrawler.pipelines.csv_export import FILES, export, is_outdated
from moviecrawler.pipelines.sqlite import SqliteStore
from tests.crawling import scrapy
from tests.pipelines.pages import FULL, METACRITIC, TOMATOES
from tests.runs import make_list, make_miss, make_movie
from tests.stored import opened, write

MOVIES = [make_movie(number, age=9000) for number in range(1, 9)]


def contents(folder: Path) -> dict[str, bytes]:
    return {name: (folder / name).read_bytes() for name in FILES}


def found(folder: Path, words: str) -> list[int]:
    """Return the titles that Datasette's index has."""
    query = "SELECT rowid FROM title_search WHERE title_search MATCH ? ORDER BY rowid"
    with closing(sqlite3.connect(folder / "movies.sqlite3")) as connection:
        return [title_id for (title_id,) in connection.execute(query, (words,))]


def check_as_if_written_at_once(folder: Path) -> None:
    """Check that the files are those of a folder in which all movies were stored together."""
    (folder / "other").mkdir()
    write(folder / "other", *MOVIES, make_movie(9))
    assert contents(folder) == contents(folder / "other")


CHANGES: dict[str, Sequence[Movie | Miss | ListPage]] = {
    "a title in the middle": [make_movie(4, title='Another "Lamp",\r\nand longer')],
    "the first and the last": [make_movie(1, scores=[]), make_movie(8, credits=[])],
    "a new one": [make_movie(0), make_movie(5, kind="series")],
    "more votes": [make_movie(3, scores=[Score(kind="imdb", value=9, count=99_999)])],
    "nothing but the time": [make_movie(2)],
    "a list": [make_list({"tt0000005": 1, "tt0000009": 2, "tt0000002": 3})],
    "other ranks": [
        make_list({"tt0000006": 1, "tt0000007": 2}),
        make_list({"tt0000007": 1, "tt0000003": 2}, days=1),
    ],
    "other sites": [FULL, METACRITIC, TOMATOES],
    "a miss": [make_miss(99)],
}


@pytest.mark.promise("CSV files are replaced whole, and hold each text as it is.")
@pytest.mark.parametrize("changes", CHANGES.values(), ids=CHANGES)
def test_what_has_changed_is_written_and_the_rest_is_copied(
    tmp_path: Path, changes: Sequence[Movie | Miss | ListPage]
) -> None:
    write(tmp_path, *MOVIES, make_list({"tt0000006": 1, "tt0000004": 2}))
    for number, item in enumerate(changes):
        write(tmp_path, item, *changes[:number])
    before = contents(tmp_path)
    with closing(open_sqlite(tmp_path)) as connection:
        assert not is_outdated(connection, tmp_path)
        forget_files(connection)
        export(connection, tmp_path)
    assert contents(tmp_path) == before


def test_a_file_without_changes_is_not_written(tmp_path: Path) -> None:
    write(tmp_path, *MOVIES)
    before = {name: (tmp_path / name).stat().st_ino for name in FILES}

    def replaced() -> set[str]:
        return {name for name in FILES if (tmp_path / name).stat().st_ino != before[name]}

    with opened(SqliteStore(tmp_path)):
        pass
    assert not replaced()
    write(tmp_path, make_miss(99))
    assert replaced() <= {"lists.csv", "misses.csv", "people.csv"}
    write(tmp_path, make_movie(3, title="Another"))
    assert {"movies.csv", "scoreboard.csv"} <= replaced()
    assert not {"awards.csv", "offers.csv"} & replaced()


def test_a_file_that_somebody_has_changed_is_never_taken_for_ours(tmp_path: Path) -> None:
    write(tmp_path, *MOVIES)
    before = contents(tmp_path)
    for name in ("scoreboard.csv", "credits.csv"):
        (tmp_path / name).write_bytes(before[name].replace(b"1", b"2"))
    printed = scrapy("scoreboard", "--format", "csv", data=tmp_path).output
    assert printed.splitlines() == before["scoreboard.csv"].decode().splitlines()
    write(tmp_path, make_movie(9))
    write(tmp_path)
    check_as_if_written_at_once(tmp_path)


def test_a_file_that_is_cut_while_it_is_copied_ends_the_export_and_the_next_writes_it_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, *MOVIES)
    with monkeypatch.context() as patched:
        # It is cut after it was found to be as it was written.
        patched.setattr("moviecrawler.pipelines.csv_export.intact_files", _cut)
        with pytest.raises(OutputError, match="was cut while it was copied"):
            write(tmp_path, make_movie(9))
    write(tmp_path)
    check_as_if_written_at_once(tmp_path)


def _cut(connection: sqlite3.Connection, folder: Path) -> set[str]:
    intact = intact_files(connection, folder)
    (folder / "credits.csv").write_bytes(b"")
    return intact


def test_changes_that_were_not_noted_are_in_the_index(tmp_path: Path) -> None:
    write(tmp_path, *MOVIES)
    with closing(sqlite3.connect(tmp_path / "movies.sqlite3")) as connection:
        connection.execute("DROP TRIGGER csv_records_update")
        connection.execute("UPDATE records SET title = 'Renamed' WHERE site_id = 'tt0000003'")
        connection.commit()
    write(tmp_path, make_movie(9))
    assert len(found(tmp_path, "renamed")) == 1


def test_an_export_that_is_killed_at_its_end_is_done_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, *MOVIES)
    with monkeypatch.context() as patched:
        patched.setattr("moviecrawler.pipelines.csv_export.note_file", Mock(side_effect=KeyError))
        with pytest.raises(KeyError):
            write(tmp_path, make_movie(3, title="Another"))
    write(tmp_path, make_movie(2, title="A third"))
    text = (tmp_path / "movies.csv").read_text("utf-8")
    assert "Another" in text
    assert "A third" in text
    assert len(text.splitlines()) == 1 + len(MOVIES)


def test_the_index_of_titles_follows_them(tmp_path: Path) -> None:
    write(tmp_path, *MOVIES)
    assert len(found(tmp_path, "brewick")) == len(MOVIES)
    write(tmp_path, make_movie(3, title="Another", original_title="Ein anderer"))
    assert len(found(tmp_path, "brewick")) == len(MOVIES) - 1
    (title_id,) = found(tmp_path, "anderer")
    assert title_id in found(tmp_path, "farrow")


def test_what_changes_during_an_export_is_written_by_the_next(tmp_path: Path) -> None:
    write(tmp_path, *MOVIES)
    write(tmp_path, make_movie(2, title="Another"), with_csv=False)
    with closing(open_sqlite(tmp_path)) as connection:
        later = iter([make_movie(2, age=-9, title="A third")])

        def go_on() -> bool:
            write(tmp_path, *later, with_csv=False)
            return False

        export(connection, tmp_path, go_on)
        assert b"Another" in contents(tmp_path)["scoreboard.csv"]
        assert is_outdated(connection, tmp_path)
        export(connection, tmp_path)
        assert not is_outdated(connection, tmp_path)
    assert b"A third" in contents(tmp_path)["scoreboard.csv"]


def test_changes_do_not_heap_up_while_no_files_are_written(tmp_path: Path) -> None:
    write(tmp_path, *MOVIES)
    for round_number in range(3):
        changed = [make_movie(n, age=-round_number, title=f"{n}") for n in range(1, 9)]
        write(tmp_path, *changed, with_csv=False)
    with closing(open_sqlite(tmp_path)) as connection:
        ((changes,),) = connection.execute("SELECT count(*) FROM csv_changes")
    assert changes <= 2 * len(MOVIES)
