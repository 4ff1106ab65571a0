"""What the log says of a crawl while it runs."""

import logging
from types import SimpleNamespace

import pytest
from scrapy import Spider
from scrapy.utils.test import get_crawler

from moviecrawler.basics.progress import logger
from moviecrawler.extensions import progress
from moviecrawler.extensions.progress import LineHandler, Progress


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
