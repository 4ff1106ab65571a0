"""Counting pages that made a process hang; the node that killed the process calls this."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

from moviecrawler.redis_client import connect

if TYPE_CHECKING:
    from collections.abc import Mapping

    from moviecrawler.frontier.keys import Keys

_KEPT = 14 * 24 * 3600
"""Seconds. Each exchange of a worker sets this anew."""


def count_hang(url: str, parameters: Mapping[str, Any], keys: Keys, lease: str) -> int:
    """Count one more hang of a request of a run; return how many it has. Call it from a thread.

    `url` and `parameters` are REDIS_URL and REDIS_PARAMS. Raises redis.RedisError.
    """

    async def count() -> int:
        async with aclosing(connect(url, **parameters)) as client:
            times = int(await client.hincrby(keys.hangs, lease, 1))
            await client.expire(keys.hangs, _KEPT)
            return times

    return asyncio.run(count())
