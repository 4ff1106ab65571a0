"""Fetching the files of other sources by a command; `tests/datasets/test_files.py` has how a file is fetched."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path

import pytest

from moviecrawler.catalogue.imdb_import import BASICS, EPISODES, RATINGS
from tests.catalogue.files import FileServer
from tests.crawling import FAST, Finished, scrapy

TITLE = "tt0000002\ttvEpisode\tSalt 2\t\\N\t0\t2001\t\\N\t45\t\\N"
ROWS = {
    EPISODES: ("tconst\tparentTconst\tseasonNumber\tepisodeNumber", "tt0000002\ttt0000001\t1\t1"),
    BASICS: (
        "tconst\ttitleType\tprimaryTitle\toriginalTitle\tisAdult\tstartYear\tendYear\truntimeMinutes\tgenres",
        TITLE,
    ),
    RATINGS: ("tconst\taverageRating\tnumVotes", "tt0000002\t7.1\t2000"),
}


@pytest.fixture
def server() -> Iterator[FileServer]:
    with FileServer() as serving:
        for name, rows in ROWS.items():
            serving.files[f"/{name}"] = gzip.compress("".join(f"{row}\n" for row in rows).encode(), 0)
        yield serving


def import_episodes(server: FileServer, data: Path, database_url: str) -> Finished:
    given = {**FAST, "CONTACT": "https://example.org", "DATABASE_URL": database_url}
    return scrapy("catalogue", "import", "episodes", "--from", server.url, data=data, replica=None, **given)


def test_files_are_fetched_with_an_honest_name_and_then_only_when_they_changed(
    server: FileServer, tmp_path: Path, database_url: str
) -> None:
    first = import_episodes(server, tmp_path, database_url)
    assert (first.code, "1 episodes added" in first.output, first.log) == (0, True, "")
    (agent,) = {asked.headers["user-agent"] for asked in server.asked}
    assert (agent.startswith("moviecrawler/"), agent.endswith(" (+https://example.org)")) == (True, True)
    server.asked.clear()
    again = import_episodes(server, tmp_path, database_url)
    assert (again.code, "has not changed" in again.output) == (0, True), again.log
    assert sorted(server.paths) == sorted(f"/{name}" for name in ROWS)
    assert all("if-none-match" in asked.headers for asked in server.asked if asked.path != "/robots.txt")
