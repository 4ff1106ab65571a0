"""What is made for the log."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest
from scrapy.utils.spider import DefaultSpider
from scrapy.utils.test import get_crawler

from moviecrawler.clock import utc_now
from moviecrawler.extensions.logformatter import TerseLogFormatter
from moviecrawler.items import Miss


@pytest.fixture
def formatter() -> Iterator[TerseLogFormatter]:
    factory, client = logging.getLogRecordFactory(), logging.getLogger("pymongo")
    level = client.level
    yield TerseLogFormatter.from_crawler(get_crawler())
    logging.setLogRecordFactory(factory)
    client.setLevel(level)


def test_what_is_logged_has_a_length_whoever_logs(
    formatter: TerseLogFormatter, caplog: pytest.LogCaptureFixture
) -> None:
    assert formatter is not None
    logging.getLogger("somebody").error("%s", "x" * 100_000, exc_info=ValueError("y" * 100_000))
    assert 10_000 < len(caplog.text) < 65_000


@pytest.mark.usefixtures("formatter")
def test_clients_of_services_write_out_no_command() -> None:
    assert not logging.getLogger("pymongo.command").isEnabledFor(logging.DEBUG)
    assert logging.getLogger("pymongo.command").isEnabledFor(logging.INFO)


def test_a_rejected_item_is_one_line(formatter: TerseLogFormatter) -> None:
    item = Miss(site="imdb", site_id="tt1", outcome="failed", url="", reason="no idea" * 1000, checked_at=utc_now())
    told = formatter.dropped(item, ValueError("too long"), None, DefaultSpider("test"))
    assert told["msg"] % told["args"] == "Rejected imdb tt1: too long"
