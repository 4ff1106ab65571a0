"""Fetching the files of other sources by a command: in parts, politely, and never for ever."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from datetime import date
from pathlib import Path

import pytest

from moviecrawler.catalogue.episodes_import import ImdbEpisodes
from moviecrawler.catalogue.imdb_import import BASICS, EPISODES, RATINGS
from moviecrawler.catalogue.tmdb_import import TmdbExport
from tests.catalogue.files import Asked, FileServer, Reply, fetched
from tests.crawling import FAST, Finished, scrapy
from tests.services.https import HttpsFront

PART = 65_536
ROWS = {
    EPISODES: ("tconst\tparentTconst\tseasonNumber\tepisodeNumber", "tt0000002\ttt0000001\t1\t1"),
    BASICS: (
        "tconst\ttitleType\tprimaryTitle\toriginalTitle\tisAdult\tstartYear\tendYear\truntimeMinutes\tgenres",
        *(
            rf"tt{number:07}|tvEpisode|Salt {number}|\N|0|2001|\N|45|\N".replace("|", "\t")
            for number in range(2, 4_000)
        ),
    ),
    RATINGS: ("tconst\taverageRating\tnumVotes", "tt0000002\t7.1\t2000"),
}


@pytest.fixture
def server() -> Iterator[FileServer]:
    with FileServer() as serving:
        for name, rows in ROWS.items():
            serving.files[f"/{name}"] = gzip.compress("".join(f"{row}\n" for row in rows).encode(), 0)
        yield serving


def import_episodes(server: FileServer | HttpsFront, data: Path, database_url: str, **settings: str) -> Finished:
    given = {**FAST, "DATASET_PART": str(PART), "CONTACT": "https://example.org", **settings}
    options = [part for name, value in given.items() for part in ("-s", f"{name}={value}")]
    command = ("catalogue", "import", "episodes", "--from", server.url, *options)
    trusted = {"SSL_CERT_FILE": str(server.certificate)} if isinstance(server, HttpsFront) else {}
    return scrapy(*command, data=data, replica=None, DATABASE_URL=database_url, **trusted)


def test_files_are_fetched_in_parts_with_an_honest_name_and_then_only_when_they_changed(
    server: FileServer, tmp_path: Path, database_url: str
) -> None:
    def trouble(asked: Asked) -> Reply | None:
        """Answer the first request of a part with 503, leave the second one half answered, and then be well."""
        asked_for = [(one.path, one.headers.get("range")) for one in server.asked]
        times = asked_for.count((asked.path, asked.headers["range"]))
        server.stalls = {asked.path} if times == 2 else set()
        return (503, {}, b"") if times == 1 else None

    body = server.files[f"/{BASICS}"]
    server.replies[f"/{BASICS}"] = trouble
    server.replies[f"/{RATINGS}"] = lambda _: (302, {"Location": f"/moved/{RATINGS}"}, b"")
    server.files[f"/moved/{RATINGS}"] = server.files[f"/{RATINGS}"]
    (tmp_path / "feed.csv").write_text("what a crawl has stored", encoding="ascii")
    feed = {"feed.csv": {"format": "csv", "overwrite": True}}
    settings = {"DOWNLOAD_TIMEOUT": "0.5", "FEEDS": json.dumps(feed)}
    first = import_episodes(server, tmp_path, database_url, **settings)
    assert (first.code, "1 episodes added" in first.output, first.log) == (0, True, "")
    assert (tmp_path / "datasets" / BASICS).read_bytes() == body
    assert (tmp_path / "feed.csv").read_text(encoding="ascii") == "what a crawl has stored"
    parts = [asked.headers["range"] for asked in server.asked if asked.path == f"/{BASICS}"]
    assert len(parts) == 3 * -(-len(body) // PART)
    (agent,) = {asked.headers["user-agent"] for asked in server.asked}
    assert (agent.startswith("moviecrawler/"), agent.endswith(" (+https://example.org)")) == (True, True)

    server.replies.clear()
    server.asked.clear()
    again = import_episodes(server, tmp_path, database_url)
    assert (again.code, "has not changed" in again.output) == (0, True), again.log
    assert sorted(server.paths) == sorted(f"/{name}" for name in ROWS)
    assert all("if-none-match" in asked.headers for asked in server.asked if asked.path != "/robots.txt")
    assert [asked.path for asked in server.asked].count("/robots.txt") == 1


@pytest.mark.parametrize(
    ("path", "reply", "told", "tries"),
    [
        ("/robots.txt", (200, {}, b"User-agent: *\nDisallow: /\n"), "robots.txt; or fetch it by hand", 0),
        ("/robots.txt", (503, {}, b""), "can't be fetched (HTTP status 503), so nothing is fetched there", 0),
        (f"/{EPISODES}", (503, {}, b""), "HTTP status 503", 4),
        (f"/{EPISODES}", (429, {"Retry-After": "3600"}, b""), "HTTP status 429", 1),
        (
            f"/{EPISODES}",
            (200, {"Content-Length": "", "Connection": "close"}, bytes(PART + 2)),
            "set DOWNLOAD_MAXSIZE",
            1,
        ),
    ],
)
def test_what_can_not_be_had_is_told_after_a_few_tries(
    server: FileServer, tmp_path: Path, database_url: str, path: str, reply: Reply, told: str, tries: int
) -> None:
    server.replies[path] = lambda _: reply
    finished = import_episodes(server, tmp_path, database_url, DOWNLOAD_MAXSIZE=str(PART + 1))
    assert (finished.code, told in finished.log) == (1, True), finished.log
    assert server.paths == [f"/{EPISODES}"] * tries


def test_a_server_that_gives_no_parts_gives_the_whole_file_however_large(
    server: FileServer, tmp_path: Path, database_url: str
) -> None:
    body = server.files[f"/{BASICS}"]
    server.replies[f"/{BASICS}"] = lambda _: (200, {}, body)
    finished = import_episodes(server, tmp_path, database_url, DOWNLOAD_MAXSIZE=str(PART + 1))
    assert (finished.code, finished.log) == (0, "")
    assert (tmp_path / "datasets" / BASICS).read_bytes() == body
    assert server.paths.count(f"/{BASICS}") == 2  # what tells so is not read to its end


def test_a_part_that_is_larger_than_asked_for_is_taken(server: FileServer, tmp_path: Path, database_url: str) -> None:
    body = server.files[f"/{BASICS}"]
    given = {"ETag": '"1"', "Content-Range": f"bytes 0-{len(body) - 1}/{len(body)}"}
    server.replies[f"/{BASICS}"] = lambda _: (206, given, body)
    finished = import_episodes(server, tmp_path, database_url)
    assert (finished.code, finished.log) == (0, "")
    assert server.paths.count(f"/{BASICS}") == 1


def test_a_redirect_from_https_to_http_is_not_followed(server: FileServer, tmp_path: Path, database_url: str) -> None:
    moved = f"/moved/{EPISODES}"
    server.files[moved] = server.files[f"/{EPISODES}"]
    server.replies[f"/{EPISODES}"] = lambda _: (302, {"Location": server.url + moved}, b"")
    with HttpsFront(server.url) as front:
        finished = import_episodes(front, tmp_path, database_url)
    assert (finished.code, "127.0.0.1 is asked by https only" in finished.log) == (1, True), finished.log
    assert server.paths == [f"/{EPISODES}"]


def test_the_url_of_a_folder_may_end_with_a_slash(server: FileServer, tmp_path: Path) -> None:
    server.files = {f"/folder{path}": body for path, body in server.files.items()}
    source = fetched(ImdbEpisodes(f"{server.url}/folder/", tmp_path))
    assert next(iter(source.rows())) == ("places", ("tt0000002", "tt0000001", 1, 1))


@pytest.mark.parametrize("status", [403, 404, 410])
def test_an_export_that_is_not_there_is_no_trouble_of_the_server(
    server: FileServer, tmp_path: Path, status: int
) -> None:
    export = gzip.compress(b'{"id":11,"original_title":"Salt","popularity":90.1}\n')
    server.files["/movie_ids_11_03_2026.json.gz"] = export
    for day in (4, 5):
        server.replies[f"/movie_ids_11_0{day}_2026.json.gz"] = lambda _: (status, {}, b"")
    source = fetched(TmdbExport(server.url, tmp_path, day=date(2026, 11, 5)))
    assert [row.tmdb_id for row in source.rows()] == [11]
