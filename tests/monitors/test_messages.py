"""What people are told, and what is not told to anyone."""

from __future__ import annotations

import asyncio
import logging
import socket
from datetime import UTC, datetime

import pytest
from scrapy.settings import Settings

from moviecrawler import settings as project
from moviecrawler.errors import ConfigurationError
from moviecrawler.monitors import messages
from moviecrawler.monitors.books import Alarm
from moviecrawler.monitors.messages import Message, Messenger, Status
from moviecrawler.monitors.options import AlarmOptions
from tests.monitors.receivers import MailServer, Webhook

ALARM = Alarm(name="blocks/imdb", kind="blocks", site="imdb", text="imdb refused us", since=0, seen_at=5, told_at=5)


def options(**given: str) -> AlarmOptions:
    values = {name: getattr(project, name) for name in dir(project) if name.startswith(("ALARM_", "COVERAGE_"))}
    return AlarmOptions.from_settings(Settings({**values, **given}))


def deliver(given: AlarmOptions, status: Status = "opened") -> bool:
    message = Message(status=status, alarm=ALARM, at=datetime(2026, 11, 1, tzinfo=UTC), node="node7")
    return asyncio.run(Messenger(given, pause=0.01).deliver(message))


def test_webhook_is_told_in_json_that_chat_programs_show() -> None:
    with Webhook() as hook:
        assert deliver(options(ALARM_WEBHOOK=hook.url))
        assert deliver(options(ALARM_WEBHOOK=hook.url), "recovered")
    opened, recovered = hook.messages
    assert opened == {
        "text": "Alarm: blocks/imdb: imdb refused us",
        "status": "opened",
        "alarm": "blocks/imdb",
        "kind": "blocks",
        "site": "imdb",
        "since": "1970-01-01T00:00:00+00:00",
        "at": "2026-11-01T00:00:00+00:00",
        "node": "node7",
    }
    assert recovered["status"] == "recovered"
    assert recovered["text"].startswith("Recovered, and no longer true: blocks/imdb: imdb refused us (since 1970")


def test_mail_says_the_same() -> None:
    with MailServer() as server:
        to = "ops@example.org,other@example.org"
        given = options(ALARM_SMTP_URL=server.url, ALARM_MAIL_FROM="crawler@example.org", ALARM_MAIL_TO=to)
        assert deliver(given)
    (mail,) = server.mails
    assert mail["Subject"] == "moviecrawler: Alarm: blocks/imdb"
    assert mail["To"] == "ops@example.org, other@example.org"
    assert "imdb refused us" in mail.get_content()
    assert "told by node7" in mail.get_content()


def test_delivery_is_tried_again() -> None:
    with Webhook(500, 503) as hook:
        assert deliver(options(ALARM_WEBHOOK=hook.url))
    assert len(hook.bodies) == 3


def test_what_can_not_be_delivered_is_said_without_the_secret(caplog: pytest.LogCaptureFixture) -> None:
    with Webhook(500, 500, 500) as hook:
        assert not deliver(options(ALARM_WEBHOOK=hook.url))
    assert not deliver(options(ALARM_WEBHOOK=hook.url))
    mail = {"ALARM_MAIL_FROM": "a@example.org", "ALARM_MAIL_TO": "b@example.org"}
    assert not deliver(options(ALARM_SMTP_URL=f"smtp://user:hunter2@127.0.0.1:{hook.port}", **mail))
    told = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert len(told) == 3
    assert "could not be sent to ALARM_WEBHOOK (HTTP status 500)" in told[0]
    assert "ALARM_SMTP_URL" in told[2]
    assert not any(secret in caplog.text for secret in ("s3cret-token", "hunter2"))


def test_receiver_that_never_answers_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(messages, "_WITHIN", 0.1)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        where = f"127.0.0.1:{silent.getsockname()[1]}"
        mail = {"ALARM_MAIL_FROM": "a@example.org", "ALARM_MAIL_TO": "b@example.org"}
        assert not deliver(options(ALARM_WEBHOOK=f"http://{where}/", ALARM_SMTP_URL=f"smtp://{where}", **mail))


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"ALARM_EVERY": "0"}, "ALARM_EVERY is '0'"),
        ({"ALARM_BLOCKS": "5"}, "set it to a number from 0 to 1"),
        ({"ALARM_REMINDER": "nan"}, "ALARM_REMINDER is 'nan'"),
        ({"ALARM_WEBHOOK": "hooks.example/s3cret-token"}, "ALARM_WEBHOOK is no http or https URL"),
        ({"ALARM_MAIL_TO": "a@example.org"}, "set ALARM_SMTP_URL and ALARM_MAIL_FROM"),
        ({"ALARM_MAIL_TO": "nobody", "ALARM_SMTP_URL": "smtp://x", "ALARM_MAIL_FROM": "a@example.org"}, "no address"),
        (
            {"ALARM_MAIL_TO": "a@b.org", "ALARM_SMTP_URL": "http://u:hunter2@x", "ALARM_MAIL_FROM": "a@example.org"},
            "ALARM_SMTP_URL is not of the form",
        ),
    ],
)
def test_wrong_settings_are_told_in_a_sentence(given: dict[str, str], told: str) -> None:
    with pytest.raises(ConfigurationError) as error:
        options(**given)
    assert told in str(error.value)
    assert "hunter2" not in str(error.value)
    assert "s3cret" not in str(error.value)


def test_secrets_are_not_shown() -> None:
    given = options(
        ALARM_WEBHOOK="http://x/s3cret-token",
        ALARM_SMTP_URL="smtp://user:hunter2@x",
        ALARM_MAIL_FROM="a@example.org",
        ALARM_MAIL_TO="b@example.org",
    )
    assert given.mail_server is not None
    assert given.mail_server.password == "hunter2"  # noqa: S105 - made up
    assert "hunter2" not in repr(given)
    assert "s3cret" not in repr(given)
