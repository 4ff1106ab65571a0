"""What the log says of a crawl while it runs."""

import logging
from types import SimpleNamespace

import pytest
from scrapy import Spider
from scrapy.exceptions import NotConfigured
from scrapy.utils.test import get_crawler

from moviecrawler.basics.progress import logger
from moviecrawler.extensions import progress
from moviecrawler.extensions.progress import LineHandler, Progress, ProgressLine
from moviecrawler.frontier.contract import Account
from moviecrawler.spiders.imdb import ImdbSpider


def test_log_says_how_far_a_crawl_is_and_less_and_less_often_what_it_waits_for(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [0.0]
    monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=lambda: now[0]))
    monkeypatch.setattr(progress, "describe_requests", lambda _: "for an answer of imdb: 1")
    caplog.set_level("INFO")
    crawler = get_crawler(Spider, {"LOGSTATS_INTERVAL": 10})
    assert crawler.stats is not None
    # All that is asked of it is patched above.
    crawler.engine = SimpleNamespace()  # type: ignore[assignment]
    shown = Progress.from_crawler(crawler)
    caplog.clear()
    stats = {
        "titles/requested": 20,
        "titles/stored": 5,
        "titles/absent": 1,
        "downloader/response_count": 6,
    }
    for name, count in stats.items():
        crawler.stats.set_value(name, count)
    for _ in range(20):
        now[0] += 10
        shown.log_progress()
    assert [record.getMessage() for record in caplog.records] == [
        "6 of 20 titles done (36 per minute): 5 stored, 1 absent",
        *(
            f"No response and no finished title for {seconds} s; "
            "requests wait for an answer of imdb: 1"
            for seconds in (20, 40, 80, 160)
        ),
    ]
    assert crawler.stats.get_value("crawl/stalled_seconds") == 190


@pytest.mark.parametrize(
    ("name", "level", "is_shown"),
    [("scrapy", "INFO", False), ("scrapy", "WARNING", True), (logger.name, "INFO", True)],
)
def test_a_terminal_shows_warnings_and_how_far_long_work_is(
    name: str, level: str, *, is_shown: bool
) -> None:
    record = logging.makeLogRecord({"name": name, "levelno": logging.getLevelName(level)})
    assert bool(LineHandler().filter(record)) is is_shown


def test_a_line_says_how_far_a_crawl_is_at_the_rate_of_the_last_minute() -> None:
    crawler = get_crawler(ImdbSpider)
    assert crawler.stats is not None
    line = ProgressLine()
    line.follow(crawler)
    assert line.text(0) == "imdb 0/0"
    account = Account(titles=1_010)
    scheduler = SimpleNamespace(account=account)
    crawler.engine = SimpleNamespace(  # type: ignore[assignment]
        scheduler=scheduler, start_time=None
    )
    assert line.text(1) == "imdb 0/1,010"
    account.stored = 6
    account.failed = 4
    crawler.stats.set_value("titles/stored", 3)
    assert line.text(61) == "imdb 10/1,010; 10 per minute, 1:40:00 left"
    crawler.stats.set_value("titles/stored", 1_012)  # the account of all workers comes later
    assert line.text(61) == "imdb 1,012/1,012; 1,012 per minute, 00:00 left"
    scheduler.account = None
    assert line.text(200) == "imdb 0/0"
    crawler.engine.scheduler = None  # type: ignore[misc]
    for name, count in {"titles": 9, "stored": 4, "absent": 3}.items():
        crawler.stats.set_value(f"frontier/run/{name}", count)
    assert line.text(300) == "imdb 7/9"


def test_a_line_says_what_a_crawl_waits_for(monkeypatch: pytest.MonkeyPatch) -> None:
    now = {"gate": "", "requests": ""}
    gate = SimpleNamespace(describe_wait=lambda: now["gate"])
    politeness = SimpleNamespace(gates={"imdb": gate})
    monkeypatch.setattr(progress, "is_closing", lambda engine: engine.spider == "closing")
    monkeypatch.setattr(progress, "politeness_of", lambda _: politeness)
    monkeypatch.setattr(progress, "describe_requests", lambda _: now["requests"])
    crawler = get_crawler(ImdbSpider)
    line = ProgressLine()
    line.follow(crawler)
    for engine, gate_waits, requests, told in (
        ((None, "imdb"), "x", "x", ""),
        ((1.0, None), "x", "x", ""),
        ((1.0, "imdb"), "", "", ""),
        ((1.0, "imdb"), "", "for an answer of imdb: 1", "; waiting for an answer of imdb"),
        ((1.0, "imdb"), "the budget of imdb", "x", "; waiting for the budget of imdb"),
        ((1.0, "closing"), "x", "x", "; storing what was fetched (Ctrl-C again ends at once)"),
    ):
        start_time, spider = engine
        crawler.engine = SimpleNamespace(  # type: ignore[assignment]
            start_time=start_time, spider=spider
        )
        now |= {"gate": gate_waits, "requests": requests}
        assert line.text(0) == f"imdb 0/0{told}"


def test_a_terminal_shows_a_record_as_one_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    error = ValueError("no lamp")
    failed = {"msg": "It failed\nhere", "levelno": logging.WARNING, "levelname": "WARNING"}
    for record in (
        {**failed, "exc_info": (ValueError, error, None)},
        failed,
        {"msg": "indexing for 10 s", "levelno": logging.INFO},
    ):
        LineHandler().emit(logging.makeLogRecord(record))
    assert capsys.readouterr().err.splitlines() == [
        "WARNING: It failed (ValueError: no lamp; -L INFO shows more)",
        "WARNING: It failed",
        "indexing for 10 s",
    ]


def test_an_interval_of_no_seconds_means_that_nothing_is_logged() -> None:
    with pytest.raises(NotConfigured, match="LOGSTATS_INTERVAL is 0"):
        Progress.from_crawler(get_crawler(Spider, {"LOGSTATS_INTERVAL": 0}))
    Progress.from_crawler(get_crawler(Spider, {"LOGSTATS_INTERVAL": 1}))
