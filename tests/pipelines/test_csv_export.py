"""An export of the CSV files has what is stored, does not keep a process from ending, and says when it fails."""

from __future__ import annotations

from pathlib import Path

import pytest

from moviecrawler.errors import OutputError
from moviecrawler.items import Movie
from moviecrawler.pipelines.sqlite import SqliteStore
from tests.pipelines.runs import make_movie, record_of
from tests.pipelines.stored import board_of, opened
from tests.tables import read_movies


def written(folder: Path, *movies: Movie, hurried: bool = False) -> None:
    """Store movies in a process of their own, as it were, which exports them when it ends."""
    store = SqliteStore(folder)
    store.open()
    store.write([record_of(movie) for movie in movies])
    store.hurried = hurried
    store.close()


def titles(folder: Path) -> list[str]:
    return [movie.title for movie in read_movies(folder / "movies.csv")]


def test_titles_that_have_changed_are_another_in_the_files_and_the_others_stay(tmp_path: Path) -> None:
    written(tmp_path, *(make_movie(number) for number in range(1200)))
    written(tmp_path, make_movie(7, -60, title="Newer"), make_movie(8, 60, title="Older"), make_movie(1200))
    expected = [make_movie(number).title for number in range(1201)]
    expected[7] = "Newer"
    assert titles(tmp_path) == expected


def test_a_process_that_is_told_to_end_leaves_a_long_export_to_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    written(tmp_path, make_movie(0))
    with monkeypatch.context() as patched:
        patched.setattr("moviecrawler.pipelines.sqlite._HURRIED_EXPORT_SECONDS", -1.0)
        written(tmp_path, *(make_movie(number) for number in range(1, 1300)), hurried=True)
    assert len(titles(tmp_path)) == 1
    assert len(board_of(tmp_path)) == 1300
    assert not list(tmp_path.glob("*.draft"))
    assert "lack what is new; the next crawl writes them first" in caplog.text
    with opened(SqliteStore(tmp_path)) as store:
        store.idle()
        assert len(titles(tmp_path)) == 1300


@pytest.mark.parametrize("broken", ["movies.csv", "people.csv"])
def test_files_that_can_not_be_replaced_are_told_at_the_end(tmp_path: Path, broken: str) -> None:
    store = SqliteStore(tmp_path)
    store.open()
    store.write([record_of(make_movie(1))])
    (tmp_path / broken).mkdir()
    with pytest.raises(OutputError, match="as old as before, as they could not be replaced"):
        store.close()
    assert len(board_of(tmp_path)) == 1


def test_without_csv_the_database_is_written_all_the_same(tmp_path: Path) -> None:
    with opened(SqliteStore(tmp_path, with_csv=False)) as store:
        store.write([record_of(make_movie(1))])
    assert not list(tmp_path.glob("*.csv"))
    assert [row.title for row in board_of(tmp_path)] == [make_movie(1).title]
