"""Which titles come from IMDb's datasets and TMDB's exports."""

import gzip
import json
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from moviecrawler.basics.errors import ConfigurationError, ExtractionError
from moviecrawler.catalogue.imdb_import import ImdbDatasets, Selection
from moviecrawler.catalogue.popularity import popularity_of_tmdb, popularity_of_votes
from moviecrawler.catalogue.rows import ImportRow
from moviecrawler.catalogue.tmdb_import import TmdbExport, file_name
from moviecrawler.datasets.files import DownloadError, FileClient
from tests.dataset_files import put
from tests.file_server import FileServer
from tests.scripted_site import Told

ROWS = (
    "tt0000001|movie|Salt Harbour|Havn av salt|2001|\\N|104|Drama",
    "tt0000002|tvSeries|Brewick|Brewick|2010|2012|45|Drama",
    "tt0000003|movie|Unrated|Unrated|2003|\\N|\\N|\\N",
    "tt0000004|movie|Undated|Undated|\\N|\\N|80|Drama",
    "tt0000005|movie|Not for all|Not for all|2001|\\N|80|Adult",
    "tt0000006|movie|Old One|Old One|1950|\\N|80|Drama",
)
DAMAGED = "tt0000007|movie|Two"
RATED = (
    "tt0000001|7.1|2000",
    "tt0000002|8.0|500",
    "tt0000004|5.0|7",
    "tt0000005|5.0|900",
    "tt0000006|6.0|30",
)


def datasets(folder: Path, *rows: str, **selected: Any) -> ImdbDatasets:
    put(folder, "title.basics", *(rows or ROWS))
    put(folder, "title.ratings", *RATED)
    return ImdbDatasets(str(folder), folder, Selection(**selected))


def test_a_title_comes_with_its_facts_and_its_popularity(tmp_path: Path) -> None:
    assert next(datasets(tmp_path).rows()) == ImportRow(
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
    ("selected", "numbers"),
    [
        ({}, "1346"),
        ({"kinds": frozenset({"movie", "series"})}, "12346"),
        ({"min_votes": 30}, "16"),
        ({"min_votes": 31}, "1"),
        ({"first_year": 2001}, "13"),
        ({"last_year": 2001}, "16"),
        ({"first_year": 1951, "last_year": 2002}, "1"),
    ],
)
def test_only_selected_titles_come_and_another_selection_is_another_version(
    tmp_path: Path, selected: dict[str, Any], numbers: str
) -> None:
    source = datasets(tmp_path, **selected)
    assert [row.imdb_id for row in source.rows()] == [f"tt000000{number}" for number in numbers]
    assert (source.version() == datasets(tmp_path).version()) == (not selected)


def test_a_selection_that_takes_nothing_is_refused() -> None:
    with pytest.raises(ConfigurationError):
        Selection(first_year=2010, last_year=2009)
    assert Selection(first_year=2010, last_year=2010).takes_year(2010)


def test_a_damaged_row_is_counted_and_left_out_and_a_file_full_of_damage_refused(
    tmp_path: Path,
) -> None:
    source = datasets(tmp_path, *ROWS, DAMAGED, DAMAGED)
    assert len(list(source.rows())) == 4
    assert source.damaged == 2
    assert list(datasets(tmp_path, *[DAMAGED] * 1_000).rows()) == []
    nameless = r"\N|movie|Two|Two|2001|\N|104|Drama"
    for rows in (
        [f"tt{number:07}|movie" for number in range(1_001)],
        *([row] * 1_001 for row in (DAMAGED, nameless)),
    ):
        with pytest.raises(ExtractionError, match=r"title\.basics"):
            list(datasets(tmp_path, *rows).rows())


DAY = date(2026, 11, 5)
GOOD = {"id": 11, "original_title": "Star Wars", "popularity": 90.1, "adult": False, "video": False}
FILMS = [
    {**GOOD, "id": 3924, "popularity": 2.4},
    {**GOOD, "id": 2, "adult": True},
    {**GOOD, "id": 3, "video": True},
]
EXPORT = "".join(f"{json.dumps(film)}\n" for film in [*FILMS, GOOD]).encode()
SERIES_EXPORT = (
    b'{"id":11,"original_name":"Salt Harbour","popularity":4.1}\n'
    b'{"adult":true,"id":12,"original_name":"No","popularity":1}\n'
)
SALT = ImportRow(tmdb_series_id=11, popularity=popularity_of_tmdb(4.1), popularity_source="tmdb")


def test_the_newest_exports_are_fetched_and_older_ones_forgotten(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with FileServer() as server:

        def fetched() -> TmdbExport:
            source = TmdbExport(f"{server.url}/p", tmp_path, day=DAY)
            source.fetch(FileClient("moviecrawler/0", print))
            return source

        server.files["/p/" + file_name(date(2026, 10, 28))] = gzip.compress(EXPORT, mtime=0)
        with pytest.raises(DownloadError, match="movie_ids_11_05_2026"):  # it is older than a week
            fetched()
        server.files["/p/" + file_name(date(2026, 11, 3))] = gzip.compress(EXPORT, mtime=0)
        # A bucket that may not be listed says 403 of a file that is not there.
        server.answers["/p/" + file_name(date(2026, 11, 4))] = Told(403)
        source = fetched()
        version = source.version()
        films = [
            ImportRow(
                tmdb_id=number, popularity=popularity_of_tmdb(popularity), popularity_source="tmdb"
            )
            for number, popularity in ((3924, 2.4), (11, 90.1))
        ]
        assert list(source.rows()) == films
        assert "tv_series_ids_11_05_2026.json.gz" in caplog.text  # a mirror may have films only
        for kind, export in (("movie", EXPORT * 2), ("tv_series", SERIES_EXPORT)):
            server.files["/p/" + file_name(DAY, kind)] = gzip.compress(export, mtime=0)
        newer = fetched()
    assert newer.version() != version
    assert list(newer.rows()) == [*films * 2, SALT]
    kept = {path.name.partition(".")[0] for path in (tmp_path / "tmdb").iterdir()}
    assert kept == {file_name(DAY, kind).partition(".")[0] for kind in ("movie", "tv_series")}


def test_damaged_lines_of_an_export_are_counted_and_left_out(tmp_path: Path) -> None:
    lines = [
        *({name: value for name, value in GOOD.items() if name != missing} for missing in GOOD),
        *({**GOOD, "id": wrong} for wrong in ("11", 2**31, 0, True)),
        {**GOOD, "popularity": None},
        {**GOOD, "original_title": "Du\0ne", "id": 1},
        [GOOD],
        None,
    ]
    nested = b'{"else":' + b"[" * 5_000 + b"\n"
    path = tmp_path / "movie_ids.json"
    text = (
        "<html>\n"
        + "".join(f"{json.dumps(line)}\n" for line in lines)
        + '{"id":13,"original_title":"Half\n\n'
    )
    text += '{"id":14,"original_title":"End","popularity":1e999}\n'
    path.write_bytes(
        text.encode() + nested + b'{"id":15,"original_title":"Caf\xe9","popularity":1}\n'
    )
    source = TmdbExport(str(path), tmp_path, day=DAY)
    source.version()
    # Without `adult` and `video` a film is taken for neither.
    assert [row.tmdb_id for row in source.rows()] == [11, 11, 1]
    assert source.damaged == 1 + len(lines) - 3 + 2 + 3
    for content, told in ((EXPORT[:-1], "is cut off"), (b"<html>\n" * 1_001, "line 1001")):
        path.write_bytes(content)
        with pytest.raises(ExtractionError, match=told):
            list(source.rows())
    series = tmp_path / "tv.json"
    series.write_bytes(SERIES_EXPORT + b'{"id":13,"popularity":1}\n')
    source = TmdbExport(str(series), tmp_path, day=DAY)
    assert (list(source.rows()), source.damaged) == ([SALT], 1)
