"""What is an alarm, and who is told."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from moviecrawler.errors import ConfigurationError

if TYPE_CHECKING:
    from typing import Self

    from scrapy.settings import BaseSettings

_SMTP_PORTS = {"smtp": 587, "smtps": 465}


@dataclass(frozen=True, slots=True, kw_only=True)
class MailServer:
    """A server that takes mail."""

    host: str
    port: int
    is_tls: bool
    """From the first byte on; otherwise from STARTTLS on, where the server offers it."""
    user: str | None = None
    password: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class AlarmOptions:
    """The settings ALARM_… and COVERAGE_STOP."""

    every: float = 30.0
    """Seconds between two looks."""
    reminder: float = 21_600.0
    """Seconds between two messages about an alarm that stands."""
    stalled: float = 900.0
    """Seconds without any answer, while there is something to ask for, that are an alarm."""
    extraction_errors: float = 0.05
    """Share of pages that may be unreadable."""
    blocks: float = 0.05
    """Share of answers that may be refusals."""
    freshness: float = 0.9
    """Share of the titles fetched before that must not be overdue; 0 for no such alarm."""
    stops: bool = True
    """Whether a crawl ends when no page can be read any more, or none has a score's place."""
    webhook: str = field(default="", repr=False)
    mail_server: MailServer | None = None
    mail_from: str = ""
    mail_to: tuple[str, ...] = ()

    @classmethod
    def from_settings(cls, settings: BaseSettings) -> Self:
        """Read the settings. Raises ConfigurationError, which repeats neither a URL nor a password."""
        number = partial(_number, settings)
        webhook = settings.get("ALARM_WEBHOOK") or ""
        if webhook and (urlsplit(webhook).scheme not in {"http", "https"} or not urlsplit(webhook).hostname):
            raise ConfigurationError("ALARM_WEBHOOK is no http or https URL; set it to one, or remove it")
        to = tuple(settings.getlist("ALARM_MAIL_TO"))
        for address in (*to, *([settings["ALARM_MAIL_FROM"]] if settings.get("ALARM_MAIL_FROM") else [])):
            if "@" not in address.strip("@") or not address.isprintable() or " " in address:
                raise ConfigurationError(f"{address!r} in ALARM_MAIL_TO or ALARM_MAIL_FROM is no address")
        if to and not (settings.get("ALARM_SMTP_URL") and settings.get("ALARM_MAIL_FROM")):
            raise ConfigurationError("ALARM_MAIL_TO is set; set ALARM_SMTP_URL and ALARM_MAIL_FROM as well")
        return cls(
            every=number("ALARM_EVERY", 0.05, 3600),
            reminder=number("ALARM_REMINDER", 1, 1e7),
            stalled=number("ALARM_STALLED", 0.1, 1e6),
            extraction_errors=number("ALARM_EXTRACTION_ERRORS", 0, 1),
            blocks=number("ALARM_BLOCKS", 0, 1),
            freshness=number("ALARM_FRESHNESS", 0, 1),
            stops=settings.getbool("COVERAGE_STOP"),
            webhook=webhook,
            mail_server=_mail_server(settings["ALARM_SMTP_URL"]) if to else None,
            mail_from=settings.get("ALARM_MAIL_FROM") or "",
            mail_to=to,
        )


def _number(settings: BaseSettings, name: str, least: float, most: float) -> float:
    try:
        value = float(settings[name])
    except (TypeError, ValueError):
        value = float("nan")
    if not least <= value <= most:
        raise ConfigurationError(f"{name} is {settings[name]!r}; set it to a number from {least:g} to {most:g}")
    return value


def _mail_server(url: str) -> MailServer:
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        parts, port = urlsplit(""), None
    if parts.scheme not in _SMTP_PORTS or not parts.hostname:
        raise ConfigurationError(
            "ALARM_SMTP_URL is not of the form smtp://user:password@host:587; use smtps:// for TLS from the start, and write "
            "signs such as @ and / in a password as %40 and %2F"
        )
    return MailServer(
        host=parts.hostname,
        port=port or _SMTP_PORTS[parts.scheme],
        is_tls=parts.scheme == "smtps",
        user=unquote(parts.username) if parts.username else None,
        password=unquote(parts.password) if parts.password else None,
    )
