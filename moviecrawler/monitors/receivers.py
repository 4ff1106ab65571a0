"""Who is notified of alarms, and by which action: Spidermon's or this project's."""

from __future__ import annotations

from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import unquote

from moviecrawler.errors import ConfigurationError
from moviecrawler.option_types import split_url

if TYPE_CHECKING:
    from typing import Self

    from scrapy.settings import BaseSettings

_SMTP_PORTS = {"smtp": 587, "smtps": 465}
_TEXT = "{{ data.text }}"
_MARKDOWN = r"{{ data.text | replace('_', '\\_') | replace('*', '\\*') | replace('[', '\\[') | replace('`', '\\`') | urlencode }}"
"""Telegram reads Markdown, from a URL that Spidermon does not escape."""


class Receiver(NamedTuple):
    """A way to notify people."""

    setting: str
    """The setting that switches it on."""
    action: str
    """The path of its class."""
    further: tuple[str, ...] = ()
    """Other settings that it needs."""
    packages: tuple[str, ...] = ()
    """Packages that it imports, which the extra `alarms` installs."""
    arguments: tuple[tuple[str, object], ...] = ()
    """Further arguments of the action's class."""


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
    """Whether the connection begins with TLS; otherwise STARTTLS is used where the server offers it."""
    user: str | None = None
    password: str | None = field(default=None, repr=False)

    @classmethod
    def from_url(cls, url: str) -> Self:
        """Read ALARM_SMTP_URL. Raises ConfigurationError, whose text does not repeat the URL."""
        parts = split_url(url)
        if parts is None or parts.scheme not in _SMTP_PORTS or not parts.hostname:
            raise ConfigurationError(
                "ALARM_SMTP_URL is not of the form smtp://user:password@host:587; use smtps:// for TLS from the start, and "
                "write signs such as @ and / in a password as %40 and %2F"
            )
        return cls(
            host=parts.hostname,
            port=parts.port or _SMTP_PORTS[parts.scheme],
            is_tls=parts.scheme == "smtps",
            user=unquote(parts.username) if parts.username else None,
            password=unquote(parts.password) if parts.password else None,
        )


def read_receivers(settings: BaseSettings) -> list[Receiver]:
    """Return the receivers that are switched on. Raises ConfigurationError, whose text repeats neither a URL nor a password."""
    receivers = [receiver for receiver in RECEIVERS if settings.get(receiver.setting)]
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
    return receivers
