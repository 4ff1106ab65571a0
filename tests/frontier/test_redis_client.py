"""What every client of Redis says when something is wrong."""

import asyncio
from contextlib import aclosing

import pytest
import redis
from scrapy.settings import Settings

from moviecrawler.basics.errors import ConfigurationError
from moviecrawler.frontier.redis_backend import RedisBackend
from moviecrawler.frontier.redis_client import connect, connect_blocking, describe_error

NOWHERE = "redis://:hunter2@127.0.0.1:1/0"


def test_redis_that_is_away_is_a_redis_error_without_its_password() -> None:
    async def ask() -> None:
        async with aclosing(connect(NOWHERE)) as client:
            await client.hgetall("{imdb}:circuit")

    with pytest.raises(redis.exceptions.RedisError) as error:
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


def test_redis_cluster_is_refused_in_a_sentence() -> None:
    moved = redis.exceptions.MovedError("14485 127.0.0.1:7001")
    assert describe_error(moved, "; start it").startswith(
        "Redis Cluster is not supported; set REDIS_URL to "
    )


def test_params_of_scrapy_redis_hold_for_each_client() -> None:
    params = {"socket_timeout": 1.5, "client_name": "mine"}
    client = RedisBackend.from_settings(
        Settings({"REDIS_URL": NOWHERE, "REDIS_PARAMS": params})
    ).client
    assert params.items() <= client.connection_pool.connection_kwargs.items()
