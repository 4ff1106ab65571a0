"""Every fact of real rows, through the whole way.

That is a server with the files, a crawl, and the stores.
"""

import csv
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from moviecrawler.items import Credit, Movie, OtherTitle
from tests.crawling import scrapy
from tests.file_server import FileServer
from tests.processes import crawl_command
from tests.services.postgres import postgres_movies
from tests.shared import SHARED
from tests.tables import read_movies, sqlite_movies

pytestmark = pytest.mark.shared("datasets")
FOLDER = SHARED / "datasets"
SAME_NAMES = ("title", "kind", "title_type", "year", "end_year", "runtime_minutes", "genres")


def expected(truth: dict[str, Any]) -> dict[str, Any]:
    """What is to be stored of a title."""
    people = {
        role: [(p["id"], p["name"]) for p in truth[f"{role}s"] or []]
        for role in ("director", "writer")
    }
    return {
        **{name: truth[name] for name in SAME_NAMES},
        "original_title": truth["original_title"]
        if truth["original_title"] != truth["title"]
        else None,
        "score": None if truth["rating"] is None else (float(truth["rating"]), truth["votes"]),
        **people,
        "cast": [
            (p["id"], p["name"], " / ".join(p["characters"]) or None) for p in truth["cast"] or []
        ],
        "place": (truth["series_id"], truth["season"], truth["episode"]),
        "akas": truth["akas"] and truth["akas"]["count"],
        "regions": {
            region: names for region, names in (truth["akas"] or {}).items() if region != "count"
        },
    }


def test_all_facts_of_real_rows_are_in_every_store(database_url: str, tmp_path: Path) -> None:
    truths = {
        row["site_id"]: row
        for row in map(json.loads, (FOLDER / "TRUTH.jsonl").read_text("utf-8").splitlines())
    }
    assert {"movie", "tvSeries", "tvEpisode", "short"} <= {
        truth["title_type"] for truth in truths.values()
    }
    ids = tmp_path / "ids.txt"
    ids.write_text("\n".join(truths), encoding="utf-8")
    with FileServer() as server:
        server.files = {f"/{path.name}": path.read_bytes() for path in FOLDER.glob("*.gz")}
        command = crawl_command("imdb", "via=datasets", f"file={ids}")
        finished = scrapy(
            *command, data=tmp_path, IMDB_DATASETS_URL=server.url, DATABASE_URL=database_url
        )
    assert finished.code == 0, finished.log
    assert f"{len(truths)} stored" in finished.log
    for movies in (csv_movies(tmp_path), sqlite_movies(tmp_path), postgres_movies(database_url)):
        stored = {str(movie.site_id): facts(movie) for movie in movies}
        assert stored.keys() == truths.keys()
        for site_id, truth in truths.items():
            assert stored[site_id] == expected(truth), site_id


def csv_movies(folder: Path) -> list[Movie]:
    """Return the movies of the CSV files, with their credits and other titles."""
    movies = {
        str(movie.site_id): replace(movie, credits=[])
        for movie in read_movies(folder / "movies.csv")
    }
    for row in rows_of(folder / "credits.csv"):
        movies[row["site_id"]].credits.append(msgspec.convert(row, Credit, strict=False))
    for row in rows_of(folder / "other_titles.csv"):
        movies[row["site_id"]].other_titles.append(msgspec.convert(row, OtherTitle, strict=False))
    return list(movies.values())


def rows_of(path: Path) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            yield {column: cell or None for column, cell in row.items()}


def facts(movie: Movie) -> dict[str, Any]:
    """Return what is stored of a title, in the form of the truth."""
    score = movie.score("imdb")
    regions = ("US", "GB", "FR", "DE", "JP")
    named = [(other.title, other.country) for other in movie.other_titles]
    credits_ = sorted(movie.credits, key=lambda credit: credit.position)
    people = {
        role: [credit for credit in credits_ if credit.role == role]
        for role in ("director", "writer", "cast")
    }
    plain = (
        "title",
        "original_title",
        "kind",
        "title_type",
        "year",
        "end_year",
        "runtime_minutes",
        "genres",
    )
    return {
        **{name: getattr(movie, name) for name in plain},
        "score": None if score is None else (score.value, score.count),
        **{
            role: [(credit.person_id, credit.name) for credit in people[role]]
            for role in ("director", "writer")
        },
        "cast": [(credit.person_id, credit.name, credit.character) for credit in people["cast"]],
        "place": (movie.series_id, movie.season, movie.episode),
        "akas": len(named) or None,
        "regions": {region: [title for title, at in named if at == region] for region in regions}
        if named
        else {},
    }
