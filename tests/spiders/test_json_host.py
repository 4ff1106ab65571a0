"""Which hosts Metacritic's spider asks: its pages' for titles, its JSON host for the finder's lists."""

from __future__ import annotations

from urllib.parse import urlsplit

import pytest

from moviecrawler.errors import ConfigurationError
from moviecrawler.spiders.metacritic import MetacriticSpider
from tests.spiders.test_endless import spider_of

STAND_IN, OTHER, LIVE = "http://127.0.0.1:8001", "http://127.0.0.1:8002", "https://backend.metacritic.com"


@pytest.mark.parametrize(
    ("settings", "host"),
    [
        ({}, LIVE),
        ({"METACRITIC_URL": STAND_IN, "METACRITIC_API_URL": OTHER}, OTHER),
        ({"METACRITIC_URL": STAND_IN, "METACRITIC_API_URL": LIVE}, LIVE),
        ({"METACRITIC_URL": STAND_IN + "/"}, STAND_IN),
        ({"METACRITIC_URL": "https://metacritic.com"}, LIVE),
    ],
)
def test_lists_are_asked_for_at_the_json_host_that_belongs_to_the_pages(settings: dict[str, str], host: str) -> None:
    spider = spider_of(MetacriticSpider, settings)
    assert spider.list_request("new").url.startswith(f"{host}/finder/")
    assert spider.allowed_domains == sorted({urlsplit(url).hostname or "" for url in (spider.home, host)})


def test_a_stand_in_of_the_json_host_alone_does_not_lead_to_the_live_pages() -> None:
    with pytest.raises(ConfigurationError, match=r"METACRITIC_API_URL is .*; set METACRITIC_URL to a stand-in, too"):
        spider_of(MetacriticSpider, {"METACRITIC_API_URL": OTHER})


def test_titles_are_asked_for_at_their_pages_alone() -> None:
    spider = spider_of(MetacriticSpider, {})
    assert spider.title_request("movie/salt", None).url == "https://www.metacritic.com/movie/salt/"
    assert spider.title_request("tv/salt/season-2", None).url == "https://www.metacritic.com/tv/salt/season-2/"
