"""Decides what is a ban, by the two hooks of scrapy-rotating-proxies."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rotating_proxies.policy import BanDetectionPolicy
from scrapy.core.downloader.handlers.http11 import TunnelError
from scrapy.exceptions import CannotResolveHostError, DownloadConnectionRefusedError
from scrapy.settings.default_settings import RETRY_EXCEPTIONS
from scrapy.utils.misc import load_object

from moviecrawler.errors import ConfigurationError
from moviecrawler.middlewares.blocks import refusal_of

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.http import Response
    from scrapy.settings import BaseSettings

_RETRY_EXCEPTIONS: Any = RETRY_EXCEPTIONS  # classes and their paths
_NETWORK_ERRORS = tuple(map(load_object, _RETRY_EXCEPTIONS))  # between us and a site


class SiteBanPolicy(BanDetectionPolicy):  # type: ignore[misc]  # scrapy-rotating-proxies has no types
    """The signs in `extract/blocks.py`, in place of "everything but 200, 301 and 302".

    ROTATING_PROXY_BAN_POLICY may name another class with these two methods, such as a subclass.
    """

    def response_is_ban(self, request: Request, response: Response) -> bool:
        """Return whether an answer is a refusal or an unexpected page. A missing page, a redirect and a broken server are answers."""
        return refusal_of(request, response) is not None

    def exception_is_ban(self, request: Request, exception: Exception) -> bool:
        """Return whether the proxy may be to blame that there is no answer."""
        return bool(super().exception_is_ban(request, exception)) and isinstance(exception, _NETWORK_ERRORS)


def load_policy(settings: BaseSettings) -> Any:
    """Return the policy that ROTATING_PROXY_BAN_POLICY names. Raises ConfigurationError."""
    path = settings["ROTATING_PROXY_BAN_POLICY"]
    try:
        policy = load_object(path)()
        _ = policy.response_is_ban, policy.exception_is_ban
    except (ImportError, NameError, ValueError, TypeError, AttributeError) as error:
        raise ConfigurationError(f"ROTATING_PROXY_BAN_POLICY is {path!r}, which is no ban policy: {error}") from None
    return policy


def describe_failure(exception: Exception) -> str:
    """Return why there was no answer, without the message, in which a proxy could have put credentials."""
    status = _tunnel_status(exception)
    return f"{type(exception).__name__} ({status})" if status else type(exception).__name__


def is_proxys_own(exception: Exception) -> bool:
    """Return whether a failure is certainly that of the proxy: it is not there, or wants other credentials."""
    refused = isinstance(exception, DownloadConnectionRefusedError | CannotResolveHostError)
    return refused or _tunnel_status(exception) == "407"


def _tunnel_status(exception: Exception) -> str:
    """Return the status with which a proxy refused to open a tunnel, which Scrapy has in the message only."""
    if not isinstance(exception, TunnelError):
        return ""
    status = str(exception).partition("'status': ")[2][:3]
    return status if status.isascii() and status.isdigit() else ""
