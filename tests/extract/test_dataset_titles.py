from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from moviecrawler.datasets.names import IdSet
from moviecrawler.errors import ExtractionError
from moviecrawler.extract.dataset_titles import TitleReader
from moviecrawler.extract.datasets import COLUMNS, Table
from moviecrawler.items import Credit, Movie, OtherTitle

if TYPE_CHECKING:
    from collections.abc import Iterator

KEY = b"tt0900001"


def rows_of(name: str, *rows: str) -> bytes:
    """A dataset with just the columns that are read; `|` stands for a tab."""
    return "".join(f"{row}\n".replace("|", "\t") for row in ("|".join(COLUMNS[name]), *rows)).encode()


GIVEN = {
    "title.basics": [r"tt0900001|movie|The Kettle|Der Kessel|1999|\N|118|Comedy,Drama"],
    "title.ratings": ["tt0900001|8.7|30000"],
    "title.crew": [r"tt0900001|nm0900001,nm0900004|nm0900003"],
    "title.principals": [
        # Sorted by the text of the second column, and one row for each character.
        r'tt0900001|1|nm0900001|actor|["Ole"]',
        r'tt0900001|10|nm0900002|actress|["The Twin"]',
        r'tt0900001|2|nm0900002|actress|["Vera \"V\" Lindqvist","Vera"]',
        r"tt0900001|3|nm0900005|self|\N",
        r"tt0900001|4|nm0900003|writer|\N",
        r"tt0900001|5|nm0900009|archive_footage|\N",
    ],
    "title.akas": [
        r"tt0900001|10|Le bouilloire|FR|fr|\N",
        r"tt0900001|2|The Kettle|US|\N|" + "dvd\x02imdbDisplay",
        r"tt0900001|1|Der Kessel|\N|\N|original",
    ],
    "title.episode": [],
}
NAMES = {"nm0900001": "Aino Välimäki", "nm0900002": "Berit Storm", "nm0900003": "Cato Lund"}


def read(**rows: list[str]) -> tuple[Movie | None, list[ExtractionError]]:
    """The title of KEY in GIVEN, but for some datasets; and what was damaged."""
    damaged: list[ExtractionError] = []
    given = {name: rows.get(name.partition(".")[2], GIVEN[name]) for name in GIVEN}
    tables = {name: Table(name, [rows_of(name, *given[name])], damaged.append) for name in given}
    reader = TitleReader(tables)
    reader.name_of = NAMES.get
    parts = {name: rows for name, table in tables.items() for rows, key in table.parts() if key == KEY}
    return reader.movie(KEY, parts), damaged


def test_a_title_has_all_that_the_datasets_tell_of_it() -> None:
    movie, damaged = read()
    assert movie is not None
    assert damaged == []
    assert movie.credits == [
        Credit(name="Aino Välimäki", role="director", position=1, person_id="nm0900001"),
        # Who is not among the names has none, and no invented one.
        Credit(name=None, role="director", position=2, person_id="nm0900004"),
        Credit(name="Cato Lund", role="writer", position=1, person_id="nm0900003"),
        Credit(name="Aino Välimäki", role="cast", position=1, person_id="nm0900001", character="Ole"),
        Credit(
            name="Berit Storm",
            role="cast",
            position=2,
            person_id="nm0900002",
            character='Vera "V" Lindqvist / Vera / The Twin',
        ),
        Credit(name=None, role="cast", position=3, person_id="nm0900005"),
    ]
    assert movie.other_titles == [
        OtherTitle(title="Der Kessel", kind="original"),
        OtherTitle(title="The Kettle", country="US", kind="dvd, imdbDisplay"),
        OtherTitle(title="Le bouilloire", country="FR", language="fr"),
    ]
    assert not {"credits.director", "credits.cast", "other_titles", "scores.imdb"} & set(movie.silent)
    assert {"plot", "scores.metascore"} < set(movie.silent)


def test_an_episode_has_its_place() -> None:
    movie, _ = read(basics=[r"tt0900001|tvEpisode|Pilot|Pilot|1999|\N|\N|\N"], episode=["tt0900001|tt0900008|1|0"])
    assert movie is not None
    assert (movie.series_id, movie.season, movie.episode) == ("tt0900008", 1, 0)
    assert movie.silent.count("series_title") == 1
    movie, _ = read(basics=[r"tt0900001|tvEpisode|Pilot|Pilot|1999|\N|\N|\N"], episode=[r"tt0900001|tt0900008|\N|\N"])
    assert movie is not None
    assert (movie.season, movie.episode, "season" in movie.silent) == (None, None, False)


@pytest.mark.parametrize(
    ("dataset", "row", "field"),
    [
        ("ratings", "tt0900001|11.0|5", "scores.imdb"),
        ("ratings", "tt0900001|8.7", "scores.imdb"),
        ("crew", "tt0900001|nm0900001", "credits.director"),
        ("crew", r"tt0900001|Aino|\N", "credits.writer"),
        ("principals", r"tt0900001|one|nm0900001|actor|\N", "credits.cast"),
        ("principals", 'tt0900001|1|nm0900001|actor|[["Ole"]]', "credits.cast"),
        ("akas", r"tt0900001|1|\N|FR|fr|\N", "other_titles"),
    ],
)
def test_a_title_is_silent_of_what_is_damaged(dataset: str, row: str, field: str) -> None:
    movie, damaged = read(**{dataset: [row]})
    assert movie is not None
    assert field in movie.silent
    assert len(damaged) == 1
    assert "tt0900001" in str(damaged[0])
    without, damaged = read(**{dataset: []})
    assert without is not None
    assert damaged == []
    # Only titles with five votes stand among the ratings.
    assert (field in without.silent) == (dataset != "ratings")


def test_text_that_is_not_utf_8_is_damage() -> None:
    damaged: list[ExtractionError] = []
    data = rows_of("title.basics", *GIVEN["title.basics"]).replace(b"Kettle", b"Kettl\xe9")
    table = Table("title.basics", [data], damaged.append)
    ((rows, key),) = table.parts()
    assert TitleReader({"title.basics": table}).movie(key, {"title.basics": rows}) is None
    assert len(damaged) == 1


def test_a_long_list_of_characters_is_cut_between_two() -> None:
    names = [f"Passer-by {number}" for number in range(2_000)]
    movie, _ = read(principals=[f"tt0900001|1|nm0900001|actor|{json.dumps(names)}"])
    assert movie is not None
    character = movie.people("cast")[0].character
    assert character is not None
    assert len(character) <= 9_000
    assert character.split(" / ") == names[: character.count(" / ") + 1]


def fail(error: ExtractionError) -> None:
    raise error


def blocks(data: bytes, size: int) -> Iterator[bytes]:
    return (data[at : at + size] for at in range(0, len(data), size))


@pytest.mark.parametrize("size", [1, 7, 64, 1 << 20])
def test_the_rows_of_a_title_stay_together_however_the_blocks_are_cut(size: int) -> None:
    data = rows_of("title.crew", *(rf"tt090000{number}|{n}|\N" for number in range(9) for n in range(number)))
    table = Table("title.crew", blocks(data, size), fail)
    found = {key.decode(): rows.count(b"\n") for rows, key in table.parts()}
    assert found == {f"tt090000{number}": number for number in range(1, 9)}
    table = Table("title.crew", blocks(data, size), fail)
    assert [key for _, key in table.parts(IdSet([b"tt0900003", b"tt0999999"]))] == [b"tt0900003"]
    few, many = IdSet([b"tt0900005", b"tt0900002"]), IdSet(b"tt%07d" % number for number in range(2, 900_010, 3))
    for wanted in (few, many):  # looked for in another way each
        table = Table("title.crew", blocks(data, size), fail)
        counts = {key: rows.count(b"\n") for rows, key in table.parts(wanted)}
        assert counts == {b"tt0900002": 2, b"tt0900005": 5} | ({b"tt0900008": 8} if wanted is many else {})


def test_rows_without_an_id_are_reported_and_passed_over() -> None:
    damaged: list[ExtractionError] = []
    data = rows_of("title.crew", r"tt0900001|\N|\N", "", r"oops|\N|\N", r"tt0900002|\N|\N")
    assert [key for _, key in Table("title.crew", [data], damaged.append).parts()] == [b"tt0900001", b"tt0900002"]
    assert len(damaged) == 2
    ((_, key),) = Table("title.crew", [data], damaged.append).parts(IdSet([b"tt0900002"]))
    assert (key, len(damaged)) == (b"tt0900002", 4)
    assert "oops" in str(damaged[1])


@pytest.mark.parametrize("name", COLUMNS)
def test_columns_are_found_by_name_wherever_they_stand(name: str) -> None:
    columns = ["new", *reversed(COLUMNS[name])]
    key = "nm0900001" if name == "name.basics" else "tt0900001"
    values = {column: column for column in columns} | {COLUMNS[name][0]: key}
    text = "\t".join(columns) + "\n" + "\t".join(values[column] for column in columns) + "\n"
    table = Table(name, [text.encode()], fail)
    ((rows, found),) = table.parts()
    assert found == key.encode()
    assert table.rows(rows)[0][1:] == tuple(column.encode() for column in COLUMNS[name][1:])
    for missing in COLUMNS[name]:
        header = "\t".join("other" if column == missing else column for column in columns)
        with pytest.raises(ExtractionError, match="no such column") as error:
            Table(name, [f"{header}\n".encode()], fail)
        assert error.value.field == missing


@pytest.mark.parametrize("data", [b"", b"tconst\tdirectors\twriters\ntt0900001\tnm1"])
def test_a_table_that_is_cut_is_an_error(data: bytes) -> None:
    with pytest.raises(ExtractionError, match=r"no such column|ends inside a line"):
        list(Table("title.crew", [data], fail).parts())
