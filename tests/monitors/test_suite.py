"""What the monitors find in a crawl's stats, whom they tell, and what nobody is told."""

import json
import logging
import socket
import time
from functools import partial
from typing import Any

import pytest
from scrapy import Spider
from scrapy.settings import Settings
from scrapy.utils.test import get_crawler
from slack_sdk import WebClient
from spidermon.contrib.actions import slack
from spidermon.contrib.actions.telegram import SimplyTelegramClient

from moviecrawler.components import set_up
from moviecrawler.errors import ConfigurationError
from moviecrawler.extensions import alerts
from moviecrawler.extensions.alerts import Alerts
from moviecrawler.monitors import suite
from moviecrawler.monitors.actions import chosen_actions
from moviecrawler.monitors.suite import run_suite
from tests.monitors.receivers import Webhook, mail_server

WELL = {
    "titles/asked": 100,
    "titles/stored": 98,
    "titles/absent": 2,
    "downloader/response_count": 100,
    "pages/read": 98,
    "finish_reason": "finished",
    "store/csv/durable": 98,
    "catalogue/fetched": 100,
    "catalogue/overdue": 9,
}
SECRETS = ("s3cret-token", "t0ken", "xoxb")


def crawler_of(stats: dict[str, Any], settings: dict[str, Any]) -> Any:
    own = Settings()
    own.setmodule("moviecrawler.settings")
    set_up(own)
    values = {name: own[name] for name in own if name.startswith(("ALERT_", "SPIDERMON_"))}
    spider = type("Films", (Spider,), {"name": "imdb", "site": "imdb"})
    crawler = get_crawler(spider, {**values, **settings})
    crawler.spider = crawler._create_spider()
    assert crawler.stats is not None
    crawler.stats.set_stats(stats)
    return crawler


def run(stats: dict[str, Any], **settings: Any) -> None:
    run_suite(
        crawler_of({**WELL, **stats}, settings), ["imdb: 100 titles asked for", "stores: none"]
    )


def told(stats: dict[str, Any]) -> list[str]:
    """Return what is posted of such a crawl, in lines."""
    with Webhook() as hook:
        run(stats, ALERT_WEBHOOK=hook.url)
    return [line for message in hook.messages for line in message["text"].splitlines()]


@pytest.mark.promise(
    "What is wrong with a crawl is posted to ALERT_WEBHOOK; a crawl that went well tells nobody."
)
@pytest.mark.parametrize(
    ("stats", "said"),
    [
        ({"blocks/imdb/stopped": "imdb refused us (403)"}, "imdb refused us (403)"),
        ({"blocks/imdb/challenge": 6}, "6 of 100 answers are refusals"),
        ({"extraction/errors/title": 6}, "6 of 104 pages could not be read"),
        ({"pages/missing/scores.imdb": "unknown on 15 pages"}, "scores.imdb unknown on 15 pages"),
        (
            {"store/csv/spooled": 3, "store/csv/lost": 1, "items/rejected": 2},
            "items: 3 spooled, 1 lost, 2 invalid",
        ),
        ({"store/csv/damaged": 1}, "1 spool files can't be read"),
        ({"frontier/dead_letters": 1}, "1 requests are dead letters"),
        ({"frontier/run/lost": 4}, "4 requests were deleted from the queue"),
        ({"lists/missed": 1}, "1 list pages could not be read"),
        (
            {"titles/stored": 0, "titles/absent": 0, "titles/failed": 100},
            "none of 100 titles was stored",
        ),
        (
            {"titles/asked": 0, "finish_reason": "store_unavailable"},
            "nothing was asked for (store_unavailable)",
        ),
        ({"catalogue/overdue": 11}, "11 of 100 titles are overdue"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_is_wrong_is_posted_with_the_summary(stats: dict[str, Any], said: str) -> None:
    lines = [
        "imdb: something is wrong",
        f"- {said}",
        "",
        "imdb: 100 titles asked for",
        "stores: none",
    ]
    assert told(stats) == lines


@pytest.mark.promise(
    "What is wrong with a crawl is posted to ALERT_WEBHOOK; a crawl that went well tells nobody."
)
@pytest.mark.parametrize(
    "stats",
    [
        {},
        {"blocks/imdb/challenge": 5, "extraction/errors/title": 5},
        {"blocks/imdb/challenge": 9, "downloader/response_count": 19},
        {"titles/asked": 0},
        # A pass over datasets fetches few files, and stores titles all the while.
        {
            "downloader/response_count": 7,
            "titles/stored": 100,
            "pages/read": 0,
        },
        {"titles/stored": 0, "titles/absent": 100},
        {"titles/asked": 50, "titles/stored": 50, "finish_reason": "budget_spent"},
        {"titles/asked": 0, "titles/stored": 0, "finish_reason": "shutdown"},
    ],
    ids=[
        "well",
        "few refusals",
        "few answers",
        "nothing due",
        "datasets",
        "all absent",
        "unfinished",
        "told to end",
    ],
)
def test_nobody_is_told_of_a_crawl_that_went_well(stats: dict[str, Any]) -> None:
    assert told(stats) == []


def test_slack_telegram_and_discord_get_the_text(monkeypatch: pytest.MonkeyPatch) -> None:
    with Webhook() as hook:
        monkeypatch.setattr(slack, "WebClient", partial(WebClient, base_url=f"{hook.url}/slack/"))
        monkeypatch.setattr(
            SimplyTelegramClient,
            "send_message_api",
            hook.url + "/{token}?chat={chat_id}&text={text}",
        )
        given = {
            "SPIDERMON_SLACK_RECIPIENTS": "#movies",
            "SPIDERMON_SLACK_SENDER_NAME": "moviecrawler",
        }
        given |= {
            "SPIDERMON_SLACK_SENDER_TOKEN": "xoxb",
            "SPIDERMON_DISCORD_WEBHOOK_URL": f"{hook.url}/discord",
        }
        given |= {
            "SPIDERMON_TELEGRAM_RECIPIENTS": "-100",
            "SPIDERMON_TELEGRAM_SENDER_TOKEN": "t0ken",
        }
        run({"blocks/imdb/stopped": "refused_us"}, **given)
    sent = dict(
        zip(
            (path.partition("s3cret-token")[2] for _, path, _ in hook.requests),
            hook.bodies,
            strict=True,
        )
    )
    assert "refused_us" in sent["/slack/chat.postMessage"].decode()
    (telegram,) = [
        path
        for path in sent
        if path.startswith("/t0ken?chat=-100&text=imdb%3A%20something%20is%20wrong")
    ]
    assert "refused%5C_us" in telegram  # Markdown, escaped
    assert json.loads(sent["/discord"])["content"].startswith(
        "imdb: something is wrong\n- refused_us\n"
    )


@pytest.mark.filterwarnings("ignore:sentry_sdk.configure_scope is deprecated:DeprecationWarning")
def test_sentry_gets_what_is_wrong() -> None:
    with Webhook() as hook:
        dsn = f"http://key@127.0.0.1:{hook.port}/1"
        run(
            {"frontier/dead_letters": 1},
            SPIDERMON_SENTRY_DSN=dsn,
            SPIDERMON_SENTRY_PROJECT_NAME="m",
        )
    assert hook.requests[0][1].startswith("/api/1/envelope/")


def test_mail_is_sent_by_spidermon_s_settings() -> None:
    pytest.importorskip(
        "premailer", reason="the mail action needs the package premailer, of moviecrawler[alerts]"
    )
    with mail_server() as (port, taken):
        given = {
            "SPIDERMON_EMAIL_SENDER": "crawler@example.org",
            "SPIDERMON_EMAIL_TO": "a@example.org,b@example.org",
        }
        run(
            {"frontier/dead_letters": 1},
            **given,
            SPIDERMON_SMTP_HOST="127.0.0.1",
            SPIDERMON_SMTP_PORT=str(port),
        )
    (mail,) = taken
    assert (mail["Subject"], mail["To"]) == (
        "imdb: something is wrong",
        "a@example.org, b@example.org",
    )
    text = mail.get_payload(0).get_payload(decode=True).decode()  # type: ignore[union-attr]
    assert "- 1 requests are dead letters" in text
    assert "imdb: 100 titles asked for" in text


def test_post_is_tried_again_and_a_failure_is_logged_without_the_secret(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(suite, "_PAUSE_SECONDS", (0, 0.01, 0.01))
    monkeypatch.setattr(suite, "_TIMEOUT_SECONDS", 0.2)
    caplog.set_level(logging.DEBUG)
    wrong = {"frontier/dead_letters": 1}
    with Webhook(500, 503) as hook:
        run(wrong, ALERT_WEBHOOK=hook.url)
        assert len(hook.bodies) == 3
    with Webhook(500, 500, 500) as hook:
        run(wrong, ALERT_WEBHOOK=hook.url)
    run(wrong, ALERT_WEBHOOK=hook.url, SPIDERMON_DISCORD_WEBHOOK_URL=hook.url)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        run(wrong, ALERT_WEBHOOK=f"http://127.0.0.1:{silent.getsockname()[1]}/s3cret-token")
    said = [
        record.getMessage() for record in caplog.records if "could not send" in record.getMessage()
    ]
    assert said == [
        "PostWebhook could not send the alert (HTTP status 500)",
        "PostWebhook could not send the alert (ConnectionError)",
        "SendDiscordMessage could not send the alert (ConnectionError)",
        "PostWebhook could not send the alert (ReadTimeout)",
    ]
    assert not any(secret in caplog.text for secret in SECRETS)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (
            {"SPIDERMON_SLACK_RECIPIENTS": "#movies"},
            "set SPIDERMON_SLACK_SENDER_TOKEN and SPIDERMON_SLACK_SENDER_NAME",
        ),
        (
            {"SPIDERMON_EMAIL_TO": "a@example.org"},
            "set SPIDERMON_EMAIL_SENDER and SPIDERMON_SMTP_HOST as well",
        ),
        (
            {"SPIDERMON_SENTRY_DSN": "http://s3cret-token@x/1"},
            "set SPIDERMON_SENTRY_PROJECT_NAME as well",
        ),
        ({"SPIDERMON_DISCORD_WEBHOOK_URL": "http://x"}, "install moviecrawler[alerts]"),
    ],
)
def test_wrong_settings_and_missing_packages_are_told_in_a_sentence(
    given: dict[str, str], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("moviecrawler.monitors.actions.find_spec", lambda _: None)
    with pytest.raises(ConfigurationError) as error:
        chosen_actions(given)
    assert said in str(error.value)
    assert "s3cret" not in str(error.value)


@pytest.mark.parametrize("fault", [RuntimeError("s3cret-token"), 60.0], ids=["fails", "hangs"])
async def test_crawl_ends_whatever_becomes_of_an_action(
    fault: Exception | float, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def act(*_: Any) -> None:
        if isinstance(fault, Exception):
            raise fault
        time.sleep(fault)

    monkeypatch.setattr(suite, "run_suite", act)
    monkeypatch.setattr(alerts, "_TIMEOUT_SECONDS", 0.2)
    one = Alerts.from_crawler(crawler_of(WELL, {"ALERT_WEBHOOK": "http://127.0.0.1:1/"}))
    began = time.monotonic()
    await one.summary_written([])
    assert time.monotonic() - began < 50
    assert "The alerts of this crawl could not be sent" in caplog.text
    assert "s3cret" not in caplog.text
