"""`scrapy alarms`, from the command line."""

from __future__ import annotations

import json
from pathlib import Path

from moviecrawler.monitors.alarm_store import Alarm, open_alarm_store
from moviecrawler.monitors.places import ANY, Seen
from tests.crawling import scrapy


def test_alarms_are_shown_and_accepted(tmp_path: Path) -> None:
    store = open_alarm_store({"DATA_DIR": tmp_path})
    text = "plot is missing\x1b[2J"
    alarm = Alarm(name="coverage/imdb/plot", kind="coverage", site="imdb", text=text, since=0, seen_at=60)
    store.fire(alarm, 60)
    store.learn("imdb", "2026-11-01", Seen(baselines={"title|movie|released": {"plot": (100.0, 0.0, 0.0)}}))

    shown = scrapy("alarms", data=tmp_path)
    assert shown.code == 1
    assert shown.output == f"coverage/imdb/plot, since 1970-01-01 00:00 UTC: plot is missing\\x1b[2J\n  {alarm.todo}\n"

    wrong = scrapy("alarms", "--accept", "coverage/imdb/year", data=tmp_path)
    assert wrong.code == 2
    assert "no alarm 'coverage/imdb/year' stands; those that do: coverage/imdb/plot" in wrong.log + wrong.output

    accepted = scrapy("alarms", "--accept", alarm.name, "--json", "--history", "5", data=tmp_path)
    assert accepted.code == 0
    answer_text = json.loads(accepted.output)
    assert answer_text["open"] == []
    assert [event["what"] for event in answer_text["history"]] == ["accepted", "opened"]
    assert store.baselines("imdb").keys() == {ANY}
    store.close()
