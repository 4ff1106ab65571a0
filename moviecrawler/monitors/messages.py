"""Telling people of alarms: to the log, a webhook and by e-mail, with time-outs, and never in the event loop's way."""

from __future__ import annotations

import asyncio
import logging
import ssl
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from email.message import EmailMessage
from email.utils import format_datetime, make_msgid
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from moviecrawler.monitors.books import Alarm
    from moviecrawler.monitors.options import AlarmOptions, MailServer

logger = logging.getLogger(__name__)

Status = Literal["opened", "reminder", "recovered"]

_WITHIN = 10.0  # seconds, of one try
_TRIES = 3
_PAUSE = 1.0  # seconds before the second try; doubled
_WENT_WELL = 300
_LEVELS = {"opened": logging.ERROR, "reminder": logging.ERROR, "recovered": logging.INFO}
_WORDS = {"opened": "Alarm", "reminder": "Alarm still stands", "recovered": "Recovered, and no longer true"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """What is told of an alarm."""

    status: Status
    alarm: Alarm
    at: datetime
    node: str

    @property
    def subject(self) -> str:
        """One line without what it is about in detail."""
        return f"moviecrawler: {_WORDS[self.status]}: {self.alarm.name}"

    @property
    def text(self) -> str:
        """One sentence."""
        since = datetime.fromtimestamp(self.alarm.since, UTC)
        told = f"{_WORDS[self.status]}: {self.alarm.name}: {self.alarm.text}"
        return told if self.status == "opened" else f"{told} (since {since:%Y-%m-%d %H:%M} UTC)"

    def as_json(self) -> dict[str, str]:
        """Return what a webhook is sent. Chat programs show `text`."""
        return {
            "text": self.text,
            "status": self.status,
            "alarm": self.alarm.name,
            "kind": self.alarm.kind,
            "site": self.alarm.site,
            "since": datetime.fromtimestamp(self.alarm.since, UTC).isoformat(timespec="seconds"),
            "at": self.at.isoformat(timespec="seconds"),
            "node": self.node,
        }

    def as_mail(self, sender: str, to: tuple[str, ...]) -> EmailMessage:
        """Return it as a mail."""
        mail = EmailMessage()
        mail["Subject"] = self.subject
        mail["From"] = sender
        mail["To"] = ", ".join(to)
        mail["Date"] = format_datetime(self.at)
        mail["Message-ID"] = make_msgid(domain=sender.rpartition("@")[2])
        since = datetime.fromtimestamp(self.alarm.since, UTC)
        mail.set_content(
            f"{self.text}\n\nStands since {since:%Y-%m-%d %H:%M} UTC; told by {self.node} at {self.at:%Y-%m-%d %H:%M} UTC.\n"
        )
        return mail


class Messenger:
    """Delivers messages to everyone whom the settings name."""

    def __init__(self, options: AlarmOptions, pause: float = _PAUSE) -> None:
        self._options = options
        self._pause = pause

    async def deliver(self, message: Message) -> bool:
        """Log a message, and send it; return whether everyone, or nobody but the log, got it. Raises nothing."""
        logger.log(_LEVELS[message.status], "%s", message.text)
        ways = []
        if self._options.webhook:
            ways.append(self._persist("ALARM_WEBHOOK", self._post, message))
        if self._options.mail_server is not None and self._options.mail_to:
            ways.append(self._persist("ALARM_SMTP_URL", self._mail, message))
        return all(await asyncio.gather(*ways))

    async def _persist(self, name: str, send: object, message: Message) -> bool:
        import aiohttp  # noqa: PLC0415 - a crawl that tells nobody but its log does without it

        reason = ""
        for attempt in range(_TRIES):
            if attempt:
                await asyncio.sleep(self._pause * 2 ** (attempt - 1))
            try:
                await send(message)  # type: ignore[operator]
            except (aiohttp.ClientError, OSError, ValueError) as error:  # those of SMTP and of time are OSErrors
                # What libraries say may repeat a URL with a token, or what a server says of a user.
                reason = _reason(error)
            else:
                return True
        logger.warning(
            "Alarm %s could not be sent to %s (%s), and will be tried again", message.alarm.name, name, reason
        )
        return False

    async def _post(self, message: Message) -> None:
        import aiohttp  # noqa: PLC0415 - as above

        async with (
            aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=_WITHIN)) as session,
            session.post(self._options.webhook, json=message.as_json(), allow_redirects=False) as answer,
        ):
            if answer.status >= _WENT_WELL:
                raise _RefusedError(answer.status)

    async def _mail(self, message: Message) -> None:
        assert self._options.mail_server is not None  # noqa: S101 - else it isn't called
        mail = message.as_mail(self._options.mail_from, self._options.mail_to)
        # In a thread, which ends by its own time-outs.
        await asyncio.to_thread(_send, self._options.mail_server, mail)


class _RefusedError(OSError):
    def __init__(self, status: int) -> None:
        super().__init__(f"HTTP status {status}")


def _reason(error: Exception) -> str:
    if isinstance(error, _RefusedError):
        return str(error)
    smtp_code = getattr(error, "smtp_code", None)
    return type(error).__name__ if smtp_code is None else f"SMTP status {smtp_code}"


def _send(server: MailServer, mail: EmailMessage) -> None:
    import smtplib  # noqa: PLC0415 - only mails need it

    context = ssl.create_default_context()
    client = (
        smtplib.SMTP_SSL(server.host, server.port, timeout=_WITHIN, context=context)
        if server.is_tls
        else smtplib.SMTP(server.host, server.port, timeout=_WITHIN)
    )
    try:
        if not server.is_tls:
            client.ehlo()
            if client.has_extn("starttls"):
                client.starttls(context=context)
            elif server.password and server.host not in {"localhost", "127.0.0.1", "::1"}:
                raise smtplib.SMTPNotSupportedError("a password is not sent without TLS")
        if server.user and server.password:
            client.login(server.user, server.password)
        client.send_message(mail)
    finally:
        with suppress(OSError):  # as all of SMTP's are
            client.quit()
