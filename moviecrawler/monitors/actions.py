"""Spidermon actions that notify people: by a webhook, and by mail.

Spidermon has actions for Slack, Telegram, Discord and Sentry. Its action for mail needs `scrapy.mail`, which is deprecated, and
sends passwords without TLS.
"""

from __future__ import annotations

import smtplib
import ssl
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import requests
from spidermon.core.actions import Action

from moviecrawler.errors import MovieCrawlerError
from moviecrawler.monitors.receivers import MailServer

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

TIMEOUT_SECONDS = 10.0
_OK = 200


class DeliveryError(MovieCrawlerError):
    """A message was not delivered. The text holds no secret."""


class PostWebhook(Action):  # type: ignore[misc]  # Spidermon has no types
    """Posts each notification as JSON to ALARM_WEBHOOK."""

    data: Any

    def __init__(self, url: str) -> None:
        super().__init__()
        self._url = url

    @classmethod
    def from_crawler_kwargs(cls, crawler: Crawler) -> dict[str, Any]:
        """Read ALARM_WEBHOOK."""
        return {"url": crawler.settings["ALARM_WEBHOOK"]}

    def run_action(self) -> None:
        """Post all; raise for the first that was not taken."""
        for one in self.data.notifications:
            answer = requests.post(self._url, json=one.as_json(), timeout=TIMEOUT_SECONDS, allow_redirects=False)
            if answer.status_code // 100 * 100 != _OK:
                raise DeliveryError(f"HTTP status {answer.status_code}")


class SendMail(Action):  # type: ignore[misc]  # Spidermon has no types
    """Mails each notification to ALARM_MAIL_TO."""

    data: Any

    def __init__(self, server: MailServer, sender: str, to: list[str]) -> None:
        super().__init__()
        self._server, self._sender, self._to = server, sender, to

    @classmethod
    def from_crawler_kwargs(cls, crawler: Crawler) -> dict[str, Any]:
        """Read ALARM_SMTP_URL, ALARM_MAIL_FROM and ALARM_MAIL_TO."""
        settings = crawler.settings
        server = MailServer.from_url(settings["ALARM_SMTP_URL"])
        return {"server": server, "sender": settings["ALARM_MAIL_FROM"], "to": settings.getlist("ALARM_MAIL_TO")}

    def run_action(self) -> None:
        """Send all; raise for the first that was not taken."""
        server, context = self._server, ssl.create_default_context()
        client = (
            smtplib.SMTP_SSL(server.host, server.port, timeout=TIMEOUT_SECONDS, context=context)
            if server.is_tls
            else smtplib.SMTP(server.host, server.port, timeout=TIMEOUT_SECONDS)
        )
        try:
            if not server.is_tls:
                client.ehlo()
                if client.has_extn("starttls"):
                    client.starttls(context=context)
                elif server.password and server.host not in {"localhost", "127.0.0.1", "::1"}:
                    raise DeliveryError("the mail server offers no TLS, so that no password is sent to it")
            if server.user and server.password:
                client.login(server.user, server.password)
            for one in self.data.notifications:
                client.send_message(one.as_mail(self._sender, self._to))
        except smtplib.SMTPResponseException as error:
            raise DeliveryError(f"SMTP status {error.smtp_code}") from None
        finally:
            with suppress(OSError):  # as all of SMTP's are
                client.quit()
