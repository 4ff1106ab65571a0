"""Lists of films are read as they are, and told what is wrong with them."""

import json
from pathlib import Path

import pytest

from moviecrawler.basics.errors import ConfigurationError
from moviecrawler.catalogue.film_lists import Film, UnreadRow, read_films, read_titles

IMDB = (
    "Position,Const,Description,Title,Original Title,Title Type,Runtime (mins),Year,Num Votes,"
    "Release Date,Directors\n"
    '1,tt0000007,,Salt Harbour,Havn av salt,TV Special,92,2001,1200,2002-03-04,"Mara Levin, '
    'Ines Quarrie"\n'
)
OURS = {
    "site": "imdb",
    "site_id": "tt0000007",
    "title": "Salt Harbour",
    "original_title": "Havn av salt",
    "year": 2001,
    "release_date": "2002-03-04",
    "runtime_minutes": 92.0,
    "directors": ["Mara Levin", "Ines Quarrie"],
    "votes": 1200,
    "kind": "other",
}


@pytest.mark.parametrize(
    "content", [IMDB, IMDB.replace("\n", "\r\n").encode("utf-16"), json.dumps(OURS)]
)
def test_a_title_is_read_with_all_that_is_said_of_it(tmp_path: Path, content: str | bytes) -> None:
    path = tmp_path / "titles"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    (title,) = read_titles(path, [])
    assert (title.site, title.imdb_id, title.year, title.dated, title.runtime, title.kind) == (
        "imdb",
        "tt0000007",
        2001,
        2002,
        92,
        "other",
    )
    assert title.names == {"salt harbour", "havn av salt"}
    assert (title.directors, title.votes) == ([["mara", "levin"], ["ines", "quarrie"]], 1200)
    (film,) = read_films(path)
    assert isinstance(film, Film)
    assert film.title.votes is None  # which may be those of another site


@pytest.mark.parametrize(
    ("content", "found"),
    [
        (
            "YEAR;film name\n1999.0;Salt\n;Lamp\n(2011–2019);Show\n",
            "Salt 1999, Lamp None, Show 2011",
        ),
        (
            "Letterboxd list export v7\nDate,Name,URL\n,,\n\nPosition,Name,Year\n1,Salt,1999\n",
            "Salt 1999",
        ),
        ("Title,Year,runtime,Released\nSalt,1999,two hours,soon\n", "Salt 1999"),
        (
            "title,year\n,1999\nSalt,MMXX\na,b,c\nLamp,2001\n",
            "line 2 has no title, line 3: year is 'MMXX', line 4 has 3 cells, Lamp 2001",
        ),
        ("title,year\nM,1000\nZ,9999\n", "M 1000, Z 9999"),
        (f"title,year\n{'a' * 10_001},1999\n", "title is 'aaa"),
        ('{"title": "Salt", "year": 10000}', "year is 10000: Expected `int` <= 9999"),
    ],
)
def test_each_row_is_a_film_or_says_why_it_is_none(
    tmp_path: Path, content: str, found: str
) -> None:
    path = tmp_path / "films.csv"
    path.write_text(content, "utf-8")
    films = list(read_films(path))
    for film, expected in zip(films, found.split(", "), strict=True):
        if isinstance(film, UnreadRow):
            assert expected in film.reason
        else:
            assert f"{film.facts.title} {film.facts.year}" == expected


def test_an_id_is_one_of_imdbs_where_the_site_says_so(tmp_path: Path) -> None:
    film = {"title": "Salt", "year": 1999}
    rows = [{"site_id": "tt0000007"}, {"site": "imdb"}, {"site": "imdb", "site_id": "tt0000008"}]
    (tmp_path / "films").write_text("\n".join(json.dumps(film | row) for row in rows))
    left_out: list[str] = []
    (title,) = read_titles(tmp_path / "films", left_out)
    assert title.imdb_id == "tt0000008"
    assert left_out == ["'Salt' has no IMDb id such as tt0111161"] * 2


@pytest.mark.parametrize(
    ("minutes", "seasons", "known"),
    [
        (1, 1, (1, 1)),
        ("1h 32m", "3", (92, 3)),
        (100_000, 99, (100_000, 99)),
        (100_001, 0, (None, None)),
        (0, -1, (None, None)),
    ],
)
def test_a_length_that_no_title_has_is_unknown(
    tmp_path: Path, minutes: object, seasons: object, known: tuple[int | None, int | None]
) -> None:
    row = {"title": "Salt", "year": 1999, "runtime_minutes": minutes, "season_count": seasons}
    (tmp_path / "films").write_text(json.dumps(row))
    (film,) = read_films(tmp_path / "films")
    assert isinstance(film, Film)
    assert (film.facts.runtime_minutes, film.facts.season_count) == known


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "is empty"),
        (b"imdb_id,name\ntt0000001,Salt\n", "has no column year; its header is 'imdb_id,name'"),
        (b'{"title": "x"}\n\n{"site": \n', "line 3 is not JSON"),
        (b'{"title": "x"}\n["Salt"]\n', "line 2 is not a JSON object"),
        ("title,year\nAm\xe9lie,2001\n".encode("latin-1"), "is not UTF-8"),
    ],
)
def test_a_file_that_is_no_list_is_told_where_and_why(
    tmp_path: Path, content: bytes, sentence: str
) -> None:
    path = tmp_path / "titles"
    path.write_bytes(content)
    with pytest.raises(ConfigurationError, match="titles") as told:
        list(read_titles(path, []))
    assert sentence in str(told.value), told.value
    for missing in (tmp_path / "none.csv", tmp_path):
        with pytest.raises(ConfigurationError, match="can't be read"):
            list(read_films(missing))
