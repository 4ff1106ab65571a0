"""One declaration of each site, and no live host asked for a replica."""

import ast
from pathlib import Path
from typing import get_args

import pytest
from scrapy.settings import Settings
from scrapy.spiderloader import SpiderLoader

import moviecrawler
from moviecrawler.errors import ConfigurationError
from moviecrawler.items import ScoreKind, Site
from moviecrawler.options import SiteOptions
from moviecrawler.sites import BY_AUTHORITY, SCORES, SITES, datasets_url
from moviecrawler.spiders.imdb import ImdbSpider

PACKAGE = Path(moviecrawler.__file__).parent
STAND_IN = "http://127.0.0.1:8000"
DATASETS = "https://datasets.imdbws.com"


def test_every_site_is_declared_and_has_a_spider_and_settings() -> None:
    loader = SpiderLoader(Settings({"SPIDER_MODULES": ["moviecrawler.spiders"]}))
    assert tuple(SITES) == get_args(Site)
    assert set(SITES) == set(BY_AUTHORITY) == set(loader.list())
    assert tuple(SCORES) == get_args(ScoreKind)
    defaults = SiteOptions.defaults()
    for profile in SITES.values():
        home, *others = profile.hosts
        assert [defaults[home.setting], *(defaults[host.setting] for host in others)] == [
            home.live,
            *[""] * len(others),
        ]


def test_only_the_places_that_the_readme_names_know_all_sites_by_name() -> None:
    named = set()
    for path in PACKAGE.rglob("*.py"):
        if "replica" in path.parts:
            continue
        texts = {
            node.value
            for node in ast.walk(ast.parse(path.read_text()))
            if isinstance(node, ast.Constant)
        }
        if set(SITES) <= texts:
            named.add(str(path.relative_to(PACKAGE)))
    how = (
        (PACKAGE / "README.md").read_text().partition("**A site.**")[2].partition("**A field**")[0]
    )
    assert {name for name in named if f"]({name})" not in how} == set()


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
    assert datasets_url({**SiteOptions.defaults(), **given}) == url


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
