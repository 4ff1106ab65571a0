"""Settings: their values when nobody sets them, and what is said of a wrong value or name."""

import re
import socket
from pathlib import Path

import pytest
from scrapy.exceptions import NotConfigured
from scrapy.settings import Settings

from moviecrawler.addon import MovieCrawlerAddon, check, check_names, warn_unknown_settings
from moviecrawler.basics.errors import ConfigurationError
from moviecrawler.basics.service_urls import is_redis_url
from moviecrawler.options import FrontierOptions, StoreOptions, project_settings
from moviecrawler.pipelines.base import BatchingPipeline
from moviecrawler.pipelines.mongo import MongoPipeline
from moviecrawler.pipelines.postgres import PostgresPipeline
from moviecrawler.pipelines.s3 import S3Pipeline
from moviecrawler.pipelines.sqlite import SqlitePipeline
from moviecrawler.pipelines.store import Limits
from moviecrawler.replica.options import Options as ReplicaOptions
from moviecrawler.spiders.imdb import ImdbSpider
from tests import written

REDIS = "redis://127.0.0.1:6379/0"


@pytest.fixture
def ours(tmp_path: Path) -> Settings:
    """Return the project's settings, with a DATA_DIR of its own."""
    ours = Settings()
    ours.setmodule("moviecrawler.settings")
    ours.set("DATA_DIR", str(tmp_path))
    return ours


def test_settings_as_shipped_are_right(ours: Settings, caplog: pytest.LogCaptureFixture) -> None:
    MovieCrawlerAddon.update_pre_crawler_settings(ours)
    check(ours, ImdbSpider)
    assert caplog.text == ""


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("DATADIR", "DATA_DIR"),
        ("data_dir", "DATA_DIR"),
        ("DATABASE_URI", "DATABASE_URL"),
        ("FRONTEIR_RUN", "FRONTIER_RUN"),
        ("FRONTIER_LEASES", "FRONTIER_LEASE"),
        ("SITE_BUDGET", "SITE_BUDGETS"),
    ],
)
@pytest.mark.parametrize("place", ["settings", "environment"])
def test_a_name_that_is_nearly_one_of_ours_is_refused_with_that(
    ours: Settings, monkeypatch: pytest.MonkeyPatch, place: str, name: str, meant: str
) -> None:
    if place == "settings":
        ours.set(name, "x", priority="cmdline")
    else:
        monkeypatch.setenv(name, "x")
    with pytest.raises(ConfigurationError, match=rf"{name}; did you mean {meant}\?"):
        check_names(ours)
    monkeypatch.setenv(meant, "")  # so that a variable of this name is another program's
    if place == "environment":
        check_names(ours)


def test_settings_of_others_are_left_alone(
    ours: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    theirs = (
        "AWS_ENDPOINT_URL",
        "HTTPCACHE_ENABLED",
        "PLAYWRIGHT_BROWSER_TYPE",
        "REDIS_ENCODING",
        "REDIS_PARAMS",
        "REDIS_START_URLS_AS_SET",
        "ROTATING_PROXY_LIST",
        "SCHEDULER_PERSIST",
        "ZYTE_API_KEY",
    )
    ours.setdict(dict.fromkeys(theirs, "1"), priority="cmdline")
    check_names(ours)
    warn_unknown_settings(ours)
    assert caplog.text == ""
    ours.set("DOWNLOAD_DELY", "3")
    other_project = Settings({"MONGO_URI": "mongodb://127.0.0.1"})
    check_names(ours)
    check_names(other_project)
    warn_unknown_settings(ours)
    warn_unknown_settings(other_project)
    assert [record.getMessage() for record in caplog.records] == [
        "Unknown setting DOWNLOAD_DELY; did you mean DOWNLOAD_DELAY?",
        "Unknown setting MONGO_URI; did you mean MONGO_URL?",
    ]


@pytest.mark.promise(
    "A wrong argument or setting ends a crawl before its first request, in one sentence."
)
@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        *written.rows(__file__, "settings.txt"),
        ("IMDB_URL", "", "is"),
        ("CONTACT", "me@example.com\r\nX-Evil: 1", "is"),
        ("EXTENSIONS", {"a.B": "first"}, "has 'first' for a.B; give a number, or null to leave it"),
        ("FRONTIER_DELIVERIES", 1, "is 1; set it to a whole number from 2 to 99"),
        ("S3_BUCKET", ["b"], "is ['b']; set it to a text"),
        (
            "USER_AGENT",
            "lamp\r\nX-Evil: 1",
            "is 'lamp\\r\\nX-Evil: 1'; set it to one such as ",
        ),
    ],
)
def test_wrong_value_is_refused_in_a_sentence_without_a_password(
    ours: Settings, name: str, value: object, sentence: str
) -> None:
    ours.setdict({"REDIS_URL": REDIS, name: value})
    with pytest.raises(ConfigurationError) as caught:
        check(ours, ImdbSpider)
    assert str(caught.value).startswith(f"{name} {sentence}")
    assert not any(part in str(caught.value) for part in ("\n", "hun", "ter2"))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("COOKIES_ENABLED", "True"),
        ("DOWNLOAD_DELAY", "0.5"),
        ("FEED_EXPORT_INDENT", "-1"),
        ("LOG_FILE", ""),
        ("LOG_LEVEL", "info"),
        ("RETRY_PRIORITY_ADJUST", "-1"),
        ("RETRY_TIMES", "0"),
    ],
)
def test_right_values_of_scrapys_settings_are_taken(ours: Settings, name: str, value: str) -> None:
    ours.set(name, value)
    check(ours, ImdbSpider)


@pytest.mark.parametrize(
    ("name", "replacement"),
    [
        ("SPIDERMON_SLACK_SENDER_TOKEN", "set ALERT_URLS to slack://TOKEN/CHANNEL"),
        ("SPIDERMON_TELEGRAM_RECIPIENTS", "set ALERT_URLS to tgram://TOKEN/CHAT"),
        ("SPIDERMON_DISCORD_WEBHOOK_URL", "set ALERT_URLS to discord://ID/TOKEN"),
        (
            "SPIDERMON_SMTP_HOST",
            "set ALERT_URLS to mailtos://USER:PASSWORD@HOST?to=ADDRESS",
        ),
        (
            "SPIDERMON_SENTRY_DSN",
            "set ALERT_WEBHOOK or ALERT_URLS to a service other than Sentry",
        ),
        ("SPIDERMON_ENABLED", "set ALERT_WEBHOOK or ALERT_URLS to have alerts"),
        (
            "SPIDERMON_SPIDER_CLOSE_MONITORS",
            "list an extension of your own in EXTENSIONS, which checks the stats",
        ),
    ],
)
@pytest.mark.parametrize("place", ["settings", "environment"])
def test_a_setting_that_nothing_reads_any_more_is_refused_with_its_replacement(
    ours: Settings,
    monkeypatch: pytest.MonkeyPatch,
    place: str,
    name: str,
    replacement: str,
) -> None:
    monkeypatch.setenv("SPIDERMON_EMAIL_TO", "")  # means that it is not set
    if place == "settings":
        ours.set(name, ["hunter2"])
    else:
        monkeypatch.setenv(name, "hunter2")
    with pytest.raises(ConfigurationError) as caught:
        check(ours, ImdbSpider)
    assert str(caught.value) == f"Nothing reads {name} any more; {replacement}, and remove it"


URLS = (
    "unix:///run/redis@main.sock",
    "unix://u:p@/run/redis.sock",
    "rediss://u:p%40ss@h:6379/1",
    "redis://h/0?password=a@b",
)


@pytest.mark.parametrize("url", URLS)
def test_redis_urls_are_taken_with_the_signs_that_may_stand_in_them(url: str) -> None:
    assert is_redis_url(url)
    assert not is_redis_url(f"http:{url.partition(':')[2]}")


def test_settings_come_from_the_environment_and_the_command_line_as_text() -> None:
    values = project_settings({"FRONTIER_DELIVERIES": "7", "FRONTIER_LEASE": "", "OTHER": "1"})
    assert (values["FRONTIER_DELIVERIES"], values["FRONTIER_LEASE"]) == ("7", 60.0)
    assert "OTHER" not in values
    options = FrontierOptions.read(
        {"FRONTIER_DELIVERIES": "7", "FRONTIER_LEASE": "2.5", "FRONTIER_IDLE": ""}
    )
    assert (options.deliveries, options.lease, options.idle) == (7, 2.5, 0.0)
    assert options.node == socket.gethostname()
    assert repr(options) == "FrontierOptions(...)"  # some values are credentials
    assert FrontierOptions.read({"FRONTIER_NODE": "lamp"}).node == "lamp"
    assert FrontierOptions.read({"FRONTIER_RUN": 47}).run == "47"
    given = {"DATA_DIR": Path("data"), "STORE_BATCH_SECONDS": "1000000"}
    stores = StoreOptions.read(given)
    assert (stores.data_dir, stores.store_batch_seconds) == ("data", 1_000_000)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"today": "soon"}, "today is 'soon'; set it to a date such as 2026-03-01"),
        ({"faults": {"fire": 1}}, "faults is {'fire': 1}; set it to numbers of 500, timeout, "),
        ({"rate_limit": 0}, "rate_limit is 0; set it to a whole number from 1 to 1e+06, or remove"),
    ],
)
def test_what_an_option_takes_is_said_by_its_type(given: dict[str, object], sentence: str) -> None:
    with pytest.raises(ConfigurationError, match=f"^{re.escape(sentence)}"):
        ReplicaOptions.read(given)


def test_limits_of_a_store_hold_unless_settings_say_otherwise() -> None:
    default = Limits(batch_items=7, batch_seconds=60.0)
    assert Limits.from_settings(Settings({"STORE_BATCH_SECONDS": ""}), default) == default
    limits = Limits.from_settings(Settings({"STORE_BATCH_SECONDS": "0.5"}), default)
    assert (limits.batch_items, limits.batch_seconds) == (7, 0.5)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({}, "SQLITE_ENABLED is 0, and no other store is set"),
        ({"DATABASE_URL": "postgresql://h/d", "CSV_ENABLED": "1"}, "CSV_ENABLED is 1 and"),
        ({"DATABASE_URL": "postgresql://h/d", "CSV_ENABLED": "0"}, ""),
        ({"S3_BUCKET": "b", "CSV_ENABLED": None}, ""),
    ],
)
def test_sqlite_can_be_left_out_where_another_store_has_it_all(
    ours: Settings, given: dict[str, object], sentence: str
) -> None:
    ours.setdict({"SQLITE_ENABLED": "0", **given})
    if sentence:
        with pytest.raises(ConfigurationError, match=sentence):
            check(ours, ImdbSpider)
    else:
        check(ours, ImdbSpider)
    with pytest.raises(NotConfigured):
        SqlitePipeline.store_from_settings(ours)


@pytest.mark.parametrize("pipeline", [PostgresPipeline, MongoPipeline, S3Pipeline])
def test_a_store_without_its_setting_is_not_used(
    pipeline: type[BatchingPipeline], tmp_path: Path
) -> None:
    with pytest.raises(NotConfigured):
        pipeline.store_from_settings(Settings({"CSV_ENABLED": "0", "DATA_DIR": str(tmp_path)}))
