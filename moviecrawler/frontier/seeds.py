"""Seeds: titles that other programs push to a key of the site, as scrapy-redis' users do; `take.lua` moves them to the queue."""

from __future__ import annotations

from typing import Any


async def push_seed(client: Any, key: str, seed: bytes) -> None:
    """Add a seed to a site's key, of whatever type it is."""
    kind = (await client.type(key)).decode()
    if kind == "set":
        await client.sadd(key, seed)
    elif kind == "zset":
        await client.zadd(key, {seed: 0})
    else:
        await client.rpush(key, seed)


async def count_seeds(client: Any, key: str) -> int:
    """Return how many seeds wait under a key, of whatever type it is; 0 for a type that seeds are not taken from."""
    kind = (await client.type(key)).decode()
    count = {"list": client.llen, "set": client.scard, "zset": client.zcard}.get(kind)
    return 0 if count is None else int(await count(key))
