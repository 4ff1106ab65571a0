"""The joined table, in order and as text."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from moviecrawler.catalogue.scoreboard import ScoreboardRow
from moviecrawler.console.scoreboard import render_table
from moviecrawler.items import Movie, Score
from moviecrawler.pipelines.sqlite import SqliteStore
from tests.crawling import Finished, environment, scrapy
from tests.pipelines.runs import record_of
from tests.pipelines.stored import board_of, opened

if TYPE_CHECKING:
    from moviecrawler.items import Site


def title(site: Site, site_id: str, name: str, *scores: Score, **more: Any) -> Movie:
    fields = {"kind": "movie", "year": 2001, "scraped_at": datetime(2026, 3, 1, tzinfo=UTC), **more}
    return Movie(**fields, site=site, site_id=site_id, url="u", title=name, scores=[*scores])


def store(folder: Path, *movies: Movie) -> Path:
    with opened(SqliteStore(folder)) as store:
        store.write([record_of(movie) for movie in movies])
    return folder


def scoreboard(folder: Path, *movies: Movie) -> list[ScoreboardRow]:
    return board_of(store(folder, *movies))


LAMP = [
    title(
        "imdb",
        "tt0000001",
        "The Lamp",
        Score(kind="imdb", value=8.1, count=1_234_567),
        Score(kind="metascore", value=79),  # as it was when IMDb last looked
    ),
    title(
        "metacritic",
        "movie/the-lamp",
        "The Lamp",
        Score(kind="metascore", value=82, count=40),
        Score(kind="metacritic_user", value=7.0),
        imdb_id="tt0000001",
    ),
    title(
        "rottentomatoes",
        "m/the_lamp",
        "The Lamp",
        Score(kind="tomatometer", value=93),
        Score(kind="popcornmeter", value=88),
    ),
]
ALONE = title(
    "rottentomatoes", "m/alone", "Alone at the Harbour, with a Name That Is Longer Than Any Table Has Room For"
)
WIDE = title("imdb", "tt0000003", "千年の灯" * 12, Score(kind="imdb", value=9, count=9))
FORMULA = title("imdb", "tt0000004", "=Lamp", Score(kind="imdb", value=5.5, count=99))


def test_a_row_has_every_site_s_scores(tmp_path: Path) -> None:
    (row,) = scoreboard(tmp_path, *LAMP)
    assert (row.title, row.year, row.imdb_id, row.metacritic_id, row.rottentomatoes_id) == (
        *("The Lamp", 2001, "tt0000001"),
        *("movie/the-lamp", "m/the_lamp"),
    )
    assert (row.imdb_rating, row.imdb_votes, row.metascore, row.metacritic_user_score) == (8.1, 1_234_567, 82, 7)
    assert (row.tomatometer, row.popcornmeter) == (93, 88)
    assert row.matched_by == ["same IMDb id, same title, same year", "same title, same year"]


def test_lists_come_first_in_their_order_then_what_most_voted_on(tmp_path: Path) -> None:
    def voted(number: int, votes: int | None, **more: Any) -> Movie:
        scores = [Score(kind="imdb", value=7, count=votes)] if votes else []
        return title("imdb", f"tt000000{number}", f"Lamp {number} {'abcdefgh'[number]}", *scores, **more)

    movies = [
        voted(1, None),
        voted(2, 500),
        voted(3, 900),
        voted(4, 10, list_name="top", list_rank=2),
        voted(5, None, list_name="top", list_rank=1),
    ]
    assert [row.imdb_id[-1] for row in scoreboard(tmp_path, *movies) if row.imdb_id] == list("54321")


@pytest.mark.parametrize("width", [80, 95, 96, 100, 110, 120])
def test_the_table_fits_its_width(tmp_path: Path, width: int) -> None:
    rows = scoreboard(tmp_path, *LAMP, ALONE, WIDE)
    lines = render_table(rows, width).splitlines()
    assert len(lines) == 2 + 3
    for line in lines:
        assert len(line) + sum(c in "千年の灯" for c in line) <= width
    assert ("tt0000001" in lines[2]) == (width >= 110)
    assert "…" in lines[4]


def test_the_table_shows_scores_as_the_sites_write_them(tmp_path: Path) -> None:
    header, _, lamp, alone = render_table(scoreboard(tmp_path, *LAMP, ALONE)).splitlines()
    assert header.split() == ["Title", "Year", "IMDb", "Votes", "Metascore", "User", "Tomatometer", "Popcornmeter"]
    assert lamp.split()[-7:] == ["2001", "8.1", "1,234,567", "82", "7.0", "93%", "88%"]
    assert alone.split()[-7:] == ["2001", "–", "–", "–", "–", "–", "–"]


def test_a_title_can_not_steer_the_terminal(tmp_path: Path) -> None:
    table = render_table(scoreboard(tmp_path, title("imdb", "tt0000001", "La\x1b[31mmp\r\n")))
    assert "\x1b" not in table
    assert "\r" not in table
    assert len(table.splitlines()) == 3


def run(folder: Path, *arguments: str) -> Finished:
    return scrapy("scoreboard", *arguments, data=folder, COLUMNS="100")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return store(tmp_path, *LAMP, FORMULA, ALONE)


def test_the_command_prints_the_table_and_warns_of_nothing(data: Path) -> None:
    command = [sys.executable, "-W", "error", "-m", "scrapy", "scoreboard"]
    env = {**environment(data, None), "COLUMNS": "100"}
    ran = subprocess.run(command, env=env, cwd=data, capture_output=True, text=True, timeout=60, check=False)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout.rstrip("\n") == render_table(board_of(data))


def test_the_command_prints_csv_with_empty_cells_and_no_formulas(data: Path) -> None:
    rows = list(csv.DictReader(io.StringIO(run(data, "--format", "csv").output)))
    assert [row["title"] for row in rows] == ["The Lamp", "'=Lamp", ALONE.title]
    assert (rows[0]["imdb_rating"], rows[0]["tomatometer"]) == ("8.1", "93")
    assert rows[2]["imdb_rating"] == ""


def test_the_command_prints_json_with_nulls_and_no_more_than_is_asked_for(data: Path) -> None:
    rows = json.loads(run(data, "--format", "json").output)
    assert [row["title"] for row in rows] == ["The Lamp", "=Lamp", ALONE.title]
    assert rows[0]["imdb_votes"] == 1_234_567
    assert rows[2]["imdb_rating"] is None
    assert len(run(data, "--limit", "1").output.splitlines()) == 3


@pytest.mark.parametrize(
    ("content", "arguments", "code", "sentence"),
    [
        (None, [], 1, "there is no"),
        ([], [], 1, "holds no title"),
        (
            LAMP,
            ["--kind", "season"],
            1,
            "no season yet; crawl first, such as with: scrapy crawl rotten",
        ),
        (None, ["--kind", "episode"], 1, "crawl first, such as with: scrapy crawl imdb -a ids="),
        (None, ["--limit", "0"], 2, "--limit is 0"),
        (None, ["now"], 2, "'now'"),
        (None, ["--format", "xml"], 2, "xml"),
    ],
)
def test_the_command_says_in_a_sentence_why_it_has_nothing_to_print(
    tmp_path: Path, content: list[Movie] | None, arguments: list[str], code: int, sentence: str
) -> None:
    if content is not None:
        store(tmp_path, *content)
    ran = run(tmp_path, *arguments)
    assert (ran.code, ran.output) == (code, "")
    assert sentence in ran.log
    assert "Traceback" not in ran.log
