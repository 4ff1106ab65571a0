"""The joined table, in order and as text."""

import csv
import io
import json
import re
import shlex
import shutil
import sqlite3
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from moviecrawler.basics.errors import ConfigurationError
from moviecrawler.commands.scoreboard import render_table
from moviecrawler.database import scoreboard as matching
from moviecrawler.database.board import BoardQuery, read_board
from moviecrawler.database.reading import reading_sqlite
from moviecrawler.database.sqlite import FILE
from moviecrawler.items import ListPage, Movie, Score, Site
from moviecrawler.sites import SCORES
from tests.crawling import Finished, scrapy
from tests.runs import make_list
from tests.stored import BoardRow, board_of, write


def title(site: Site, site_id: str, name: str, *scores: Score, **more: Any) -> Movie:
    fields = {"kind": "movie", "year": 2001, "scraped_at": datetime(2026, 3, 1, tzinfo=UTC), **more}
    return Movie(**fields, site=site, site_id=site_id, url="u", title=name, scores=[*scores])


def scoreboard(folder: Path, *movies: Movie | ListPage) -> list[BoardRow]:
    write(folder, *movies)
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


def test_two_pages_of_a_site_that_name_one_id_are_one_title_only_if_they_look_alike(
    tmp_path: Path,
) -> None:
    pages = [
        title("metacritic", "movie/the-lamp", "The Lamp", CRITICS, imdb_id="tt0000001"),
        title("metacritic", "movie/the-lamp-2001", "The Lamp", CRITICS, imdb_id="tt0000001"),
        title("metacritic", "tv/ebb", "Ebb", imdb_id="tt0000001", kind="series", year=1950),
    ]
    names = sorted(str(row.title) for row in scoreboard(tmp_path, *pages))
    assert names == ["Ebb", "The Lamp"]


def test_who_matches_late_leaves_what_others_have_matched_since(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    match_titles = matching.match_titles  # type: ignore[attr-defined]

    def late(*given: Any) -> Any:
        monkeypatch.setattr(matching, "match_titles", match_titles)
        write(tmp_path, *LAMP[1:])
        return match_titles(*given)

    monkeypatch.setattr(matching, "match_titles", late)
    write(tmp_path, LAMP[0], ALONE)
    scores = [(row.title, row.scores["metascore"]) for row in board_of(tmp_path)]
    assert scores == [("The Lamp", 82), (ALONE.title, None)]


@pytest.mark.promise(
    "The scoreboard has one row per title, with all sites' scores: lists first, then by votes."
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
    for width in (40, 56, 57, 67, 68, 95, 96, 109, 110, 120):
        lines = render_table(rows, width).splitlines()
        assert len(lines) == 2 + 3
        (columns,) = {
            len(line) + sum(c in "千年の灯" for c in line) - line.count("\u0301") for line in lines
        }
        assert columns <= width
        assert ("tt0000001" in lines[2]) == (width >= 110)
        assert "…" in lines[4]
        assert ("1,234,567" in lines[2]) == (width >= 68)
        assert ("Tomatometer" in lines[0]) == (width >= 96)
        assert all(heading in lines[0] for heading in ("IMDb", "Meta", "Tomato", "Popcorn")) == (
            width >= 57
        )
    header, _, lamp, *_, alone = render_table(rows).splitlines()
    headings = "Title Year IMDb Votes Metascore User Tomatometer Popcornmeter"
    assert header.split() == headings.split()
    assert " ".join(lamp.split()[-7:]) == "2001 8.1 1,234,567 82 7.0 93% 88%"
    assert " ".join(alone.split()[-7:]) == "2001 – – – – – –"
    steering = render_table(scoreboard(tmp_path, title("imdb", "tt0000001", "La\x1b[31mmp\r\n")))
    assert not {"\x1b", "\r"} & set(steering)


@pytest.mark.parametrize(
    ("row", "shown"),
    [
        ({"season": 2, "title": "Season 2"}, "Lamps, season 2"),
        ({"season": 2, "title": "Lamps"}, "Lamps, season 2"),
        ({"season": 2, "title": None}, "Lamps, season 2"),
        ({"season": 2, "title": "End", "series_title": None}, "Unknown series, season 2: End"),
        ({"season": 2, "episode": 3, "title": "Wick"}, "Lamps 2x03: Wick"),
        ({"season": 2, "episode": None, "title": "Wick"}, "Lamps: Wick"),
        ({"season": None, "episode": 3, "title": None, "imdb_id": "tt0000009"}, "Lamps: tt0000009"),
    ],
)
def test_a_season_and_an_episode_are_shown_by_their_series_and_numbers(
    row: dict[str, Any], shown: str
) -> None:
    scores = {name: None for score in SCORES.values() for name in score.columns or ()}
    table = render_table([{**scores, "year": 2001, "series_title": "Lamps", **row}], 120)
    assert table.splitlines()[2].startswith(f"{shown}  2001  ")


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
    shown = (cells[0]["imdb_rating"], cells[0]["tomatometer"], cells[2]["imdb_rating"])
    assert shown == ("8.1", "93", "")

    rows = json.loads(run(tmp_path, "--format", "json").output)
    assert [row["title"] for row in rows] == ["The Lamp", "=Lamp", ALONE.title]
    assert rows[2]["imdb_rating"] is None
    told = json.loads(Path(__file__).with_name("lamp.json").read_text("utf-8"))
    # As text, by which 7.0 is another number than 7.
    assert {name: str(rows[0][name]) for name in told} == {name: str(told[name]) for name in told}
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


@pytest.fixture(scope="module")
def board(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a DATA_DIR with some titles, and a list of two of them, which is only read."""
    folder = tmp_path_factory.mktemp("board")
    older = title("imdb", "tt0000005", "Amélie's Lamp", Score(kind="imdb", value=9, count=99))
    older.year = 1999
    scoreboard(folder, *LAMP, ALONE, FORMULA, older, make_list({"tt0000004": 1, "tt0000005": 2}))
    return folder


COLUMNS = ("--columns", "title,year", "--format", "csv")
QUESTIONS = re.findall(
    r"^(\S.*)\n((?:    .+\n)+)",
    Path(__file__).with_name("questions.txt").read_text("utf-8").partition("\n\n")[2],
    re.MULTILINE,
)


@pytest.mark.promise("The scoreboard is asked by columns, lists and conditions, and only read.")
@pytest.mark.parametrize(("arguments", "answer"), QUESTIONS)
def test_rows_are_those_that_are_asked_for_or_it_is_one_sentence_why_not(
    arguments: str, answer: str, board: Path
) -> None:
    refusal = answer.partition("refused: ")[2].rstrip()
    given = shlex.split(arguments)
    ran = run(board, *given, *(() if "--columns" in given else COLUMNS))
    assert "Traceback" not in ran.log
    if refusal:
        assert ran.code == 2
        assert refusal in ran.log
        assert len(board_of(board)) == 4
    else:
        assert ran.code == 0, ran.log
        expected = re.findall("row: (.+)", answer)
        printed = ran.output.splitlines()[1:]
        assert all(map(str.startswith, printed, expected)), printed
        assert len(printed) == len(expected)


def test_a_condition_is_the_same_in_both_databases_and_ends_after_a_while(
    database_url: str, board: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(database_url, *LAMP, ALONE, FORMULA, make_list({"tt0000004": 1}))
    of_all = ("--where", "title LIKE '%Lamp' AND metascore > 80")
    of_list = ("--where", "title LIKE '=%p'", "--list", "top")
    for given, row in ((of_all, "The Lamp,2001"), (of_list, "=Lamp,2001")):
        found = scrapy("scoreboard", *given, *COLUMNS, data=board, DATABASE_URL=database_url)
        assert found.code == 0, found.log
        assert found.output == run(board, *given, *COLUMNS).output == f"title,year\n{row}\n"
    refused = scrapy(
        "scoreboard", "--where", "pg_sleep(9) IS NULL", data=board, DATABASE_URL=database_url
    )
    assert "no such function: pg_sleep" in refused.log
    monkeypatch.setattr("moviecrawler.database.board._SECONDS", 0.1)
    endless = (
        "(WITH RECURSIVE c (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT max(x) FROM c)"
    )
    with reading_sqlite(board) as tables, pytest.raises(ConfigurationError, match=r"within 0\.1 s"):
        list(read_board(tables, BoardQuery(where=f"year < {endless}")).rows)


def test_a_title_is_shown_on_all_sites_with_its_history(board: Path, tmp_path: Path) -> None:
    grown = tmp_path / "grown"
    shutil.copytree(board, grown)
    newer = replace(LAMP[0], scraped_at=datetime(2026, 3, 9, 12, 30, tzinfo=UTC))
    newer.scores = [replace(IMDB, value=7.9, count=2_000_000), OLDER]
    scoreboard(grown, newer)
    shown = run(grown, "the", "lamp").output
    lines = [" ".join(line.split()) for line in shown.splitlines()]
    assert lines[0] == "The Lamp (2001), movie"
    assert "IMDb IMDb rating 7.9 2,000,000 2026-03-09" in lines
    assert "Rotten Tomatoes Tomatometer 93% – 2026-03-01" in lines
    history = lines[lines.index("Since (UTC) Site Score Value Count") :]
    assert "2026-03-01 00:00 IMDb IMDb rating 8.1 1,234,567" in history
    assert history[-1] == "2026-03-09 12:30 IMDb IMDb rating 7.9 2,000,000"
    told = json.loads(run(grown, "tt0000001", "--format", "json").output)
    assert [site["site"] for site in told["sites"]] == ["imdb", "rottentomatoes", "metacritic"]
    assert told["history"][-1]["value"] == 7.9
    several = run(grown, "A", "l")
    assert several.code == 1
    assert "2 titles are 'A l'; give an id, or more words" in several.log
    assert "tt0000005" in several.output
    nothing = run(grown, "no", "such")
    assert (nothing.code, nothing.output) == (1, "")
    assert "holds no title 'no such'" in nothing.log


def test_the_file_of_the_scoreboard_is_what_the_command_prints(board: Path) -> None:
    printed = scrapy("scoreboard", "--format", "csv", data=board).output
    assert (board / "scoreboard.csv").read_text("utf-8") == printed
    read = scrapy("scoreboard", "--format", "csv", "--where", "true", data=board).output
    assert read == printed
    header = printed.splitlines()[0].split(",")
    assert header[:5] == ["title", "year", "imdb_rating", "imdb_votes", "metascore"]
    with sqlite3.connect(board / FILE) as connection:
        assert [n for n, *_ in connection.execute("SELECT * FROM scoreboard").description] == header
    connection.close()
