"""Seasons and episodes of two sites are one title when their series are one.

Their numbers must be the same, too; their titles never count.
"""

import json
import random
import sqlite3
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import psycopg2
import pytest

from moviecrawler.catalogue.loading import load
from moviecrawler.catalogue.rows import ImportRow
from moviecrawler.commands.scoreboard import render_table
from moviecrawler.database.connection import Database
from moviecrawler.items import Movie, Score, TitleKind
from tests.invented_series import (
    IMDB,
    METACRITIC,
    RATED,
    SERIES,
    TOMATOES,
    critic,
    episode,
    part,
    rotten,
    series,
)
from tests.runs import BEGIN, led_from, make_movie
from tests.services.postgres import execute
from tests.stored import board_of, write


def groups(url: str) -> set[str]:
    """Return the ids of each title's records, and of each season and episode, in order."""
    rows = execute(
        url,
        """
        SELECT string_agg(site_id, ' ') FROM records
        WHERE kind NOT IN ('season', 'episode') GROUP BY title_id
        UNION ALL
        SELECT concat_ws(' ', metacritic_id, rottentomatoes_id) FROM season_scores
        UNION ALL
        SELECT concat_ws(' ', imdb_id, metacritic_id, rottentomatoes_id) FROM episode_scores
        """,
    )
    return {" ".join(sorted(str(ids).split(" "))) for (ids,) in rows if ids}


def pair(number: int) -> str:
    return f"tv/salt-harbour/season-{number} tv/salt_harbour/s{number:02}"


WITHOUT_METACRITIC = "tt0000001 tv/salt_harbour"


AGAIN = (
    series("rottentomatoes", "tv/salt_harbour_2019", 2019),
    series("metacritic", "tv/salt-harbour-2019", 2019),
)
CASES: dict[str, tuple[list[Movie], set[str]]] = {
    "shows that restarted under the same name share no season": (
        [
            rotten("s01"),
            critic("season-1"),
            *AGAIN,
            part("rottentomatoes", "tv/salt_harbour_2019/s01", title="Season 1", year=2019),
            part("metacritic", "tv/salt-harbour-2019/season-1", title="Season 1", year=2019),
        ],
        {
            pair(1),
            "tv/salt-harbour-2019 tv/salt_harbour_2019",
            "tv/salt-harbour-2019/season-1 tv/salt_harbour_2019/s01",
        },
    ),
    "specials are season 0": (
        [rotten("s00", title="Specials"), critic("specials"), rotten("s01"), critic("season-1")],
        {"tv/salt-harbour/specials tv/salt_harbour/s00", pair(1)},
    ),
    "a season that one site splits has its second half alone": (
        [
            rotten("s01"),
            rotten("s02", title="Season 1, Part 2"),
            critic("season-1", title="Salt Harbour"),
        ],
        {pair(1), "tv/salt_harbour/s02"},
    ),
    "a mini series has one season": (
        [rotten("s01", title="Salt Harbour"), critic("season-1")],
        {pair(1)},
    ),
    "an anthology has a name a season": (
        [
            rotten("s01", title="Salt Harbour: The Keeper", year=2001),
            critic("season-1", title="The Keeper"),
            rotten("s02", title="Salt Harbour: Fog", year=2004),
            critic("season-2", title="Undertow", year=2005),
        ],
        {pair(1), pair(2)},
    ),
    "episodes go by both numbers": (
        [
            rotten("s01/e02", title="Fog"),
            critic("season-1/episode-2-fog"),
            episode(12, 1, 2, title="Nebel"),
            rotten("s02/e02", title="Fog"),
            rotten("s01"),
            rotten("s02.1", title="Fog"),
            episode(13, None, None, title="Fog"),
            episode(14, 1, None, title="Fog"),
            episode(22, 1, 2, title="Fog"),
        ],
        {
            "tt0000012 tv/salt-harbour/season-1/episode-2-fog tv/salt_harbour/s01/e02",
            *(f"tv/salt_harbour/{place}" for place in ("s02/e02", "s01", "s02.1")),
            *(f"tt00000{number}" for number in (13, 14, 22)),
        },
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_parts_are_joined_by_number_in_whatever_order_they_come(
    database_url: str, case: str
) -> None:
    parts, expected = CASES[case]
    movies = [IMDB, TOMATOES, METACRITIC, *parts]
    chance = random.Random(case)  # noqa: S311 - repeatable
    chance.shuffle(movies)
    while movies:
        count = chance.randint(1, len(movies))
        write(database_url, *movies[:count])
        del movies[:count]
    assert groups(database_url) == {SERIES, *expected}


def test_seasons_follow_when_their_series_are_joined_late_and_part_again(database_url: str) -> None:
    parts = [
        rotten("s01"),
        critic("season-1"),
        rotten("s02"),
        critic("season-2"),
        rotten("s01/e01"),
        episode(11, 1, 1),
    ]
    far = replace(METACRITIC, year=1950)
    write(database_url, IMDB, TOMATOES, far, *parts)
    apart = {movie.site_id or "" for movie in (METACRITIC, *parts[:4])}
    episodes = "tt0000011 tv/salt_harbour/s01/e01"
    assert groups(database_url) == {WITHOUT_METACRITIC, episodes, *apart}
    write(database_url, replace(METACRITIC, scraped_at=BEGIN + timedelta(days=1)))
    assert groups(database_url) == {SERIES, pair(1), pair(2), episodes}
    write(database_url, replace(far, scraped_at=BEGIN + timedelta(days=2)))
    assert groups(database_url) == {WITHOUT_METACRITIC, episodes, *apart}


def test_seasons_follow_a_series_that_is_split_by_hand_and_stay_apart(database_url: str) -> None:
    parts = [rotten("s01"), critic("season-1"), critic("season-1/episode-1"), episode(11, 1, 1)]
    write(database_url, IMDB, TOMATOES, METACRITIC, *parts)
    assert pair(1) in groups(database_url)
    where = (
        "SELECT s.site::text, s.site_id FROM title_sites s JOIN titles t USING (title_id)"
        " WHERE t.season IS NOT NULL"
    )
    assert set(execute(database_url, where)) == {(movie.site, movie.site_id) for movie in parts}
    execute(database_url, "SELECT move_record('metacritic', 'tv/salt-harbour')")
    later = [replace(movie, scraped_at=BEGIN + timedelta(days=1)) for movie in (METACRITIC, *parts)]
    for movies in ([], later):
        write(database_url, *movies)
        assert groups(database_url) == {
            WITHOUT_METACRITIC,
            *(str(movie.site_id) for movie in later),
        }
    target = "(SELECT title_id FROM records WHERE site_id = 'tt0000001')"
    execute(database_url, f"SELECT move_record('metacritic', 'tv/salt-harbour', {target})")
    assert groups(database_url) >= {SERIES, pair(1)}
    assert set(execute(database_url, where)) == {(movie.site, movie.site_id) for movie in parts}
    with pytest.raises(psycopg2.Error, match="follows its series"):
        execute(
            database_url, f"SELECT move_record('metacritic', 'tv/salt-harbour/season-1', {target})"
        )


def test_episodes_that_came_before_their_series_was_imported_belong_to_it(
    database_url: str,
) -> None:
    with closing(Database(database_url)) as store:
        write(database_url, episode(12, 1, 2), episode(99, 1, 1, of="tt0000009"))
        rows = [
            ImportRow(
                imdb_id="tt0000001",
                title="Salt Harbour",
                kind="series",
                popularity=40,
                popularity_source="votes",
            )
        ]
        load(store, "imdb", "1", rows, 1, BEGIN)
    assert execute(
        database_url,
        """
        SELECT e.imdb_id, s.imdb_id, x.popularity
        FROM titles e
        LEFT JOIN titles s ON s.title_id = e.series_title_id
        JOIN title_sites x ON x.title_id = e.title_id
        WHERE e.kind::text = 'episode' ORDER BY 1
        """,
    ) == [("tt0000012", "tt0000001", 40), ("tt0000099", None, 0)]


def test_seasons_follow_a_series_whose_page_has_another_address_now(database_url: str) -> None:
    former = replace(TOMATOES, site_id="tv/salt", url="https://example.com/tv/salt")
    write(
        database_url, former, part("rottentomatoes", "tv/salt/s01"), METACRITIC, critic("season-1")
    )
    write(database_url, replace(TOMATOES, fetch=led_from("tv/salt")))
    assert "tv/salt-harbour/season-1 tv/salt/s01" in groups(database_url)


def test_what_was_taken_for_a_series_becomes_a_season_of_its_own(database_url: str) -> None:
    """A site that moves a page must not leave it with another title."""
    before = replace(critic("season-1"), kind="series", year=2001, season=None, series_id=None)
    write(database_url, replace(TOMATOES, title="Season 1"), before)
    assert "tv/salt-harbour/season-1 tv/salt_harbour" in groups(database_url)
    write(
        database_url, replace(critic("season-1"), scraped_at=BEGIN + timedelta(days=1)), METACRITIC
    )
    assert groups(database_url) == {str(movie.site_id) for movie in (TOMATOES, before, METACRITIC)}
    write(database_url, replace(before, scraped_at=BEGIN + timedelta(days=2)))
    assert execute(database_url, "SELECT count(*) FROM titles WHERE season IS NOT NULL") == [(0,)]


def test_an_episode_is_no_series_of_another(database_url: str) -> None:
    write(database_url, IMDB, episode(12, 1, 1), episode(13, 1, 1, of="tt0000012"))
    parts = "SELECT imdb_id FROM titles WHERE series_title_id IS NOT NULL"
    assert execute(database_url, parts) == [("tt0000012",)]


def rows_of(url: str, view: str) -> list[dict[str, Any]]:
    """Return the rows of a view, without what is null and the numbers of titles."""
    rows: Any = execute(
        url,
        f"""
        SELECT jsonb_strip_nulls(to_jsonb({view})) - 'title_id' - 'series_title_id'
        FROM {view}
        ORDER BY series_title, season, to_jsonb({view}) ->> 'imdb_id'
        """,  # noqa: S608
    )
    return [row for (row,) in rows]


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
    expected = json.loads(Path(__file__).with_name("season_scores.json").read_text("utf-8"))
    for view, expected_rows in expected.items():
        assert rows_of(database_url, view) == expected_rows
    without_page = "SELECT season FROM season_scores WHERE title_id IS NULL"
    assert execute(database_url, without_page) == [(3,)]


def test_the_scoreboard_of_each_kind_is_that_of_the_csv_files(
    database_url: str, tmp_path: Path
) -> None:
    movies = [IMDB, TOMATOES, METACRITIC, *RATED, make_movie(900)]
    write(database_url, *movies)
    write(tmp_path, *movies)
    counts = (
        "SELECT season, episode_count FROM season_scores"
        " WHERE episode_count IS NOT NULL ORDER BY season"
    )
    with closing(sqlite3.connect(tmp_path / "movies.sqlite3")) as database:
        assert (
            database.execute(counts).fetchall()
            == execute(database_url, counts)
            == [(1, 8), (2, 12)]
        )
    kinds: tuple[TitleKind | None, ...] = (None, "movie", "series", "season", "episode")
    boards = {kind: board_of(database_url, kind=kind) for kind in kinds}
    for kind, rows in boards.items():
        assert rows == board_of(tmp_path, kind)
        assert {row.kind for row in rows} == ({kind} if kind else {"movie", "series"})
    seasons = boards["season"]
    assert [
        (row.series_title, row.season, row.scores["imdb"], row.imdb_votes, row.scores["metascore"])
        for row in seasons
    ] == [
        ("Salt Harbour", 1, 8.28, 400, 71),
        ("Salt Harbour", 3, 7, 5, None),
        ("Salt Harbour", 2, None, None, None),
        ("Unread", 4, None, None, None),
    ]
    assert board_of(database_url, "season") == seasons
    lines = render_table(seasons, 100).splitlines()
    assert lines[2].startswith("Salt Harbour, season 1 ")
    assert "8.3*" in lines[2]
    assert lines[-1].startswith("* derived")


def test_seasons_of_two_series_of_one_name_stay_apart_while_no_series_is_stored(
    database_url: str, tmp_path: Path
) -> None:
    seasons = [
        part(
            "rottentomatoes",
            f"{of}/s01",
            year=year,
            series_title="The Lamp",
            scores=[Score(kind="tomatometer", value=value, count=count)],
        )
        for of, year, value, count in (("tv/lamp", 2001, 95, 20), ("tv/lamp_us", 2005, 70, 30))
    ]
    write(database_url, *seasons)
    write(tmp_path, *seasons)
    query = "SELECT year, tomatometer, tomatometer_reviews FROM season_scores ORDER BY 1"
    expected = [(2001, 95, 20), (2005, 70, 30)]
    assert execute(database_url, query) == expected
    with closing(sqlite3.connect(tmp_path / "movies.sqlite3")) as connection:
        assert connection.execute(query).fetchall() == expected


def test_a_series_with_two_records_on_one_site_doubles_no_episode(tmp_path: Path) -> None:
    """A renamed slug: both records name the same IMDb id."""
    renamed = replace(TOMATOES, site_id="tv/salt_harbour_2001", imdb_id="tt0000001")
    older = replace(TOMATOES, imdb_id="tt0000001", scraped_at=BEGIN - timedelta(days=9))
    write(tmp_path, IMDB, older, renamed, episode(11, 1, 1))
    with closing(sqlite3.connect(tmp_path / "movies.sqlite3")) as connection:
        for query in ("SELECT 1 FROM scoreboard", "SELECT 1 FROM episode_scores"):
            assert connection.execute(query).fetchall() == [(1,)]
