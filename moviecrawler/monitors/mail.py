"""Sends Spidermon's mail in the monitors' thread.

Spidermon's SendSmtpEmail needs the event loop, and scrapy.mail, which is deprecated.
"""

from __future__ import annotations

import smtplib
import ssl
from typing import TYPE_CHECKING, Any

from spidermon.contrib.actions.email import SendEmail

if TYPE_CHECKING:
    from email.message import Message

    from scrapy.crawler import Crawler
    from scrapy.settings import BaseSettings

_TIMEOUT_SECONDS = 10.0
_PORT = 25


class SendMail(SendEmail):  # type: ignore[misc]  # Spidermon has no types
    """Sends mail by the settings SPIDERMON_EMAIL_* and SPIDERMON_SMTP_*."""

    def __init__(self, settings: BaseSettings, **arguments: Any) -> None:
        super().__init__(**arguments)
        self._settings = settings

    @classmethod
    def from_crawler_kwargs(cls, crawler: Crawler) -> dict[str, Any]:
        """Read Spidermon's settings."""
        return {**super().from_crawler_kwargs(crawler), "settings": crawler.settings}

    def get_body_html(self) -> str:
        """Return no HTML: Spidermon's report fails on a crawl that could not begin."""
        return ""

    def send_message(self, message: Message, **_: Any) -> None:
        """Send the message."""
        settings = self._settings
        host = settings["SPIDERMON_SMTP_HOST"]
        port = settings.getint("SPIDERMON_SMTP_PORT") or _PORT
        if settings.getbool("SPIDERMON_SMTP_ENFORCE_SSL"):
            server: smtplib.SMTP = smtplib.SMTP_SSL(
                host, port, timeout=_TIMEOUT_SECONDS, context=ssl.create_default_context()
            )
        else:
            server = smtplib.SMTP(host, port, timeout=_TIMEOUT_SECONDS)
        with server:
            if settings.getbool("SPIDERMON_SMTP_ENFORCE_TLS"):
                server.starttls(context=ssl.create_default_context())
            if user := settings["SPIDERMON_SMTP_USER"]:
                server.login(user, settings["SPIDERMON_SMTP_PASSWORD"])
            server.send_message(message)
