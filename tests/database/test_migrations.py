"""Databases of older versions become ones of this version, with all that they have."""

import json
import multiprocessing
import os
import re
import shutil
import signal
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import psycopg2
import pytest

from moviecrawler.basics.errors import ConfigurationError
from moviecrawler.database import schema
from moviecrawler.database.connection import Database
from moviecrawler.database.postgres import PostgresTables
from moviecrawler.database.records import read_stored
from moviecrawler.database.sqlite import FILE, SqliteTables, open_sqlite
from moviecrawler.items import Movie
from moviecrawler.sites import SCORE_SITES, SCORES
from tests.services.postgres import execute, update
from tests.stored import board_of, in_order
from tests.waiting import wait_for

OLD = Path(__file__).with_name("version_1")
COLUMNS = """
SELECT c.relname, a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull,
    pg_get_expr(d.adbin, d.adrelid)
FROM pg_class c
JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum
WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'v')
"""
INDEXES = "SELECT tablename, indexname, indexdef FROM pg_indexes WHERE schemaname = 'public'"
CONSTRAINTS = """
SELECT conrelid::regclass::text, pg_get_constraintdef(oid)
FROM pg_constraint WHERE connamespace = 'public'::regnamespace AND contype <> 'n'
"""
FUNCTIONS = """
SELECT proname, pg_get_function_identity_arguments(oid), pg_get_function_result(oid)
FROM pg_proc WHERE pronamespace = 'public'::regnamespace
"""
TYPES = "SELECT typname FROM pg_type WHERE typnamespace = 'public'::regnamespace AND typtype = 'e'"


@pytest.fixture
def old_folder(tmp_path: Path) -> Path:
    """Return a DATA_DIR with a database of version 1."""
    with closing(sqlite3.connect(tmp_path / FILE)) as connection:
        connection.executescript((OLD / "sqlite.dump").read_text("utf-8"))
    return tmp_path


@pytest.fixture
def old_url(empty_database_url: str) -> str:
    """Return the URL of a database of version 1."""
    execute(empty_database_url, (OLD / "postgres.dump").read_text("utf-8").replace("%", "%%"))
    return empty_database_url


def check_movies(movies: list[Movie]) -> None:
    """Check that the records have what they had."""
    expected = msgspec.json.decode((OLD / "movies.json").read_bytes(), type=list[Movie])
    assert list(map(in_order, movies)) == expected


HISTORY = "SELECT since, value, count FROM score_history WHERE kind = 'imdb' ORDER BY since"
RANKS = "SELECT list_name, rank, site_id FROM list_ranks"
PEOPLE = "SELECT person_id, name FROM people WHERE site = 'imdb' ORDER BY name"
NAMES = [("nm0000002", "An Actor"), (None, "An Extra"), ("nm0000001", "Odile Farrow")]


@pytest.mark.promise(
    "A database of an older version becomes one of this version, with its history."
)
@pytest.mark.parametrize("has_aliases", [False, True])
def test_an_old_file_becomes_one_of_this_version(old_folder: Path, has_aliases: bool) -> None:
    path = old_folder / FILE
    if has_aliases:  # which later versions made without another number
        with closing(sqlite3.connect(path)) as connection:
            connection.executescript(schema._migration(2, "sqlite"))
            connection.execute("INSERT INTO aliases VALUES ('imdb', 'tt1', 'tt2', '2026-03-01')")
            connection.commit()
    with closing(open_sqlite(old_folder)) as connection:
        check_movies([stored.movie for stored in read_stored(SqliteTables(connection), "true", ())])
        assert connection.execute(HISTORY).fetchall() == [
            ("2026-03-01T12:00:00+00:00", 7.5, 1000),
            ("2026-03-10T12:00:00+00:00", 7.7, 1100),
        ]
        assert connection.execute(PEOPLE).fetchall() == NAMES
        assert connection.execute(RANKS).fetchall() == [("top", 250, "tt0000001")]
        assert len(connection.execute("SELECT * FROM misses").fetchall()) == 1
        assert len(connection.execute("SELECT * FROM aliases").fetchall()) == has_aliases
    with closing(sqlite3.connect(f"{path}.version-1")) as copy:
        assert copy.execute("SELECT count(*) FROM movies").fetchall() == [(5,)]


def test_an_old_file_has_the_tables_of_a_new_one(old_folder: Path) -> None:
    (old_folder / "new").mkdir()

    def tables(folder: Path) -> dict[str, Any]:
        with closing(open_sqlite(folder)) as connection:
            texts = dict(connection.execute("SELECT name, coalesce(sql, '') FROM sqlite_master"))
            pragmas = ("table_info", "foreign_key_list", "index_list")
            return {
                name: [
                    sorted(re.findall(r"(?:CHECK|WHERE) .*", text)),
                    *(connection.execute(f"PRAGMA {of}({name})").fetchall() for of in pragmas),
                ]
                for name, text in texts.items()
            }

    assert tables(old_folder) == tables(old_folder / "new")


def test_titles_of_an_old_file_are_matched_again(old_folder: Path) -> None:
    from moviecrawler.database.scoreboard import match_embedded  # noqa: PLC0415 - as the store

    with closing(open_sqlite(old_folder)) as connection:
        assert connection.execute("SELECT written > matched FROM state").fetchall() == [(1,)]
        match_embedded(connection)
    scores = [
        (row.title, row.scores["imdb"], row.scores["tomatometer"]) for row in board_of(old_folder)
    ]
    assert scores == [("The Lamp 1", 7.7, 91), ("Ebb", None, None), ("The Lamp 2", None, None)]


def test_an_old_database_of_postgres_becomes_one_of_this_version(
    old_url: str, database_url: str
) -> None:
    execute(old_url, "UPDATE records SET match_keys = '{1}'")
    execute(
        old_url,
        "INSERT INTO listed_ids"
        " VALUES ('rottentomatoes', 'm/salt_vol_2', 'film saltvol2', 2001, 'list')",
    )
    update(old_url)
    with closing(psycopg2.connect(old_url)) as connection, connection.cursor() as cursor:
        tables = PostgresTables(cursor)
        stored = read_stored(tables, "true", ())
        for record in stored:
            assert record.match_keys == tables.match_keys_of(record.movie)
    assert execute(old_url, "SELECT key FROM listed_ids") == [("film saltvolume2",)]
    check_movies([record.movie for record in stored])
    assert [(float(str(value)), count) for _, value, count in execute(old_url, HISTORY)] == [
        (7.5, 1000),
        (7.7, 1100),
    ]
    assert execute(old_url, PEOPLE) == NAMES
    assert execute(old_url, RANKS) == [("top", 250, "tt0000001")]
    for query in (COLUMNS, INDEXES, CONSTRAINTS, FUNCTIONS, TYPES):
        assert sorted(execute(old_url, query), key=str) == sorted(
            execute(database_url, query), key=str
        )
    names = "SELECT title, imdb_rating::float, tomatometer::float FROM scoreboard ORDER BY title"
    assert execute(old_url, names) == [
        ("Ebb", None, None),
        ("The Lamp 1", 7.7, 91),
        ("The Lamp 2", None, None),
    ]


def test_rows_that_belong_to_nothing_are_kept_beside_the_tables(old_url: str) -> None:
    execute(old_url, "DELETE FROM title_sites WHERE title_id = 1; DELETE FROM offers")
    execute(
        old_url,
        "INSERT INTO title_sites (title_id, site, site_id) VALUES (999, 'imdb', 'tt0000999');"
        "INSERT INTO credits (record_id, role, position, person_id, name)"
        " SELECT 999, 'cast', 1, person_id, 'Nobody' FROM people LIMIT 1;"
        "UPDATE titles SET series_title_id = 999 WHERE title_id = 1",
    )
    update(old_url)
    kept = """SELECT table_name, "row"->>'name', "row"->>'site_id' FROM orphans ORDER BY 1"""
    assert execute(old_url, kept) == [
        ("credits", "Nobody", None),
        ("title_sites", None, "tt0000999"),
    ]
    assert execute(old_url, "SELECT count(*) FROM titles WHERE series_title_id = 999") == [(0,)]


def _update_slowly(url: str) -> None:
    script_of = schema._migration
    schema._migration = lambda version, dialect: (
        script_of(version, dialect) + ("; SELECT pg_sleep(3)" if version == 6 else "")
    )
    update(url)


@pytest.mark.promise("A migration of Postgres that is killed is continued at its step.")
def test_a_migration_of_postgres_that_is_killed_goes_on_at_its_step(old_url: str) -> None:
    process = multiprocessing.get_context("fork").Process(target=_update_slowly, args=(old_url,))
    process.start()
    version = "SELECT version FROM schema_version"
    wait_for(lambda: execute(old_url, version) == [(5,)])
    os.kill(int(process.pid or 0), signal.SIGKILL)
    process.join()
    assert execute(old_url, version) == [(5,)]
    update(old_url)  # waits until the server has noticed
    assert execute(old_url, version) == [(schema.VERSION,)]
    assert execute(old_url, "SELECT count(*) FROM records") == [(5,)]


def _open_slowly(folder: Path) -> None:
    endless = "WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n FROM n) SELECT count(*) FROM n;"
    scripts = {version: schema._migration(version, "sqlite") for version in (2, 3, 4, 5)}
    scripts[4] += endless
    schema._migration = lambda version, _: scripts[version]  # type: ignore[assignment]
    open_sqlite(folder)


@pytest.mark.promise("A migration that is killed leaves the old file whole.")
def test_a_migration_that_is_killed_leaves_the_old_file_whole(old_folder: Path) -> None:
    process = multiprocessing.get_context("fork").Process(target=_open_slowly, args=(old_folder,))
    process.start()
    wait_for((old_folder / f"{FILE}.version-1").exists)
    process.join(1)
    os.kill(int(process.pid or 0), signal.SIGKILL)
    process.join()
    # The file itself is where its last whole step has left it.
    for name, version in ((f"{FILE}.version-1", 1), (FILE, 3)):
        with closing(sqlite3.connect(old_folder / name)) as connection:
            assert connection.execute("PRAGMA user_version").fetchall() == [(version,)]
            assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
            assert connection.execute("SELECT count(*) FROM movies").fetchall() == [(5,)]
    with closing(open_sqlite(old_folder)) as connection:
        assert connection.execute("SELECT count(*) FROM records").fetchall() == [(5,)]


def test_views_of_a_user_outlive_a_change_of_the_schema(old_folder: Path) -> None:
    with closing(sqlite3.connect(old_folder / FILE)) as connection:
        connection.executescript(
            "CREATE VIEW best AS SELECT title FROM scoreboard WHERE imdb_rating > 7;"
            "CREATE VIEW scored AS SELECT count(*) AS number FROM scores"
        )
    with closing(open_sqlite(old_folder)) as connection:
        assert connection.execute("SELECT title FROM best").fetchall() == [("The Lamp 1",)]
        ((scores,),) = connection.execute("SELECT count(*) FROM scores")
        assert connection.execute("SELECT number FROM scored").fetchall() == [(scores,)]


def test_an_old_file_is_left_alone_while_there_is_too_little_space(
    old_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = shutil.disk_usage(old_folder)._replace(free=10_000)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)
    with pytest.raises(ConfigurationError, match=r"needs .* of free space"):
        open_sqlite(old_folder)
    assert not (old_folder / f"{FILE}.version-1").exists()


def test_views_of_a_user_in_postgres_are_named_when_they_stop_a_change(old_url: str) -> None:
    execute(old_url, "CREATE VIEW best AS SELECT title FROM scoreboard")
    with pytest.raises(ConfigurationError, match="view best depends on view scoreboard"):
        Database(old_url).open()
    execute(old_url, "DROP VIEW best")
    with closing(Database(old_url)) as database:
        database.open()


def test_views_have_the_scores_of_the_tables_and_are_made_anew_when_these_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stars = SCORES["tomatometer"]._replace(columns=("stars", "star_votes"), audience="users")
    monkeypatch.setattr(schema, "SCORES", SCORES | {"stars": stars})
    monkeypatch.setattr(schema, "SCORE_SITES", SCORE_SITES | {"stars": "rottentomatoes"})
    columns = "SELECT stars, star_votes FROM {}"
    for _ in range(2):  # the second one knows nothing of that score, and leaves it as it is
        with closing(open_sqlite(tmp_path)) as connection:
            for view in ("scoreboard", "season_scores", "episode_scores", "movies", "csv_movies"):
                connection.execute(columns.format(view))
        monkeypatch.setattr(schema, "SCORES", SCORES)


@pytest.mark.parametrize(("name", "rank"), [("'best'", "NULL"), ("NULL", "9")])
@pytest.mark.parametrize("database", ["sqlite", "postgres"])
def test_of_an_old_database_the_ranks_and_unknown_fields_are_those_of_each_site(
    database: str, name: str, rank: str, request: pytest.FixtureRequest
) -> None:
    both = "WHERE site_id IN ('tt0000001', 'm/lamp_1')"
    table, unknown = {
        "sqlite": ("movies", '["plot","scores.imdb"]'),
        "postgres": ("records", "{plot,scores.imdb}"),
    }[database]
    changes = [
        "list_name = 'top', list_rank = 250 WHERE site_id = 'tt0000002'",
        "scraped_at = '2026-03-11T00:00:00+00:00' WHERE site_id = 'tt0000002'",
        "list_name = 'best', list_rank = 7 WHERE site_id = 'm/lamp_1'",
        "list_name = 'other', list_rank = NULL WHERE site_id = 'tv/ebb'",
        f"list_name = {name}, list_rank = {rank} WHERE site_id = 'tv/ebb/s01'",
        f"unknown_fields = '{unknown}' {both}",
    ]
    statements = [f"UPDATE {table} SET {change}" for change in changes]  # noqa: S608
    queries = [
        "SELECT site, list_name, rank, site_id FROM list_entries ORDER BY 1",
        "SELECT site, list_name FROM lists ORDER BY 1",
        f"SELECT unknown_fields FROM records {both} ORDER BY site",  # noqa: S608
    ]
    if database == "sqlite":
        folder = request.getfixturevalue("old_folder")
        with closing(sqlite3.connect(folder / FILE)) as connection, connection:
            connection.executescript(";\n".join(statements))
        with closing(open_sqlite(folder)) as connection:
            ranks, lists, cells = (connection.execute(query).fetchall() for query in queries)
            fields = [json.loads(cell) for (cell,) in cells]
    else:
        url = request.getfixturevalue("old_url")
        for statement in [*statements, "UPDATE titles SET tmdb_id = least(title_id, 3)"]:
            execute(url, statement)
        update(url)
        ranks, lists, cells = (execute(url, query) for query in queries)
        fields = [cell for (cell,) in cells]
        # One of several titles is an unsure one.
        assert execute(url, "SELECT tmdb_id FROM titles WHERE tmdb_id IS NOT NULL") == [(2,)]
    assert ranks == [
        ("imdb", "top", 250, "tt0000002"),
        ("rottentomatoes", "best", 7, "m/lamp_1"),
    ]
    assert lists == [("imdb", "top"), ("rottentomatoes", "best")]
    assert fields == [["imdb_rating", "imdb_votes", "plot"], ["imdb_rating", "plot"]]
