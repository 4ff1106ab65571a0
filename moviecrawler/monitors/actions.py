"""Spidermon actions for a webhook and for mail.

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
    from collections.abc import Callable

    from scrapy.crawler import Crawler

    from moviecrawler.monitors.notifications import Notification

TIMEOUT_SECONDS = 10.0


class DeliveryError(MovieCrawlerError):
    """A message was not delivered. The error's text holds no secret."""


class OneByOneAction(Action):  # type: ignore[misc]  # Spidermon has no types
    """Sends a message for each notification. When it runs again, it continues with the one that failed."""

    data: Any
    sent = 0
    """Number of notifications that were delivered."""

    def send_all(self, send: Callable[[Notification], object]) -> None:
        """Send the remaining notifications; raise the error of the first that fails."""
        for notification in self.data.notifications[self.sent :]:
            send(notification)
            self.sent += 1


class PostWebhook(OneByOneAction):
    """Posts each notification as JSON to ALARM_WEBHOOK."""

    def __init__(self, url: str) -> None:
        super().__init__()
        self._url = url

    @classmethod
    def from_crawler_kwargs(cls, crawler: Crawler) -> dict[str, Any]:
        """Read ALARM_WEBHOOK."""
        return {"url": crawler.settings["ALARM_WEBHOOK"]}

    def run_action(self) -> None:
        """Post them."""
        self.send_all(self._post)

    def _post(self, notification: Notification) -> None:
        answer = requests.post(self._url, json=notification.as_json(), timeout=TIMEOUT_SECONDS, allow_redirects=False)
        if not 200 <= answer.status_code < 300:  # noqa: PLR2004 - the statuses of success
            raise DeliveryError(f"HTTP status {answer.status_code}")


class SendMail(OneByOneAction):
    """Mails each notification to ALARM_MAIL_TO."""

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
        """Send them over one connection."""
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
            self.send_all(lambda notification: client.send_message(notification.as_mail(self._sender, self._to)))
        except smtplib.SMTPResponseException as error:
            raise DeliveryError(f"SMTP status {error.smtp_code}") from None
        finally:
            with suppress(OSError):  # all errors of smtplib are OSErrors
                client.quit()
