"""`skip_newer_than`: titles whose stored record is young are not fetched."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from moviecrawler.replica.process import ReplicaProcess
from tests.crawling import counts, crawl, reset
from tests.services.replica import IDS


def make_older(folder: Path, site_id: str, at: str = "2026-01-01T00:00:00+00:00") -> None:
    """Let a record be from the beginning of the year."""
    with closing(sqlite3.connect(folder / "movies.sqlite3")) as connection, connection:
        changed = connection.execute(
            "UPDATE records SET scraped_at = ? WHERE site_id = ?", (at, site_id)
        )
        assert changed.rowcount == 1


@pytest.mark.promise("A title whose record is younger than asked for is not fetched, and counted.")
@pytest.mark.parametrize("via", ["pages", "datasets"])
@pytest.mark.parametrize("is_shared", [False, True])
def test_young_records_are_left_as_they_are(
    via: str, is_shared: bool, replica: ReplicaProcess, redis_url: str, tmp_path: Path
) -> None:
    settings = {"IMDB_DATASETS": "ratings", **({"REDIS_URL": redis_url} if is_shared else {})}
    arguments = (f"via={via}", "skip_newer_than=7d")
    assert crawl("imdb", f"ids={','.join(IDS[:2])}", data=tmp_path, replica=replica).code == 0
    make_older(tmp_path, IDS[1])
    reset(replica)
    ids = f"ids={','.join(IDS[:3])}"
    again = crawl("imdb", ids, *arguments, data=tmp_path, replica=replica, **settings)
    assert again.code == 0
    assert again.summary.ends == {"stored": 2, "fresh": 1}
    asked = [path for path in counts(replica)["paths"] if path.startswith("/title/")]
    assert len(asked) == (2 if via == "pages" else 0)
    once_more = crawl("imdb", ids, *arguments, data=tmp_path, replica=replica, **settings)
    assert once_more.code == 0
    assert once_more.summary.ends == {"fresh": 3}
    assert once_more.misses == {}


def test_titles_of_a_list_are_left_out_with_postgres_as_well(
    replica: ReplicaProcess, database_url: str, tmp_path: Path
) -> None:
    settings = {"DATABASE_URL": database_url, "SQLITE_ENABLED": "0"}
    given = ("list=new", "limit=3", "skip_newer_than=12h")
    first = crawl("metacritic", *given, data=tmp_path, replica=replica, **settings)
    assert first.summary.ends == {"stored": 3}
    second = crawl("metacritic", *given, data=tmp_path, replica=replica, **settings)
    assert (second.code, second.summary.ends) == (0, {"fresh": 3})
