"""SITE_BUDGETS: what it changes of the budgets of live sites, and what it gives to others."""

import json
from pathlib import Path
from typing import Any

import pytest
from scrapy.settings import Settings

from moviecrawler.basics.errors import ConfigurationError
from moviecrawler.items import Site
from moviecrawler.politeness.budgets import UNLIMITED, Budget, site_budget
from tests.crawling import scrapy

REPLICA = "http://127.0.0.1:8000"
API = "https://backend.metacritic.com"
METACRITIC = Budget(per_second=0.2, per_day=600)


def budget_of(site: Site, named: dict[str, Any], **hosts: str) -> Budget:
    settings = Settings()
    settings.setmodule("moviecrawler.settings")
    settings.setdict({"SITE_BUDGETS": json.dumps(named), **hosts})
    return site_budget(settings, site)


@pytest.mark.promise(
    "Live sites have budgets a second and a day, and all workers together keep them."
)
@pytest.mark.parametrize(
    ("site", "hosts", "budget"),
    [
        ("imdb", {}, Budget(per_second=0.5, per_day=30_000)),
        ("rottentomatoes", {}, Budget(per_second=0.5, per_day=5_000)),
        ("metacritic", {}, METACRITIC),
        ("metacritic", {"METACRITIC_URL": REPLICA}, UNLIMITED),
        (
            "imdb",
            {"IMDB_URL": REPLICA, "IMDB_DATASETS_URL": "https://datasets.imdbws.com"},
            UNLIMITED,
        ),
        # One live host is enough.
        ("metacritic", {"METACRITIC_URL": REPLICA, "METACRITIC_API_URL": API}, METACRITIC),
        ("imdb", {"IMDB_URL": "https://m.imdb.com"}, Budget(per_second=0.5, per_day=30_000)),
        ("rottentomatoes", {"ROTTENTOMATOES_URL": "http://localhost"}, Budget(per_second=50)),
    ],
)
def test_live_sites_have_budgets_and_a_replica_has_none(
    site: Site, hosts: dict[str, str], budget: Budget
) -> None:
    assert budget_of(site, {"localhost": {"per_second": 50}}, **hosts) == budget


@pytest.mark.promise(
    "Live sites have budgets a second and a day, and all workers together keep them."
)
@pytest.mark.parametrize(
    ("named", "budget"),
    [
        ({"metacritic": {"per_day": 300}}, Budget(per_second=0.2, per_day=300)),
        ({"www.metacritic.com": {"per_second": 0.1}}, Budget(per_second=0.1, per_day=600)),
        ({"backend.metacritic.com": {"per_day": "7"}}, Budget(per_second=0.2, per_day=7)),
        ({"metacritic.com": {}}, METACRITIC),
        ({"imdb": {"per_day": 1}, "127.0.0.1": {"per_day": 1}}, METACRITIC),
        (
            {"metacritic": {"per_second": 0.1}, "www.metacritic.com": {"per_day": 300}},
            Budget(per_second=0.1, per_day=300),
        ),
        ({"metacritic": {"per_day": None}}, Budget(per_second=0.2)),
    ],
)
def test_a_number_that_is_not_named_stays_as_it_is(named: dict[str, Any], budget: Budget) -> None:
    assert budget_of("metacritic", named) == budget


def test_a_replica_has_what_is_named_for_it_or_for_its_site() -> None:
    for name in ("metacritic", "127.0.0.1"):
        budget = budget_of("metacritic", {name: {"per_day": 9}}, METACRITIC_URL=REPLICA)
        assert budget == Budget(per_day=9)
    named = {"www.metacritic.com": {"per_day": 9}}
    assert budget_of("metacritic", named, METACRITIC_URL=REPLICA) == UNLIMITED


@pytest.mark.promise(
    "A wrong argument or setting ends a crawl before its first request, in one sentence."
)
@pytest.mark.parametrize(
    ("setting", "why"),
    [
        ('{"metacritic": {"per_dya": 5}}', "{'per_dya': 5} for metacritic: .* unknown field"),
        ('{"metacritic": {"per_day": 0}}', "{'per_day': 0} for metacritic: Expected `int` >= 1"),
        ('{"metacritic": {"per_day": 5.5}}', "got `float`"),
        ('{"metacritic": {"per_day": "x"}}', "got `str`"),
        ('{"metacritic": {"per_day": 10000000000}}', "`int` <= 1000000000"),
        ('{"metacritic": {"per_second": true}}', "got `bool`"),
        ('{"metacritic": {"per_second": NaN}}', "Expected `float` >"),
        ('{"metacritic": {"per_second": 1e999}}', "Expected `float` <"),
        ('{"metacritic": {"per_second": 1e-320}}', "Expected `float` >"),
        ('{"metacritic": {"per_second": 0}}', "Expected `float` >"),
        ('{"metacritic": 5}', "5 for metacritic: Expected `object`"),
        ('["metacritic"]', "is not a JSON object"),
        ("metacritic", "is not a JSON object"),
    ],
)
def test_a_budget_that_is_none_is_refused_with_its_value(setting: str, why: str) -> None:
    settings = Settings()
    settings.setmodule("moviecrawler.settings")
    settings.set("SITE_BUDGETS", setting)
    with pytest.raises(ConfigurationError, match=f"^SITE_BUDGETS .*{why}.*; use "):
        site_budget(settings, "imdb")


@pytest.mark.promise(
    "A wrong argument or setting ends a crawl before its first request, in one sentence."
)
@pytest.mark.parametrize(
    "command",
    [
        "crawl imdb",
        "fetch --spider=imdb http://127.0.0.1:1/",
        "parse --spider=imdb http://127.0.0.1:1/",
        "shell --spider=imdb http://127.0.0.1:1/ -c 1",
        "progress",
    ],
)
def test_every_command_refuses_a_name_that_is_no_site_and_no_host(
    command: str, tmp_path: Path
) -> None:
    arguments = (*command.split(), "-s", 'SITE_BUDGETS={"www.imdb.co": {"per_day": 3}}')
    ended = scrapy(*arguments, data=tmp_path)
    assert ended.code == 2, ended.log
    assert "SITE_BUDGETS names 'www.imdb.co', and there are imdb, www.imdb.com, " in ended.log
    assert "Traceback" not in ended.log
