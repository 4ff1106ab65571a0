"""An invented series of three sites, and its seasons and episodes with their scores."""

from typing import Any

from moviecrawler.items import Movie, Score, Site
from moviecrawler.sites.ids import part_of_series
from tests.runs import title


def series(site: Site, site_id: str, year: int = 2001, **fields: Any) -> Movie:
    imdb_id = site_id if site == "imdb" else None
    return title(
        site,
        site_id,
        **{"kind": "series", "title": "Salt Harbour", "year": year, "imdb_id": imdb_id, **fields},
    )


def part(site: Site, site_id: str, **fields: Any) -> Movie:
    """Return a season or an episode of Metacritic or Rotten Tomatoes, by its id."""
    found = part_of_series(site, site_id)
    assert found is not None
    return title(site, site_id, **{**found._asdict(), "title": f"Season {found.season}", **fields})


def episode(
    number: int, season: int | None, place: int | None, of: str = "tt0000001", **fields: Any
) -> Movie:
    site_id = f"tt{number:07}"
    more = {
        "imdb_id": site_id,
        "kind": "episode",
        "series_id": of,
        "season": season,
        "episode": place,
        **fields,
    }
    return title("imdb", site_id, **{"title": f"Night {number}", **more})


IMDB = series("imdb", "tt0000001")
TOMATOES = series("rottentomatoes", "tv/salt_harbour")
METACRITIC = series("metacritic", "tv/salt-harbour")
SERIES = "tt0000001 tv/salt-harbour tv/salt_harbour"
"""The ids of one title, in order."""


def rotten(place: str, **fields: Any) -> Movie:
    return part("rottentomatoes", f"tv/salt_harbour/{place}", **fields)


def critic(place: str, **fields: Any) -> Movie:
    return part("metacritic", f"tv/salt-harbour/{place}", **fields)


POPCORNMETER = Score(kind="popcornmeter", value=70)
RATED = [
    rotten(
        "s01", episode_count=8, scores=[Score(kind="tomatometer", value=88, count=30), POPCORNMETER]
    ),
    critic(
        "season-1",
        title="Salt Harbour",
        episode_count=10,
        scores=[
            Score(kind="metascore", value=71),
            Score(kind="metacritic_user", value=7.5, count=9),
        ],
    ),
    critic("season-2", title="Salt Harbour", episode_count=12),
    episode(11, 1, 1, scores=[Score(kind="imdb", value=8.0, count=300)]),
    episode(12, 1, 2, scores=[Score(kind="imdb", value=9.1, count=100)]),
    episode(13, 1, 3),
    episode(31, 3, 1, scores=[Score(kind="imdb", value=7.0, count=5)]),
    rotten("s01/e02", scores=[Score(kind="tomatometer", value=100, count=5)]),
    part(
        "rottentomatoes",
        "tv/unread/s04",
        series_title="Unread",
        scores=[Score(kind="tomatometer", value=10)],
    ),
]
