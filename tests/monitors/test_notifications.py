"""What people are told, by which way, and what nobody is told."""

from __future__ import annotations

import json
import logging
import socket
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import Any

import pytest
from scrapy import Spider
from scrapy.utils.test import get_crawler
from slack_sdk import WebClient
from spidermon.contrib.actions import slack
from spidermon.contrib.actions.telegram import SimplyTelegramClient

from moviecrawler import settings as project
from moviecrawler.errors import ConfigurationError
from moviecrawler.monitors import actions, suite
from moviecrawler.monitors.alarm_store import Alarm
from moviecrawler.monitors.checks import Verdict
from moviecrawler.monitors.notifications import Notification, chat_message
from moviecrawler.monitors.receivers import MailServer as MailServerSetting
from moviecrawler.monitors.receivers import read_receivers
from moviecrawler.monitors.suite import AlarmSuite, notify
from tests.monitors.receivers import MailServer, Webhook

ALARM = Alarm(name="blocks/imdb", kind="blocks", site="imdb", text="imdb refused_us", since=0, seen_at=5, told_at=5)
STANDS = Verdict(ALARM.name, "blocks", ALARM.text)
MAIL = {"ALARM_MAIL_FROM": "crawler@example.org", "ALARM_MAIL_TO": "ops@example.org,other@example.org"}


@pytest.fixture(autouse=True)
def _fast(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(suite, "_PAUSE_SECONDS", (0, 0.01, 0.01))


def send(given: dict[str, Any], statuses: Sequence[Any] = ("opened",)) -> list[str]:
    """Return the statuses of what was not delivered."""
    values = {name: getattr(project, name) for name in dir(project) if name.startswith(("ALARM_", "COVERAGE_", "SPID"))}
    crawler = get_crawler(type("Films", (Spider,), {"name": "films"}), {**values, **given})
    receivers = read_receivers(crawler.settings)
    at = datetime(2026, 11, 1, tzinfo=UTC)
    changed = [Notification(status=status, alarm=ALARM, at=at, node="node7") for status in statuses]
    undelivered = notify(crawler, receivers, [STANDS] if "opened" in statuses else [], changed)
    return [one.status for one in undelivered]


def test_every_kind_of_alarm_has_a_monitor() -> None:
    assert sorted(monitor.method_name for monitor in AlarmSuite().all_monitors) == [
        "test_dead_letters_do_not_grow",
        "test_pages_can_be_read",
        "test_places_of_fields_are_there",
        "test_site_does_not_refuse",
        "test_stores_take_batches",
        "test_titles_are_fresh",
        "test_work_that_is_due_is_done",
    ]


def test_webhook_gets_json_that_chat_programs_show() -> None:
    with Webhook() as hook:
        assert send({"ALARM_WEBHOOK": hook.url}, ["opened", "recovered"]) == []
    opened, recovered = hook.messages
    assert opened == {
        "text": f"Alarm: blocks/imdb: imdb refused_us. {ALARM.todo} Dashboard: /crawls#crawls. Runbook: scrapyd/README.md",
        "status": "opened",
        "alarm": "blocks/imdb",
        "kind": "blocks",
        "site": "imdb",
        "since": "1970-01-01T00:00:00+00:00",
        "at": "2026-11-01T00:00:00+00:00",
        "node": "node7",
    }
    assert recovered["status"] == "recovered"
    assert recovered["text"].startswith("Recovered, and no longer true: blocks/imdb: imdb refused_us (since 1970")


def test_mail_says_the_same() -> None:
    with MailServer() as server:
        assert send({"ALARM_SMTP_URL": server.url, **MAIL}) == []
    (mail,) = server.mails
    assert mail["Subject"] == "moviecrawler: Alarm: blocks/imdb"
    assert mail["To"] == "ops@example.org, other@example.org"
    assert "imdb refused_us" in mail.get_content()
    assert ALARM.todo in mail.get_content()
    assert "sent by node7" in mail.get_content()


def test_slack_telegram_and_discord_get_the_text(monkeypatch: pytest.MonkeyPatch) -> None:
    with Webhook() as hook:
        monkeypatch.setattr(slack, "WebClient", partial(WebClient, base_url=f"{hook.url}/slack/"))
        monkeypatch.setattr(SimplyTelegramClient, "send_message_api", hook.url + "/{token}?chat={chat_id}&text={text}")
        given = {
            "SPIDERMON_SLACK_RECIPIENTS": "#movies",
            "SPIDERMON_SLACK_SENDER_TOKEN": "xoxb",
            "SPIDERMON_TELEGRAM_RECIPIENTS": "-100",
            "SPIDERMON_TELEGRAM_SENDER_TOKEN": "t0ken",
            "SPIDERMON_DISCORD_WEBHOOK_URL": f"{hook.url}/discord",
        }
        assert send(given, ["opened", "recovered"]) == []
    sent = dict(zip((path.partition("s3cret-token")[2] for _, path, _ in hook.requests), hook.bodies, strict=True))
    posted = sent["/slack/chat.postMessage"].decode()
    assert "movies" in posted
    assert "refused_us" in posted
    (telegram,) = [path for path in sent if path.startswith("/t0ken?chat=-100&text=Alarm%3A%20blocks/imdb")]
    assert "README.md%0ARecovered" in telegram
    assert "refused%5C_us" in telegram  # Markdown, escaped, both messages in one
    assert json.loads(sent["/discord"])["content"].startswith("Alarm: blocks/imdb: imdb refused_us. Wait;")


@pytest.mark.parametrize("fields", [3, 40])
def test_message_about_many_fields_is_one_that_chat_programs_take(fields: int) -> None:
    text = "48 of the latest 50 pages that should have a place for it are silent of it, such as tt0111161 (https://www.imdb.com/title/tt0111161/)"
    at = datetime(2026, 11, 1, tzinfo=UTC)
    alarms = [replace(ALARM, name=f"coverage/imdb/f{n}", kind="coverage", text=text) for n in range(fields)]
    message = chat_message([Notification(status="opened", alarm=alarm, at=at, node="node7") for alarm in alarms])
    assert len(message) <= 2000  # characters that Discord takes
    assert message.count("imdb_title.py") == 1
    named = message.count("coverage/imdb/f")
    assert named == fields or message.endswith(f"\n{fields - named} more: see `scrapy alarms`")


@pytest.mark.filterwarnings("ignore:sentry_sdk.configure_scope is deprecated:DeprecationWarning")
def test_sentry_gets_what_is_wrong_and_no_recovery() -> None:
    with Webhook() as hook:
        given = {"SPIDERMON_SENTRY_DSN": f"http://key@127.0.0.1:{hook.port}/1"}
        assert send(given) == []
        assert send(given, ["recovered"]) == []
    assert hook.requests[0][1].startswith("/api/1/envelope/")
    assert len(hook.requests) == 1


def test_only_the_way_that_failed_is_tried_again() -> None:
    with Webhook(500, 503) as hook, MailServer() as server:
        assert send({"ALARM_WEBHOOK": hook.url, "ALARM_SMTP_URL": server.url, **MAIL}) == []
    assert len(hook.bodies) == 3
    assert len(server.mails) == 1


def test_message_that_was_delivered_is_not_sent_again_when_the_next_one_fails() -> None:
    with Webhook(200, 500) as hook:
        assert send({"ALARM_WEBHOOK": hook.url}, ["opened", "recovered"]) == []
    assert [message["status"] for message in hook.messages] == ["opened", "recovered", "recovered"]
    with Webhook(200, 500, 500, 500) as hook:
        assert send({"ALARM_WEBHOOK": hook.url}, ["opened", "reminder"]) == ["reminder"]
    assert [message["status"] for message in hook.messages] == ["opened", *["reminder"] * 3]


def test_failure_is_logged_without_the_secret(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(actions, "TIMEOUT_SECONDS", 0.2)
    caplog.set_level(logging.DEBUG)
    with Webhook(500, 500, 500) as hook:
        assert send({"ALARM_WEBHOOK": hook.url}) == ["opened"]
    assert send({"ALARM_WEBHOOK": hook.url}) == ["opened"]
    assert send({"SPIDERMON_DISCORD_WEBHOOK_URL": hook.url}) == ["opened"]
    assert send({"ALARM_SMTP_URL": f"smtp://user:hunter2@127.0.0.1:{hook.port}", **MAIL}) == ["opened"]
    with socket.create_server(("127.0.0.1", 0)) as silent:
        where = f"127.0.0.1:{silent.getsockname()[1]}"
        assert send({"ALARM_WEBHOOK": f"http://{where}/", "ALARM_SMTP_URL": f"smtp://{where}", **MAIL}) == ["opened"]
    warnings = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert [text.partition(";")[0] for text in warnings] == [
        "PostWebhook could not notify people (HTTP status 500)",
        "PostWebhook could not notify people (ConnectionError)",
        "SendDiscordMessage could not notify people (ConnectionError)",
        "SendMail could not notify people (ConnectionRefusedError)",
        "PostWebhook could not notify people (ReadTimeout)",
        "SendMail could not notify people (SMTPServerDisconnected)",
    ]
    assert not any(secret in caplog.text for secret in ("s3cret-token", "hunter2"))


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"ALARM_MAIL_TO": "a@example.org"}, "set ALARM_SMTP_URL and ALARM_MAIL_FROM"),
        ({**MAIL, "ALARM_MAIL_TO": "nobody", "ALARM_SMTP_URL": "smtp://x"}, "no address"),
        ({**MAIL, "ALARM_SMTP_URL": "http://u:hunter2@x"}, "ALARM_SMTP_URL is not of the form"),
        ({"SPIDERMON_SLACK_RECIPIENTS": "#movies"}, "set SPIDERMON_SLACK_SENDER_TOKEN as well"),
    ],
)
def test_wrong_settings_are_refused_in_a_sentence(given: dict[str, str], said: str) -> None:
    with pytest.raises(ConfigurationError) as error:
        send(given)
    assert said in str(error.value)
    assert "hunter2" not in str(error.value)
    assert "s3cret" not in str(error.value)


def test_password_is_not_shown() -> None:
    server = MailServerSetting.from_url("smtp://user:hunter%40@x")
    assert (server.password, server.port) == ("hunter@", 587)
    assert "hunter" not in repr(server)


def test_receiver_whose_package_is_missing_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("moviecrawler.monitors.receivers.find_spec", lambda _: None)
    with pytest.raises(ConfigurationError, match=r"install moviecrawler\[alarms\]"):
        send({"SPIDERMON_SENTRY_DSN": "http://key@sentry/1"})
