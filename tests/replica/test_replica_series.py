"""The replica's series: what its pages say as the readers read them, its lists, and seasons that begin."""

from __future__ import annotations

import dataclasses
from datetime import timedelta
from typing import get_args

import pytest

from moviecrawler.extract.pages import read_page
from moviecrawler.extract.sitemaps import read_sitemap
from moviecrawler.items import SCOREBOARD_KINDS, Listing, Movie, Page, Site
from moviecrawler.replica.facts import TODAY
from moviecrawler.replica.movies import Catalogue, SlugSite
from moviecrawler.replica.process import ReplicaProcess
from moviecrawler.replica.series import MOST_SERIES
from moviecrawler.replica.series_facts import SHAPES
from moviecrawler.replica.sources import Answer, Generated
from moviecrawler.urls import HOMES, title_url
from tests.replica.client import Control, ask
from tests.replica.series_truth import (
    episode_truth,
    metacritic_episode_truth,
    scores_of,
    season_id,
    season_scores,
    series_truth,
)
from tests.replica.test_replica_pages import assert_says

CATALOGUE = Catalogue(1, 300, len(SHAPES))
SERIES = CATALOGUE.series
SITES: tuple[Site, ...] = get_args(Site)
SLUG_SITES: tuple[SlugSite, ...] = get_args(SlugSite)
SOURCE = Generated(CATALOGUE, light=True)


def answer(site: Site, path: str, **query: str) -> Answer:
    found = SOURCE.answer(site, path, query, HOMES[site])
    assert isinstance(found, Answer), path
    return found


def page(site: Site, path: str, **query: str) -> Page:
    found = answer(site, path, **query)
    assert found.status == 200
    return read_page(found.body.identity(), HOMES[site] + path)


def listing(site: Site, path: str, **query: str) -> Listing:
    found = page(site, path, **query).listing
    assert found is not None
    return found


def path_of(site: Site, site_id: str | None) -> str:
    return title_url(site, site_id or "", "http://x").removeprefix("http://x")


def test_there_are_as_many_as_are_asked_for() -> None:
    catalogue = Catalogue(1, 10, 1_000).series
    whole = [catalogue.series(number) for number in range(0, 1_000, 1 + len(SHAPES))]
    assert sum(len(shape.episodes) for shape in SHAPES) * 1_000 // len(SHAPES) == 4_000
    assert sum(sum(shape.episodes) for shape in SHAPES) * 1_000 // len(SHAPES) > 40_000
    assert len({series.about.imdb_id for series in whole}) == len(whole)
    most = Catalogue(1, 10, MOST_SERIES).series
    for number in (0, 5, 20_001, MOST_SERIES - 1):
        assert most.number_of_imdb_id(most.imdb_id(number)) == (number, 0)
        for site in SLUG_SITES:
            if most.has(site, number):
                assert most.number_of_slug(site, most.slug(site, number)) == number
    with pytest.raises(ValueError, match="the replica makes 0 to"):
        Catalogue(1, 10, MOST_SERIES + 1)


@pytest.mark.parametrize("site", SITES)
def test_pages_of_series_say_the_truth(site: Site) -> None:
    for number in range(SERIES.count):
        expected = series_truth(CATALOGUE, site, number)
        if expected is None:
            continue
        found = page(site, path_of(site, expected.site_id))
        assert_says(found.movie, expected)
        whole = SERIES.series(number)
        listed = {movie.site_id: scores_of(movie) for movie in found.seasons}
        wanted = {season_id(site, one): season_scores(site, one, listed=True) for one in whole.seasons}
        assert listed == ({} if site == "imdb" else wanted)
        for movie in found.seasons:
            assert (movie.kind, movie.source, movie.series_id) == ("season", "list", expected.site_id)
            assert movie.series_title == expected.title


@pytest.mark.parametrize("site", SLUG_SITES)
def test_pages_of_seasons_say_the_truth(site: SlugSite) -> None:
    for number in range(SERIES.count):
        whole = SERIES.series(number)
        for season in whole.seasons if SERIES.has(site, number) else ():
            movie = page(site, path_of(site, season_id(site, season))).movie
            assert movie is not None
            assert (movie.site_id, movie.kind, movie.season) == (season_id(site, season), "season", season.number)
            assert (movie.series_id, movie.series_title) == (f"tv/{SERIES.slug(site, number)}", SERIES.title(number))
            assert scores_of(movie) == season_scores(site, season)


def test_episodes_say_the_truth() -> None:
    for number in range(0, SERIES.count, 3):
        whole = SERIES.series(number)
        for episode in whole.episodes[:: max(1, len(whole.episodes) - 1)]:
            assert_says(page("imdb", f"/title/{episode.imdb_id}/").movie, episode_truth(CATALOGUE, whole, episode))
            facts = SERIES.episode_review(whole, episode)
            if facts is not None:
                movie = page("rottentomatoes", f"/tv/{facts.slug}").movie
                assert movie is not None
                assert (movie.kind, movie.season, movie.episode) == ("episode", episode.season, episode.number)
                assert ("tomatometer" in scores_of(movie)) == (facts.tomatometer is not None)


def test_episodes_of_metacritic_say_the_truth() -> None:
    scored = []
    for number in range(SERIES.count):
        whole = SERIES.series(number)
        for season in whole.seasons if SERIES.has("metacritic", number) else ():
            for episode in season.episodes[:: max(1, len(season.episodes) - 1)] if season.number else ():
                expected = metacritic_episode_truth(CATALOGUE, whole, season, episode)
                path = path_of("metacritic", expected.site_id)
                assert answer("metacritic", path.rstrip("/")).status == 301
                movie = page("metacritic", path).movie
                assert movie is not None
                assert dataclasses.replace(movie, silent=[]) == expected
                scored.append(bool(expected.scores))
    assert 0.5 < sum(scored) / len(scored) < 0.9, "some have no score"


def test_a_season_lists_its_episodes() -> None:
    for number in range(3):
        whole = SERIES.series(number)
        for season in whole.seasons:
            shown = str(season.number) if season.number else "Unknown"
            found = listing("imdb", f"/title/{whole.about.imdb_id}/episodes/", season=shown)
            assert [entry.site_id for entry in found.entries] == [one.imdb_id for one in season.episodes]
            ratings = [
                (entry.scores[0].value, entry.scores[0].count) if entry.scores else None for entry in found.entries
            ]
            assert ratings == [one.rating for one in season.episodes]


def test_traps_of_the_sites_are_there() -> None:
    with_specials, split, first, again = (
        SERIES.series(next(number for number, shape in enumerate(SHAPES) if getattr(shape, trap)))
        for trap in ("specials", "split", "restarted", "is_restart")
    )
    assert answer("rottentomatoes", f"/tv/{SERIES.slug('rottentomatoes', with_specials.number)}/s00").status == 200
    assert answer("metacritic", f"/tv/{SERIES.slug('metacritic', with_specials.number)}/specials/").status == 200
    body = answer("rottentomatoes", f"/tv/{SERIES.slug('rottentomatoes', split.number)}").body.identity()
    assert b'/s05.2"' in body, "a part of a season has a tile"
    slug = SERIES.slug("metacritic", 1)
    assert (
        f"/tv/{slug}/critic-reviews/?season=season-2".encode()
        in answer("metacritic", f"/tv/{slug}/season-2/").body.identity()
    )
    assert first.about.basics.title == again.about.basics.title
    assert (first.about.basics.end_year or 9999) < again.about.basics.year
    assert (
        SERIES.slug("rottentomatoes", again.number)
        == f"{SERIES.slug('rottentomatoes', first.number)}_{again.about.basics.year}"
    )
    whole = [SERIES.series(number).about.rottentomatoes for number in range(SERIES.count)]
    assert {facts.tomatometer is None for facts in whole if facts} == {True, False}, (
        "most series have no score of their own"
    )


@pytest.mark.parametrize("site", SLUG_SITES)
def test_lists_and_sitemaps_have_every_series(site: SlugSite) -> None:
    expected = [series_truth(CATALOGUE, site, number) for number in range(SERIES.count) if SERIES.has(site, number)]
    ids = [movie.site_id for movie in expected if movie]
    seasons = [
        season_id(site, one) for n in range(SERIES.count) if SERIES.has(site, n) for one in SERIES.series(n).seasons
    ]
    if site == "metacritic":
        found = [
            entry
            for offset in range(0, len(ids), 24)
            for entry in listing(site, "/finder/metacritic/web", mcoTypeId="1", offset=str(offset), limit="24").entries[
                :24
            ]
        ]
        parts = ["/tvshows/0.xml"]
    else:
        found = listing(site, "/browse/tv_series_browse/sort:popular").entries
        parts = ["/sitemaps/tv-series_0.xml", "/sitemaps/tv-seasons_0.xml"]
    assert {entry.site_id for entry in found} == set(ids)
    by_id: dict[str, Movie] = {movie.site_id or "": movie for movie in expected if movie}
    for entry in found:
        true = {kind: value for kind, (value, _) in scores_of(by_id[entry.site_id]).items() if kind in SCOREBOARD_KINDS}
        assert (entry.kind, {score.kind: score.value for score in entry.scores}) == ("series", true)
    listed = [place.url for part in parts for place in read_sitemap(answer(site, part).body.identity(), None).locations]
    assert sorted(listed) == sorted(title_url(site, one or "") for one in [*ids, *seasons])


def test_charts_of_series_are_in_order() -> None:
    top = listing("imdb", "/chart/toptv/").entries
    assert [entry.site_id for entry in top] == [SERIES.imdb_id(number) for number in SERIES.top]
    popular = listing("imdb", "/chart/tvmeter/").entries
    assert [entry.site_id for entry in popular] == [SERIES.imdb_id(number) for number in range(SERIES.count)]


@pytest.mark.parametrize(
    ("site", "path"),
    [
        ("imdb", f"/title/{SERIES.imdb_id(1, 99)}/"),
        ("imdb", f"/title/{SERIES.imdb_id(1, 3)}/episodes/"),
        ("metacritic", f"/tv/{SERIES.slug('metacritic', 1)}/season-6/"),
        ("metacritic", f"/tv/{SERIES.slug('metacritic', 1)}/specials/"),
        ("metacritic", f"/tv/{SERIES.slug('metacritic', 1)}/season-1/episode-1-of-another-name/"),
        ("metacritic", f"/tv/{SERIES.slug('metacritic', 1)}/season-6/episode-1/"),
        ("rottentomatoes", f"/tv/{SERIES.slug('rottentomatoes', 1)}/s06"),
        ("rottentomatoes", f"/tv/{SERIES.slug('rottentomatoes', 1)}/s01/e14"),
        ("rottentomatoes", f"/tv/{SERIES.title(8)}"),
    ],
)
def test_what_is_not_there_is_not_served(site: Site, path: str) -> None:
    assert SOURCE.answer(site, path, {}, HOMES[site]) is None


def test_a_new_season_begins_on_its_day() -> None:
    running = next(number for number, shape in enumerate(SHAPES) if shape.runs)
    last = SERIES.series(running).seasons[-1]
    begins = last.air_date + timedelta(364)
    assert begins > TODAY
    before, after = (Catalogue(1, 300, 20, day).series.series(running) for day in (begins - timedelta(1), begins))
    assert [season.number for season in before.seasons] == [season.number for season in SERIES.series(running).seasons]
    assert after.seasons[-1].number == last.number + 1
    aired = [episode.rating is not None for episode in after.seasons[-1].episodes]
    assert (aired[0], any(aired[1:])) == (True, False), "the others are announced"
    later = Catalogue(1, 300, 20, begins + timedelta(70)).series.series(running)
    assert later.seasons[:-1] == before.seasons, "what was there has not changed"
    assert dataclasses.replace(later.seasons[-1], episodes=()) == dataclasses.replace(after.seasons[-1], episodes=())


def test_the_day_can_be_changed_while_a_replica_runs(replica: ReplicaProcess, control: Control) -> None:
    slug = CATALOGUE.series.slug("rottentomatoes", 0)
    season = SERIES.series(0).seasons[-1].number + 1
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
