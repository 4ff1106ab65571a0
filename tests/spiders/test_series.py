"""Crawls of series.

Every score of series, seasons and episodes is stored as the site has it, and the limit counts what
was asked for.
"""

import json
import signal
from pathlib import Path
from typing import Any

import pytest

from moviecrawler.items import Site
from moviecrawler.replica.collection import Collection
from moviecrawler.replica.process import ReplicaProcess
from moviecrawler.replica.series import SHAPES
from moviecrawler.sites import SCOREBOARD_KINDS
from tests.crawling import Finished, change, counts, crawl
from tests.limited import ONE_BY_ONE
from tests.scripted_site import Site as StandIn
from tests.scripted_site import Told
from tests.services.replica import ReplicaOf, Scores, page_of, scores_of, series_of
from tests.spiders.dying import MARK
from tests.tables import read_movies
from tests.workers import Workers

TITLES = 10
COLLECTION = Collection(1, TITLES, len(SHAPES))
SERIES = COLLECTION.series
TOMATOES = SERIES.ids["rottentomatoes"]
LISTS = {"metacritic": "tv-new", "rottentomatoes": "tv_series_browse/sort:newest"}


@pytest.fixture
def shows(replica_of: ReplicaOf) -> ReplicaProcess:
    """Return a replica with series."""
    return replica_of(titles=TITLES, series=SERIES.count, light=True)


def shown(scores: Scores) -> Scores:
    """Return the scores that CSV files hold."""
    return {kind: score for kind, score in scores.items() if kind in SCOREBOARD_KINDS}


def stored(finished: Finished) -> dict[str, tuple[str, Scores]]:
    assert len({movie.site_id for movie in finished.movies}) == len(finished.movies)
    return {movie.site_id or "": (movie.kind, scores_of(movie)) for movie in finished.movies}


def shown_of(site: Site, *, listed: bool = False) -> dict[str, tuple[str, Scores]]:
    """Return what a crawl stores that fetches all pages, or series' pages alone."""
    true = series_of(COLLECTION, site, listed=listed)
    return {site_id: (movie.kind, shown(scores_of(movie))) for site_id, movie in true.items()}


@pytest.mark.promise("A series' page gives the seasons that it names, with their scores.")
@pytest.mark.parametrize("site", ["metacritic", "rottentomatoes"])
def test_a_list_of_series_gives_their_seasons_too(
    site: Site, shows: ReplicaProcess, tmp_path: Path
) -> None:
    finished = crawl(site, f"list={LISTS[site]}", data=tmp_path, replica=shows)
    assert finished.code == 0, finished.log
    expected = shown_of(site, listed=True)
    assert stored(finished) == expected
    series = [site_id for site_id, (kind, _) in expected.items() if kind == "series"]
    assert finished.stat("titles/requested") == finished.stat("titles/stored") == len(series)
    assert finished.stat("seasons/listed") == len(expected) - len(series)
    pages = [path for path in counts(shows, site)["paths"] if "tv/" in path or "/shows/" in path]
    assert len(pages) == len(series), "no season's own page is fetched"
    assert all(
        movie.season is not None and movie.series_id in series
        for movie in finished.movies
        if movie.season
    )


def test_seasons_and_episodes_are_asked_for_by_sitemap_id_or_address(
    shows: ReplicaProcess, tmp_path: Path
) -> None:
    slug = TOMATOES[0].removeprefix("tv/")
    home = "https://www.rottentomatoes.com"
    # The site redirects from the other spelling of a slug.
    named = f"{home}/tv/{slug}/s00,tv/{slug.replace('_', '-')}/s01/e03,tv/nowhere/s01"
    finished = crawl(
        "rottentomatoes", f"ids={named}", "list=sitemap-seasons", data=tmp_path, replica=shows
    )
    found = stored(finished)
    assert found.pop(f"tv/{slug}/s01/e03")[0] == "episode"
    assert {
        site_id: one for site_id, one in shown_of("rottentomatoes").items() if one[0] == "season"
    } == found
    assert finished.misses == {"tv/nowhere/s01": "absent"}


@pytest.mark.promise(
    "Where robots.txt forbids IMDb's pages, its datasets are read, and charts marked as computed."
)
@pytest.mark.parametrize("robots", ["open", "live"])
def test_imdb_gives_a_chart_of_series_which_is_computed_where_pages_may_not_be_had(
    robots: str, shows: ReplicaProcess, tmp_path: Path
) -> None:
    change(shows, robots=robots)
    finished = crawl(
        "imdb",
        f"list={'toptv' if robots == 'open' else 'populartv'}",
        data=tmp_path,
        replica=shows,
    )
    assert finished.code == 0, finished.log
    ranks = SERIES.top_ranks
    if robots == "live":
        rated = {
            number: votes
            for number in range(SERIES.count)
            if (votes := SERIES.rating(number)[1]) >= 1_000
        }
        ranks = {
            number: rank
            for rank, number in enumerate(sorted(rated, key=lambda number: -rated[number]), 1)
        }
    assert finished.ranks == {SERIES.ids["imdb"][number]: rank for number, rank in ranks.items()}
    assert {movie.site_id for movie in finished.movies} == set(finished.ranks)
    assert {movie.kind for movie in finished.movies} == {"series"}
    lists = (tmp_path / "lists.csv").read_text("utf-8").splitlines()[1:]
    assert {row.rpartition(",")[2] for row in lists} == {str(robots == "live").lower()}


@pytest.mark.promise(
    "Any worker may be killed: others get what it held, no title is lost and none doubled."
)
def test_a_kill_between_the_items_of_a_page_loses_none_and_doubles_none(
    shows: ReplicaProcess, redis_url: str, tmp_path: Path
) -> None:
    number = next(number for number, shape in enumerate(SHAPES) if shape.seasons == 4)
    (tmp_path / MARK).write_text(str(SERIES.title(number).listed["rottentomatoes"][2].site_id))
    pipelines = json.dumps({**ONE_BY_ONE, "tests.spiders.dying.DyingPipeline": 400})
    settings: dict[str, Any] = {"ITEM_PIPELINES": pipelines, "CONCURRENT_ITEMS": "1"}
    arguments = ("rottentomatoes", f"ids={TOMATOES[number]}")
    with Workers(
        *arguments, data=tmp_path, replica=shows, redis_url=redis_url, **settings
    ) as workers:
        workers.start()
        assert workers.wait() == [-signal.SIGKILL]
        workers.start(2)
        assert workers.wait() == [0, 0], workers.log
        ids = [movie.site_id for movie in workers.movies]
    true = shown_of("rottentomatoes", listed=True)
    part = [site_id for site_id in true if f"{site_id}/".startswith(f"{TOMATOES[number]}/")]
    assert sorted(map(str, ids)) == sorted(part)
    movies = read_movies(tmp_path / "movies.csv")
    found = {movie.site_id or "": scores_of(movie) for movie in movies}
    assert found == {site_id: true[site_id][1] for site_id in part}
    assert set(counts(shows, "rottentomatoes")["paths"].values()) <= {1, 2}


def test_a_series_whose_address_leads_to_its_only_season_is_stored_with_it(tmp_path: Path) -> None:
    titles = [SERIES.title(number) for number in TOMATOES if SERIES.shape(number).seasons == 1]
    title = next(
        title for title in titles if title.listed["rottentomatoes"][0].score("popcornmeter")
    )
    path = f"/{title.movies['rottentomatoes'].site_id}"
    page = page_of(COLLECTION, "rottentomatoes", f"{path[1:]}/s01")
    with StandIn() as site:
        site.answers[path] = Told(301, headers={"Location": f"{path}/s01"})
        site.answers[f"{path}/s01"] = Told(200, page)
        finished = crawl(
            "rottentomatoes", f"ids={path[1:]}", data=tmp_path, ROTTENTOMATOES_URL=site.url
        )
    series, season = sorted(finished.movies, key=lambda movie: movie.site_id or "")
    assert (series.site_id, series.kind, series.title) == (
        path[1:],
        "series",
        title.movies["rottentomatoes"].title,
    )
    assert "tomatometer" in series.unknown_fields
    assert (season.site_id, season.kind, bool(season.scores)) == (f"{path[1:]}/s01", "season", True)
    assert (finished.code, finished.misses, finished.stat("titles/stored")) == (0, {}, 1)
