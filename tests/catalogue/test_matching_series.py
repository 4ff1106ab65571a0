"""Series by what tells them apart, and their seasons and episodes by number."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from moviecrawler.catalogue.comparing import compare
from moviecrawler.catalogue.matching import join, title_of
from moviecrawler.items import Credit, Movie, Score


def movie(site: Any, **fields: Any) -> Movie:
    return Movie(**{"site": site, "site_id": "tv/salt", "url": "", **fields})


def part(site: Any, series_id: str, season: int, episode: int | None = None, **fields: Any) -> Movie:
    kind = "season" if episode is None else "episode"
    place = f"s{season}" if episode is None else f"s{season}/e{episode}"
    return movie(
        site, site_id=f"{series_id}/{place}", kind=kind, series_id=series_id, season=season, episode=episode, **fields
    )


def test_seasons_and_episodes_are_one_title_by_their_number_in_one_series_and_never_by_their_titles() -> None:
    shows = [
        movie("metacritic", site_id="tv/salt", title="Salt Harbour", kind="series", year=2001),
        movie("rottentomatoes", site_id="tv/salt_harbour", title="Salt Harbour", kind="series", year=2001),
        movie("imdb", site_id="tt0000009", title="Salt Harbour", kind="series", year=2001),
        # It began again, under the same name.
        movie("rottentomatoes", site_id="tv/salt_2019", title="Salt Harbour", kind="series", year=2019),
    ]
    parts = [
        part("metacritic", "tv/salt", 0, title="Specials"),
        part("rottentomatoes", "tv/salt_harbour", 0, title="Salt Harbour: Holiday Specials"),
        part("metacritic", "tv/salt", 1, title="Salt Harbour: The Fire", year=2001),
        part("rottentomatoes", "tv/salt_harbour", 1, title="Season 1", year=2002),
        part("rottentomatoes", "tv/salt_harbour", 2, title="Salt Harbour: The Fire", year=2001),
        part("rottentomatoes", "tv/salt_2019", 1, title="Salt Harbour: The Fire", year=2001),
        # A site gives both halves of a split season one number.
        part("metacritic", "tv/salt", 3, title="Season 3"),
        replace(part("metacritic", "tv/salt", 3, title="Season 3, Part 2"), site_id="tv/salt/season-3-part-2"),
        part("rottentomatoes", "tv/salt_harbour", 3, title="Season 3"),
        part("metacritic", "tv/salt", 1, 2, title="Pilot"),
        replace(part("imdb", "tt0000009", 1, 2, title="The Long Way"), site_id="tt0000010"),
        # Of a series that is not here: nothing says what it is a part of.
        part("metacritic", "tv/unknown", 1, title="Season 1"),
        part("rottentomatoes", "tv/unknown", 1, title="Season 1"),
    ]
    for order in (1, -1):
        joined = join([*shows, *parts][::order])
        together = {
            frozenset((site, each.site_id) for site, each in row.movies.items())
            for row in joined
            if len(row.movies) > 1
        }
        split = {("metacritic", "tv/salt/s3"), ("metacritic", "tv/salt/season-3-part-2")}
        assert {row - split for row in together} == {
            frozenset({("metacritic", "tv/salt"), ("rottentomatoes", "tv/salt_harbour"), ("imdb", "tt0000009")}),
            frozenset({("metacritic", "tv/salt/s0"), ("rottentomatoes", "tv/salt_harbour/s0")}),
            frozenset({("metacritic", "tv/salt/s1"), ("rottentomatoes", "tv/salt_harbour/s1")}),
            frozenset({("rottentomatoes", "tv/salt_harbour/s3")}),
            frozenset({("metacritic", "tv/salt/s1/e2"), ("imdb", "tt0000010")}),
        }
        assert sum(len(row.movies) for row in joined) == len(shows) + len(parts)


def show(site: Any, **fields: Any) -> Movie:
    creator = fields.pop("creator", None)
    made_by = [Credit(name=creator, role="creator", position=1)] if creator else []
    return movie(site, **{"title": "Salt", "kind": "series", "year": 2004, "credits": made_by, **fields})


@pytest.mark.parametrize(
    ("of_imdb", "of_page", "decision"),
    [
        ({"end_year": 2011}, {"year": 2009, "season_count": 8, "creator": "Ida Quarrie"}, "review"),
        ({"end_year": 2011, "season_count": 8}, {"year": 2009, "season_count": 8}, "accepted"),
        ({"end_year": 2011, "creator": "Ida Quarrie"}, {"year": 2011, "creator": "Quarrie, Ida"}, "accepted"),
        ({"creator": "Ida Quarrie"}, {"year": 2026, "creator": "Ida Quarrie"}, "accepted"),  # it runs
        ({"end_year": 2011, "creator": "Ida Quarrie"}, {"year": 2012, "creator": "Ida Quarrie"}, "review"),
        ({"end_year": 2011, "season_count": 8}, {"year": 2019, "season_count": 8}, "refused"),
        ({"end_year": 2011, "creator": "Ida Quarrie"}, {"year": 2009, "creator": "Otto Brandt"}, "refused"),
        ({"season_count": 8, "scores": [Score(kind="imdb", value=6, count=12)]}, {"season_count": 8}, "review"),
        ({"year": 2009, "season_count": 4}, {"year": 2004, "end_year": 2011, "season_count": 4}, "accepted"),
        ({}, {"kind": "season", "season": 1}, "refused"),
        ({}, {"title": "Salt: Origins", "year": 2008}, "refused"),
    ],
)
def test_series_are_compared_by_their_run_their_creators_and_the_number_of_their_seasons(
    of_imdb: dict[str, Any], of_page: dict[str, Any], decision: str
) -> None:
    ours, theirs = show("imdb", site_id="tt0000009", **of_imdb), show("rottentomatoes", site_id="tv/salt", **of_page)
    found = compare(title_of(ours), title_of(theirs))
    assert found.decision == decision, found
    assert compare(title_of(theirs), title_of(ours)).decision == decision
