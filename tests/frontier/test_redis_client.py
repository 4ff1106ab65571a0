"""What every client of Redis says when something is wrong."""

import asyncio
from contextlib import aclosing
from typing import Any

import pytest
from redis import exceptions as errors
from scrapy.settings import Settings

from moviecrawler.basics.errors import ConfigurationError
from moviecrawler.frontier.redis_backend import RedisBackend
from moviecrawler.frontier.redis_client import (
    connect,
    connect_blocking,
    describe_error,
    eviction_fault,
    state_error,
)

NOWHERE = "redis://:hunter2@127.0.0.1:1/0"


def test_redis_that_is_away_is_a_redis_error_without_its_password() -> None:
    async def ask() -> None:
        async with aclosing(connect(NOWHERE)) as client:
            await client.hgetall("{imdb}:circuit")

    with pytest.raises(errors.RedisError) as error:
        asyncio.run(ask())
    assert "hunter2" not in str(error.value)
    assert describe_error(error.value, "; start it").endswith("; start it")


@pytest.mark.parametrize(
    "url", ["http://u:hunter2@h", "redis://:hunter2@h:port", "redis://h?socket_timeuot=hunter2"]
)
def test_a_wrong_url_is_named_before_anything_is_opened_and_not_shown(url: str) -> None:
    for make in (connect, connect_blocking):
        with pytest.raises(ConfigurationError, match=r"^REDIS_URL is not a Redis URL") as error:
            make(url)
        assert "hunter2" not in str(error.value)


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (
            errors.MovedError("14485 127.0.0.1:7001"),
            "Redis Cluster is not supported; set REDIS_URL",
        ),
        (errors.ClusterCrossSlotError("odd"), "Redis Cluster is not supported; set REDIS_URL to "),
        (errors.OutOfMemoryError("odd"), "Redis is full: it has reached its maxmemory"),
        (errors.ResponseError("@user_script: OOM command not allowed"), "Redis is full: it has"),
        (errors.AuthenticationError("odd"), "Redis refuses the password in REDIS_URL"),
        (errors.ConnectionError("no route."), "Redis can't be reached: no route"),
    ],
)
def test_what_is_wrong_with_redis_is_a_sentence(error: Exception, sentence: str) -> None:
    assert state_error(error).startswith(sentence)
    is_known = describe_error(error).startswith("Redis ")
    assert describe_error(error, "; start it").endswith("; start it") == (not is_known)


@pytest.mark.parametrize(
    ("memory", "is_fault"),
    [
        ({}, False),
        ({"maxmemory": 0, "maxmemory_policy": "allkeys-lru"}, False),
        ({"maxmemory": 1, "maxmemory_policy": "noeviction"}, False),
        ({"maxmemory": 1}, False),
        ({"maxmemory": 1, "maxmemory_policy": "allkeys-lru"}, True),
    ],
)
def test_a_redis_that_throws_keys_away_is_refused(memory: dict[str, Any], is_fault: bool) -> None:
    assert ("when it is full (allkeys-lru)" in eviction_fault(memory)) == is_fault
    assert (eviction_fault(memory) != "") == is_fault


def test_params_of_scrapy_redis_hold_for_each_client() -> None:
    params = {"socket_timeout": 1.5, "client_name": "mine"}
    client = RedisBackend.from_settings(
        Settings({"REDIS_URL": NOWHERE, "REDIS_PARAMS": params})
    ).client
    assert params.items() <= client.connection_pool.connection_kwargs.items()
