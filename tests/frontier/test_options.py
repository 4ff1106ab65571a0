from __future__ import annotations

from typing import Any

import pytest
from scrapy.settings import Settings

from moviecrawler.errors import ConfigurationError
from moviecrawler.frontier.options import Budget, FrontierOptions

URL = "redis://127.0.0.1:6379/0"


def options(home: str = "http://127.0.0.1:8000", **given: Any) -> FrontierOptions:
    return FrontierOptions.from_settings(Settings({"REDIS_URL": URL, **given}), home)


@pytest.mark.parametrize(
    ("home", "budget"),
    [
        ("https://www.imdb.com", Budget(per_second=0.5, per_day=30_000)),
        ("https://www.rottentomatoes.com", Budget(per_second=0.5, per_day=5_000)),
        ("https://www.metacritic.com", Budget(per_second=0.5, per_day=600)),
        ("http://127.0.0.1:8000", Budget()),
    ],
)
def test_live_sites_have_budgets_and_a_replica_has_none(home: str, budget: Budget) -> None:
    assert options(home).budget == budget


def test_settings_come_from_the_command_line_as_text() -> None:
    given = options(FRONTIER_BATCH="7", FRONTIER_LEASE="2.5", SITE_BUDGETS='{"127.0.0.1": {"per_second": 50}}')
    assert (given.batch, given.lease, given.budget) == (7, 2.5, Budget(per_second=50))


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("REDIS_URL", "http://127.0.0.1", "REDIS_URL is no Redis URL"),
        ("FRONTIER_BATCH", "0", "FRONTIER_BATCH is 0"),
        ("FRONTIER_BATCH", "many", "FRONTIER_BATCH is 'many'"),
        ("FRONTIER_WINDOW", "0.5", "FRONTIER_WINDOW is 0.5"),
        ("FRONTIER_CAPACITY", "300000000", "FRONTIER_CAPACITY is 3e+08"),
        ("FRONTIER_DUPEFILTER", "cuckoo", "FRONTIER_DUPEFILTER is 'cuckoo'"),
        ("FRONTIER_RUN", "a b", "FRONTIER_RUN is 'a b'"),
        ("FRONTIER_RUN", "{x}", "FRONTIER_RUN is '{x}'"),
        ("SITE_BUDGETS", {"127.0.0.1": {"per_hour": 3}}, "SITE_BUDGETS has a wrong budget"),
        ("SITE_BUDGETS", {"127.0.0.1": {"per_second": 0}}, "SITE_BUDGETS has a wrong budget"),
        ("SITE_BUDGETS", {"127.0.0.1": {"per_day": -1}}, "SITE_BUDGETS has a wrong budget"),
        ("SITE_BUDGETS", {"127.0.0.1": 3}, "SITE_BUDGETS has a wrong budget"),
        ("SITE_BUDGETS", "3 a day", "SITE_BUDGETS is no JSON object"),
        ("REDIS_PARAMS", "ssl", "REDIS_PARAMS is no JSON object"),
        ("REDIS_PARAMS", {"redis_cls": "redis.asyncio.RedisCluster"}, "REDIS_PARAMS has redis_cls, which is gone"),
        ("REDIS_PARAMS", {"sentinels": [["host", 26379]]}, "REDIS_PARAMS takes Sentinel as "),
        ("REDIS_PARAMS", {"sentinels": "host:26379", "service_name": "m"}, "REDIS_PARAMS takes Sentinel as "),
    ],
)
def test_wrong_value_is_refused_with_a_sentence(name: str, value: Any, sentence: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        options(**{name: value})
    assert sentence in str(caught.value)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("SCHEDULER_SERIALIZER", "scrapy_redis.picklecompat"),
        ("SCHEDULER_FLUSH_ON_START", "1"),
        ("SCHEDULER_QUEUE_CLASS", "scrapy_redis.queue.LifoQueue"),
        ("SCHEDULER_QUEUE_KEY", "x"),
        ("SCHEDULER_DUPEFILTER_KEY", "x"),
        ("REDIS_START_URLS_KEY", "%(spider)s"),
    ],
)
def test_what_would_do_harm_or_nothing_is_refused(name: str, value: Any) -> None:
    with pytest.raises(ConfigurationError, match=name):
        options(**{name: value})


def test_scrapy_redis_own_names_are_heeded() -> None:
    given = options(
        SCHEDULER_IDLE_BEFORE_CLOSE=5, REDIS_START_URLS_KEY="seeds:%(name)s", SCHEDULER_FLUSH_ON_START=False
    )
    assert (given.idle, given.start_urls_key) == (5, "seeds:%(name)s")
    assert options(SCHEDULER_IDLE_BEFORE_CLOSE=5, FRONTIER_IDLE=1).idle == 1


def test_password_is_not_repeated() -> None:
    with pytest.raises(ConfigurationError) as caught:
        options(REDIS_URL="rediss.example.com:secret")
    assert "secret" not in str(caught.value)
