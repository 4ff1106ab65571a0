"""An export of the CSV files costs what has changed, and does not keep a process from ending."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from moviecrawler.catalogue.tables import read_movies
from moviecrawler.items import Movie
from moviecrawler.pipelines import csv_export
from moviecrawler.pipelines.csv import CsvStore
from tests.pipelines.runs import make_movie, record_of


def written(folder: Path, *movies: Movie, hurried: bool = False) -> None:
    """Store movies in a process of their own, as it were, which exports them when it ends."""
    store = CsvStore(folder)
    store.open()
    store.write([record_of(movie) for movie in movies])
    store.hurried = hurried
    store.close()


def titles(folder: Path) -> list[str]:
    return [movie.title for movie in read_movies(folder / "movies.csv")]


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The titles whose lines were made."""
    made: list[str] = []
    lines = csv_export._lines

    def note(encoded: bytes) -> tuple[bytes, ...]:
        made.append(msgspec.json.decode(encoded, type=Movie).title)
        return lines(encoded)

    monkeypatch.setattr(csv_export, "_lines", note)
    return made


def test_lines_are_made_of_titles_that_have_changed(tmp_path: Path, made: list[str]) -> None:
    written(tmp_path, *(make_movie(number) for number in range(1200)))
    assert len(made) == 1200
    made.clear()
    written(tmp_path, make_movie(7, -60, title="Newer"), make_movie(8, 60, title="Older"), make_movie(1200))
    assert sorted(made) == ["Newer", make_movie(1200).title]
    expected = [make_movie(number).title for number in range(1201)]
    expected[7] = "Newer"
    assert titles(tmp_path) == expected


def test_what_a_version_without_these_tables_wrote_is_exported(tmp_path: Path, made: list[str]) -> None:
    written(tmp_path, *(make_movie(number) for number in range(3)))
    with closing(sqlite3.connect(tmp_path / "movies.sqlite3", isolation_level=None)) as connection:
        movie = make_movie(1, title="By another version")
        connection.execute("UPDATE movies SET movie = ? WHERE site_id = 'tt0000001'", (msgspec.json.encode(movie),))
        connection.execute("UPDATE state SET written = written + 1")
        assert connection.execute("PRAGMA user_version").fetchone() == (1,)
    made.clear()
    written(tmp_path)
    assert made == ["By another version"]
    assert titles(tmp_path)[1] == "By another version"


def test_lines_of_another_format_are_made_anew(
    tmp_path: Path, made: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    written(tmp_path, *(make_movie(number) for number in range(3)))
    monkeypatch.setattr(csv_export, "_FORMAT", "another")
    made.clear()
    written(tmp_path, make_movie(3))
    assert len(made) == 4


def test_lines_that_a_job_of_an_older_version_makes_meanwhile_are_made_again(tmp_path: Path, made: list[str]) -> None:
    written(tmp_path, *(make_movie(number) for number in range(3)))
    older = "INSERT OR REPLACE INTO rendered (seq, movie, credits, scores) VALUES (2, ?, '', '')"
    with closing(sqlite3.connect(tmp_path / "movies.sqlite3", isolation_level=None)) as connection:
        connection.execute(older, (b"imdb,tt0000001\r\n",))
    made.clear()
    written(tmp_path, make_movie(3))
    assert made == [make_movie(number).title for number in (1, 3)]
    assert titles(tmp_path) == [make_movie(number).title for number in range(4)]


def test_a_process_that_is_told_to_end_leaves_a_long_export_to_the_next(
    tmp_path: Path, made: list[str], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    written(tmp_path, make_movie(0))
    with monkeypatch.context() as patched:
        patched.setattr("moviecrawler.pipelines.csv._HURRIED_EXPORT_SECONDS", -1.0)
        made.clear()
        written(tmp_path, *(make_movie(number) for number in range(1, 1300)), hurried=True)
    assert len(made) == 500
    assert len(titles(tmp_path)) == 1
    assert not list(tmp_path.glob("*.draft"))
    assert "lack what is new; the next crawl writes them first" in caplog.text
    store = CsvStore(tmp_path)
    store.open()
    store.idle()
    assert len(titles(tmp_path)) == 1300
    assert len(made) == 1299
    store.close()
