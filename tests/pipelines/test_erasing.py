"""The rule of erasing in every store: a stated absence erases at once, silence never does."""

from __future__ import annotations

import random
import sqlite3
from contextlib import closing
from functools import reduce
from pathlib import Path
from typing import Any

import msgspec
import psycopg2

from moviecrawler.catalogue.merging import complete
from moviecrawler.catalogue.stored import is_newer
from moviecrawler.catalogue.tables import read_movies
from moviecrawler.database.connection import open_database
from moviecrawler.items import Movie, Score
from moviecrawler.pipelines.csv import CsvStore
from moviecrawler.pipelines.mongo import MongoStore
from moviecrawler.pipelines.postgres import PostgresStore
from moviecrawler.pipelines.store import Store
from tests.catalogue.readings import reading
from tests.monitors.movies import movie
from tests.pipelines.runs import record_of
from tests.pipelines.stored import Stored, in_order, sqlite_movies
from tests.services.mongo import documents
from tests.services.postgres import execute, migrate_below, postgres_movies


def write(store: Store, *movies: Movie) -> None:
    store.write([record_of(one) for one in movies])


def test_all_stores_hold_what_the_newest_reading_of_each_field_says(every_store: Stored) -> None:
    luck = random.Random(11)  # noqa: S311 - no secret
    days = [0, 1, 2, 3]
    history = {number: [reading(luck, number, day) for day in days] for number in range(25)}
    for day in days:
        every_store.write(*(readings[day] for readings in history.values()))
    late = {number: reading(luck, number, 1.5) for number in history}
    every_store.write(*late.values())
    found = {one.site_id: in_order(one) for one in every_store.contents()}
    for number, readings in history.items():
        if every_store.kind == "s3":  # whoever reads puts all lines together, in the order of their times
            expected = joined([*readings[:2], late[number], *readings[2:]])
        else:  # a late reading fills what all others are silent of
            expected = complete(joined(readings), late[number])
        assert found[expected.site_id] == in_order(expected)


def joined(readings: list[Movie]) -> Movie:
    return reduce(lambda known, newer: complete(newer, known), readings)


# --- What the version before has left in stores -----------------------------------------------------------------------


def former(one: Movie, **unsure: str) -> bytes:
    """Return a movie's JSON as the version before `silent` wrote it."""
    plain = msgspec.to_builtins(one)
    del plain["silent"]
    return msgspec.json.encode({**plain, "unsure": unsure})


ROW = movie(2, plot=None, poster_url=None, genres=[], credits=[], amounts=[], runtime_minutes=None, source="list")
ROW.scores = [Score(kind="metascore", value=70)]
SILENT_OF_ROW = [
    *(
        "certificate",
        "countries",
        "credits.cast",
        "credits.director",
        "credits.writer",
        "genres",
        "imdb_id",
        "languages",
    ),
    *("plot", "poster_url", "release_date", "runtime_minutes", "scores.metacritic_user", "scores.metascore.count"),
]


def known_then(silent: list[str]) -> list[str]:
    """Return the names that the version before knew; an item of its is silent of all others that its site tells."""
    return [name for name in silent if not is_newer(*name.split("."))]


def test_csv_rows_of_the_version_before_are_read(tmp_path: Path) -> None:
    store = CsvStore(tmp_path)
    store.open()
    write(store, movie(1), ROW)
    with closing(sqlite3.connect(tmp_path / "movies.sqlite3")) as connection, connection:
        page = former(movie(1, certificate=None), plot="unusual", certificate="collapsed")
        connection.execute("UPDATE movies SET movie = ? WHERE site_id = 'movie/film-1'", (page,))
        connection.execute("UPDATE movies SET movie = ? WHERE site_id = 'movie/film-2'", (former(ROW),))
    assert [known_then(one.silent) for one in sqlite_movies(tmp_path)] == [["certificate"], SILENT_OF_ROW]
    write(store, movie(1, 1, plot=None, certificate=None, silent=["certificate", "plot"]))
    store.close()
    page_read, row_read = read_movies(tmp_path / "movies.csv")
    assert (page_read.plot, known_then(page_read.silent)) == (movie(1).plot, ["certificate"])
    assert known_then(row_read.silent) == SILENT_OF_ROW


def test_mongo_documents_of_the_version_before_are_read(mongo_url: str) -> None:
    store = MongoStore(mongo_url)
    store.open()
    write(store, movie(1))
    store._collection("movies").update_one(
        {"_id": "metacritic/movie/film-1"}, {"$unset": {"silent": ""}, "$set": {"unsure": {"languages": "unusual"}}}
    )
    write(store, movie(1, 1, plot=None, silent=["languages", "plot"]))
    store.close()
    (found,) = documents(mongo_url, "movies").values()
    assert (found["plot"], found["silent"]) == (movie(1).plot, ["languages"])
    assert "unsure" not in found


def test_postgres_rows_of_the_version_before_are_migrated(empty_database_url: str) -> None:
    with closing(psycopg2.connect(empty_database_url)) as connection, connection, connection.cursor() as cursor:
        migrate_below(cursor, 8)
        cursor.execute(
            """
            INSERT INTO titles SELECT FROM generate_series(1, 5);
            INSERT INTO records (title_id, site, site_id, url, title, kind, year, countries, languages, list_computed,
                source, unsure, scraped_at, match_keys)
            SELECT n, site::site, site_id, 'u', 'T', kind::title_kind, 2021, '{}', '{}', false, source::source, unsure::jsonb,
                '2026-10-01Z', '{}'
            FROM (VALUES
                (1, 'imdb', 'tt9000001', 'movie', 'page', '{}'),
                (2, 'imdb', 'tt9000002', 'movie', 'page',
                    '{"year": "unusual", "plot": "collapsed", "scores.imdb": "unusual", "scores.metascore": "unusual",
                      "scores.imdb.count": "unusual", "genres": "unusual", "credits.cast": "unusual", "votes": "collapsed"}'),
                (3, 'metacritic', 'movie/film-2', 'movie', 'list', '{}'),
                (4, 'imdb', 'tt9000004', 'series', 'dataset', '{}')
            ) v (n, site, site_id, kind, source, unsure);
            INSERT INTO scores (record_id, kind, value, count) VALUES (2, 'imdb', 7.5, NULL), (3, 'metascore', 70, NULL);
            INSERT INTO genres (name) VALUES ('Drama');
            INSERT INTO record_genres VALUES (2, 1, 1);
            """
        )
    open_database(empty_database_url).close()
    found: Any = execute(empty_database_url, "SELECT record_id, silent FROM records")
    silent = dict(found)
    assert silent[1] == []
    assert silent[2] == ["credits.cast", "plot", "scores.imdb.count", "scores.metascore"]
    assert silent[3] == SILENT_OF_ROW
    assert set(silent[4]) >= {"plot", "credits.creator", "imdb_top250_tv_rank", "scores.metascore", "release_date"}
    assert not set(silent[4]) & {
        "runtime_minutes",
        "genres",
        "end_year",
        "scores.imdb",
        "title_type",
        "imdb_top250_rank",
    }
    assert execute(empty_database_url, "SELECT to_regclass('told')") == [(None,)]
    store = PostgresStore(empty_database_url)
    store.open()
    write(store, movie(2, 1, plot=None, silent=["plot"]))
    store.close()
    movies = {one.site_id: one for one in postgres_movies(empty_database_url)}
    assert movies["movie/film-2"].silent == ["plot"]
    assert movies["tt9000002"].score("imdb") == Score(kind="imdb", value=7.5)
