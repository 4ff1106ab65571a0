"""What clients of Redis do beside what they are asked: say what is wrong."""

from __future__ import annotations

import asyncio

import pytest
import redis

from moviecrawler.errors import ConfigurationError
from moviecrawler.frontier.queue import connect, describe_error

CLUSTER = {"redis_cls": "redis.asyncio.RedisCluster"}
NOWHERE = "redis://:hunter2@127.0.0.1:1/0"


@pytest.mark.parametrize("parameters", [{}, CLUSTER], ids=["one", "cluster"])
def test_redis_that_is_away_is_a_redis_error_without_its_password(parameters: dict[str, str]) -> None:
    async def ask() -> None:
        client = connect(NOWHERE, **parameters)
        try:
            pipe = client.pipeline(transaction=False)
            pipe.hgetall("{imdb}:circuit")
            await pipe.execute()
        finally:
            await client.aclose()

    with pytest.raises(redis.exceptions.RedisError) as error:
        asyncio.run(ask())
    assert "hunter2" not in str(error.value)
    assert describe_error(error.value, "; start it").endswith("; start it")


@pytest.mark.parametrize("url", ["redis://127.0.0.1:1/2", "unix:///run/redis.sock"])
def test_url_that_no_cluster_has_is_refused(url: str) -> None:
    with pytest.raises(
        ConfigurationError, match=r"^REDIS_URL is not that of a Redis Cluster, which REDIS_PARAMS asks for: "
    ):
        connect(url, **CLUSTER)


def test_cluster_that_is_asked_as_if_it_were_one_server_is_told() -> None:
    assert "set REDIS_PARAMS to " in describe_error(redis.exceptions.MovedError("14485 127.0.0.1:7001"), "; start it")
