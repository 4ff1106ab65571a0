"""One declaration of each site, and no live host asked for a replica."""

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from scrapy.settings import Settings
from scrapy.spiderloader import SpiderLoader

from moviecrawler import sites
from moviecrawler.basics.errors import ConfigurationError
from moviecrawler.options import HostOptions
from moviecrawler.sites import BY_AUTHORITY, SCORE_SITES, SCOREBOARD_KINDS, SITES
from moviecrawler.sites.hosts import datasets_url, page_hosts_of, user_agent
from moviecrawler.sites.ids import parse_title_id
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
        for name in (*profile.lists, *profile.sitemaps):
            loader.load(site).check_list(name)  # type: ignore[attr-defined]
        for form in profile.pages:
            assert callable(profile.reader(form.reader))
        assert profile.published.issuperset(profile.optional_fields)


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
    assert datasets_url(Settings(HostOptions.defaults() | given)) == url


def test_budgets_and_proxies_are_for_hosts_that_have_pages() -> None:
    settings = Settings(HostOptions.defaults())
    assert page_hosts_of("imdb", settings) == {"IMDB_URL": "https://www.imdb.com"}
    assert len(page_hosts_of("metacritic", settings)) == len(SITES["metacritic"].hosts)


@pytest.mark.parametrize(
    ("contact", "agent"), [("", "lamps/1"), ("a@b.example", "lamps/1 (+a@b.example)")]
)
def test_a_contact_is_named_to_the_sites(contact: str, agent: str) -> None:
    assert user_agent({"USER_AGENT": "lamps/1", "CONTACT": contact}) == agent


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


PROFILE = """
from moviecrawler.sites.profile import Host, Ids, PageForm, ScoreProfile, SiteProfile, TitleList

PROFILE = SiteProfile(
    id={id!r},
    package="stand",
    spiders="stand.spider",
    name="Stand",
    hosts=(Host(setting="STAND_URL", live="https://stand.example", description="The stand."),),
    domains=(".stand.example",),
    title_path="/film/{{}}",
    ids=Ids(pattern="[0-9]+", example="7", path_prefix="film/"),
    per_day=100,
    authority=9,
    lists={{"best": TitleList(path="/best")}},
    pages=(PageForm(path="/film/[0-9]+", reader="title"),),
    published=frozenset({{"year"}}),
    scores={{
        {score!r}: ScoreProfile(name="Stand", audience="users", lowest=0, scale=5, facts=("count",))
    }},
)
"""


def bring_site(folder: Path, site: str = "stand", score: str = "stand") -> dict[str, str]:
    """Make a distribution that brings a site, and return the environment in which it is there."""
    info = folder / "stand-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: stand\nVersion: 1.0\n")
    entry = f"[moviecrawler.sites]\n{site} = stand.profile:PROFILE\n"
    (info / "entry_points.txt").write_text(entry)
    package = folder / "stand"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "profile.py").write_text(PROFILE.format(id=site, score=score))
    return {**os.environ, "PYTHONPATH": str(folder)}


def python(code: str, environ: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Run a line of Python in another process."""
    return subprocess.run(
        [sys.executable, "-c", code], env=environ, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize("first", ["moviecrawler.settings", "stand.profile", "moviecrawler.items"])
def test_a_distribution_brings_a_site_by_its_entry_point(tmp_path: Path, first: str) -> None:
    code = (
        f"import {first}; from moviecrawler import settings, sites; from moviecrawler.sites.ids "
        "import parse_title_id; from moviecrawler.sites.fields import SUBFIELDS; "
        "print(list(sites.SITES)[-1], sites.SCORE_SITES['stand'], settings.STAND_URL, "
        "settings.SPIDER_MODULES[-1], parse_title_id('stand', 'https://stand.example/film/7'), "
        "SUBFIELDS['scores'][1][-1], sites.BY_AUTHORITY[-1])"
    )
    ran = python(code, bring_site(tmp_path))
    assert ran.stdout.split() == [
        "stand",
        "stand",
        "https://stand.example",
        "stand.spider",
        "7",
        "stand",
        "stand",
    ], ran.stderr


@pytest.mark.parametrize(
    ("site", "score", "why"),
    [
        ("imdb", "stand", "stand and moviecrawler.sites.imdb are both the site 'imdb'"),
        ("stand", "metascore", "stand has a score or a column 'metascore', as metacritic has"),
        ("stand", "a-score", "'a-score' can't be the name of a site, a score or a column; use"),
    ],
)
def test_a_site_that_is_there_twice_is_refused(
    tmp_path: Path, site: str, score: str, why: str
) -> None:
    ran = python("from moviecrawler.sites import SITES", bring_site(tmp_path, site, score))
    assert why in ran.stderr


@pytest.mark.parametrize(
    ("right", "wrong", "named"),
    [
        ('"year"', '"years", "year"', "'years'"),
        ('"year"', '"scores.metascor"', "'scores.metascor'"),
        ('"year"', '"credits.actor"', "'credits.actor'"),
        ('facts=("count",)', 'facts=("count", "votes")', "'votes'"),
    ],
)
def test_a_field_that_no_movie_has_is_refused_with_its_name(
    tmp_path: Path, right: str, wrong: str, named: str
) -> None:
    environ = bring_site(tmp_path)
    profile = tmp_path / "stand" / "profile.py"
    profile.write_text(profile.read_text().replace(right, wrong))
    ran = python("from moviecrawler.sites import SITES", environ)
    assert f"stand names {named}, which neither a movie nor a score has" in ran.stderr


def test_a_site_that_can_not_be_loaded_is_named(tmp_path: Path) -> None:
    environ = bring_site(tmp_path)
    (tmp_path / "stand" / "profile.py").write_text("import nothing_of_that_name")
    ran = python("from moviecrawler.sites import SITES", environ)
    assert "the site 'stand' can't be loaded (stand.profile:PROFILE)" in ran.stderr


def test_a_site_without_readers_is_refused_before_a_page_is_lost(tmp_path: Path) -> None:
    code = "from moviecrawler.sites import SITES; SITES['stand'].check_readers()"
    ran = python(code, bring_site(tmp_path))
    assert "stand.pages can't be imported (ModuleNotFoundError: No module named" in ran.stderr


def test_a_domain_without_a_dot_is_refused_and_an_unknown_name_is_none_of_the_registry() -> None:
    with pytest.raises(ConfigurationError, match=r"write a dot before it, as \.imdb\.com"):
        replace(SITES["imdb"], domains=("imdb.com",))
    assert not hasattr(sites, "UNHEARD")
