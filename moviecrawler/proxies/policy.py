"""The ban policy, with the two methods of scrapy-rotating-proxies."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rotating_proxies.policy import BanDetectionPolicy
from scrapy.exceptions import CannotResolveHostError, DownloadConnectionRefusedError
from scrapy.settings import Settings
from scrapy.utils.misc import load_object

from moviecrawler.politeness.middleware import refusal_of
from moviecrawler.scrapy_internals import tunnel_status

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.http import Response

_NETWORK_ERRORS = tuple(map(load_object, Settings().getlist("RETRY_EXCEPTIONS")))
"""Errors of the connection to a site."""


# Scrapy-rotating-proxies has no types.
class SiteBanPolicy(BanDetectionPolicy):  # type: ignore[misc]
    """Take the signs in `politeness/blocks.py` for a ban.

    The package takes every status but 200, 301 and 302 for one.
    """

    def response_is_ban(self, request: Request, response: Response) -> bool:
        """Return whether a response is a refusal or an unexpected page.

        A 404, a redirect and a server error are not.
        """
        return refusal_of(request, response) is not None

    def exception_is_ban(
        self,
        request: Request,  # noqa: ARG002 - the package's own signature
        exception: Exception,
    ) -> bool:
        """Return whether the proxy may be the reason why there is no response."""
        return isinstance(exception, _NETWORK_ERRORS)


def describe_failure(exception: Exception) -> str:
    """Return why there was no response, without the message, which may contain credentials."""
    status = tunnel_status(exception)
    return f"{type(exception).__name__} ({status})" if status else type(exception).__name__


def is_proxys_own(exception: Exception) -> bool:
    """Return whether the proxy is certainly to blame.

    It is when it can't be reached, or requires other credentials.
    """
    refused = isinstance(exception, DownloadConnectionRefusedError | CannotResolveHostError)
    return refused or tunnel_status(exception) == "407"
