"""A new field and a new kind of score need nothing but their declarations."""

import csv
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from moviecrawler.database.sqlite import read_sqlite
from tests.services.postgres import execute
from tests.stored import browse

PROGRAM = """
import dataclasses, sys
from pathlib import Path

import msgspec

from moviecrawler import items, sites

rated = ("uk_certificate", str | None, dataclasses.field(default=None))
items.Movie = dataclasses.make_dataclass(
    "Movie", [rated], bases=(items.Movie,), kw_only=True, slots=True
)
stars = sites.SCORES["tomatometer"]._replace(columns=("stars", "star_votes"))
sites.SCORES["stars"] = stars
sites.SCORE_SITES["stars"] = "rottentomatoes"

from moviecrawler.pipelines.postgres import PostgresStore
from moviecrawler.pipelines.sqlite import SqliteStore
from moviecrawler.pipelines.store import Record

movie = items.Movie(
    site="rottentomatoes",
    site_id="m/lamp",
    url="https://www.rottentomatoes.com/m/lamp",
    title="The Lamp",
    kind="movie",
    uk_certificate="12A",
    scores=[items.Score(kind="stars", value=91, count=7)],
    scraped_at=msgspec.json.decode(b'"2026-03-01T12:00:00Z"', type=items.datetime),
)
for store in (SqliteStore(Path(sys.argv[1])), PostgresStore(sys.argv[2])):
    store.open()
    store.write([Record(movie, msgspec.json.encode(movie), 0.0)])
    store.close()
"""


@pytest.mark.promise("A new field or score is in both databases, the CSV files and the views.")
def test_a_new_field_and_a_new_score_are_everywhere(
    empty_database_url: str, tmp_path: Path
) -> None:
    given = (str(tmp_path), empty_database_url)
    subprocess.run((sys.executable, "-c", PROGRAM, *given), check=True)
    queries = {
        "SELECT uk_certificate FROM records": ("12A",),
        "SELECT uk_certificate, CAST(stars AS integer), star_votes FROM movies": ("12A", 91, 7),
        "SELECT CAST(stars AS integer), star_votes FROM scoreboard": (91, 7),
        "SELECT highest, shown FROM score_kinds WHERE kind = 'stars'": (100, 6),
    }
    with closing(read_sqlite(tmp_path)) as connection:
        for query, row in queries.items():
            assert connection.execute(query).fetchall() == [row]
            assert execute(empty_database_url, query) == [row]
    with (tmp_path / "movies.csv").open(encoding="utf-8", newline="") as file:
        (cells,) = csv.DictReader(file)
    assert (cells["uk_certificate"], cells["stars"], cells["star_votes"]) == ("12A", "91", "7")
    assert browse(tmp_path, "/movies/movies.json?_shape=array&stars=91").count("12A") == 1
