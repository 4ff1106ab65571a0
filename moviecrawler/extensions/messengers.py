"""Sends alerts: to ALERT_WEBHOOK by a POST, and to the services of ALERT_URLS by Apprise.

The URLs hold tokens and passwords. No name, log line or error of this module shows one.
"""

from __future__ import annotations

import logging
import time
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import requests

from moviecrawler.basics.errors import ConfigurationError, MovieCrawlerError

if TYPE_CHECKING:
    from collections.abc import Callable

    from apprise import Apprise

_PAUSE_SECONDS = (0.0, 1.0, 2.0)
"""Seconds before each attempt to post."""
_TIMEOUT_SECONDS = 10.0
_CLIENT_LOGGERS = ("oauthlib", "requests_oauthlib", "urllib3")
"""Loggers of Apprise's and requests' libraries, which log URLs with tokens."""


class NotSentError(MovieCrawlerError):
    """A service did not accept an alert. The error's text holds no secret."""


class Messenger(NamedTuple):
    """Sends alerts to one place."""

    name: str
    """Such as "Slack"."""
    send: Callable[[str, str], None]
    """Sends a title and a text; to be called in a thread. Raises NotSentError, or any error of a
    library, whose text may hold a secret."""


def messengers_of(webhook: str, urls: str) -> list[Messenger]:
    """Return what sends the alerts of a crawl. Nothing is connected.

    Args:
        webhook: ALERT_WEBHOOK.
        urls: ALERT_URLS.

    Raises:
        ConfigurationError: A setting is wrong, or Apprise is not installed.
    """
    messengers = []
    if webhook:
        messengers.append(Messenger("ALERT_WEBHOOK", partial(_post, webhook)))
    for number, url in enumerate(urls.split(), 1):
        client = _apprise_client()
        if not client.add(url):
            raise ConfigurationError(
                f"ALERT_URLS is wrong: Apprise does not accept URL number {number}; "
                "`apprise --dry-run --verbose` with it says why"
            )
        name = ", ".join(str(service.service_name) for service in client)
        messengers.append(Messenger(name, partial(_notify, client)))
    return messengers


def silence_clients() -> None:
    """Have the libraries that send alerts log nothing."""
    for name in _CLIENT_LOGGERS:
        logging.getLogger(name).setLevel(logging.CRITICAL)


def _post(url: str, title: str, text: str) -> None:
    """Post {"text": ...}, which Slack, Mattermost, Teams and ntfy accept; try twice more."""
    why = ""
    for pause in _PAUSE_SECONDS:
        time.sleep(pause)
        body = {"text": f"{title}\n{text}"}
        try:
            response = requests.post(
                url, json=body, timeout=_TIMEOUT_SECONDS, allow_redirects=False
            )
        except requests.RequestException as error:
            why = type(error).__name__
            continue
        if 200 <= response.status_code < 300:  # noqa: PLR2004 - a redirect is not a success
            return
        why = f"HTTP status {response.status_code}"
    raise NotSentError(why)


def _notify(client: Apprise, title: str, text: str) -> None:
    """Send by Apprise, which limits the time of each exchange to a few seconds."""
    if not client.notify(title=title, body=text, notify_type="warning", body_format="text"):
        raise NotSentError("it was not accepted; `apprise --verbose` with the URL says why")


def _apprise_client() -> Apprise:
    """Return a client without a service. It stores nothing, and works in its caller's thread.

    Its own threads would keep the process from ending while a service hangs.
    """
    try:
        # An extra, which takes long to import.
        from apprise import Apprise, AppriseAsset, PersistentStoreMode  # noqa: PLC0415
    except ImportError:
        raise ConfigurationError(
            "ALERT_URLS needs the package apprise; install moviecrawler[alerts]"
        ) from None
    logging.getLogger("apprise").setLevel(logging.CRITICAL)  # it logs parts of URLs
    asset = AppriseAsset(
        app_id="moviecrawler",
        async_mode=False,
        service_timeout=0,
        storage_mode=PersistentStoreMode.MEMORY,
    )
    return Apprise(asset=asset)
