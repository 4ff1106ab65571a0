"""All sites in all stores at once: the same titles in each, and the same again from the archive."""

from dataclasses import fields, replace
from datetime import timedelta
from pathlib import Path

import pytest

from moviecrawler.items import Movie, Site
from moviecrawler.replica.collection import Collection
from moviecrawler.sites import SITES
from tests.crawling import counts, reset, scrapy
from tests.services.postgres import new_database, postgres_movies
from tests.services.replica import ForkedReplica
from tests.stored import BoardRow, Stores, board_of, in_order
from tests.tables import sqlite_movies

TITLES = 15
SERIES = 6
COLLECTION = Collection(1, TITLES, SERIES)
OF_CRAWLS = {"scraped_at", "fetch", "unknown_fields"}
"""Fields that say how a title was read, and not what its page says."""
LISTS: dict[Site, tuple[str, str]] = {
    "imdb": ("top", "toptv"),
    "metacritic": ("sitemap", "sitemap-series"),
    "rottentomatoes": ("sitemap", "sitemap-series"),
}


def by_id(movies: list[Movie]) -> dict[tuple[Site, str | None], Movie]:
    """Return movies by site and id, each there once."""
    found = {(movie.site, movie.site_id): in_order(movie) for movie in movies}
    assert len(found) == len(movies)
    return found


def assert_as_the_items(movies: dict[tuple[Site, str | None], Movie]) -> None:
    """Compare each field of what is stored with the items that the replica's pages were made of."""
    titles = [COLLECTION.series.title(number) for number in range(SERIES)]
    listed = {
        (one.site, one.site_id): one
        for title in titles
        for seasons in title.listed.values()
        for one in seasons
    }
    items = listed | {
        (site, site_id): movie
        for site in SITES
        for site_id, movie in COLLECTION.every(site).items()
    }
    for key, movie in movies.items():
        item = in_order(listed[key] if movie.source == "list" else items[key])
        for field in fields(Movie):
            if field.name not in OF_CRAWLS:
                assert getattr(movie, field.name) == getattr(item, field.name), (key, field.name)


def assert_same(
    movies: dict[tuple[Site, str | None], Movie], expected: dict[tuple[Site, str | None], Movie]
) -> None:
    """Compare what stores hold; MongoDB keeps milliseconds."""
    assert movies.keys() == expected.keys()
    for key, movie in movies.items():
        right = expected[key]
        assert movie.scraped_at is not None
        assert right.scraped_at is not None
        assert abs(movie.scraped_at - right.scraped_at) < timedelta(milliseconds=1)
        assert replace(movie, scraped_at=right.scraped_at) == right


@pytest.mark.promise(
    "Every store holds the same records, and a replay of the archived pages gives them again."
)
@pytest.mark.promise(
    "The scoreboard has one row per title, with all sites' scores: lists first, then by votes."
)
def test_three_sites_are_the_same_in_every_store_on_one_scoreboard_and_from_the_archive(
    stores: Stores, database_url: str, postgres_server: str, tmp_path: Path
) -> None:
    with ForkedReplica(titles=TITLES, series=SERIES, light=True) as replica:
        for site, (films, series) in LISTS.items():
            parts = ",".join(str(movie.site_id) for movie in COLLECTION.series.title(1).parts[site])
            # A season's own page says more than its series' page, and is here the newer one of the
            # two.
            for arguments in (
                ["-a", f"list={series}"],
                ["-a", f"list={films}", "-a", f"ids={parts}"],
            ):
                finished = scrapy(
                    "crawl", site, *arguments, data=tmp_path, replica=replica, **stores.settings
                )
                assert finished.code == 0, finished.log
        stored = by_id(sqlite_movies(tmp_path))
        assert {movie.kind for movie in stored.values()} == {"movie", "series", "season", "episode"}
        assert_as_the_items(stored)
        for movies in stores.movies():
            assert_same(by_id(movies), stored)
        boards = [
            scrapy("scoreboard", "--format", "csv", data=tmp_path, DATABASE_URL=at)
            for at in ("", database_url)
        ]
        # Each database gives titles numbers of its own, which come last.
        rows = [
            sorted(line.rpartition(",")[0] for line in board.output.splitlines())
            for board in boards
        ]
        assert rows[0] == rows[1]
        assert len(rows[0]) == 1 + TITLES + SERIES
        seasons = board_of(database_url, kind="season")
        assert seasons == board_of(tmp_path, "season")
        assert_seasons_as_the_replica_has_them(seasons)

        reset(replica)
        replayed = tmp_path / "replayed"
        empty = new_database(postgres_server)
        again = scrapy(
            "replay",
            stores.archive,
            data=replayed,
            replica=replica,
            DATABASE_URL=empty,
            **stores.s3,
        )
        assert again.code == 0, again.log
        # What a chart says of a rank is not in a page.
        assert by_id(sqlite_movies(replayed)).keys() == stored.keys()
        assert_same(by_id(postgres_movies(empty)), by_id(sqlite_movies(replayed)))
        assert_as_the_items(by_id(sqlite_movies(replayed)))
        assert not any(counts(replica, site)["requests"] for site in SITES)


def assert_seasons_as_the_replica_has_them(rows: list[BoardRow]) -> None:
    """Compare seasons with the truth.

    Each is there once, beside that of the same number of the same series, with the scores of
    series' pages.
    """
    sites: tuple[Site, ...] = ("metacritic", "rottentomatoes")
    found = {
        site: {row.site_ids[site]: row for row in rows if row.site_ids[site]} for site in sites
    }
    of_seasons: dict[tuple[int, int | None], dict[Site, Movie]] = {}
    for number in range(SERIES):
        for site, seasons in COLLECTION.series.title(number).listed.items():
            for season in seasons:
                of_seasons.setdefault((number, season.season), {})[site] = season
    for site in sites:
        assert found[site].keys() == {
            movies[site].site_id for movies in of_seasons.values() if site in movies
        }
    for movies in of_seasons.values():
        of_season = [found[site][movie.site_id] for site, movie in movies.items()]
        assert len({id(row) for row in of_season}) <= 1, movies
        shown = {
            kind: of_season[0].scores[kind] for kind in ("metascore", "tomatometer", "popcornmeter")
        }
        scores = {score.kind: score.value for movie in movies.values() for score in movie.scores}
        assert {kind: score for kind, score in shown.items() if score is not None} == scores
    assert any(row.site_ids["metacritic"] and row.site_ids["rottentomatoes"] for row in rows)
