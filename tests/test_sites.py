"""One declaration of each site, and no live host asked for a replica."""

import pytest
from scrapy.settings import Settings
from scrapy.spiderloader import SpiderLoader

from moviecrawler.basics.errors import ConfigurationError
from moviecrawler.options import HostOptions
from moviecrawler.sites import BY_AUTHORITY, SCORE_SITES, SCOREBOARD_KINDS, SITES
from moviecrawler.sites.hosts import datasets_url
from moviecrawler.sites.ids import parse_title_id, part_of_series
from moviecrawler.spiders.imdb import ImdbSpider

STAND_IN = "http://127.0.0.1:8000"
DATASETS = "https://datasets.imdbws.com"


def test_every_site_is_declared_and_has_a_spider_and_settings() -> None:
    loader = SpiderLoader(Settings({"SPIDER_MODULES": ["moviecrawler.spiders"]}))
    assert list(SITES) == ["imdb", "metacritic", "rottentomatoes"]
    assert set(SITES) == set(loader.list())
    assert BY_AUTHORITY == ("imdb", "rottentomatoes", "metacritic")
    assert {kind: site for kind, site in SCORE_SITES.items() if kind in SCOREBOARD_KINDS} == {
        "imdb": "imdb",
        "metascore": "metacritic",
        "metacritic_user": "metacritic",
        "tomatometer": "rottentomatoes",
        "popcornmeter": "rottentomatoes",
    }
    defaults = HostOptions.defaults()
    for profile in SITES.values():
        home, *others = profile.hosts
        assert [defaults[home.setting], *(defaults[host.setting] for host in others)] == [
            home.live,
            *[""] * len(others),
        ]


def test_examples_of_a_profile_are_ids_and_its_lists_are_lists() -> None:
    loader = SpiderLoader(Settings({"SPIDER_MODULES": ["moviecrawler.spiders"]}))
    for site, profile in SITES.items():
        ids = profile.ids
        assert parse_title_id(site, ids.example) == ids.example
        for spelling in ids.spellings:
            assert parse_title_id(site, spelling.example) != spelling.example
        if ids.parts is not None:
            assert part_of_series(site, ids.parts.series_example) is None
            for example in ids.parts.examples:
                part = part_of_series(site, example)
                assert part is not None
                assert part.series_id == ids.parts.series_example
            for spelling in ids.parts.spellings:
                assert parse_title_id(site, spelling.example) != spelling.example
        for name in (*profile.lists, *profile.sitemaps):
            loader.load(site).check_list(name)  # type: ignore[attr-defined]
        for form in profile.pages:
            assert callable(profile.reader(form.reader))
        assert profile.shown_only_with_value <= profile.published


@pytest.mark.parametrize(
    ("given", "url"),
    [
        ({}, DATASETS),
        ({"IMDB_URL": "https://m.imdb.com"}, DATASETS),
        ({"IMDB_DATASETS_URL": "http://mirror"}, "http://mirror"),
        ({"IMDB_URL": STAND_IN, "IMDB_DATASETS_URL": DATASETS}, DATASETS),
    ],
)
def test_datasets_are_the_live_ones_beside_live_pages_or_by_name(
    given: dict[str, str], url: str
) -> None:
    assert datasets_url({**HostOptions.defaults(), **given}) == url


@pytest.mark.promise("A crawl of a replica asks a live host only where a setting names it.")
def test_a_stand_in_of_imdb_does_not_lead_to_the_live_datasets() -> None:
    for ask in (
        lambda: datasets_url({"IMDB_URL": STAND_IN}),
        lambda: ImdbSpider.parse_arguments(Settings({"IMDB_URL": STAND_IN}), {"via": "datasets"}),
    ):
        with pytest.raises(
            ConfigurationError, match=rf"IMDB_DATASETS_URL is not set, and IMDB_URL is '{STAND_IN}'"
        ):
            ask()
