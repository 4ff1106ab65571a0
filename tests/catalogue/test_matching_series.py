"""Series by what tells them apart."""

from __future__ import annotations

from typing import Any

import pytest

from moviecrawler.catalogue.comparing import compare
from moviecrawler.catalogue.matching import title_of
from moviecrawler.items import Credit, Movie, Score


def movie(site: Any, **fields: Any) -> Movie:
    return Movie(**{"site": site, "site_id": "tv/salt", "url": "", **fields})


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
