"""The joined table, in order and as text."""

import csv
import io
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from moviecrawler.commands.scoreboard import render_table
from moviecrawler.database.scoreboard import ScoreboardRow
from moviecrawler.items import ListPage, Movie, Score, Site
from moviecrawler.pipelines.sqlite import SqliteStore
from tests.crawling import Finished, scrapy
from tests.pipelines.runs import make_list, record_of
from tests.pipelines.stored import board_of, opened


def title(site: Site, site_id: str, name: str, *scores: Score, **more: Any) -> Movie:
    fields = {"kind": "movie", "year": 2001, "scraped_at": datetime(2026, 3, 1, tzinfo=UTC), **more}
    return Movie(**fields, site=site, site_id=site_id, url="u", title=name, scores=[*scores])


def scoreboard(folder: Path, *movies: Movie | ListPage) -> list[ScoreboardRow]:
    with opened(SqliteStore(folder)) as store:
        store.write([record_of(movie) for movie in movies])
    return board_of(folder)


IMDB = Score(kind="imdb", value=8.1, count=1_234_567)
CRITICS = Score(kind="metascore", value=82, count=40)
OLDER = Score(kind="metascore", value=79)  # as it was when IMDb last looked
USERS = Score(kind="metacritic_user", value=7.0)
FRESH = Score(kind="tomatometer", value=93)
LAMP = [
    title("imdb", "tt0000001", "The Lamp", IMDB, OLDER),
    title("metacritic", "movie/the-lamp", "The Lamp", CRITICS, USERS, imdb_id="tt0000001"),
    title("rottentomatoes", "m/the_lamp", "The Lamp", FRESH, Score(kind="popcornmeter", value=88)),
]
ALONE = title(
    "rottentomatoes",
    "m/alone",
    "Alone at the Harbour, with a Name Longer Than Any Table Has Room For",
)
WIDE = title(
    "imdb", "tt0000003", "千年の灯 Que\u0301 q\u0301" * 6, Score(kind="imdb", value=9, count=9)
)
FORMULA = title("imdb", "tt0000004", "=Lamp", Score(kind="imdb", value=5.5, count=99))


@pytest.mark.promise(
    "The scoreboard has one row a title, with the scores of all sites: lists first, then by votes."
)
def test_lists_come_first_in_their_order_then_what_most_voted_on(tmp_path: Path) -> None:
    def voted(number: int, votes: int | None, **more: Any) -> Movie:
        scores = [Score(kind="imdb", value=7, count=votes)] if votes else []
        return title(
            "imdb", f"tt000000{number}", f"Lamp {number} {'abcdefgh'[number]}", *scores, **more
        )

    movies = [voted(1, None), voted(2, 500), voted(3, 900)]
    movies += [voted(4, 10), voted(5, None)]
    top = make_list({"tt0000005": 1, "tt0000004": 2})
    assert [row.imdb_id[-1] for row in scoreboard(tmp_path, *movies, top) if row.imdb_id] == list(
        "54321"
    )


def test_the_table_fits_its_width_and_shows_scores_as_the_sites_write_them(tmp_path: Path) -> None:
    rows = scoreboard(tmp_path, *LAMP, ALONE, WIDE)
    for width in (80, 95, 96, 100, 110, 120):
        lines = render_table(rows, width).splitlines()
        assert len(lines) == 2 + 3
        (columns,) = {
            len(line) + sum(c in "千年の灯" for c in line) - line.count("\u0301") for line in lines
        }
        assert columns <= width
        assert ("tt0000001" in lines[2]) == (width >= 110)
        assert "…" in lines[4]
    header, _, lamp, *_, alone = render_table(rows).splitlines()
    assert header.split() == [
        "Title",
        "Year",
        "IMDb",
        "Votes",
        "Metascore",
        "User",
        "Tomatometer",
        "Popcornmeter",
    ]
    assert lamp.split()[-7:] == ["2001", "8.1", "1,234,567", "82", "7.0", "93%", "88%"]
    assert alone.split()[-7:] == ["2001", "–", "–", "–", "–", "–", "–"]
    steering = render_table(scoreboard(tmp_path, title("imdb", "tt0000001", "La\x1b[31mmp\r\n")))
    assert not {"\x1b", "\r"} & set(steering)


def run(folder: Path, *arguments: str) -> Finished:
    return scrapy("scoreboard", *arguments, data=folder, COLUMNS="100")


def test_the_command_prints_the_table_csv_with_each_text_and_json_with_nulls(
    tmp_path: Path,
) -> None:
    table = render_table(scoreboard(tmp_path, *LAMP, FORMULA, ALONE))
    ran = run(tmp_path)
    assert (ran.code, ran.log, ran.output.rstrip("\n")) == (0, "", table)
    cells = list(csv.DictReader(io.StringIO(run(tmp_path, "--format", "csv").output)))
    assert [row["title"] for row in cells] == ["The Lamp", "=Lamp", ALONE.title]
    excel = run(tmp_path, "--format", "csv", "--excel")
    assert excel.output.startswith("\ufefftitle,")
    assert "'=Lamp," in excel.output
    assert "--excel is for CSV" in run(tmp_path, "--excel").log
    assert (cells[0]["imdb_rating"], cells[0]["tomatometer"], cells[2]["imdb_rating"]) == (
        "8.1",
        "93",
        "",
    )

    rows = json.loads(run(tmp_path, "--format", "json").output)
    assert [str(rows[0][name]) for name in ("metacritic_user_score", "tomatometer")] == [
        "7.0",
        "93",
    ]
    assert [row["title"] for row in rows] == ["The Lamp", "=Lamp", ALONE.title]
    assert rows[2]["imdb_rating"] is None
    told = {
        "title": "The Lamp",
        "year": 2001,
        "imdb_id": "tt0000001",
        "imdb_rating": 8.1,
        "imdb_votes": 1_234_567,
    }
    told |= {"metacritic_id": "movie/the-lamp", "metascore": 82, "metacritic_user_score": 7}
    told |= {"rottentomatoes_id": "m/the_lamp", "tomatometer": 93, "popcornmeter": 88}
    told |= {"matched_by": ["same IMDb id, same title, same year", "same title, same year"]}
    assert rows[0].items() >= told.items()


@pytest.mark.parametrize(
    ("content", "arguments", "sentence"),
    [
        ([], [], "holds no title"),
        (
            LAMP,
            ["--kind", "season"],
            "no season yet; crawl first, such as with: scrapy crawl rottentomatoes ",
        ),
    ],
)
def test_the_command_says_in_a_sentence_why_it_has_nothing_to_print(
    tmp_path: Path, content: list[Movie], arguments: list[str], sentence: str
) -> None:
    scoreboard(tmp_path, *content)
    ran = run(tmp_path, *arguments)
    assert (ran.code, ran.output) == (1, "")
    assert sentence in ran.log
    assert "Traceback" not in ran.log
