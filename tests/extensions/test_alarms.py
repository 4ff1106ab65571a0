"""Alarms of real crawls: what stalls, what fails, and that the crawl goes on whatever becomes of its messages."""

from __future__ import annotations

from pathlib import Path

from moviecrawler.monitors.alarm_store import FILE
from moviecrawler.replica.process import ReplicaProcess
from tests.crawling import change, crawl
from tests.monitors.receivers import Webhook
from tests.services.postgres import execute
from tests.services.replica import IDS

FORTY = ",".join(IDS[:40])


def test_silence_is_told_once_and_then_reminded_of(replica: ReplicaProcess, tmp_path: Path) -> None:
    settings = {"ALARM_EVERY": "0.1", "ALARM_STALLED": "0.3", "ALARM_REMINDER": "1", "DOWNLOAD_TIMEOUT": "20"}
    change(replica, latency=2500)
    with Webhook() as hook:
        crawled = crawl("imdb", f"ids={IDS[0]}", data=tmp_path, replica=replica, ALARM_WEBHOOK=hook.url, **settings)
    assert crawled.code == 0
    told = [message["status"] for message in hook.messages if message["alarm"] == "stalled/imdb"]
    assert told[0] == "opened"
    assert 1 <= told.count("reminder") <= 8
    assert "although there is something to fetch" in hook.messages[0]["text"]


def test_store_that_can_not_be_used_is_said_once_and_the_crawl_goes_on(replica: ReplicaProcess, tmp_path: Path) -> None:
    (tmp_path / FILE).mkdir()
    finished = crawl("imdb", f"ids={FORTY}", data=tmp_path, replica=replica, ALARM_EVERY="0.1")
    assert finished.code == 0
    assert finished.stat("titles/stored") == 40
    assert finished.log.count("Not all alarms are recorded and sent for now") <= 1
    assert "Traceback" not in finished.log


def test_titles_that_are_overdue_are_an_alarm(replica: ReplicaProcess, database_url: str, tmp_path: Path) -> None:
    with Webhook() as hook:
        stores = {"DATABASE_URL": database_url}
        assert crawl("imdb", f"ids={FORTY}", data=tmp_path, replica=replica, **stores).code == 0
        assert not hook.messages
        change(replica, latency=700)
        execute(database_url, "UPDATE title_sites SET next_due = now() - interval '1 day'")
        settings = {"ALARM_WEBHOOK": hook.url, "ALARM_EVERY": "0.1", "FRESHNESS_MARGIN": "0"}
        assert crawl("imdb", f"ids={IDS[0]}", data=tmp_path, replica=replica, **settings, **stores).code == 0
    assert [message["alarm"] for message in hook.messages] == ["freshness/imdb"]
    assert "0.0% of 40 titles are fresh, and 90% are meant to be: 40 are overdue" in hook.messages[0]["text"]
