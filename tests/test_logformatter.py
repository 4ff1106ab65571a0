"""What is made for the log."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import pytest
from scrapy import Request, signals
from scrapy.http import Response
from scrapy.utils.spider import DefaultSpider
from scrapy.utils.test import get_crawler

from moviecrawler.logformatter import TerseLogFormatter

CLIENT = "botocore"


class Kept(logging.Handler):
    """Keeps the messages that it is given."""

    def __init__(self) -> None:
        super().__init__()
        self.messages: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.messages.append(record.getMessage())


@pytest.fixture
def made() -> Iterator[list[str]]:
    """What is made for the log; what a test sets is undone."""
    factory, loggers = logging.getLogRecordFactory(), [logging.getLogger(name) for name in ("scrapy", CLIENT, "mine")]
    levels = [logger.level for logger in (logging.root, *loggers)]
    logging.root.setLevel(logging.NOTSET)
    logging.getLogger(CLIENT).setLevel(logging.NOTSET)
    yield []
    logging.setLogRecordFactory(factory)
    for logger, level in zip((logging.root, *loggers), levels, strict=True):
        logger.setLevel(level)


def begin(made: list[str], monkeypatch: pytest.MonkeyPatch, level: int = logging.WARNING) -> None:
    """Begin a crawl with that LOG_LEVEL, and note from then on what is made."""
    monkeypatch.setattr(logging.root, "handlers", [logging.NullHandler(level)])
    crawler = get_crawler(settings_dict={"MEMUSAGE_ENABLED": False})
    _formatter = TerseLogFormatter.from_crawler(crawler)

    def note(*arguments: Any, **named: Any) -> logging.LogRecord:
        record = logging.LogRecord(*arguments, **named)
        made.append(record.getMessage())
        return record

    crawler.signals.send_catch_log(signals.engine_started)
    logging.setLogRecordFactory(note)
    made.clear()


def test_clients_of_services_make_no_record_below_the_log_level_of_this_crawl(
    made: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for level, read in ((logging.WARNING, ["warning"]), (logging.INFO, ["info", "warning"]), (logging.ERROR, [])):
        begin(made, monkeypatch, level)
        logging.getLogger(f"{CLIENT}.hooks").info("info")
        logging.getLogger(f"{CLIENT}.hooks").warning("warning")
        assert made == read


def test_loggers_that_somebody_has_set_up_and_handlers_of_ones_own_get_all_records(
    made: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    scrapy, client, mine = (logging.getLogger(name) for name in ("scrapy", CLIENT, "mine"))
    kept = Kept()
    scrapy.setLevel(logging.ERROR)  # as Scrapy's documentation advises
    client.setLevel(logging.DEBUG)
    mine.addHandler(kept)
    try:
        begin(made, monkeypatch)
        logging.getLogger("scrapy.core.engine").warning("too much")
        client.debug("of a client")
        mine.debug("for my handler")
        logging.root.addHandler(late := Kept())
        mine.debug("for a later handler")
    finally:
        mine.removeHandler(kept)
    assert made == ["of a client", "for my handler", "for a later handler"]
    assert kept.messages == ["for my handler", "for a later handler"]
    assert late.messages == ["for a later handler"]


class Louder(TerseLogFormatter):
    """Shows each page and each item, in the way that Scrapy's documentation has it."""

    def crawled(self, *args: Any) -> Any:
        return {**super().crawled(*args), "level": logging.INFO}

    def scraped(self, *args: Any) -> Any:
        return {**super().scraped(*args), "level": logging.INFO}


def test_somebody_s_own_formatter_and_filters_may_raise_the_level_of_pages_and_items(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(logging.root, "handlers", [logging.NullHandler(logging.INFO)])
    spider = DefaultSpider("test")
    page = Request("https://example.com/"), Response("https://example.com/")
    assert Louder().crawled(*page, spider)["level"] == Louder().scraped({}, page[1], spider)["level"] == logging.INFO
    monkeypatch.setattr(logging.getLogger("scrapy.core.engine"), "filters", [logging.Filter()])
    assert TerseLogFormatter().crawled(*page, spider)["level"] == logging.DEBUG
    assert TerseLogFormatter().scraped({}, page[1], spider) is None


@pytest.mark.parametrize(("where", "is_read"), [(None, False), ("scrapy", True), ("", True)])
def test_pages_and_items_are_logged_for_a_handler_that_takes_them_and_for_none_else(
    where: str | None, is_read: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logging.root, "handlers", [logging.NullHandler(logging.INFO)])
    formatter, spider = TerseLogFormatter(), DefaultSpider("test")
    request = Request("https://example.com/")
    response = Response(request.url, request=request)
    if where is not None:
        monkeypatch.setattr(logging.getLogger(where), "handlers", [logging.NullHandler(logging.DEBUG)])
    assert bool(formatter.crawled(request, response, spider)) == is_read
    assert bool(formatter.scraped({}, response, spider)) == is_read
