"""Series, seasons and episodes: a page is read as what it is about, and a series' page says of its seasons what it shows and no more."""

from __future__ import annotations

import re
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

from moviecrawler.errors import ExtractionError
from moviecrawler.extract.pages import page_record, read_page
from moviecrawler.fields import unknown_fields_of
from moviecrawler.pipelines.validate import check
from tests.extract.golden import body_of, changed, movie_of, url_of
from tests.extract.limits import processor_time

if TYPE_CHECKING:
    from moviecrawler.items import Movie

WITH_SEASONS = {
    "rottentomatoes/2026-series-tiles": 8,
    "rottentomatoes/2026-tv": 1,
    "metacritic/nuxt3-series-seasons": 6,
    "metacritic/nuxt3-series-rows": 6,
}
PARTS = {
    "rottentomatoes/2026-season": "tv/salt_road/s05",
    "rottentomatoes/2026-episode": "tv/salt_road/s05/e01",
    "metacritic/nuxt3-season": "tv/copper-coast/season-2",
    "metacritic/nuxt3-season-unreviewed": "tv/copper-coast/season-3",
    "metacritic/nuxt3-episode": "tv/copper-coast/season-2/episode-7-the-kiln",
}
SERIES = {"rottentomatoes": "rottentomatoes/2026-series-tiles", "metacritic": "metacritic/nuxt3-series-seasons"}
TILES = body_of(SERIES["rottentomatoes"])


def seasons(body: bytes, case: str = SERIES["rottentomatoes"]) -> list[Movie]:
    return read_page(body, url_of(case)).seasons


@pytest.mark.parametrize(("case", "number"), WITH_SEASONS.items())
def test_series_page_states_of_its_seasons_what_it_shows_and_no_absence(case: str, number: int) -> None:
    page = read_page(body_of(case), url_of(case))
    assert page.movie is not None
    assert len({season.site_id for season in page.seasons}) == len(page.seasons) == number
    for season in page.seasons:
        check(season)
        assert (season.kind, season.source, season.series_id) == ("season", "list", page.movie.site_id)
        assert season.unknown_fields == unknown_fields_of(season)
        assert {"plot", "scores.metascore", "scores.tomatometer", "credits.cast"} & set(season.unknown_fields)
    printed = page_record(page)["seasons"]
    assert [row["site_id"] for row in printed] == [season.site_id for season in page.seasons]
    assert [row["unknown_fields"] for row in printed] == [season.unknown_fields for season in page.seasons]


@pytest.mark.parametrize(
    ("case", "spelt", "other"),
    [
        ("rottentomatoes/2026-season", "/s05", "/s5"),
        ("metacritic/nuxt3-season", "/season-2", "/season-02"),
        ("metacritic/nuxt3-series-seasons", "/specials", "/season-0"),
    ],
)
def test_a_season_whose_page_spells_its_number_in_another_way_has_the_same_id(
    case: str, spelt: str, other: str
) -> None:
    body, url = body_of(case), url_of(case) or ""
    assert spelt.encode() in body
    page = read_page(body.replace(spelt.encode(), other.encode()), url.replace(spelt, other))
    usual = read_page(body, url)
    for movie, same in zip([movie_of(page), *page.seasons], [movie_of(usual), *usual.seasons], strict=True):
        check(movie)
        assert (movie.site_id, movie.url, movie.series_id) == (same.site_id, same.url, same.series_id)


@pytest.mark.parametrize(("case", "site_id"), PARTS.items())
def test_season_and_episode_are_never_their_series_nor_each_other(case: str, site_id: str) -> None:
    body, url = body_of(case), url_of(case) or ""
    page = read_page(body, url)
    assert page.movie is not None
    check(page.movie)
    assert (page.movie.site_id, page.seasons) == (site_id, [])
    series = url[: url.index("/tv/")] + "/" + page.movie.series_id if page.movie.series_id else ""
    other = re.sub(r"s05|season-[23]", "s04" if "rotten" in url else "season-9", url)
    for asked in (series, other):
        with pytest.raises(ExtractionError, match="was asked for, and the page is about"):
            read_page(body, asked)
    with pytest.raises(ExtractionError, match="was asked for, and the page is about"):
        read_page(body_of(SERIES[case.partition("/")[0]]), url)


def test_series_under_a_new_address_is_the_same_title() -> None:
    page = read_page(body_of(SERIES["rottentomatoes"]), "https://www.rottentomatoes.com/tv/salt-road-2016")
    assert page.movie is not None
    assert page.movie.site_id == "tv/salt_road"


def test_season_of_which_the_page_has_the_series_scores_only_has_none() -> None:
    body = body_of("metacritic/nuxt3-season-unreviewed")
    movie = movie_of(read_page(body, url_of("metacritic/nuxt3-season-unreviewed")))
    assert movie.scores == []
    assert {"scores.metacritic_user", "release_date", "imdb_id"} <= set(movie.unknown_fields)


@pytest.mark.parametrize(
    ("old", "new", "ids"),
    [
        (rb"tile-season", b"tile-saison", ["s07", "s02"]),
        (rb'slot="critics-score"', b'slot="score"', ["s06", "s05", "s04", "s03", "s01", "s00", "s07", "s02"]),
        (rb'/tv/salt_road/s(?=0[0-6]" skeleton)', b"/tv/pepper_road/s", ["s07", "s02"]),
        (
            rb'"containsSeason": \[.*?\]',
            b'"containsSeason": [1, null, {"url": 5}]',
            ["s06", "s05", "s04", "s03", "s01", "s00"],
        ),
        (rb'"containsSeason": \[.*?\]', b'"containsSeason": "none"', ["s06", "s05", "s04", "s03", "s01", "s00"]),
    ],
)
def test_tiles_that_are_others_are_passed_by_and_the_series_is_read(old: bytes, new: bytes, ids: list[str]) -> None:
    body = re.sub(old, new, TILES)
    page = read_page(body, url_of(SERIES["rottentomatoes"]))
    assert page.movie is not None
    assert page.movie.scores
    assert [str(season.site_id).rpartition("/")[2] for season in page.seasons] == ids
    if new == b'slot="score"':
        assert {score.kind for season in page.seasons for score in season.scores} == {"popcornmeter"}


def test_more_seasons_than_any_series_has_are_refused_in_bounded_time() -> None:
    tiles = b"".join(b'<tile-season href="/tv/salt_road/s%d"></tile-season>' % number for number in range(3000))
    body = TILES.replace(b"<carousel-slider", tiles + b"<carousel-slider")
    with processor_time(), pytest.raises(ExtractionError, match="seasons"):
        seasons(body)


@pytest.mark.parametrize(
    "address", ["/tv/copper-coast/critic-reviews/", "/tv/copper-coast/critic-reviews/?season=season-2"]
)
@pytest.mark.parametrize("case", ["metacritic/nuxt3-series-rows", "metacritic/nuxt3-season-unreviewed"])
def test_row_of_a_season_with_the_score_of_another_or_of_the_series_has_none(case: str, address: str) -> None:
    number = {"metacritic/nuxt3-series-rows": 1}.get(case, 3)
    own = f"/tv/copper-coast/critic-reviews/?season=season-{number}"
    body = changed(body_of(case), own.encode(), address.encode())
    page = read_page(body, url_of(case))
    season = next(season for season in (*page.seasons, page.movie) if season and season.season == number)
    assert season.score("metascore") is None
    assert "scores.metascore" in season.unknown_fields


def test_tiles_that_are_never_closed_take_linear_time() -> None:
    body = TILES.replace(b"<carousel-slider", b"<tile-season <carousel-slider" * 20_000)
    with processor_time(5), suppress(ExtractionError):
        seasons(body)
