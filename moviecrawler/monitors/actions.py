"""Lists the actions that report failed monitors: Spidermon's own, and one that posts to a webhook.

Each works as Spidermon's documentation says, by Spidermon's own settings.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, NamedTuple

from moviecrawler.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Mapping

_TEXT = "{{ data.meta.text }}"
_MARKDOWN = (
    r"{{ data.meta.text | replace('_', '\\_') | replace('*', '\\*') | replace('[', '\\[')"
    r" | replace('`', '\\`') | urlencode }}"
)
"""Telegram reads Markdown, from a URL that Spidermon does not escape."""


class ActionChoice(NamedTuple):
    """An action, and the setting that switches it on."""

    setting: str
    path: str
    """The import path of the action's class."""
    needs: tuple[str, ...] = ()
    """Further settings that it requires."""
    packages: tuple[str, ...] = ()
    """Packages that it imports, which the extra `alerts` installs."""
    arguments: tuple[tuple[str, object], ...] = ()
    """Arguments of its class for which Spidermon has no setting."""


ACTIONS = (
    ActionChoice("ALERT_WEBHOOK", "moviecrawler.monitors.suite.PostWebhook"),
    ActionChoice(
        "SPIDERMON_SLACK_RECIPIENTS",
        "spidermon.contrib.actions.slack.SendSlackMessage",
        ("SPIDERMON_SLACK_SENDER_TOKEN", "SPIDERMON_SLACK_SENDER_NAME"),
        ("slack_sdk", "jinja2"),
        (("message", _TEXT), ("include_attachments", False)),
    ),
    ActionChoice(
        "SPIDERMON_TELEGRAM_RECIPIENTS",
        "spidermon.contrib.actions.telegram.SendTelegramMessage",
        ("SPIDERMON_TELEGRAM_SENDER_TOKEN",),
        ("jinja2",),
        (("message", _MARKDOWN),),
    ),
    ActionChoice(
        "SPIDERMON_DISCORD_WEBHOOK_URL",
        "spidermon.contrib.actions.discord.SendDiscordMessage",
        packages=("jinja2",),
        arguments=(("message", _TEXT),),
    ),
    ActionChoice(
        "SPIDERMON_SENTRY_DSN",
        "spidermon.contrib.actions.sentry.SendSentryMessage",
        ("SPIDERMON_SENTRY_PROJECT_NAME",),
        ("sentry_sdk", "slugify"),
    ),
    ActionChoice(
        "SPIDERMON_EMAIL_TO",
        "moviecrawler.monitors.mail.SendMail",
        ("SPIDERMON_EMAIL_SENDER", "SPIDERMON_SMTP_HOST"),
        ("premailer", "jinja2"),
        (("subject", "{{ data.meta.text.splitlines()[0] }}"), ("body_text", _TEXT)),
    ),
)


def chosen_actions(settings: Mapping[str, object]) -> list[ActionChoice]:
    """Return the actions that are switched on.

    Raises ConfigurationError, whose text has no value of a setting.
    """
    chosen = [action for action in ACTIONS if settings.get(action.setting)]
    for action in chosen:
        missing = [name for name in action.needs if not settings.get(name)]
        if missing:
            raise ConfigurationError(
                f"{action.setting} is set; set {' and '.join(missing)} as well"
            )
        if not all(map(find_spec, action.packages)):
            raise ConfigurationError(
                f"{action.setting} needs the packages {', '.join(action.packages)}; "
                "install moviecrawler[alerts]"
            )
    return chosen
