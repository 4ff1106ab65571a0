"""Lists of films are read as they are, and told what is wrong with them."""

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from moviecrawler.basics.errors import ConfigurationError
from moviecrawler.catalogue.film_lists import COLUMNS, read_records, read_titles

ROW = {
    "site": "imdb",
    "site_id": "tt0000007",
    "title": "Salt Harbour",
    "original_title": "Havn av salt",
    "year": "2001",
    "release_date": "2002-03-04",
    "runtime_minutes": "92",
    "directors": "Mara Levin|Ines Quarrie",
    "votes": "1200",
}


def write_csv(
    path: Path, *rows: dict[str, str], columns: tuple[str, ...] = COLUMNS, separator: str = ","
) -> Path:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, columns, delimiter=separator, extrasaction="ignore")
        writer.writeheader()
        writer.writerows(rows)
    return path


def write_json(path: Path, *rows: Any) -> Path:
    path.write_text("\n".join(json.dumps(row, ensure_ascii=False) for row in rows), "utf-8")
    return path


@pytest.mark.parametrize("form", ["csv", "semicolons", "more columns", "json", "json with numbers"])
def test_a_title_is_read_with_all_that_is_said_of_it(tmp_path: Path, form: str) -> None:
    typed = {
        **ROW,
        "year": 2001,
        "runtime_minutes": 92.0,
        "votes": 1200,
        "directors": ["Mara Levin", "Ines Quarrie"],
    }
    more = {
        "mine": "x",
        "kind": "short",
        "other_titles": "Sterne|Stars",
        "end_year": "2009",
        "season_count": "3",
    }
    path = {
        "csv": lambda: write_csv(tmp_path / "t.csv", ROW),
        "semicolons": lambda: write_csv(tmp_path / "t.csv", ROW, separator=";"),
        "more columns": lambda: write_csv(
            tmp_path / "t.csv", {**ROW, **more}, columns=(*COLUMNS, *more)
        ),
        "json": lambda: write_json(tmp_path / "t.jsonl", ROW),
        "json with numbers": lambda: write_json(tmp_path / "t.jsonl", typed),
    }[form]()
    (title,) = read_titles(path)
    assert (title.site, title.imdb_id, title.year, title.dated, title.runtime) == (
        "imdb",
        "tt0000007",
        2001,
        2002,
        92,
    )
    assert title.names == {"salt harbour", "havn av salt"}
    assert (title.directors, title.votes) == ([["mara", "levin"], ["ines", "quarrie"]], 1200)
    if form == "more columns":
        assert title.further == {"sterne", "stars"}
        assert (title.kind, title.end_year, title.seasons) == ("short", 2009, 3)


def test_what_is_empty_is_unknown_and_votes_of_another_site_are_none_of_imdb(
    tmp_path: Path,
) -> None:
    bare = {"site": "my list", "site_id": "7", "title": "Salt Harbour"}
    nothing = {**ROW, **bare, **dict.fromkeys(COLUMNS[3:], None), "runtime_minutes": 0}
    for path in (
        write_csv(tmp_path / "r.csv", bare),
        write_json(tmp_path / "r.jsonl", bare),
        write_json(tmp_path / "n.jsonl", nothing),
    ):
        (film,) = read_records(path)
        assert (film.site, film.site_id) == ("my list", "7")
        title = film.title
        assert (title.year, title.dated, title.runtime, title.directors, title.votes) == (
            None,
            None,
            None,
            [],
            None,
        )
    (film,) = read_records(
        write_csv(tmp_path / "r.csv", {**ROW, "site": "metacritic", "votes": "12"})
    )
    assert film.title.votes is None


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "is empty"),
        (
            b"site,site_id,title\nimdb,tt0000001,Salt\n",
            "has no column original_title, year, release_date",
        ),
        (
            b'{"site": "imdb", "site_id": "tt0000001", "title": "x"}\n\n{"site": \n',
            "line 3 is no JSON",
        ),
        ("{header}\nimdb,tt0000001,Salt\n", "line 2 has 3 cells, not 9"),
        ("{header}\nimdb,tt0000001,Salt,,MMXX,,,,\n", "line 2: year is 'MMXX': Expected `int"),
        (
            "{header}\nimdb,tt0000001,Salt,,,soon,,,\n",
            "release_date is 'soon': give such as 1994-09-23",
        ),
        ("{header}\nimdb,salt,Salt,,,,,,\n", "site_id is 'salt'; give such as tt0111161"),
        (
            "{header}\nmetacritic,movie/salt,Salt,,,,,,\n",
            "site is 'metacritic'; titles to match against are of imdb",
        ),
        ("{header}\nimdb,tt0000001,Salt,,,,,,\n".encode("utf-16"), "is not UTF-8"),
    ],
)
def test_a_list_that_can_not_be_right_is_told_where_and_why(
    tmp_path: Path, content: bytes | str, sentence: str
) -> None:
    encoded = content if isinstance(content, bytes) else content.encode()
    path = tmp_path / "titles"
    path.write_bytes(encoded.replace(b"{header}", ",".join(COLUMNS).encode()))
    with pytest.raises(ConfigurationError, match="titles") as told:
        list(read_titles(path))
    assert sentence in str(told.value), told.value
    for missing in (tmp_path / "none.csv", tmp_path):
        with pytest.raises(ConfigurationError, match="can't be read"):
            list(read_records(missing))
