"""Series from an empty database to every score of three sites."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, get_args

import pytest

from moviecrawler.items import Site
from moviecrawler.replica.collection import Collection
from moviecrawler.replica.process import ReplicaProcess
from moviecrawler.sites import SCOREBOARD_KINDS
from tests.catalogue.crawls import settings_of
from tests.crawling import counts, reset, scrapy
from tests.services.postgres import execute
from tests.services.replica import series_of

if TYPE_CHECKING:
    from pathlib import Path

TITLES, SERIES, WORKERS = 20, 20, 2
COLLECTION = Collection(1, TITLES, SERIES)
SITES: tuple[Site, ...] = get_args(Site)
SEASON = re.compile(r"/tv/[^/]+/(?:s\d|season-|specials)|/shows-seasons/|/seasons/")


class Commands:
    """Commands in processes of their own, on one database and one Redis."""

    def __init__(self, folder: Path, replica: ReplicaProcess, database_url: str, redis_url: str) -> None:
        self.folder, self.replica = folder, replica
        speed = {
            "CATALOGUE_IDLE": "10",
            "SITE_BUDGETS": "{}",
            "DOWNLOAD_SLOTS": '{"127.0.0.1": {"delay": 0, "concurrency": 16}}',
        }
        self.settings = settings_of(database_url, REDIS_URL=redis_url, **speed)

    def run(self, *arguments: str, workers: int = 1) -> None:
        with ThreadPoolExecutor(workers) as pool:
            started = [
                pool.submit(scrapy, *arguments, data=self.folder, replica=self.replica, **self.settings)
                for _ in range(workers)
            ]
            for each in started:
                assert each.result().code == 0, each.result().log[-3_000:]

    def import_and_crawl(self) -> None:
        """Import IMDb's series and Wikidata's ids of every second one, read the sitemaps, and fetch what is due."""
        crosswalk = self.folder / "wikidata.csv"
        lines = ["imdb,rottentomatoes,metacritic"]
        for number in range(0, SERIES, 2):
            movies = COLLECTION.series.title(number).movies
            found = (movies.get(site) for site in ("imdb", "rottentomatoes", "metacritic"))
            lines.append(",".join(str(movie.site_id) if movie else "" for movie in found))
        crosswalk.write_text("\n".join([*lines, ""]), "utf-8")
        for arguments in (["imdb", "--kinds", "series"], ["episodes"], ["wikidata", "--from", str(crosswalk)]):
            self.run("catalogue", "import", *arguments)
        for site in SITES:
            if site != "imdb":
                self.run("crawl", site, "-a", "lane=due", "-a", "list=sitemap-series")
            self.run("crawl", site, "-a", "lane=due", workers=WORKERS)

    def title_pages(self) -> dict[Site, tuple[int, int]]:
        """Return of how many titles, and of how many seasons among them, each site was asked for pages."""
        found: dict[Site, tuple[int, int]] = {}
        for site in SITES:
            paths = [
                path
                for path in counts(self.replica, site)["paths"]
                if path.startswith(("/title/", "/tv/", "/m/", "/movie/"))
            ]
            found[site] = len(paths), sum(bool(SEASON.search(path)) for path in paths)
        return found


def stored_scores(database_url: str) -> dict[tuple[str, str], dict[str, float]]:
    stored: dict[tuple[str, str], dict[str, float]] = {}
    statement = "SELECT r.site::text, r.site_id, s.kind::text, s.value::float FROM records r LEFT JOIN scores s USING (record_id)"
    for site, site_id, kind, value in execute(database_url, statement):
        scores = stored.setdefault((str(site), str(site_id)), {})
        if kind in SCOREBOARD_KINDS:
            scores[str(kind)] = float(value)  # type: ignore[arg-type]
    return stored


def true_scores() -> dict[tuple[str, str], dict[str, float]]:
    return {
        (site, site_id): {score.kind: score.value for score in movie.scores if score.kind in SCOREBOARD_KINDS}
        for site in SITES
        for site_id, movie in series_of(COLLECTION, site).items()
        if movie.kind != "episode"
    }


def stored_titles(database_url: str) -> set[tuple[object, ...]]:
    """Return each record with the series, and the season of it, that it was found to be."""
    return set(
        execute(
            database_url,
            "SELECT r.site::text, r.site_id, coalesce(t.imdb_id, of.imdb_id), t.season"
            " FROM records r JOIN titles t USING (title_id) LEFT JOIN titles of ON of.title_id = t.series_title_id",
        )
    )


def true_titles() -> set[tuple[object, ...]]:
    return {
        (site, str(movie.site_id), COLLECTION.series.imdb_id(number), movie.season)
        for number in range(SERIES)
        for site, listed in COLLECTION.series.title(number).listed.items()
        for movie in (COLLECTION.series.title(number).movies[site], *listed)
    }


@pytest.mark.long
def test_every_score_of_series_and_seasons_is_stored_and_nothing_is_fetched_twice(
    database_url: str, redis_url: str, tmp_path: Path
) -> None:
    with ReplicaProcess(titles=TITLES, series=SERIES, light=True) as replica:
        commands = Commands(tmp_path, replica, database_url, redis_url)
        commands.import_and_crawl()
        stored = stored_scores(database_url)
        assert {name: stored.get(name) for name in true_scores()} == true_scores()
        assert true_titles() <= stored_titles(database_url)
        asked = commands.title_pages()
        assert asked["imdb"] == (SERIES, 0)
        # Rotten Tomatoes' pages of series tell the scores of most of their seasons; Metacritic's lack those of users.
        assert 0 < asked["rottentomatoes"][1] < asked["metacritic"][1] / 2
        reset(replica)
        commands.import_and_crawl()
        assert commands.title_pages() == dict.fromkeys(SITES, (0, 0))
