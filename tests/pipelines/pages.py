"""Movies as pages of three sites tell them, for tests of what stores keep of them."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec

from moviecrawler.items import Movie
from tests.runs import BEGIN


def page(site: Any, site_id: str, day: float = 0, **fields: Any) -> Movie:
    """Return a page's movie, read so many days after the tests' time."""
    defaults = {
        "url": f"https://example.com/{site_id}",
        "title": "Salt Harbour",
        "kind": "movie",
        "year": 2001,
    }
    return Movie(
        **{**defaults, **fields}, site=site, site_id=site_id, scraped_at=BEGIN + timedelta(days=day)
    )


MOVIES = msgspec.json.decode(
    Path(__file__).with_name("movies.json").read_bytes(), type=dict[str, Movie]
)
"""What pages of three sites say, and one that says all that a page can say, in odd letters."""
TOMATOES, METACRITIC, IMDB, FULL, BARE = MOVIES.values()
ALL = (TOMATOES, METACRITIC, IMDB)
