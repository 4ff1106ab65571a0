"""What is made for the log."""

import logging

import pytest
from scrapy.utils.spider import DefaultSpider
from scrapy.utils.test import get_crawler

from moviecrawler.basics.clock import utc_now
from moviecrawler.items import Miss
from moviecrawler.spiders.logformatter import TerseLogFormatter


def test_what_is_logged_has_a_length_and_no_command_of_a_client(
    caplog: pytest.LogCaptureFixture,
) -> None:
    factory = logging.getLogRecordFactory()
    client = logging.getLogger("pymongo")
    level = client.level
    try:
        formatter = TerseLogFormatter.from_crawler(get_crawler())
        logging.getLogger("somebody").error("%s", "x" * 100_000, exc_info=ValueError("y" * 100_000))
        assert 10_000 < len(caplog.text) < 65_000
        assert logging.getLogger("pymongo.command").getEffectiveLevel() == logging.INFO
    finally:
        logging.setLogRecordFactory(factory)
        client.setLevel(level)
    item = Miss(
        site="imdb",
        site_id="tt1",
        outcome="failed",
        url="",
        reason="no idea" * 1000,
        checked_at=utc_now(),
    )
    told = formatter.dropped(item, ValueError("too long"), None, DefaultSpider("test"))
    assert told["msg"] % told["args"] == "Rejected imdb tt1: too long"
