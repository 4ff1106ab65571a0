"""How long a request waits before it is sent again."""

from __future__ import annotations

import asyncio
import random
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.settings import BaseSettings

_MAX_WAIT_SECONDS = 60.0


def backoff_seconds(first: float, retry: int) -> float:
    """Return the seconds before the `retry`-th retry, from 1.

    That is `first`, doubled each time, up to a minute. Up to half of it is taken off at random, so
    that workers that failed together don't retry together.
    """
    full: float = min(first * 2 ** min(retry - 1, 30), _MAX_WAIT_SECONDS)
    return full * random.uniform(0.5, 1)  # noqa: S311 - it is not a secret


async def wait_before(request: Request, settings: BaseSettings) -> None:
    """Wait by RETRY_BACKOFF before a request that `get_retry_request` made.

    Meanwhile the request stays active in the downloader, so that a failing site gets fewer
    requests, and the spider is not idle.
    """
    await asyncio.sleep(
        backoff_seconds(settings.getfloat("RETRY_BACKOFF"), request.meta["retry_times"])
    )
