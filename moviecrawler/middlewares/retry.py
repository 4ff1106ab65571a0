"""Retries, each after a longer wait."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy import Request
from scrapy.downloadermiddlewares.retry import RetryMiddleware

from moviecrawler.politeness.backoff import wait_before

if TYPE_CHECKING:
    from scrapy.http import Response


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
