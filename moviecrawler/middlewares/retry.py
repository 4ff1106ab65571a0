"""Retries, each after a longer wait."""

from __future__ import annotations

import asyncio
import random
from typing import TYPE_CHECKING

from scrapy import Request
from scrapy.downloadermiddlewares.retry import RetryMiddleware

if TYPE_CHECKING:
    from scrapy.http import Response
    from scrapy.settings import BaseSettings

_MAX_WAIT_SECONDS = 60.0


def backoff_seconds(first: float, retry: int) -> float:
    """Return the seconds before the `retry`-th retry, from 1.

    That is `first`, doubled each time, up to a minute. Up to half of it is taken off at random, so
    that workers that failed together don't retry together.
    """
    full: float = min(first * 2 ** min(retry - 1, 30), _MAX_WAIT_SECONDS)
    return full * random.uniform(0.5, 1)  # noqa: S311 - it is no secret


async def wait_before(request: Request, settings: BaseSettings) -> None:
    """Wait by RETRY_BACKOFF before a request that `get_retry_request` made.

    Meanwhile the request stays active in the downloader, so that a failing site gets fewer
    requests, and the spider is not idle.
    """
    await asyncio.sleep(
        backoff_seconds(settings.getfloat("RETRY_BACKOFF"), request.meta["retry_times"])
    )


class BackoffRetryMiddleware(RetryMiddleware):
    """Scrapy's middleware, with a wait before each retry."""

    async def process_response(  # type: ignore[override]
        self, request: Request, response: Response
    ) -> Request | Response:
        """Return the response.

        When the status is one of RETRY_HTTP_CODES, returns the request, after a wait.
        """
        result = super().process_response(request, response)
        if isinstance(result, Request):
            await wait_before(result, self.crawler.settings)
        return result

    async def process_exception(  # type: ignore[override]
        self, request: Request, exception: Exception
    ) -> Request | Response | None:
        """Return the request, after a wait, when the exception is to be retried, else None.

        RETRY_EXCEPTIONS lists these.
        """
        result = super().process_exception(request, exception)
        if isinstance(result, Request):
            await wait_before(result, self.crawler.settings)
        return result
