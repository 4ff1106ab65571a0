"""Every score of seasons and episodes is told by the views of the Postgres store, and by `scrapy scoreboard`."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg2

from moviecrawler.commands.scoreboard import render_table
from moviecrawler.items import Score
from moviecrawler.pipelines.postgres import read_scoreboard
from moviecrawler.pipelines.sqlite import SqliteStore
from tests.pipelines.runs import make_movie, record_of
from tests.pipelines.stored import board_of, opened
from tests.pipelines.test_postgres import write
from tests.pipelines.test_seasons import IMDB, METACRITIC, TOMATOES, critic, episode, part, rotten
from tests.services.postgres import execute

if TYPE_CHECKING:
    from moviecrawler.items import TitleKind


RATED = [
    rotten("s01", scores=[Score(kind="tomatometer", value=88, count=30), Score(kind="popcornmeter", value=70)]),
    critic(
        "season-1",
        title="Salt Harbour",
        scores=[Score(kind="metascore", value=71), Score(kind="metacritic_user", value=7.5, count=9)],
    ),
    critic("season-2", title="Salt Harbour"),
    episode(11, 1, 1, scores=[Score(kind="imdb", value=8.0, count=300)]),
    episode(12, 1, 2, scores=[Score(kind="imdb", value=9.1, count=100)]),
    episode(13, 1, 3),
    episode(31, 3, 1, scores=[Score(kind="imdb", value=7.0, count=5)]),
    rotten("s01/e02", scores=[Score(kind="tomatometer", value=100, count=5)]),
    part("rottentomatoes", "tv/unread/s04", series_title="Unread", scores=[Score(kind="tomatometer", value=10)]),
]


KINDS: list[TitleKind | None] = [None, "movie", "series", "season", "episode"]


def asked(url: str, statement: str) -> list[dict[str, Any]]:
    """Return what a query finds, without what is null."""
    with closing(psycopg2.connect(url)) as connection, connection.cursor() as cursor:
        cursor.execute(statement)
        names = [column.name for column in cursor.description or ()]
        return [{n: v for n, v in zip(names, row, strict=True) if v is not None} for row in cursor.fetchall()]


def test_the_views_have_every_score_of_seasons_and_episodes(database_url: str) -> None:
    write(database_url, IMDB, TOMATOES, METACRITIC, *RATED)
    execute(
        database_url,
        """
        INSERT INTO imdb_episodes VALUES
            ('tt0000011', 'tt0000001', 1, 1, 'Ebb', 2001, 8.2, 400),  -- newer than the page
            ('tt0000012', 'tt0000001', 1, 2, 'Fog', 2001, 5.0, 10),  -- older
            ('tt0000021', 'tt0000001', 2, 1, 'Gale', 2002, 6.0, 50),
            ('tt0000099', 'tt0000001', NULL, NULL, NULL, NULL, NULL, NULL),
            ('tt0000077', 'tt0000002', 1, 1, 'Of another series', 2001, 1.0, 9)
        """,
    )
    seasons = asked(database_url, "SELECT * FROM season_scores WHERE series_imdb_id = 'tt0000001' ORDER BY season")
    ids = {
        "series_title": "Salt Harbour",
        "series_imdb_id": "tt0000001",
        "series_title_id": seasons[0]["series_title_id"],
    }
    first, second, third = (
        {name: value for name, value in row.items() if name not in {*ids, "title_id"}} for row in seasons
    )
    assert all(row.items() >= ids.items() for row in seasons)
    assert float(first.pop("imdb_rating")) == round((8.2 * 400 + 9.1 * 100) / 500, 2)
    assert first == {
        "season": 1,
        "title": "Season 1",
        "imdb_rating_derived": True,
        "imdb_votes": 500,
        "metacritic_id": "tv/salt-harbour/season-1",
        "rottentomatoes_id": "tv/salt_harbour/s01",
        "episodes": 3,
        "episodes_rated": 2,
        "metascore": 71,
        "metacritic_user_score": 7.5,
        "metacritic_user_ratings": 9,
        "tomatometer": 88,
        "tomatometer_reviews": 30,
        "popcornmeter": 70,
    }
    assert (second["metacritic_id"], second["imdb_votes"]) == ("tv/salt-harbour/season-2", 50)
    assert "title_id" not in third
    episodes = asked(
        database_url,
        "SELECT season, episode, imdb_id, title, imdb_rating::float, imdb_votes, tomatometer::int FROM episode_scores"
        " WHERE series_title = 'Salt Harbour' ORDER BY imdb_id",
    )
    assert [tuple(row.values()) for row in episodes] == [
        (1, 1, "tt0000011", "Ebb", 8.2, 400),
        (1, 2, "tt0000012", "Fog", 9.1, 100, 100),
        (1, 3, "tt0000013", "Night 13"),
        (2, 1, "tt0000021", "Gale", 6.0, 50),
        (3, 1, "tt0000031", "Night 31", 7.0, 5),
        ("tt0000099",),
    ]
    (unread,) = asked(database_url, "SELECT * FROM season_scores WHERE series_title_id IS NULL")
    assert (unread["season"], unread["series_title"], unread["imdb_rating_derived"]) == (4, "Unread", False)


def test_the_scoreboard_of_each_kind_is_that_of_the_csv_files(database_url: str, tmp_path: Path) -> None:
    movies = [IMDB, TOMATOES, METACRITIC, *RATED, make_movie(900)]
    write(database_url, *movies)
    with opened(SqliteStore(tmp_path)) as store:
        store.write([record_of(movie) for movie in movies])
    boards = {kind: list(read_scoreboard(database_url, kind=kind)) for kind in KINDS}
    for kind, rows in boards.items():
        assert rows == board_of(tmp_path, kind)
        assert {row.kind for row in rows} == ({kind} if kind else {"movie", "series"})
    seasons = boards["season"]
    assert [(row.series_title, row.season, row.imdb_rating, row.imdb_votes, row.metascore) for row in seasons] == [
        ("Salt Harbour", 1, 8.28, 400, 71),
        ("Salt Harbour", 3, 7, 5, None),
        ("Salt Harbour", 2, None, None, None),
        ("Unread", 4, None, None, None),
    ]
    assert list(read_scoreboard(database_url, 1, "season")) == seasons[:1]
    lines = render_table(seasons, 100).splitlines()
    assert lines[2].startswith("Salt Harbour, season 1 ")
    assert "8.3*" in lines[2]
    assert lines[-1].startswith("* derived")


def test_one_series_is_read_by_indexes_alone(database_url: str) -> None:
    """Also when it is found by a join, and among very many."""
    write(database_url, IMDB, TOMATOES, METACRITIC, *RATED)
    for view in ("season_scores", "episode_scores"):
        for where_ in ("v.series_title_id = 1", "v.series_imdb_id = 'tt0000001'"):
            with closing(psycopg2.connect(database_url)) as connection, connection.cursor() as cursor:
                cursor.execute("SET enable_seqscan = off")
                cursor.execute(f"EXPLAIN SELECT * FROM {view} v WHERE {where_}")  # noqa: S608 - named above
                plan = "\n".join(line for (line,) in cursor.fetchall())
            assert "Seq Scan" not in plan
