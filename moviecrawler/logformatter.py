"""How Scrapy's own events are logged, and how long a line of the log may be."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from scrapy import signals
from scrapy.logformatter import LogFormatter, LogFormatterResult

from moviecrawler.texts import shortened

if TYPE_CHECKING:
    from typing import Self

    from scrapy import Request, Spider
    from scrapy.crawler import Crawler
    from scrapy.http import Response
    from twisted.python.failure import Failure


_LONGEST_MESSAGE = 10_000
"""Characters, by which Scrapy's stats at the end of a crawl come through whole; longer messages are cut in the middle."""
_LONGEST_TRACEBACK = 50_000
_CLIENTS = ("boto3", "botocore", "pymongo", "redis", "s3transfer", "urllib3")
"""Loggers of libraries that write many records of level DEBUG for their authors."""
_ENGINE, _SCRAPER = logging.getLogger("scrapy.core.engine"), logging.getLogger("scrapy.core.scraper")
"""Loggers with which Scrapy writes of each page and each item."""
_our_levels: dict[str, int] = {}
"""The level that a crawl of this process has given to a client's logger; the next one's LOG_LEVEL may be another."""


class ShortRecord(logging.LogRecord):
    """A log record whose message and traceback have a length, whoever logs: what pages say may stand in either."""

    def getMessage(self) -> str:  # noqa: N802 - logging's own name
        """Return the message with its arguments."""
        return shortened(super().getMessage(), _LONGEST_MESSAGE)

    @property
    def exc_text(self) -> str | None:
        """The traceback, once a formatter has written it."""
        return self._exc_text

    @exc_text.setter
    def exc_text(self, text: str | None) -> None:
        self._exc_text = None if text is None else shortened(text, _LONGEST_TRACEBACK)


def _skip_unread() -> None:
    """Have the clients of services make no record that LOG_LEVEL hides; Scrapy has its handlers drop what was made.

    A logger that somebody has set up, and all of Scrapy's and of this project, stay as they are: handlers of one's own may hang there.
    """
    least = min((handler.level for handler in logging.root.handlers), default=logging.NOTSET)
    for name in _CLIENTS:
        client = logging.getLogger(name)
        if client.level in {logging.NOTSET, _our_levels.get(name)} and all(
            isinstance(each, logging.NullHandler) for each in client.handlers
        ):
            client.setLevel(least)
            _our_levels[name] = least


def _is_read(logger: logging.Logger | None) -> bool:
    """Return whether a handler takes what a logger writes with level DEBUG, or a filter may raise its level."""
    while logger is not None:
        if logger.filters or any(handler.level <= logging.DEBUG for handler in logger.handlers):
            return True
        logger = logger.parent if logger.propagate else None
    return False


class TerseLogFormatter(LogFormatter):
    """Scrapy's formatter, but a dropped item is one line: its id and why, not the whole item.

    No record is made of each page and each item while no handler takes one: most crawls log with level INFO. A subclass gets every
    record, as it may give it another level.
    """

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Give all that this process logs from now on a length, and spare what clients of services write for nobody."""
        logging.setLogRecordFactory(ShortRecord)
        crawler.signals.connect(_skip_unread, signals.engine_started)
        return super().from_crawler(crawler)

    def crawled(self, request: Request, response: Response, spider: Spider) -> LogFormatterResult:
        """Return the log record of a page; None when nobody reads it, but never to a subclass."""
        return super().crawled(request, response, spider) if self._is_read(_ENGINE) else None  # type: ignore[return-value]  # Scrapy documents None

    def scraped(self, item: Any, response: Response | Failure | None, spider: Spider) -> LogFormatterResult:
        """Return the log record of an item; None as for a page."""
        return super().scraped(item, response, spider) if self._is_read(_SCRAPER) else None  # type: ignore[return-value]  # as above

    def _is_read(self, logger: logging.Logger) -> bool:
        return type(self) is not TerseLogFormatter or _is_read(logger)

    def dropped(
        self,
        item: Any,
        exception: BaseException,
        response: Response | Failure | None,  # noqa: ARG002 - Scrapy's own signature
        spider: Spider,
    ) -> LogFormatterResult:
        """Return the log record of an item that a pipeline refused."""
        return {
            "level": logging.WARNING,
            "msg": "Rejected %(site)s %(site_id)s: %(exception)s",
            "args": {
                "site": getattr(item, "site", spider.name),
                "site_id": getattr(item, "site_id", None),
                "exception": exception,
            },
        }
