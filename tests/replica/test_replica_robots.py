from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from protego import Protego

from tests.replica.client import Control, ask

if TYPE_CHECKING:
    from moviecrawler.items import Site
    from moviecrawler.replica.process import ReplicaProcess
    from moviecrawler.replica.robots import Robots

PATH = "/title/tt4000002/"


@pytest.mark.parametrize(
    ("robots", "site", "path", "allowed"),
    [
        ("open", "imdb", PATH, True),
        ("open", "imdb", "/chart/top/", True),
        ("open", "imdb", "/search/title/?title_type=feature", True),
        ("open", "imdb", "/search/name-text?x", False),
        ("live", "imdb", PATH, False),
        ("live", "imdb", "/chart/top/", False),
        ("live", "imdb", "/datasets/title.basics.tsv.gz", True),
        ("live", "metacritic", "/movie/any/", True),
        ("live", "metacritic", "/search/any/", False),
        ("live", "rottentomatoes", "/m/any", True),
        ("live", "rottentomatoes", "/m/any/pictures", False),
        ("live", "rottentomatoes", "/search?search=any", False),
    ],
)
def test_robots_permit_what_the_sites_do(
    robots: Robots, site: Site, path: str, *, allowed: bool, replica: ReplicaProcess, control: Control
) -> None:
    control.options(robots=robots)
    text = ask(f"{replica.urls[site]}/robots.txt").body.decode()
    assert Protego.parse(text).can_fetch(f"https://www.example.com{path}", "moviecrawler") is allowed
