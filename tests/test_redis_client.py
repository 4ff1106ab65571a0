"""What every client of Redis does beside what it is asked: find the server, and say what is wrong."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import time
from contextlib import aclosing, closing
from pathlib import Path
from typing import Any

import pytest
import redis

from moviecrawler.errors import ConfigurationError
from moviecrawler.redis_client import connect, connect_blocking, describe_error, redis_parameters
from tests.services.redis import RedisServer, executable

NOWHERE = "redis://:hunter2@127.0.0.1:1/0"


def test_redis_that_is_away_is_a_redis_error_without_its_password() -> None:
    async def ask() -> None:
        async with aclosing(connect(NOWHERE)) as client:
            await client.hgetall("{imdb}:circuit")

    with pytest.raises(redis.exceptions.RedisError) as error:
        asyncio.run(ask())
    assert "hunter2" not in str(error.value)
    assert describe_error(error.value, "; start it").endswith("; start it")


def test_a_parameter_that_no_client_takes_is_named_before_anything_is_opened() -> None:
    for make in (connect, connect_blocking):
        with pytest.raises(ConfigurationError, match=r"^REDIS_PARAMS has what .* 'socket_timeuot'$"):
            make(NOWHERE, socket_timeuot=3)


def test_redis_cluster_is_refused_in_a_sentence() -> None:
    moved = redis.exceptions.MovedError("14485 127.0.0.1:7001")
    assert describe_error(moved, "; start it").startswith("Redis Cluster is not supported; set REDIS_URL to ")


def test_sentinel_says_where_the_server_is(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with RedisServer() as server:
        given = tmp_path / "sentinel.conf"
        given.write_text(
            f"port {port}\nbind 127.0.0.1\ndir {tmp_path}\nsentinel monitor mymaster 127.0.0.1 {server.port} 1\n"
        )
        sentinel = subprocess.Popen([executable(), str(given), "--sentinel"], stdout=subprocess.DEVNULL)
        parameters = redis_parameters(
            {"REDIS_PARAMS": f'{{"sentinels": [["127.0.0.1", {port}]], "service_name": "mymaster"}}'}
        )
        try:
            deadline = time.monotonic() + 20
            with closing(connect_blocking("redis://nowhere/3", **parameters)) as client:
                while True:
                    try:
                        client.set("a", "b")
                        break
                    except redis.exceptions.ConnectionError:
                        assert time.monotonic() < deadline
                        time.sleep(0.05)

            async def ask() -> Any:
                async with aclosing(connect("redis://nowhere/3", **parameters)) as client:
                    return await client.get("a")

            assert asyncio.run(ask()) == b"b"
            assert server.client.info("keyspace")["db3"]["keys"] == 1
        finally:
            sentinel.kill()
            sentinel.wait()
