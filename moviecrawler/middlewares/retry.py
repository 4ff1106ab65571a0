"""Trying again, later each time."""

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass
from typing import TYPE_CHECKING

from scrapy import Request
from scrapy.downloadermiddlewares.retry import RetryMiddleware
from scrapy.http.request import NO_CALLBACK

from moviecrawler.frontier.engine import is_closing

if TYPE_CHECKING:
    from typing import Self

    from scrapy.http import Response
    from scrapy.settings import BaseSettings


@dataclass(frozen=True, slots=True)
class Backoff:
    """How long to wait before a retry."""

    first: float
    """Seconds before the first retry."""
    longest: float
    """Seconds that the wait, doubled each time, does not go beyond."""

    @classmethod
    def from_settings(cls, settings: BaseSettings) -> Self:
        """Read RETRY_BACKOFF and RETRY_BACKOFF_MAX."""
        return cls(settings.getfloat("RETRY_BACKOFF"), settings.getfloat("RETRY_BACKOFF_MAX"))

    def seconds(self, retry: int) -> float:
        """Return the wait before the `retry`-th retry, counted from 1.

        Half of it is certain and half is drawn at random, so that many workers that failed together don't come back
        together.
        """
        full: float = min(self.first * 2 ** min(retry - 1, 30), self.longest)
        return full * random.uniform(0.5, 1)  # noqa: S311 - nothing is to be kept secret

    async def wait(self, request: Request) -> None:
        """Wait before a request that `get_retry_request` made.

        The wait keeps the request's place in the downloader, so that a site in trouble is asked less as a whole, and the
        spider is not taken for idle.
        """
        await asyncio.sleep(self.seconds(request.meta["retry_times"]))


class BackoffRetryMiddleware(RetryMiddleware):
    """Scrapy's middleware, with a wait before each retry."""

    def __init__(self, settings: BaseSettings) -> None:
        super().__init__(settings)
        self.backoff = Backoff.from_settings(settings)

    async def process_response(  # type: ignore[override]
        self, request: Request, response: Response
    ) -> Request | Response:
        """Return the response, or after a wait the request again when its status is one of RETRY_HTTP_CODES."""
        if self._is_unwanted(request):
            return response
        result = super().process_response(request, response)
        if isinstance(result, Request):
            await self.backoff.wait(result)
        return result

    async def process_exception(  # type: ignore[override]
        self, request: Request, exception: Exception
    ) -> Request | Response | None:
        """Return, after a wait, the request again when the exception is one of RETRY_EXCEPTIONS, else None."""
        if self._is_unwanted(request):
            return None
        result = super().process_exception(request, exception)
        if isinstance(result, Request):
            await self.backoff.wait(result)
        return result

    def _is_unwanted(self, request: Request) -> bool:
        """Return whether it is for a part of a file, and the crawl ends, which waits for it: such a retry doesn't go to the queue."""
        is_part = request.callback is NO_CALLBACK and request.meta.get("expects") == "other"
        return is_part and is_closing(self.crawler.engine)
