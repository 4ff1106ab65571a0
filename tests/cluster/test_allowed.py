"""What may stand in a job: its settings and arguments."""

from __future__ import annotations

import re

import pytest
from scrapy.settings import default_settings

from moviecrawler import settings
from moviecrawler.cluster.allowed import JOB_SETTINGS
from moviecrawler.cluster.secrets import holds_secret, redacted

OPERATOR_S = {
    # Where things are and go
    *("IMDB_URL", "IMDB_DATASETS_URL", "METACRITIC_URL", "METACRITIC_API_URL", "ROTTENTOMATOES_URL", "DATA_DIR"),
    *("DATABASE_URL", "MONGO_URL", "S3_BUCKET", "S3_ENDPOINT_URL", "S3_PREFIX", "REDIS_URL"),
    *("FRONTIER_NODE", "METRICS_FOLDER", "ALERT_WEBHOOK", "TOR_TUNNEL", "TOR_CONTROL", "PROXY_POOLS"),
    *("FEEDS", "LOG_FILE"),
    # What protects the sites and the machine
    *("CONTACT", "USER_AGENT", "DEFAULT_REQUEST_HEADERS", "COOKIES_ENABLED", "REFERRER_POLICY", "ROBOTSTXT_OBEY"),
    *("SITE_BUDGETS", "RETRY_HTTP_CODES", "ROTATING_PROXY_BAN_POLICY", "DOWNLOAD_VERIFY_CERTIFICATES"),
    *("DOWNLOAD_MAXSIZE", "HTTPCACHE_ENABLED", "REMOTE_CONTROL_ENABLED", "TELNETCONSOLE_ENABLED"),
    # What the project is made of
    *("ADDONS", "EXTENSIONS_BASE", "DOWNLOADER_MIDDLEWARES_BASE", "DOWNLOAD_HANDLERS", "FRONTIER_ASKED_AT"),
    *("BOT_NAME", "SPIDER_MODULES", "COMMANDS_MODULE", "METAREFRESH_ENABLED", "CONCURRENT_ITEMS", "SPIDERMON_ENABLED"),
    *("SCHEDULER_MEMORY_QUEUE", "SCHEDULER_DISK_QUEUE", "LOG_FORMATTER"),
    *("DOWNLOADER_MIDDLEWARES", "ITEM_PIPELINES", "SPIDER_MIDDLEWARES", "EXTENSIONS"),
}
"""Settings with which a job could do harm."""


def test_a_job_may_make_no_setting_that_does_harm() -> None:
    assert not JOB_SETTINGS & OPERATOR_S
    known = {name for name in (*vars(settings), *vars(default_settings)) if name.isupper()}
    assert known | {"MEMUSAGE_WARNING_MB"} >= JOB_SETTINGS


def test_no_setting_with_a_class_a_path_or_a_url_is_a_job_s() -> None:
    both = {**vars(default_settings), **vars(settings)}
    for name in JOB_SETTINGS:
        value = both[name]
        assert not re.search(r"[/\\]|\w\.[a-z]\w", str(value)) or name == "DOWNLOAD_SLOTS", name
        assert not re.search(r"CLASS|_URI|_URL|_DIR|FILE|MODULE|PATH", name), name


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("x", "postgresql://me:hunter2@db/x"),
        ("x", "postgresql://db/x?user=me&password=hunter2"),
        ("x", "host=db user=me password=hunter2"),
        ("x", '{"url": "postgresql:\\/\\/me:hunter2@db\\/x"}'),
        ("x", '{"url": "postgresql\\u003a//me\\u003ahunter2@db/x"}'),
        ("x", "postgresql%3A%2F%2Fme%3Ahunter2%40db%2Fx"),
        ("x", '{"aws_secret_access_key": "hunter2"}'),
        ("x", '{"a": {"urls": ["http://u:hunt@er2@h:1"]}}'),
        ("x", "Authorization: Basic aHVudGVyMg=="),
        ("x", "a@b,me:hunter2@proxy.example:8080"),
        ("my_api_key", "hunter2"),
        ("MONGO_PWD", "hunter2"),
    ],
)
def test_secret_is_found_in_whatever_form(name: str, value: str) -> None:
    assert holds_secret(name, value)


@pytest.mark.parametrize(
    "value", ["tt0000001,tt0000002", "https://www.imdb.com/title/tt0000001/", "a=b -s X=/x", "browse/at_home", "12:30"]
)
def test_usual_argument_is_no_secret(value: str) -> None:
    assert not holds_secret("ids", value)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("no postgresql://me:hunter2@db/x", "no postgresql://***@db/x"),
        ("redis://:hunt@er2@h:1,redis://:x@i:2/a@b", "redis://***@h:1,redis://***@i:2/a@b"),
        ("http://h:1/a:b@c and u:p@h", "http://h:1/a:b@c and u:p@h"),
        ("bad dsn: host=db password=hunter2 user=me", "bad dsn: host=db password=*** user=me"),
        ('bad JSON: {"api_token": "hunter2", "x": 1}', 'bad JSON: {"api_token": "***", "x": 1}'),
        ("the token is missing: set X_TOKEN", "the token is missing: set X_TOKEN"),
    ],
)
def test_secrets_are_left_out_of_messages(text: str, shown: str) -> None:
    assert redacted(text) == shown
