"""A site that changes its pages in the middle of a crawl: what is told, and what stores keep."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from moviecrawler.extensions.missing_fields import GONE_AFTER_PAGES
from moviecrawler.items import Movie
from moviecrawler.politeness.kept_pages import MAX_PAGES
from moviecrawler.replica.collection import Collection
from moviecrawler.replica.process import ReplicaProcess
from tests.crawling import change, crawl, scrapy
from tests.services.changing_replica import IDENTITY, RATING
from tests.services.mongo import mongo_movies
from tests.services.postgres import postgres_movies
from tests.services.replica import ReplicaOf

TITLES = 80
AS_BEFORE = 20
"""Answers of the second crawl before the pages change."""
IDS = "ids=" + ",".join(Collection(1, TITLES).imdb_ids)
ASKED_AS_SITES_ARE = json.dumps({"imdb": {"per_second": 50}})
"""Most requests that the crawl has taken up wait at the gate."""
IN_FLIGHT = 6
"""Pages that are being fetched and read when a crawl stops, at most; they are stored."""
NO_SCORES = {**RATING, '"metacritic"': '"critics"'}


@pytest.fixture
def renaming(replica_of: ReplicaOf) -> ReplicaProcess:
    """Return a replica of 80 titles, whose pages are to change."""
    return replica_of(titles=TITLES, light=True)


def rename(replica: ReplicaProcess, names: dict[str, str], after: int = AS_BEFORE) -> None:
    change(replica, renames=names, rename_after=after)


def scores(movies: list[Movie]) -> dict[str | None, list[tuple[str, float, int | None]]]:
    return {
        movie.site_id: sorted((score.kind, score.value, score.count) for score in movie.scores)
        for movie in movies
    }


@pytest.mark.promise(
    "A score that pages stop to tell is named within 50 pages; without any score a crawl stops."
)
def test_renamed_score_is_told_within_50_pages_with_a_page_and_loses_nothing(
    renaming: ReplicaProcess, database_url: str, mongo_url: str, tmp_path: Path
) -> None:
    stores = {"DATABASE_URL": database_url, "MONGO_URL": mongo_url, "FRESHNESS_MARGIN": "0"}
    first = crawl("imdb", IDS, data=tmp_path, replica=renaming, **stores)
    assert first.code == 0
    assert "missing fields: none" in first.log
    readers: dict[str, Callable[[], list[Movie]]] = {
        "csv": lambda: first.movies,
        "postgres": lambda: postgres_movies(database_url),
        "mongo": lambda: mongo_movies(mongo_url),
    }
    before = {name: scores(read()) for name, read in readers.items()}
    rename(renaming, RATING)
    again = crawl("imdb", IDS, data=tmp_path, replica=renaming, **stores)
    assert again.code == 0, again.log
    assert again.stat("titles/stored") == TITLES
    assert "imdb: the field imdb_rating is missing: unknown on 15 of the latest " in again.log
    assert "missing fields: imdb_rating unknown on 15 of the latest " in again.log
    assert again.stat("pages/unknown/imdb_rating") >= TITLES - AS_BEFORE - 1
    (page,) = (tmp_path / "kept").glob("imdb-missing-*.html")
    assert b"meanOfVotes" in page.read_bytes()
    assert {name: scores(read()) for name, read in readers.items()} == before


@pytest.mark.promise(
    "A score that pages stop to tell is named within 50 pages; without any score a crawl stops."
)
@pytest.mark.parametrize(
    ("names", "shared", "why"),
    [
        (NO_SCORES, False, "every score is unknown on 30 title pages in a row, such as tt"),
        (NO_SCORES, True, "every score is unknown on 30 title pages in a row, such as tt"),
        (IDENTITY, False, "30 title pages in a row can't be read, such as tt"),
    ],
    ids=["all scores", "all scores, shared", "identity"],
)
def test_crawl_stops_when_all_scores_or_identity_are_gone_and_goes_on_when_told(
    renaming: ReplicaProcess,
    redis_url: str,
    tmp_path: Path,
    names: dict[str, str],
    shared: bool,
    why: str,
) -> None:
    rename(renaming, names, after=10)
    settings = {"REDIS_URL": redis_url} if shared else {}
    ended = crawl(
        "imdb", IDS, data=tmp_path, replica=renaming, SITE_BUDGETS=ASKED_AS_SITES_ARE, **settings
    )
    assert ended.code == 1
    assert "(pages_changed)" in ended.log
    assert why in ended.log
    assert "COVERAGE_STOP=0" in ended.log
    read = ended.stat("pages/read") + ended.stat("titles/failed")
    assert read <= 10 + GONE_AFTER_PAGES + IN_FLIGHT
    # What was not asked for is neither failed nor blocked: the same command asks for it.
    assert f"next: {why}" in ended.log
    assert f"{TITLES - read} requests wait in the queue" in ended.log
    on = crawl(
        "imdb",
        IDS,
        data=tmp_path,
        replica=renaming,
        COVERAGE_STOP="0",
        FRESHNESS_MARGIN="0",
        **settings,
    )
    assert "(finished)" in on.log
    assert len(on.movies) == TITLES or names is IDENTITY


def test_unreadable_pages_are_kept_to_be_looked_at(
    renaming: ReplicaProcess, tmp_path: Path
) -> None:
    rename(renaming, IDENTITY, 0)
    crawl("imdb", IDS, data=tmp_path, replica=renaming)
    kept = sorted((tmp_path / "kept").glob("imdb-unreadable-*.html"))
    assert 0 < len(kept) <= MAX_PAGES
    about = json.loads(kept[0].with_suffix(".json").read_bytes())
    assert "/title/tt" in about["url"]
    looked = scrapy("extract", str(kept[0]), data=tmp_path)
    assert looked.code == 1
    assert json.loads(looked.output)["error"].partition(":")[0] == about["why"].partition(":")[0]
