"""Who is told what is wrong with a crawl, and what nobody is told."""

import logging
import socket
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from scrapy import Spider
from scrapy.exceptions import NotConfigured
from scrapy.utils.test import get_crawler

from moviecrawler.basics.errors import ConfigurationError
from moviecrawler.extensions import alerts, messengers
from moviecrawler.extensions.alerts import Alerts
from moviecrawler.extensions.messengers import Messenger, NotSentError, messengers_of
from moviecrawler.replica.process import ReplicaProcess
from tests.crawling import change, scrapy
from tests.extensions.receivers import Webhook, mail_server
from tests.processes import FAST
from tests.services.replica import IDS

# Apprise imports it for PGP in mails.
pytestmark = pytest.mark.filterwarnings("ignore:'imghdr' is deprecated:DeprecationWarning")

WRONG = {"finish_reason": "finished", "frontier/dead_letters": 1}
LINES = ["imdb: 100 titles asked for", "stores: none"]
TEXT = """\
imdb: something is wrong
- requests that became dead letters: 1

imdb: 100 titles asked for
stores: none"""


def crawler_of(stats: dict[str, Any], **settings: str) -> Any:
    spider = type("Films", (Spider,), {"name": "imdb", "site": "imdb"})
    crawler = get_crawler(spider, settings)
    crawler.spider = crawler._create_spider()
    assert crawler.stats is not None
    crawler.stats.set_stats(stats)
    return crawler


async def send(**settings: str) -> None:
    """Send the alert of a crawl with which something is wrong."""
    await Alerts.from_crawler(crawler_of(WRONG, **settings)).summary_written(LINES)


# --- Crawls ---------------------------------------------------------------------------------------


@pytest.mark.promise(
    "What is wrong with a crawl is posted to ALERT_WEBHOOK; a crawl that went well tells nobody."
)
def test_a_crawl_posts_what_is_wrong_with_it_and_its_summary(
    replica: ReplicaProcess, tmp_path: Path
) -> None:
    change(replica, faults={"500": 1})
    command = ["crawl", "imdb", "-a", f"ids={','.join(IDS[:3])}"]
    with Webhook() as hook:
        urls = {"ALERT_WEBHOOK": hook.hook, "ALERT_URLS": hook.apprise_url}
        options = {**FAST, **urls, "LOG_LEVEL": "DEBUG"}
        finished = scrapy(*command, data=tmp_path, replica=replica, **options)
    text = next(message["text"] for message in hook.messages if "text" in message)
    assert text.startswith(
        "imdb: something is wrong\n- none of 3 requested titles was stored\n\n"
        "imdb: 3 titles asked for"
    )
    assert len(text.splitlines()) == 3 + 5
    assert len(hook.messages) == 2
    assert "Sent an alert to ALERT_WEBHOOK" in finished.log
    assert "Sent an alert to JSON" in finished.log
    assert "s3cret" not in finished.log


def test_a_crawl_that_can_not_begin_posts_why(tmp_path: Path) -> None:
    unreachable = "postgresql://127.0.0.1:1/movies"
    with Webhook() as hook:
        scrapy("crawl", "imdb", data=tmp_path, DATABASE_URL=unreachable, ALERT_WEBHOOK=hook.hook)
    (message,) = hook.messages
    assert message["text"].startswith(
        "imdb: something is wrong\n- the crawl ended early (store_unavailable)\n"
    )


@pytest.mark.promise(
    "What is wrong with a crawl is posted to ALERT_WEBHOOK; a crawl that went well tells nobody."
)
def test_a_crawl_that_went_well_tells_nobody(replica: ReplicaProcess, tmp_path: Path) -> None:
    with Webhook() as hook:
        urls = {"ALERT_WEBHOOK": hook.hook, "ALERT_URLS": hook.apprise_url}
        command = ["crawl", "imdb", "-a", f"ids={IDS[0]}"]
        assert scrapy(*command, data=tmp_path, replica=replica, **urls).code == 0
    assert hook.messages == []


# --- Messengers -----------------------------------------------------------------------------------


async def test_the_webhook_gets_one_text() -> None:
    with Webhook() as hook:
        await send(ALERT_WEBHOOK=hook.hook)
    assert hook.messages == [{"text": TEXT}]


async def test_apprise_sends_title_and_text_to_each_of_its_urls() -> None:
    title, _, body = TEXT.partition("\n")
    with Webhook() as hook, mail_server() as (port, mails):
        mail = f"mailto://127.0.0.1:{port}?from=crawler@example.org&to=a@example.org,b@example.org"
        ntfy = f"ntfy://127.0.0.1:{hook.port}/movies"
        await send(ALERT_URLS=f"{hook.apprise_url}, {ntfy}\n{mail}")
    messages = {message.get("topic", "json"): message for message in hook.messages}
    assert messages["json"]["title"] == messages["movies"]["title"] == title
    assert messages["json"]["message"] == messages["movies"]["message"] == body
    assert sorted(mail["To"] for mail in mails) == ["a@example.org", "b@example.org"]
    assert {mail["Subject"] for mail in mails} == {title}
    payload = mails[0].get_payload(decode=True)
    assert isinstance(payload, bytes)
    assert payload.decode().splitlines() == body.splitlines()


def test_a_crawl_without_a_messenger_has_no_alerts() -> None:
    with pytest.raises(NotConfigured, match="neither ALERT_WEBHOOK nor ALERT_URLS is set"):
        Alerts.from_crawler(crawler_of(WRONG))


@pytest.mark.parametrize("urls", ["nonsense", "https://hooks.example/s3cret", "slack://s3cret"])
def test_a_url_that_apprise_does_not_know_is_refused_by_its_number(
    urls: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    with pytest.raises(ConfigurationError) as caught:
        messengers_of("", f"json://127.0.0.1/s3cret {urls}")
    assert str(caught.value).startswith("ALERT_URLS is wrong: Apprise does not accept URL number 2")
    assert "s3cret" not in str(caught.value) + caplog.text


def test_without_apprise_a_sentence_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "apprise", None)
    assert len(messengers_of("http://127.0.0.1:1/", "")) == 1
    with pytest.raises(ConfigurationError) as caught:
        messengers_of("", "json://127.0.0.1/s3cret")
    assert str(caught.value) == "ALERT_URLS needs the package apprise; install moviecrawler[alerts]"


# --- Failures -------------------------------------------------------------------------------------


async def test_a_failure_is_logged_without_a_secret(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(messengers, "_PAUSE_SECONDS", (0, 0.01, 0.01))
    monkeypatch.setattr(messengers, "_TIMEOUT_SECONDS", 0.2)
    caplog.set_level(logging.DEBUG)
    with Webhook(500, 503) as hook:
        await send(ALERT_WEBHOOK=hook.hook)
    assert len(hook.asked) == 3
    with Webhook(500, 302, 500, 500) as hook:
        await send(ALERT_WEBHOOK=hook.hook)
        await send(ALERT_URLS=hook.apprise_url)
    await send(ALERT_WEBHOOK=hook.hook)
    await send(ALERT_URLS=hook.apprise_url)
    await send(ALERT_URLS=f"mailto://u:s3cret@localhost:{hook.port}?to=a@example.org")
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}/s3cret-token"
        await send(ALERT_WEBHOOK=f"http://{address}")
        await send(ALERT_URLS=f"json://{address}?rto=0.2")
    failures = [
        record.getMessage().removeprefix("The alert could not be sent to ")
        for record in caplog.records
        if "could not be sent" in record.getMessage()
    ]
    not_accepted = "it was not accepted; `apprise --verbose` with the URL says why"
    assert failures == [
        "ALERT_WEBHOOK: HTTP status 500",
        f"JSON: {not_accepted}",
        "ALERT_WEBHOOK: ConnectionError",
        f"JSON: {not_accepted}",
        f"E-Mail: {not_accepted}",
        "ALERT_WEBHOOK: ReadTimeout",
        f"JSON: {not_accepted}",
    ]
    assert "s3cret" not in caplog.text


@pytest.mark.parametrize("fault", [RuntimeError("s3cret"), 60.0], ids=["fails", "hangs"])
async def test_a_faulty_service_holds_up_neither_the_crawl_nor_other_services(
    fault: Exception | float, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def send(title: str, text: str) -> None:
        del title, text
        if isinstance(fault, Exception):
            raise fault
        time.sleep(fault)

    monkeypatch.setattr(alerts, "_TIMEOUT_SECONDS", 1.0)
    began = time.monotonic()
    with Webhook() as hook:
        crawler = crawler_of(WRONG)
        both = [Messenger("a faulty service", send), *messengers_of(hook.hook, "")]
        await Alerts(crawler, both).summary_written(LINES)
    assert time.monotonic() - began < 50
    assert hook.messages == [{"text": TEXT}]
    assert "The alert could not be sent to a faulty service: " in caplog.text
    assert "s3cret" not in caplog.text


_HANG = """
import sys, threading
from moviecrawler.extensions.alerts import _start_sending
from moviecrawler.extensions.messengers import messengers_of
(messenger,) = messengers_of("", sys.argv[1])
_start_sending(messenger, "title", "text")
sys.stdin.readline()
"""


def test_a_process_ends_while_apprise_waits_for_a_service() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"json://127.0.0.1:{silent.getsockname()[1]}/?rto=600"
        command = [sys.executable, "-c", _HANG, url]
        with subprocess.Popen(command, stdin=subprocess.PIPE) as process:
            connection, _ = silent.accept()
            with connection:
                process.communicate(b"end\n", timeout=30)
            assert process.returncode == 0


@pytest.mark.parametrize(
    ("status", "is_taken"), [(199, False), (200, True), (299, True), (300, False)]
)
def test_a_status_of_200_to_299_is_a_success(
    monkeypatch: pytest.MonkeyPatch, status: int, is_taken: bool
) -> None:
    answer = SimpleNamespace(status_code=status)
    monkeypatch.setattr("requests.post", lambda *_, **__: answer)
    monkeypatch.setattr(messengers, "_PAUSE_SECONDS", (0, 0))
    (messenger,) = messengers_of("https://hooks.example", "")
    if is_taken:
        messenger.send("title", "text")
    else:
        with pytest.raises(NotSentError, match=f"HTTP status {status}"):
            messenger.send("title", "text")
