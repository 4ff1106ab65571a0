"""What a movie spider sets up for its crawl, and what stays as somebody else has set it."""

import json
import logging
import sys
from contextlib import nullcontext
from typing import Any

import pytest
from scrapy import Spider
from scrapy.crawler import AsyncCrawlerRunner, Crawler
from scrapy.exceptions import UsageError
from scrapy.settings import BaseSettings, Settings, iter_default_settings
from scrapy.utils.test import get_crawler

from moviecrawler.pipelines.validate import ValidatePipeline
from moviecrawler.spiders.components import REDIS_SCHEDULER, SCHEDULER, set_up
from moviecrawler.spiders.imdb import ImdbSpider

KINDS = ("ITEM_PIPELINES", "SPIDER_MIDDLEWARES", "DOWNLOADER_MIDDLEWARES", "EXTENSIONS")
SQLITE = "moviecrawler.pipelines.sqlite.SqlitePipeline"
SUMMARY = "moviecrawler.extensions.summary.Summary"
THEIRS = "theirs.Pipeline"
SCRAPYS_SCHEDULER = "scrapy.core.scheduler.Scheduler"


def project() -> Settings:
    settings = Settings()
    settings.setmodule("moviecrawler.settings")
    return settings


def enabled(settings: BaseSettings, kind: str) -> dict[str, int]:
    """Return the components of a kind that are in use, with their order, by their last name."""
    both = {**settings.getdict(f"{kind}_BASE"), **settings.getdict(kind)}
    return {path.rpartition(".")[2]: order for path, order in both.items() if order is not None}


def listed(settings: BaseSettings) -> set[str]:
    return {path.rpartition(".")[2] for kind in KINDS for path in settings.getdict(kind)}


# --- What is ours ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "added"),
    [
        ({}, set()),
        ({"DATABASE_URL": "postgresql://db/movies"}, {"PostgresPipeline"}),
        ({"MONGO_URL": "mongodb://db/movies"}, {"MongoPipeline"}),
        ({"S3_BUCKET": "lamps"}, {"S3Pipeline", "ArchivePipeline", "ArchiveMiddleware"}),
        ({"PROXY_ORDER": "datacenter"}, {"ProxyMiddleware"}),
        ({"ALERT_WEBHOOK": "https://hooks.example/lamps"}, {"Alerts"}),
        ({"ALERT_URLS": "json://hooks.example/lamps"}, {"Alerts"}),
    ],
)
def test_components_are_listed_where_their_settings_have_a_value(
    given: dict[str, str], added: set[str]
) -> None:
    plain = Settings()
    set_up(plain)
    settings = Settings(given)
    set_up(settings)
    assert listed(settings) - listed(plain) == added


@pytest.mark.parametrize(
    ("redis_url", "scheduler"), [("", SCHEDULER), ("redis://db/0", REDIS_SCHEDULER)]
)
def test_the_queue_is_ours_and_nothing_before_it_drops_a_request(
    redis_url: str, scheduler: str
) -> None:
    settings = Settings({"REDIS_URL": redis_url})
    set_up(settings)
    assert settings["SCHEDULER"] == scheduler
    assert settings["DUPEFILTER_CLASS"] == "scrapy.dupefilters.BaseDupeFilter"
    between = enabled(settings, "SPIDER_MIDDLEWARES").keys()
    assert not between & {"UrlLengthMiddleware", "DepthMiddleware"}


@pytest.mark.parametrize(
    ("given", "priority", "least_gap", "at_once"),
    [
        ({}, "project", None, 16),
        ({"DOWNLOAD_DELAY": 2.0, "CONCURRENT_REQUESTS_PER_DOMAIN": 2}, "project", None, 16),
        ({"DOWNLOAD_DELAY": 2.0}, "cmdline", 2.0, 16),
        ({"DOWNLOAD_DELAY": 7}, "project", 7.0, 16),
        ({"CONCURRENT_REQUESTS_PER_DOMAIN": 2}, "cmdline", None, 2),
        ({"CONCURRENT_REQUESTS_PER_DOMAIN": 17}, "project", None, 16),
        ({"CONCURRENT_REQUESTS": 0}, "project", None, sys.maxsize),
    ],
)
def test_the_pace_that_an_operator_has_set_is_the_gates(
    given: dict[str, Any], priority: str, least_gap: float | None, at_once: int
) -> None:
    settings = project()
    settings.setdict(given, priority=priority)
    set_up(settings)
    assert settings["LEAST_GAP"] == least_gap
    assert settings["DOWNLOAD_DELAY"] == 0
    assert settings["CONCURRENT_REQUESTS"] == at_once
    assert settings["CONCURRENT_REQUESTS_PER_DOMAIN"] == at_once


def test_a_budget_that_can_not_be_read_ends_every_command() -> None:
    for budgets, refused in (("imdb=9", pytest.raises(UsageError)), ("", nullcontext())):
        settings = project()
        settings.set("SITE_BUDGETS", budgets, priority="cmdline")
        with refused:
            ImdbSpider.update_settings(settings)


def test_a_pace_that_is_no_number_stays_for_the_check_of_all_settings() -> None:
    settings = project()
    settings.set("DOWNLOAD_DELAY", "slow", priority="cmdline")
    set_up(settings)
    assert settings["DOWNLOAD_DELAY"] == "slow"


# --- What is somebody else's ----------------------------------------------------------------------


def test_other_spiders_have_scrapys_own_parts() -> None:
    settings = Crawler(Spider, project()).settings
    for name, scrapys in iter_default_settings():
        if name not in {"ADDONS", "SPIDER_MODULES", "COMMANDS_MODULE"}:
            value = settings[name]
            text = str(value.copy_to_dict() if isinstance(value, BaseSettings) else value)
            assert "moviecrawler." not in text
            assert not name.endswith(("_BASE", "_CLASS")) or text == str(scrapys)


@pytest.mark.parametrize("priority", ["project", "spider", "cmdline"])
def test_components_of_somebody_else_stay_and_ours_are_listed_beside_them(priority: str) -> None:
    settings = Settings({"MONGO_URL": "mongodb://db/movies"})
    given = {THEIRS: 5, SQLITE: None, ValidatePipeline: 7}
    settings.set("ITEM_PIPELINES", given, priority=priority)
    set_up(settings)
    pipelines = settings.getdict("ITEM_PIPELINES")
    assert pipelines == {**given, "moviecrawler.pipelines.mongo.MongoPipeline": 320}


def test_components_given_on_the_command_line_leave_ours_in_a_crawl() -> None:
    settings = project()
    settings.set("ITEM_PIPELINES", json.dumps({THEIRS: 5}), priority="cmdline")
    settings.set("EXTENSIONS", json.dumps({SUMMARY: None}), priority="cmdline")
    settings.set("SPIDER_MIDDLEWARES", "{}", priority="cmdline")
    crawler = begun(settings)
    assert enabled(crawler.settings, "ITEM_PIPELINES") == {
        "Pipeline": 5,
        "ValidatePipeline": 100,
        "SqlitePipeline": 300,
    }
    assert "Summary" not in enabled(crawler.settings, "EXTENSIONS")
    assert "ItemCompletion" in enabled(crawler.settings, "EXTENSIONS")
    assert "DepthMiddleware" not in enabled(crawler.settings, "SPIDER_MIDDLEWARES")
    assert crawler.settings["SCHEDULER"] == SCHEDULER


def begun(settings: Settings) -> Crawler:
    """Return IMDb's crawler as `scrapy crawl` begins it.

    Scrapy then sets once more what it was given.
    """
    runner = AsyncCrawlerRunner(settings)
    return runner.create_crawler(runner.create_crawler(ImdbSpider))


@pytest.mark.parametrize("priority", ["command", "project", "spider", "cmdline"])
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("LOG_FORMATTER", "theirs.LogFormatter"),
        ("LOGSTATS_INTERVAL", 0),
        ("REDIRECT_MAX_TIMES", 7),
        ("DOWNLOAD_SLOTS", {"127.0.0.1": {"delay": 1.0}}),
    ],
)
def test_a_setting_that_somebody_has_set_stays(name: str, value: Any, priority: str) -> None:
    settings = Settings()
    settings.set(name, value, priority=priority)
    set_up(settings)
    assert settings[name] == value


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("SCHEDULER", SCRAPYS_SCHEDULER),
        ("DUPEFILTER_CLASS", "scrapy_redis.dupefilter.RFPDupeFilter"),
        ("JOBDIR", "job"),
    ],
)
@pytest.mark.parametrize("priority", ["project", "cmdline"])
def test_another_queue_has_no_effect_which_is_said(
    caplog: pytest.LogCaptureFixture, name: str, value: str, priority: str
) -> None:
    usual = begun(project()).settings[name]
    settings = project()
    settings.set(name, value, priority=priority)
    with caplog.at_level(logging.WARNING):
        crawler = begun(settings)
    assert crawler.settings[name] == usual
    assert [record.getMessage() for record in caplog.records] == [
        f"{name} has no effect on this spider: its queue is kept anyway, in DATA_DIR"
    ]


class Changing:
    """An add-on of somebody else, written as Scrapy's documentation has them."""

    def update_settings(self, settings: BaseSettings) -> None:
        assert settings["SCHEDULER"] == SCHEDULER
        settings.set("SCHEDULER", SCRAPYS_SCHEDULER, priority="addon")
        settings.set("LOG_FORMATTER", "scrapy.logformatter.LogFormatter", priority="addon")
        settings.set_in_component_priority_dict("ITEM_PIPELINES", ValidatePipeline, 50)
        settings.set("EXTENSIONS", {SUMMARY: None}, priority="addon")


def test_an_add_on_sees_what_is_set_up_and_can_change_it() -> None:
    crawler = get_crawler(ImdbSpider, {"ADDONS": {Changing: 1}})
    assert crawler.settings.getdict("EXTENSIONS") == {SUMMARY: None}
    assert crawler.settings["SCHEDULER"] == SCRAPYS_SCHEDULER
    assert crawler.settings["LOG_FORMATTER"] == "scrapy.logformatter.LogFormatter"
    pipelines = crawler.settings.getdict("ITEM_PIPELINES")
    assert pipelines == {ValidatePipeline: 50, SQLITE: 300}
