"""Files of titles as people and programs really make them, and as they come when something went wrong."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING

import pytest

from moviecrawler.catalogue.csv_import import CsvTitles
from moviecrawler.catalogue.tmdb_import import TmdbExport
from moviecrawler.catalogue.wikidata_import import WikidataCrosswalk
from moviecrawler.errors import ConfigurationError, ExtractionError

if TYPE_CHECKING:
    from pathlib import Path

TITLES = [("tt0000001", "Dune", 2021), ("tt0000002", 'The "Big" One, Again', 1984)]


def csv_of(tmp_path: Path, content: bytes) -> CsvTitles:
    path = tmp_path / "mine.csv"
    path.write_bytes(content)
    return CsvTitles(path)


@pytest.mark.parametrize("separator", [",", ";", "\t"])
@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_a_csv_may_come_from_any_spreadsheet(tmp_path: Path, separator: str, line_end: str, mark: bytes) -> None:
    quoted = [[imdb_id, '"' + title.replace('"', '""') + '"', str(year)] for imdb_id, title, year in TITLES]
    lines = [separator.join(cells) for cells in [["imdb_id", "title", "year"], *quoted]]
    source = csv_of(tmp_path, mark + (line_end.join(lines) + line_end).encode())
    source.version()
    assert [(row.imdb_id, row.title, row.year) for row in source.rows()] == TITLES


def test_a_title_keeps_the_spaces_and_marks_of_its_script(tmp_path: Path) -> None:
    titles = ["千と\u3000千尋", "Amélie\N{NO-BREAK SPACE}!", "\u200fפורשים", "Two lines"]
    cells = [*titles[:-1], '"Two\r\nlines"']
    text = "imdb_id,title\n" + "".join(f"tt000000{number},{cell}\n" for number, cell in enumerate(cells))
    assert [row.title for row in csv_of(tmp_path, text.encode()).rows()] == titles


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"imdb_id,title\ntt0000001," + b"a" * 1_000_000 + b"\n", "line 2"),
        (b"imdb_id,title\ntt0000001," + b"a" * 2_000 + b"\n", "line 2: title is 'aaa.* has 2000 letters"),
        (b"imdb_id,title\ntt0000001,Du\0ne\n", r"line 2: title is 'Du\\x00ne'"),
        (b'imdb_id,title\ntt0000001,"Du\x1bne"\n', r"line 2: title is 'Du\\x1bne'"),
        (b"tmdb_id\n2147483648\n", "line 2: tmdb_id is '2147483648'"),
        (b"tmdb_id\n603.0\n", "line 2: tmdb_id is '603.0'"),
        (b"imdb_id,year\ntt0000001,MCMXCIX\n", "line 2: year is 'MCMXCIX'"),
        (b"imdb_id,popularity\ntt0000001,nan\n", "line 2: popularity is 'nan'"),
        (b'imdb_id,title\ntt0000001,"Dune\ntt0000002,Up\n', "line 3: unexpected end of data"),
        (b"imdb_id,title\rtt0000001,Dune\r", "new-line character seen in unquoted field"),
        ("imdb_id,title\ntt0000001,Dune\n".encode("utf-16"), "is not UTF-8"),
        (b"", "has no column imdb_id, tmdb_id or tmdb_series_id"),
    ],
)
def test_what_a_csv_can_not_mean_is_told_before_anything_is_imported(tmp_path: Path, content: bytes, told: str) -> None:
    with pytest.raises(ConfigurationError, match=told) as raised:
        csv_of(tmp_path, content).version()
    assert len(str(raised.value)) < 1_000
    assert str(raised.value).isprintable()


def test_damaged_lines_of_tmdbs_export_are_counted_and_left_out(tmp_path: Path) -> None:
    good = {"id": 11, "original_title": "Star Wars", "popularity": 90.1, "adult": False, "video": False}
    lines = [
        *({name: value for name, value in good.items() if name != missing} for missing in good),
        {**good, "id": "11"},
        {**good, "id": 2**31},
        {**good, "id": -1},
        {**good, "id": True},
        {**good, "popularity": None},
        {**good, "original_title": "Du\0ne", "id": 12},
        [good],
        None,
    ]
    path = tmp_path / "movie_ids.json"
    text = "".join(f"{json.dumps(line)}\n" for line in lines) + '{"id":13,"original_title":"Half\n\n'
    path.write_text(text + '{"id":14,"original_title":"End","popularity":1e999}\n')
    source = TmdbExport(str(path), tmp_path, day=date(2026, 11, 1))
    source.version()
    # Without `adult` and `video` a film is taken for neither.
    assert [row.tmdb_id for row in source.rows()] == [11, 11, 12]
    assert source.damaged == len(lines) - 3 + 2 + 1


def crosswalk(tmp_path: Path, text: str) -> WikidataCrosswalk:
    path = tmp_path / "query.csv"
    path.write_text(text, newline="")
    return WikidataCrosswalk(str(path), tmp_path, now=datetime(2026, 11, 1, tzinfo=UTC))


def test_hostile_values_of_the_crosswalk_are_passed_by(tmp_path: Path) -> None:
    source = crosswalk(
        tmp_path,
        "imdb,rottentomatoes,metacritic,tmdb\r\n"
        "tt0000001,m/dune,movie/dune,603\r\n"
        "tt0000002,m/\x1b[31mred,movie/../../etc,99999999999\r\n"
        "nm0000001,m/person,,\r\n",
    )
    source.version()
    assert {(row.imdb_id, row.rottentomatoes_id, row.metacritic_id, row.tmdb_id) for row in source.rows()} == {
        ("tt0000001", "m/dune", None, None),
        ("tt0000001", None, "movie/dune", None),
        ("tt0000001", None, None, 603),
    }


@pytest.mark.parametrize("cut", ["tt0000002,m/du", "tt0000002", ""])
def test_a_crosswalk_that_ends_inside_a_row_is_refused(tmp_path: Path, cut: str) -> None:
    source = crosswalk(tmp_path, f"imdb,rottentomatoes\r\ntt0000001,m/dune{cut and chr(13) + chr(10) + cut}")
    with pytest.raises(ExtractionError, match=r"it ends inside a line|it was broken off"):
        source.version()
