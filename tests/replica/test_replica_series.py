"""The replica's series: what its pages say as the readers read them, its lists, and seasons that begin."""

from __future__ import annotations

import dataclasses
from datetime import timedelta
from typing import get_args

import pytest

from moviecrawler.extract.pages import read_page
from moviecrawler.items import Listing, Page, Site
from moviecrawler.replica.movies import Catalogue
from moviecrawler.replica.process import ReplicaProcess
from moviecrawler.replica.series import MOST_SERIES, SHAPES
from moviecrawler.replica.sources import Answer, Generated
from moviecrawler.replica.titles import TODAY, SlugSite, known
from moviecrawler.sites import SITES
from moviecrawler.urls import title_url
from tests.replica.client import Control, ask
from tests.replica.series_truth import scores_of, season_id, season_scores
from tests.replica.test_replica_pages import assert_says
from tests.replica.truth import truth_of

CATALOGUE = Catalogue(1, 300, len(SHAPES))
SERIES = CATALOGUE.series
SLUG_SITES: tuple[SlugSite, ...] = get_args(SlugSite)
SOURCE = Generated(CATALOGUE, light=True)


def answer(site: Site, path: str, **query: str) -> Answer:
    found = SOURCE.answer(site, path, query, SITES[site].home)
    assert isinstance(found, Answer), path
    return found


def page(site: Site, path: str, **query: str) -> Page:
    found = answer(site, path, **query)
    assert found.status == 200
    return read_page(found.body.identity(), SITES[site].home + path)


def listing(site: Site, path: str, **query: str) -> Listing:
    found = page(site, path, **query).listing
    assert found is not None
    return found


def path_of(site: Site, site_id: str | None) -> str:
    return title_url(site, site_id or "", "http://x").removeprefix("http://x")


def test_there_are_as_many_as_are_asked_for() -> None:
    catalogue = Catalogue(1, 10, 1_000).series
    whole = [catalogue.title(index) for index in range(0, 1_000, 1 + len(SHAPES))]
    assert sum(len(shape.episodes) for shape in SHAPES) * 1_000 // len(SHAPES) == 4_000
    assert sum(sum(shape.episodes) for shape in SHAPES) * 1_000 // len(SHAPES) > 40_000
    assert len({series.imdb_id for series in whole}) == len(whole)
    most = Catalogue(1, 10, MOST_SERIES).series
    for index in (0, 5, 20_001, MOST_SERIES - 1):
        assert most.of_imdb_id(most.imdb_id(index)) == most.title(index)
        for site in SLUG_SITES:
            if index in most.listed[site]:
                assert most.index_of_slug(site, most.slug(site, index)) == index
    with pytest.raises(ValueError, match="the replica makes 0 to"):
        Catalogue(1, 10, MOST_SERIES + 1)


@pytest.mark.parametrize("site", SITES)
def test_pages_of_series_say_the_truth(site: Site) -> None:
    for series in map(SERIES.title, range(SERIES.count)):
        expected = truth_of(CATALOGUE, site, series)
        if expected is None:
            continue
        found = page(site, path_of(site, expected.site_id))
        assert_says(found.movie, expected)
        listed = {movie.site_id: scores_of(movie) for movie in found.seasons}
        wanted = {season_id(site, one): season_scores(site, one, listed=True) for one in series.seasons}
        assert listed == ({} if site == "imdb" else wanted)
        for movie in found.seasons:
            assert (movie.kind, movie.source, movie.series_id) == ("season", "list", expected.site_id)
            assert movie.series_title == expected.title


@pytest.mark.parametrize("site", SITES)
def test_episodes_say_the_truth(site: Site) -> None:
    scored = []
    for series in map(SERIES.title, range(SERIES.count)):
        for episode in [
            one for season in series.seasons for one in season.episodes[:: max(1, len(season.episodes) - 1)]
        ]:
            title = SERIES.episode(series, episode)
            expected = truth_of(CATALOGUE, site, title)
            if expected is None:
                continue
            path = path_of(site, expected.site_id)
            movie = page(site, path).movie
            assert movie is not None
            scored.append(bool(movie.scores))
            if site == "rottentomatoes":  # whose pages of episodes have more than a reader takes from them
                assert (movie.kind, movie.season, movie.episode) == ("episode", episode.season, episode.number)
                assert scores_of(movie) == scores_of(expected)
            elif site == "imdb":
                assert_says(movie, expected)
            else:
                assert dataclasses.replace(movie, silent=[]) == expected
                assert answer(site, path.rstrip("/")).status == 301
    assert 0 < sum(scored) < len(scored), "some have no score"


def test_traps_of_the_sites_are_there() -> None:
    with_specials, split, first, again = (
        SERIES.title(next(index for index, shape in enumerate(SHAPES) if getattr(shape, trap)))
        for trap in ("specials", "split", "restarted", "is_restart")
    )
    assert answer("rottentomatoes", f"/tv/{SERIES.slug('rottentomatoes', with_specials.index)}/s00").status == 200
    assert answer("metacritic", f"/tv/{SERIES.slug('metacritic', with_specials.index)}/specials/").status == 200
    body = answer("rottentomatoes", f"/tv/{SERIES.slug('rottentomatoes', split.index)}").body.identity()
    assert b'/s05.2"' in body, "a part of a season has a tile"
    slug = SERIES.slug("metacritic", 1)
    body = answer("metacritic", f"/tv/{slug}/season-2/").body.identity()
    assert f"/tv/{slug}/critic-reviews/?season=season-2".encode() in body
    assert first.basics.title == again.basics.title
    assert (first.basics.end_year or 9999) < again.basics.year
    of_first, of_again = (SERIES.slug("rottentomatoes", series.index) for series in (first, again))
    assert of_again == f"{of_first}_{again.basics.year}"
    every = [series for series in map(SERIES.title, range(SERIES.count)) if series.rottentomatoes]
    unscored = [series for series in every if known(series.rottentomatoes).tomatometer is None]
    assert 0 < len(unscored) < len(every)
    of_seasons = [known(season.rottentomatoes).tomatometer for series in unscored for season in series.seasons]
    assert any(of_seasons), "a series of which few seasons have a score has none of its own"


@pytest.mark.parametrize(
    ("site", "path"),
    [
        ("imdb", f"/title/{SERIES.imdb_id(1, 99)}/"),
        ("metacritic", f"/tv/{SERIES.slug('metacritic', 1)}/season-6/"),
        ("metacritic", f"/tv/{SERIES.slug('metacritic', 1)}/specials/"),
        ("metacritic", f"/tv/{SERIES.slug('metacritic', 1)}/season-1/episode-1-of-another-name/"),
        ("metacritic", f"/tv/{SERIES.slug('metacritic', 1)}/season-6/episode-1/"),
        ("rottentomatoes", f"/tv/{SERIES.slug('rottentomatoes', 1)}/s06"),
        ("rottentomatoes", f"/tv/{SERIES.slug('rottentomatoes', 1)}/s01/e14"),
        ("rottentomatoes", f"/tv/{SERIES.title(8).basics.title}"),
    ],
)
def test_what_is_not_there_is_not_served(site: Site, path: str) -> None:
    assert SOURCE.answer(site, path, {}, SITES[site].home) is None


def test_a_new_season_begins_on_its_day() -> None:
    running = next(number for number, shape in enumerate(SHAPES) if shape.runs)
    last = SERIES.title(running).seasons[-1]
    begins = last.air_date + timedelta(364)
    assert begins > TODAY
    before, after = (Catalogue(1, 300, 20, day).series.title(running) for day in (begins - timedelta(1), begins))
    assert [season.number for season in before.seasons] == [season.number for season in SERIES.title(running).seasons]
    assert after.seasons[-1].number == last.number + 1
    aired = [episode.rating is not None for episode in after.seasons[-1].episodes]
    assert (aired[0], any(aired[1:])) == (True, False), "the others are announced"
    later = Catalogue(1, 300, 20, begins + timedelta(70)).series.title(running)
    assert later.seasons[:-1] == before.seasons, "what was there has not changed"
    assert dataclasses.replace(later.seasons[-1], episodes=()) == dataclasses.replace(after.seasons[-1], episodes=())


def test_the_day_can_be_changed_while_a_replica_runs(replica: ReplicaProcess, control: Control) -> None:
    slug = CATALOGUE.series.slug("rottentomatoes", 0)
    season = SERIES.title(0).seasons[-1].number + 1
    address = f"{replica.urls['rottentomatoes']}/tv/{slug}/s{season:02}"
    basics = f"{replica.urls['imdb']}/datasets/title.basics.tsv.gz"
    assert ask(address).status == 404
    etag = ask(basics, method="HEAD").headers["etag"]
    assert control.options(today=(TODAY + timedelta(365)).isoformat()).status == 204
    assert ask(address).status == 200
    assert ask(basics, method="HEAD").headers["etag"] != etag
    assert control.options(today="soon").status == 400
    control.reset()
    assert ask(address).status == 404
