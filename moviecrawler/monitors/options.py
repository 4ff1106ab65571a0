"""What is an alarm, and who is notified."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import unquote, urlsplit

from moviecrawler.errors import ConfigurationError
from moviecrawler.option_types import is_http_url

if TYPE_CHECKING:
    from typing import Self

    from scrapy.settings import BaseSettings

_SMTP_PORTS = {"smtp": 587, "smtps": 465}
_TEXT = "{{ data.text }}"
_MARKDOWN = r"{{ data.text | replace('_', '\\_') | replace('*', '\\*') | replace('[', '\\[') | replace('`', '\\`') | urlencode }}"
"""Telegram reads Markdown, from a URL that Spidermon does not escape."""


class Receiver(NamedTuple):
    """A way to notify people: one of Spidermon's actions, or of ours."""

    setting: str
    """The setting that switches it on."""
    action: str
    """The path of its class."""
    further: tuple[str, ...] = ()
    """Settings that it needs beside."""
    packages: tuple[str, ...] = ()
    """Packages that it imports, which the extra `alarms` installs."""
    arguments: tuple[tuple[str, object], ...] = ()
    """What the action is made with beside its settings."""


RECEIVERS = (
    Receiver("ALARM_WEBHOOK", "moviecrawler.monitors.actions.PostWebhook"),
    Receiver("ALARM_MAIL_TO", "moviecrawler.monitors.actions.SendMail", ("ALARM_SMTP_URL", "ALARM_MAIL_FROM")),
    Receiver(
        "SPIDERMON_SLACK_RECIPIENTS",
        "spidermon.contrib.actions.slack.SendSlackMessage",
        ("SPIDERMON_SLACK_SENDER_TOKEN", "SPIDERMON_SLACK_SENDER_NAME"),
        ("slack_sdk", "jinja2"),
        (("message", _TEXT), ("include_attachments", False)),
    ),
    Receiver(
        "SPIDERMON_TELEGRAM_RECIPIENTS",
        "spidermon.contrib.actions.telegram.SendTelegramMessage",
        ("SPIDERMON_TELEGRAM_SENDER_TOKEN",),
        ("jinja2",),
        (("message", _MARKDOWN),),
    ),
    Receiver(
        "SPIDERMON_DISCORD_WEBHOOK_URL",
        "spidermon.contrib.actions.discord.SendDiscordMessage",
        packages=("jinja2",),
        arguments=(("message", _TEXT),),
    ),
    Receiver(
        "SPIDERMON_SENTRY_DSN",
        "spidermon.contrib.actions.sentry.SendSentryMessage",
        ("SPIDERMON_SENTRY_PROJECT_NAME", "SPIDERMON_SENTRY_ENVIRONMENT_TYPE"),
        ("sentry_sdk",),
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class MailServer:
    """A server that takes mail."""

    host: str
    port: int
    is_tls: bool
    """From the first byte on; otherwise from STARTTLS on, where the server offers it."""
    user: str | None = None
    password: str | None = field(default=None, repr=False)

    @classmethod
    def from_url(cls, url: str) -> Self:
        """Read ALARM_SMTP_URL. Raises ConfigurationError, which does not repeat it."""
        try:
            parts = urlsplit(url)
            port = parts.port
        except ValueError:
            parts, port = urlsplit(""), None
        if parts.scheme not in _SMTP_PORTS or not parts.hostname:
            raise ConfigurationError(
                "ALARM_SMTP_URL is not of the form smtp://user:password@host:587; use smtps:// for TLS from the start, and "
                "write signs such as @ and / in a password as %40 and %2F"
            )
        return cls(
            host=parts.hostname,
            port=port or _SMTP_PORTS[parts.scheme],
            is_tls=parts.scheme == "smtps",
            user=unquote(parts.username) if parts.username else None,
            password=unquote(parts.password) if parts.password else None,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class AlarmOptions:
    """The settings ALARM_…, COVERAGE_STOP, and those of Spidermon's actions."""

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
    receivers: tuple[Receiver, ...] = ()
    """Those that are switched on."""

    @classmethod
    def from_settings(cls, settings: BaseSettings) -> Self:
        """Read the settings. Raises ConfigurationError, which repeats neither a URL nor a password."""
        number = partial(_number, settings)
        for name in ("ALARM_WEBHOOK", "SPIDERMON_DISCORD_WEBHOOK_URL"):
            if settings.get(name) and not is_http_url(settings[name]):
                raise ConfigurationError(f"{name} is no http or https URL; set it to one, or remove it")
        receivers = tuple(receiver for receiver in RECEIVERS if settings.get(receiver.setting))
        for receiver in receivers:
            missing = [name for name in receiver.further if not settings.get(name)]
            if missing:
                raise ConfigurationError(f"{receiver.setting} is set; set {' and '.join(missing)} as well")
            if not all(map(find_spec, receiver.packages)):
                raise ConfigurationError(
                    f"{receiver.setting} needs the packages {', '.join(receiver.packages)}; install moviecrawler[alarms]"
                )
        if settings.get("ALARM_MAIL_TO"):
            MailServer.from_url(settings["ALARM_SMTP_URL"])
            for address in (*settings.getlist("ALARM_MAIL_TO"), settings["ALARM_MAIL_FROM"]):
                if "@" not in address.strip("@") or not address.isprintable() or " " in address:
                    raise ConfigurationError(f"{address!r} in ALARM_MAIL_TO or ALARM_MAIL_FROM is no address")
        return cls(
            every=number("ALARM_EVERY", 0.05, 3600),
            reminder=number("ALARM_REMINDER", 1, 1e7),
            stalled=number("ALARM_STALLED", 0.1, 1e6),
            extraction_errors=number("ALARM_EXTRACTION_ERRORS", 0, 1),
            blocks=number("ALARM_BLOCKS", 0, 1),
            freshness=number("ALARM_FRESHNESS", 0, 1),
            stops=settings.getbool("COVERAGE_STOP"),
            receivers=receivers,
        )


def _number(settings: BaseSettings, name: str, least: float, most: float) -> float:
    try:
        value = float(settings[name])
    except (TypeError, ValueError):
        value = float("nan")
    if not least <= value <= most:
        raise ConfigurationError(f"{name} is {settings[name]!r}; set it to a number from {least:g} to {most:g}")
    return value
