"""Which titles come from IMDb's datasets and TMDB's exports."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from moviecrawler.catalogue.imdb_import import BASICS, RATINGS, ImdbDatasets, Selection
from moviecrawler.catalogue.popularity import popularity_of_tmdb, popularity_of_votes
from moviecrawler.catalogue.rows import ImportRow
from moviecrawler.catalogue.tmdb_import import TmdbExport, file_name
from moviecrawler.datasets.files import DownloadError
from moviecrawler.errors import ConfigurationError, ExtractionError
from tests.catalogue.files import FileServer, fetched

BASICS_HEADER = "tconst\ttitleType\tprimaryTitle\toriginalTitle\tisAdult\tstartYear\tendYear\truntimeMinutes\tgenres\n"
ROWS = (
    "tt0000001\tmovie\tSalt Harbour\tHavn av salt\t0\t2001\t\\N\t104\tDrama\n"
    "tt0000002\ttvSeries\tBrewick\tBrewick\t0\t2010\t2012\t45\tDrama\n"
    "tt0000003\tmovie\tUnrated\tUnrated\t0\t2003\t\\N\t\\N\t\\N\n"
    "tt0000004\tmovie\tUndated\tUndated\t0\t\\N\t\\N\t80\tDrama\n"
    "tt0000005\tmovie\tNot for all\tNot for all\t1\t2001\t\\N\t80\tAdult\n"
    "tt0000006\tmovie\tOld One\tOld One\t0\t1950\t\\N\t80\tDrama\n"
)
RATED = (
    "tconst\taverageRating\tnumVotes\ntt0000001\t7.1\t2000\ntt0000002\t8.0\t500\ntt0000004\t5.0\t7\n"
    "tt0000005\t5.0\t900\ntt0000006\t6.0\t30\n"
)


@pytest.fixture
def server() -> Iterator[FileServer]:
    with FileServer() as serving:
        yield serving


def datasets(folder: Path, rows: str = ROWS, rated: str = RATED) -> str:
    folder.mkdir(exist_ok=True)
    (folder / BASICS).write_bytes(gzip.compress((BASICS_HEADER + rows).encode()))
    (folder / RATINGS).write_bytes(gzip.compress(rated.encode()))
    return str(folder)


def test_a_title_comes_with_its_facts_and_its_popularity(tmp_path: Path) -> None:
    first, *_ = ImdbDatasets(datasets(tmp_path), tmp_path).rows()
    assert first == ImportRow(
        imdb_id="tt0000001",
        title="Salt Harbour",
        original_title="Havn av salt",
        kind="movie",
        year=2001,
        runtime_minutes=104,
        votes=2_000,
        popularity=popularity_of_votes(2_000),
        popularity_source="votes",
    )


@pytest.mark.parametrize(
    ("selection", "numbers"),
    [
        (Selection(), [1, 3, 4, 6]),
        (Selection(kinds=frozenset({"movie", "series"})), [1, 2, 3, 4, 6]),
        (Selection(min_votes=30), [1, 6]),
        (Selection(min_votes=31), [1]),
        (Selection(first_year=2001), [1, 3]),
        (Selection(last_year=2001), [1, 6]),
        (Selection(first_year=1951, last_year=2002), [1]),
    ],
)
def test_only_selected_titles_come(tmp_path: Path, selection: Selection, numbers: list[int]) -> None:
    rows = ImdbDatasets(datasets(tmp_path), tmp_path, selection=selection).rows()
    assert [row.imdb_id for row in rows] == [f"tt{number:07}" for number in numbers]


def test_another_selection_is_another_version_and_one_that_takes_nothing_is_refused(tmp_path: Path) -> None:
    origin = datasets(tmp_path)
    versions = {ImdbDatasets(origin, tmp_path, selection=Selection(min_votes=votes)).version() for votes in (0, 5)}
    assert len(versions) == 2
    selections: list[dict[str, Any]] = [{"kinds": frozenset()}, {"first_year": 2010, "last_year": 2009}]
    for wrong in selections:
        with pytest.raises(ConfigurationError):
            Selection(**wrong)


def test_a_damaged_row_is_counted_and_left_out_and_a_file_full_of_damage_refused(tmp_path: Path) -> None:
    source = ImdbDatasets(datasets(tmp_path, rows=ROWS + "tt0000007\tmovie\tTwo\n"), tmp_path)
    assert len(list(source.rows())) == 4
    assert source.damaged == 1
    rows = "".join(f"tt{number:07}\tmovie\n" for number in range(1_001))
    with pytest.raises(ExtractionError, match=r"title\.basics"):
        list(ImdbDatasets(datasets(tmp_path, rows=rows), tmp_path).rows())


DAY = date(2026, 11, 5)
FILMS = [
    {"adult": False, "id": 3924, "original_title": "Blondie", "popularity": 2.4, "video": False},
    {"adult": True, "id": 2, "original_title": "No", "popularity": 2.4, "video": False},
    {"adult": False, "id": 3, "original_title": "A concert", "popularity": 2.4, "video": True},
    {"adult": False, "id": 11, "original_title": "Star Wars", "popularity": 90.1, "video": False},
]
EXPORT = "".join(json.dumps(film) + "\n" for film in FILMS).encode()
SERIES_EXPORT = b'{"id":11,"original_name":"Salt Harbour","popularity":4.1}\n{"adult":true,"id":12,"original_name":"No","popularity":1}\n'


def exported(series: bool, number: int, popularity: float) -> ImportRow:
    tmdb: dict[str, Any] = {"tmdb_series_id" if series else "tmdb_id": number}
    scaled = popularity_of_tmdb(popularity)
    return ImportRow(**tmdb, popularity=scaled, popularity_source="tmdb")


def test_the_newest_export_is_fetched_and_older_ones_forgotten(server: FileServer, tmp_path: Path) -> None:
    server.files["/p/" + file_name(date(2026, 10, 28))] = gzip.compress(EXPORT)
    with pytest.raises(DownloadError, match="movie_ids_11_05_2026"):  # it is older than a week
        fetched(TmdbExport(f"{server.url}/p", tmp_path, day=DAY))
    server.files["/p/" + file_name(date(2026, 11, 3))] = gzip.compress(EXPORT)
    # A bucket that may not be listed says 403 of a file that is not there.
    server.replies["/p/" + file_name(date(2026, 11, 4))] = lambda _: (403, {}, b"")
    source = fetched(TmdbExport(f"{server.url}/p", tmp_path, day=DAY))
    old = source.version()
    assert len(list(source.rows())) == 2
    server.files["/p/" + file_name(DAY)] = gzip.compress(EXPORT * 2)
    newer = fetched(TmdbExport(f"{server.url}/p", tmp_path, day=DAY))
    assert newer.version() != old
    assert {path.name for path in (tmp_path / "tmdb").iterdir()} == {
        file_name(DAY) + end for end in ("", ".etag", ".lock")
    }


def test_films_and_series_of_the_exports_complete_titles_by_their_own_tmdb_ids(
    server: FileServer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    salt = exported(True, 11, 4.1)
    server.files["/p/" + file_name(DAY)] = gzip.compress(EXPORT)
    source = fetched(TmdbExport(f"{server.url}/p", tmp_path, day=DAY))
    alone = source.version()
    assert list(source.rows()) == [exported(False, 3924, 2.4), exported(False, 11, 90.1)]
    assert "tv_series_ids_11_05_2026.json.gz" in caplog.text  # a mirror may have films only
    server.files["/p/" + file_name(DAY, "tv_series")] = gzip.compress(SERIES_EXPORT)
    source = fetched(TmdbExport(f"{server.url}/p", tmp_path, day=DAY))
    assert source.version() != alone
    assert list(source.rows())[2:] == [salt]
    (tmp_path / "tv.json").write_bytes(SERIES_EXPORT + b'{"id":13,"popularity":1}\n')
    source = TmdbExport(str(tmp_path / "tv.json"), tmp_path, day=DAY)
    assert list(source.rows()) == [salt]
    assert source.damaged == 1


def test_damaged_lines_of_an_export_are_counted_and_left_out(tmp_path: Path) -> None:
    good = {"id": 11, "original_title": "Star Wars", "popularity": 90.1, "adult": False, "video": False}
    lines = [
        *({name: value for name, value in good.items() if name != missing} for missing in good),
        *({**good, "id": wrong} for wrong in ("11", 2**31, -1, True)),
        {**good, "popularity": None},
        {**good, "original_title": "Du\0ne", "id": 12},
        [good],
        None,
    ]
    nested = b'{"else":' + b"[" * 5_000 + b"\n"
    path = tmp_path / "movie_ids.json"
    text = "<html>\n" + "".join(f"{json.dumps(line)}\n" for line in lines) + '{"id":13,"original_title":"Half\n\n'
    text += '{"id":14,"original_title":"End","popularity":1e999}\n'
    path.write_bytes(text.encode() + nested + b'{"id":15,"original_title":"Caf\xe9","popularity":1}\n')
    source = TmdbExport(str(path), tmp_path, day=DAY)
    source.version()
    # Without `adult` and `video` a film is taken for neither.
    assert [row.tmdb_id for row in source.rows()] == [11, 11, 12]
    assert source.damaged == 1 + len(lines) - 3 + 2 + 3
    for content, told in ((EXPORT[:-1], "is cut off"), (b"<html>\n" * 1_001, "line 1001")):
        path.write_bytes(content)
        with pytest.raises(ExtractionError, match=told):
            list(source.rows())
