"""What is made for the log."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import pytest
from scrapy import signals
from scrapy.utils.test import get_crawler

from moviecrawler.logformatter import TerseLogFormatter


@pytest.fixture
def loggers() -> Iterator[None]:
    """Loggers as Scrapy leaves them; what a test sets is undone."""
    factory, scrapy = logging.getLogRecordFactory(), logging.getLogger("scrapy")
    levels = logging.root.level, scrapy.level
    logging.root.setLevel(logging.NOTSET)
    yield
    logging.setLogRecordFactory(factory)
    logging.root.setLevel(levels[0])
    scrapy.setLevel(levels[1])


@pytest.mark.usefixtures("loggers")
def test_records_below_the_log_level_are_not_made_once_a_crawl_has_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logging.root, "handlers", [logging.NullHandler(logging.WARNING)])  # LOG_LEVEL=WARNING
    crawler = get_crawler()
    _formatter = TerseLogFormatter.from_crawler(crawler)
    made: list[str] = []

    def note(*arguments: Any, **named: Any) -> logging.LogRecord:
        record = logging.LogRecord(*arguments, **named)
        made.append(record.msg)
        return record

    logging.setLogRecordFactory(note)
    crawler.signals.send_catch_log(signals.engine_started)
    for name in ("botocore.hooks", "scrapy.core.engine"):
        logging.getLogger(name).info("nobody reads this")
        logging.getLogger(name).warning("somebody reads this")
    assert [line for line in made if line.endswith("reads this")] == ["somebody reads this"] * 2
