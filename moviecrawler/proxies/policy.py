"""Decides what is a ban, by the two hooks of scrapy-rotating-proxies."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rotating_proxies.policy import BanDetectionPolicy
from scrapy.core.downloader.handlers.http11 import TunnelError
from scrapy.exceptions import (
    CannotResolveHostError,
    DownloadConnectionRefusedError,
    DownloadFailedError,
    DownloadTimeoutError,
    ResponseDataLossError,
)
from scrapy.utils.misc import load_object
from twisted.internet.error import ConnectError, ConnectionDone, ConnectionLost

from moviecrawler.errors import ConfigurationError
from moviecrawler.extract.blocks import USUAL_PAUSE, Refusal
from moviecrawler.middlewares.blocks import refusal_of

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.http import Response
    from scrapy.settings import BaseSettings

_FAILURES: dict[type[Exception], str] = {
    DownloadConnectionRefusedError: "connection refused",
    CannotResolveHostError: "host not found",
    DownloadTimeoutError: "timeout",
    ResponseDataLossError: "answer cut off",
    TunnelError: "no tunnel",
    DownloadFailedError: "connection lost",
    ConnectionLost: "connection lost",
    ConnectionDone: "connection lost",
    ConnectError: "no connection",
    OSError: "connection broken",
}
"""Failures between us and a site, in words of our own, as a proxy's message could hold credentials."""


class SiteBanPolicy(BanDetectionPolicy):  # type: ignore[misc]  # scrapy-rotating-proxies has no types
    """The project's own rules in place of "everything but 200, 301 and 302": see `moviecrawler/extract/blocks.py`.

    A policy of the operator's (PROXY_BAN_POLICY) may subclass this one. `response_is_ban` is asked for every answer that
    came through a proxy, `exception_is_ban` for every request that got none.
    """

    def response_is_ban(self, request: Request, response: Response) -> bool:
        """Return whether an answer is the site's refusal. A missing page, a redirect and a broken server are answers."""
        return self.refusal(request, response) is not None

    def exception_is_ban(self, request: Request, exception: Exception) -> bool:
        """Return whether the proxy may be to blame that there is no answer."""
        return bool(super().exception_is_ban(request, exception)) and isinstance(exception, tuple(_FAILURES))

    def refusal(self, request: Request, response: Response) -> Refusal | None:
        """Return what kind of refusal an answer is, and for how long the site is to be left alone by whoever got it."""
        return refusal_of(request, response)


UNKNOWN_REFUSAL = Refusal("refusal", "the ban policy says so", USUAL_PAUSE)
"""The refusal of an answer that only the operator's own policy calls a ban."""


def load_policy(settings: BaseSettings) -> SiteBanPolicy:
    """Return the policy that PROXY_BAN_POLICY names. Raises ConfigurationError."""
    path = settings["PROXY_BAN_POLICY"]
    try:
        policy = load_object(path)()
    except (ImportError, NameError, ValueError, TypeError) as error:
        raise ConfigurationError(f"PROXY_BAN_POLICY is {path!r}, which can't be loaded: {error}") from None
    if not isinstance(policy, SiteBanPolicy):
        raise ConfigurationError(f"PROXY_BAN_POLICY is {path!r}; name a subclass of {__name__}.SiteBanPolicy")
    return policy


def describe_failure(exception: Exception) -> str:
    """Return in a few words why there was no answer."""
    why = next((words for kind, words in _FAILURES.items() if isinstance(exception, kind)), type(exception).__name__)
    status = tunnel_status(exception)
    return f"{why} ({status})" if status else why


def tunnel_status(exception: Exception) -> int | None:
    """Return the status with which a proxy refused to open a tunnel."""
    if not isinstance(exception, TunnelError):
        return None
    # Scrapy has it in the message only.
    _, found, rest = str(exception).partition("'status': ")
    digits = rest[:3]
    return int(digits) if found and digits.isascii() and digits.isdigit() else None
