"""Ids that are guessed: nothing of a guess is stored before its page was found to be the title's."""

from __future__ import annotations

import uuid
from contextlib import closing
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import boto3
import pytest
from scrapy.settings import Settings

from moviecrawler.catalogue.loading import load
from moviecrawler.catalogue.rows import ImportRow
from moviecrawler.pipelines.catalogue import open_catalogue
from moviecrawler.replica.movies import Catalogue
from moviecrawler.replica.process import ReplicaProcess
from tests.crawling import FAST, Finished, scrapy
from tests.services.postgres import execute
from tests.services.s3 import CREDENTIALS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.services.s3 import S3Server

CATALOGUE = Catalogue(1, 60)
FILM = next(
    movie
    for movie in map(CATALOGUE.movie, range(60))
    if movie.rottentomatoes is not None and movie.rottentomatoes.slug == movie.basics.title.lower().replace(" ", "_")
)
"""A film whose address on Rotten Tomatoes is what would be guessed of its title."""
PAGE = f"m/{FILM.basics.title.lower().replace(' ', '_')}"


@pytest.fixture(scope="module")
def replica() -> Iterator[ReplicaProcess]:
    with ReplicaProcess(titles=60, light=True) as running:
        yield running


def bring_in(database_url: str, *rows: ImportRow) -> None:
    with closing(open_catalogue(Settings({"DATABASE_URL": database_url}))) as store:
        load(store, "test", "1", rows, len(rows), datetime.now(UTC))


def namesake() -> ImportRow:
    """Return a film of the same title that was made long before, and that the site doesn't have."""
    assert FILM.basics.year is not None
    return ImportRow(
        imdb_id="tt9000001", title=FILM.basics.title, kind="movie", year=FILM.basics.year - 35, popularity=50.0
    )


def wanted() -> ImportRow:
    return ImportRow(
        imdb_id=FILM.imdb_id, title=FILM.basics.title, kind="movie", year=FILM.basics.year, popularity=60.0
    )


def fetch(database_url: str, data: Path, replica: ReplicaProcess, *command: str, **settings: str) -> Finished:
    options = [part for name, value in FAST.items() for part in ("-s", f"{name}={value}")]
    finished = scrapy(
        *(command or ("crawl", "rottentomatoes", "-a", "lane=due")),
        *options,
        data=data,
        replica=replica,
        DATABASE_URL=database_url,
        **{"CATALOGUE_LISTS": "0", "CSV_ENABLED": "0", **settings},
    )
    assert "Traceback" not in finished.log, finished.log
    return finished


def rows(database_url: str, statement: str, *values: Any) -> list[tuple[Any, ...]]:
    return execute(database_url, statement, *values)


def test_a_guess_that_leads_to_another_title_stores_no_record(
    database_url: str, replica: ReplicaProcess, tmp_path: Path
) -> None:
    bring_in(database_url, namesake())
    finished = fetch(database_url, tmp_path, replica, CSV_ENABLED="1")
    assert finished.code == 0, finished.log
    assert rows(database_url, "SELECT count(*) FROM records") == [(0,)]
    assert finished.movies == []
    assert rows(
        database_url, "SELECT site::text, state::text, site_id FROM title_sites WHERE site = 'rottentomatoes'"
    ) == [("rottentomatoes", "absent", None)]
    # Why it was refused is kept, as are the guesses that led nowhere, and that there is such a page.
    matches = dict(rows(database_url, "SELECT site_id, decision::text FROM title_matches"))
    assert matches[PAGE] == "refused"
    assert len(matches) > 1
    assert set(matches.values()) == {"refused"}
    ((reasons,),) = rows(database_url, "SELECT reasons FROM title_matches WHERE site_id = %s", PAGE)
    assert reasons[0] == "same title"
    assert reasons[1].startswith("but years ")
    assert rows(database_url, "SELECT site_id, title, year, source::text FROM sightings") == [
        (PAGE, FILM.basics.title, FILM.basics.year, "guess")
    ]
    assert finished.misses[PAGE] == "absent"

    # The title that the page is of finds it there, without another guess.
    bring_in(database_url, wanted())
    finished = fetch(database_url, tmp_path, replica, CATALOGUE_GUESSES="0")
    assert finished.stat("titles/asked") == 1
    assert rows(
        database_url,
        "SELECT t.imdb_id, r.site_id, s.id_source::text, s.id_verified FROM records r JOIN titles t USING (title_id)"
        " JOIN title_sites s ON s.title_id = t.title_id AND s.site = r.site",
    ) == [(FILM.imdb_id, PAGE, "guess", True)]


def test_a_guess_that_is_right_is_stored(database_url: str, replica: ReplicaProcess, tmp_path: Path) -> None:
    bring_in(database_url, wanted())
    fetch(database_url, tmp_path, replica)
    assert rows(database_url, "SELECT t.imdb_id, r.site_id FROM records r JOIN titles t USING (title_id)") == [
        (FILM.imdb_id, PAGE)
    ]
    assert rows(database_url, "SELECT decision::text FROM title_matches") == [("accepted",)]


def test_a_record_that_a_guess_leads_to_again_is_refreshed(
    database_url: str, replica: ReplicaProcess, tmp_path: Path
) -> None:
    # Fetched from a list before, and of no title that the catalogue knows.
    fetch(database_url, tmp_path, replica, "crawl", "rottentomatoes", "-a", f"ids={PAGE}")
    ((first,),) = rows(database_url, "SELECT scraped_at FROM records")
    bring_in(database_url, namesake())
    fetch(database_url, tmp_path, replica, FRESHNESS_MARGIN="0")
    ((again, imdb_id),) = rows(
        database_url, "SELECT r.scraped_at, t.imdb_id FROM records r JOIN titles t USING (title_id)"
    )
    assert again > first
    assert imdb_id is None
    assert rows(database_url, "SELECT decision::text FROM title_matches WHERE site_id = %s", PAGE) == [("refused",)]


def test_a_replay_refuses_what_the_crawl_refused(
    database_url: str, own_s3: S3Server, replica: ReplicaProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in CREDENTIALS.items():
        monkeypatch.setenv(name, value)
    bucket = f"test-{uuid.uuid4().hex}"
    client = boto3.session.Session().client("s3", endpoint_url=own_s3.url)
    client.create_bucket(Bucket=bucket)
    client.close()
    bring_in(database_url, namesake())
    access = {"S3_ENDPOINT_URL": own_s3.url, **CREDENTIALS}
    fetch(database_url, tmp_path, replica, S3_BUCKET=bucket, **access)
    replayed = fetch(database_url, tmp_path, replica, "replay", f"s3://{bucket}", CSV_ENABLED="1", **access)
    assert replayed.misses[PAGE] == "absent"
    assert replayed.movies == []
    assert rows(database_url, "SELECT count(*) FROM records") == [(0,)]
